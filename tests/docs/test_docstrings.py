"""Every function and class of the reference has an example, and what it shows is what comes out."""

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

API = Path(__file__).resolve().parents[2] / "docs" / "api"
_DIRECTIVE = re.compile(r":: (\S+)\n((?:   :.*\n)*)")


def found(name: str) -> Any:
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:i]))
        except ImportError:
            continue
        for part in parts[i:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(name)


def listed() -> list[str]:
    """The functions and classes that the pages of the reference name."""
    names: list[str] = []
    for page in sorted(API.glob("*.md")):
        for name, options in _DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            if not inspect.ismodule(module := found(name)):
                names.append(name)
                continue
            given = re.search(r":members:(.*)", options)
            members = [m.strip() for m in given[1].split(",") if m.strip()] if given else []
            names += [f"{name}.{m}" for m in members or (module.__all__ if given else [])]
    return names


@pytest.fixture(scope="module")
def beginning() -> dict[str, Any]:
    """What the lines at the head of the reference have made."""
    (code,) = re.findall(
        r"^```python\n(.*?)^```", (API / "index.md").read_text(encoding="utf-8"), re.S | re.M
    )
    scope: dict[str, Any] = {}
    exec(compile(code, "index.md", "exec"), scope)
    return scope


@pytest.mark.parametrize("name", listed())
def test_example_runs(name, beginning, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)  # of budgets and models
    text = inspect.getdoc(inspect.unwrap(found(name))) or ""
    example = doctest.DocTestParser().get_doctest(text, {**beginning}, name, None, 0)
    assert any(part.want for part in example.examples)
    messages: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=messages.append)
    pytest.importorskip("matplotlib.pyplot").close("all")
    assert not messages, "".join(messages)
