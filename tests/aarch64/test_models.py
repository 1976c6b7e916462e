"""The C++ parts on 64-bit ARM, emulated: what they compute is equal, byte by byte.

`make test-aarch64` builds the library for ARM and names its folder in XGB_DP_AARCH64.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
from xgboost.core import _LIB

from tests.aarch64.cases import CASES, write_case, write_discovery

DRIVER = Path(__file__).with_name("driver.cc")
SYSROOT = "/usr/aarch64-linux-gnu"
FOLDER = os.environ.get("XGB_DP_AARCH64", "")

pytestmark = pytest.mark.skipif(not FOLDER, reason="run by make test-aarch64")


@dataclass
class Outputs:
    """Folders of what the driver wrote on this processor and on ARM, and Python's models."""

    here: Path
    arm: Path
    models: dict[str, xgb.Booster]


def build_driver(compiler: str, library: Path, program: Path) -> None:
    headers = Path(FOLDER) / "upstream" / "source" / "cpp_src" / "include"
    command = [compiler, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-isystem{headers}"]
    subprocess.run([*command, DRIVER, library, "-fopenmp", "-o", program], check=True)


def run_driver(command: list[str], library: Path, cases: Path, out: Path) -> None:
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    if command[1:]:
        command = [*command[:-1], "-E", f"LD_LIBRARY_PATH={library.parent}", command[-1]]
    else:
        environment["LD_LIBRARY_PATH"] = str(library.parent)
    subprocess.run([*command, cases, out], check=True, env=environment)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    root = tmp_path_factory.mktemp("aarch64")
    cases, here, arm = root / "cases", root / "here", root / "arm"
    cases.mkdir()
    models = {name: write_case(name, cases / name) for name in CASES}
    write_discovery(cases / "discovery")
    native, crossed = Path(_LIB.path), Path(FOLDER) / "libxgboost" / "lib" / "libxgboost.so"
    build_driver("g++", native, root / "driver")
    build_driver("aarch64-linux-gnu-g++", crossed, root / "driver-arm")
    run_driver([str(root / "driver")], native, cases, here)
    emulated = ["qemu-aarch64", "-L", SYSROOT, str(root / "driver-arm")]
    run_driver(emulated, crossed, cases, arm)
    return Outputs(here, arm, models)


def test_both_wrote_the_same_files(outputs):
    names = [
        sorted(p.relative_to(f).as_posix() for p in f.rglob("*") if p.is_file())
        for f in (outputs.here, outputs.arm)
    ]
    assert names[0] == names[1]
    assert {f"{name}/model.ubj" for name in CASES} < set(names[0])
    assert {"poisson/answer-0", "poisson/answer-1", "gamma/answer-1"} < set(names[0])


@pytest.mark.parametrize("name", [*CASES, "discovery", "samplers", "accountant"])
def test_what_is_computed_is_equal(outputs, name):
    for file in sorted((outputs.here / name).iterdir()):
        assert file.read_bytes() == (outputs.arm / name / file.name).read_bytes(), file.name


@pytest.mark.parametrize("name", CASES)
def test_models_are_those_that_python_trains(outputs, name):
    model = xgb.Booster(model_file=str(outputs.arm / name / "model.ubj"))
    trained = outputs.models[name]
    assert model.num_boosted_rounds() == trained.num_boosted_rounds() > 0
    assert model.get_dump(with_stats=True) == trained.get_dump(with_stats=True)
    assert any("leaf=" in tree and "<" in tree for tree in model.get_dump())


def test_the_system_hands_out_keys(outputs):
    for folder in (outputs.here, outputs.arm):
        assert (folder / "samplers" / "has-key").read_bytes() == b"1"


def test_draws_are_many(outputs):
    drawn = np.fromfile(outputs.arm / "samplers" / "gaussian-1000", np.int64)
    assert drawn.size == 4096
    assert 900 < drawn.std() < 1100
