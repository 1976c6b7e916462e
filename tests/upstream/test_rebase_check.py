"""The tool that tries patches and plugin on another upstream release."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts import script
from tests.upstream.pinned import ROOT, fetch_upstream, pinned_sdist


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return script("tools/rebase_check.py")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    fetch_upstream.unpack(fetch_upstream.read_upstream(), pinned_sdist(), folder)
    return folder


def test_a_changed_file_rejects_its_patches_alone(tool, tree):
    version = fetch_upstream.read_upstream().version
    core = tree / "xgboost" / "core.py"
    core.write_text(core.read_text(encoding="utf-8").replace("    ", " "), encoding="utf-8")
    results = dict(tool.try_patches(version, tree))
    assert len(results) == len(fetch_upstream.read_names())
    rejected = {
        Path(name).name for name, result in results.items() if result.startswith("REJECTED")
    }
    changed = {
        patch.name
        for patch in fetch_upstream.read_series()
        if "xgboost/core.py" in fetch_upstream.patch_targets(patch)
    }
    assert changed
    assert rejected == changed
    assert all("xgboost/core.py" in results[name] for name in results if Path(name).name in changed)


def test_the_compiler_says_what_is_gone(tool, tree):
    source = ROOT / "plugin_cpp" / "random" / "entropy.cc"
    compile_file = sys.modules["plugin_compile"].compile_file
    assert tool.describe(*compile_file(["c++"], source, tree)) == ""
    (tree / "cpp_src" / "include" / "xgboost" / "logging.h").write_text("#error 'moved'\n")
    assert "moved" in tool.describe(*compile_file(["c++"], source, tree))


def test_a_release_that_is_not_pinned_takes_the_words_of_the_newest(tool):
    newest = fetch_upstream.read_releases()[-1].version
    assert tool.find_release("99.0.0").sha256 == ""
    for name in fetch_upstream.read_names():
        assert tool.words_for(name, "99.0.0") == tool.words_for(name, newest)


def test_an_interpreter_is_found_for_each_release():
    find_python = script("tools/find_python.py").find_python
    assert find_python(fetch_upstream.read_upstream().version) is not None
    assert find_python("0.0.0") is None
