"""Schema files as plain values: YAML, TOML or JSON, with every key once.

In YAML a scalar stays the text that is written: else ``no`` were a truth value, 011 nine, 1:30
ninety and 2024-01-01 a date. Only null, ~ and nothing at all are no text.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from ..errors import PrivacyParameterError

_NULLS = ("", "~", "null", "Null", "NULL")
_DEEPEST = 32  # levels; a schema has four


def read_schema_file(path: Path) -> Any:
    """The content of a schema file."""
    parse = {".yaml": _yaml, ".yml": _yaml, ".json": json_of, ".toml": _toml}.get(
        path.suffix.lower()
    )
    if parse is None:
        raise PrivacyParameterError(
            "the ending is not known. A schema file ends in .yaml, .toml or .json."
        )
    try:
        content = parse(path.read_text(encoding="utf-8-sig"))
        json.dumps(content, ensure_ascii=False, default=str).encode()  # "\\ud800" is an escape
        return content
    except UnicodeError:
        raise PrivacyParameterError(
            "it is not UTF-8 text, or a name in it cannot be written in UTF-8. Save the schema "
            "file in UTF-8, without halves of characters such as \\ud800."
        ) from None
    except RecursionError:
        raise PrivacyParameterError(
            "cannot be parsed: it is nested too deeply. A schema has at most a few levels."
        ) from None


def json_of(text: str) -> Any:
    """The value of a JSON text in which no key is given twice."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, count in Counter(key for key, _ in items).items():
            if count > 1:
                raise PrivacyParameterError(f"the key {key!r} is given twice. Keep one of them.")
        return dict(items)

    def constant(name: str) -> Any:
        raise PrivacyParameterError(
            f"{name} is not a number that JSON knows. Write a finite number."
        )

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise PrivacyParameterError(
            f"cannot be parsed as JSON: line {error.lineno}: {error.msg}."
        ) from None
    except PrivacyParameterError:
        raise
    except ValueError:  # an integer of thousands of digits
        raise PrivacyParameterError(
            "cannot be parsed as JSON: a number is too long. Write it with fewer digits."
        ) from None


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)  # refuses a key that is given twice, with its line
    except ValueError as error:
        raise PrivacyParameterError(f"cannot be parsed as TOML: {error}.") from None


def _yaml(text: str) -> Any:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise PrivacyParameterError(
            f"cannot be parsed as YAML: {line}{error.problem or error.context}."
        ) from None
    except yaml.YAMLError:
        raise PrivacyParameterError(
            "cannot be parsed as YAML. Compare it with what `xgb-dp schema FILE` prints."
        ) from None
    return None if node is None else _plain(node, set(), 0)


def _plain(node: Any, seen: set[int], depth: int) -> Any:
    """The value of a node of YAML's syntax tree."""
    import yaml

    line = node.start_mark.line + 1
    if depth > _DEEPEST:
        raise PrivacyParameterError(
            f"line {line}: it is nested too deeply. A schema has at most a few levels."
        )
    if id(node) in seen:
        raise PrivacyParameterError(
            f"line {line}: a schema must not contain anchors or aliases (&, *). Write the value "
            "in full."
        )
    seen.add(id(node))
    if node.tag.rpartition(":")[2] not in ("str", "seq", "map"):
        raise PrivacyParameterError(
            f"line {line}: a schema must not contain tags (!). Remove the tag, or put the text in "
            "quotes."
        )
    if isinstance(node, yaml.ScalarNode):
        return None if node.style is None and node.value in _NULLS else str(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(entry, seen, depth + 1) for entry in node.value]
    content: dict[str, Any] = {}
    for key, value in node.value:
        at = key.start_mark.line + 1
        name = _plain(key, seen, depth + 1)
        if not isinstance(name, str):
            raise PrivacyParameterError(f"line {at}: a key must be a name; put it in quotes.")
        if name in content:
            raise PrivacyParameterError(
                f"line {at}: the key {name!r} is given twice. Keep one of them."
            )
        content[name] = _plain(value, seen, depth + 1)
    return content
