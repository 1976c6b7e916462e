"""The tools that try the plugin on another upstream release, and for every system."""

import sys
from pathlib import Path

import pytest

from tests.scripts import script
from tests.upstream.stock import ROOT, fetch_upstream, pinned_sdist, upstream_folders

tool = script("tools/rebase_check.py")
portable = script("tools/check_portable.py")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    fetch_upstream.unpack(fetch_upstream.read_upstream(), pinned_sdist(), folder)
    return folder


def test_a_changed_file_rejects_its_patches_alone(tree):
    version = fetch_upstream.read_upstream().version
    core = tree / "xgboost" / "core.py"
    core.write_text(core.read_text(encoding="utf-8").replace("    ", " "), encoding="utf-8")
    results = dict(tool.try_patches(version, tree))
    assert len(results) == len(fetch_upstream.read_series())
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


def test_the_compiler_says_what_is_gone(tree):
    source = ROOT / "plugin_cpp" / "random" / "chacha20.cc"
    compile_file = sys.modules["plugin_compile"].compile_file
    assert tool.describe(*compile_file(["c++"], source, tree)) == ""
    (tree / "cpp_src" / "include" / "xgboost" / "logging.h").write_text("#error 'moved'\n")
    assert "moved" in tool.describe(*compile_file(["c++"], source, tree))


def test_a_release_that_is_not_pinned_takes_the_words_of_the_newest():
    newest = fetch_upstream.read_releases()[-1].version
    assert tool.find_release("99.0.0").sha256 == ""
    for name in fetch_upstream.read_names():
        assert tool.words_for(name, "99.0.0") == tool.words_for(name, newest)


def test_an_interpreter_is_found_for_each_release():
    find_python = script("tools/find_python.py").find_python
    assert find_python(fetch_upstream.read_upstream().version) is not None
    assert find_python("0.0.0") is None


def sources(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    monkeypatch.setattr(sys.modules["plugin_compile"], "plugin_sources", lambda: list(paths))


def source() -> Path:
    return upstream_folders()[-1] / "source"


def test_a_warning_is_a_fault(monkeypatch, tmp_path):
    monkeypatch.setattr(portable, "ROOT", tmp_path)
    well, unused, broken = (tmp_path / name for name in ("well.cc", "unused.cc", "broken.cc"))
    well.write_text('#include "plugin_cpp/random/chacha20.h"\nint main() { return 0; }\n')
    unused.write_text("void F(int given) {}\n")
    broken.write_text('#include "plugin_cpp/none.h"\n')
    sources(monkeypatch, well, unused, broken)
    faults = portable.check(portable.COMPILERS[0], source())
    assert len(faults) == 2
    assert faults[0].startswith("unused.cc: exit status 0\n") and "-Wunused-parameter" in faults[0]
    assert faults[1].startswith("broken.cc: exit status 1\n") and "none.h" in faults[1]


def test_a_compiler_that_is_not_there_is_a_fault_that_names_its_package():
    (fault,) = portable.check(
        portable.Compiler("other", ("no-such-compiler",), "some-package"), source()
    )
    assert "no-such-compiler" in fault and "apt install some-package" in fault


@pytest.mark.parametrize("name", ["clang", "mingw", "aarch64"])
def test_what_asks_for_a_system_compiles_for_each(monkeypatch, name):
    compiler = next(c for c in portable.COMPILERS if c.name == name)
    if compiler.find() is None:
        pytest.skip(f"no {compiler.command[0]} on this machine")
    folder = ROOT / "plugin_cpp"
    asking = [p for p in sorted(folder.rglob("*.cc")) if "_WIN32" in p.read_text()]
    assert {p.name for p in asking} >= {"chacha20.cc", "page_file_windows.cc"}
    sources(monkeypatch, *asking)
    assert portable.check(compiler, source()) == []
