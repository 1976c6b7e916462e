"""The tool that compiles the plugin for every system that it is meant for."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts import script
from tests.upstream.pinned import ROOT, upstream_folders


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return script("tools/check_portable.py")


def sources(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    monkeypatch.setattr(sys.modules["plugin_compile"], "plugin_sources", lambda: list(paths))


def tree() -> Path:
    return upstream_folders()[-1] / "source"


def test_a_warning_is_a_fault(tool, monkeypatch, tmp_path):
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    well, unused, broken = (tmp_path / name for name in ("well.cc", "unused.cc", "broken.cc"))
    well.write_text('#include "plugin_cpp/random/chacha20.h"\nint main() { return 0; }\n')
    unused.write_text("void F(int given) {}\n")
    broken.write_text('#include "plugin_cpp/none.h"\n')
    sources(monkeypatch, well, unused, broken)
    faults = tool.check(tool.COMPILERS[0], tree())
    assert len(faults) == 2
    assert faults[0].startswith("unused.cc: exit status 0\n") and "-Wunused-parameter" in faults[0]
    assert faults[1].startswith("broken.cc: exit status 1\n") and "none.h" in faults[1]


def test_a_compiler_that_is_not_there_is_a_fault_that_names_its_package(tool):
    (fault,) = tool.check(tool.Compiler("other", ("no-such-compiler",), "some-package"), tree())
    assert "no-such-compiler" in fault and "apt install some-package" in fault


@pytest.mark.parametrize("name", ["clang", "mingw", "aarch64"])
def test_what_asks_for_a_system_compiles_for_each(tool, monkeypatch, name):
    compiler = next(c for c in tool.COMPILERS if c.name == name)
    if compiler.find() is None:
        pytest.skip(f"no {compiler.command[0]} on this machine")
    folder = ROOT / "plugin_cpp"
    asking = [p for p in sorted(folder.rglob("*.cc")) if "_WIN32" in p.read_text()]
    assert {p.name for p in asking} >= {"chacha20.cc", "entropy.cc", "page_file_windows.cc"}
    sources(monkeypatch, *asking)
    assert tool.check(compiler, tree()) == []
