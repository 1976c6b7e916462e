"""Print every error and warning of the project, by file: ``python -m docs.messages``.

Editors read this list from top to bottom. Placeholders stand in braces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORDS = 4  # shorter strings are names
CPP_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CPP_CALL = r"\b(?:CHECK\w*|LOG\(FATAL\)|Require|Check|Fail|throw|constexpr char)\b"
CPP_MESSAGE = re.compile(rf'{CPP_CALL}(?:{CPP_STRING.pattern}|[^;"])*;')


def text_of(node: ast.expr) -> str:
    """The text of a string expression, with expressions in braces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue)
            else text_of(part)
            for part in node.values
        )  # fmt: skip
    return ""


def python_messages(path: Path) -> Iterator[tuple[int, str]]:
    """Strings of a module that are sentences and no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in skipped:
            text = " ".join(text_of(node).split())
            if len(text.split()) >= WORDS:
                yield node.lineno, text


def cpp_messages(path: Path) -> Iterator[tuple[int, str]]:
    """Messages of checks in a C++ file."""
    source = path.read_text(encoding="utf-8")
    for match in CPP_MESSAGE.finditer(source):
        text = " ".join("".join(CPP_STRING.findall(match[0])).split())
        if len(text.split()) >= WORDS:
            yield source.count("\n", 0, match.start()) + 1, text


def main() -> None:
    """Print the list as Markdown."""
    for folder, pattern, read in (
        ("xgb_dp", "*.py", python_messages),
        ("plugin_cpp", "*.cc", cpp_messages),
        ("plugin_cpp", "*.h", cpp_messages),
    ):
        for path in sorted((ROOT / folder).rglob(pattern)):
            if messages := sorted(set(read(path))):
                print(f"\n## {path.relative_to(ROOT)}\n")
                for line, text in messages:
                    print(f"* {line}: {text}")


if __name__ == "__main__":
    main()
