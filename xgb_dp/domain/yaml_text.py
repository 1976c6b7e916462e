"""Writes the YAML of schema files, with keys that read back as strings."""

from __future__ import annotations

import re
from typing import Any

_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


def format_yaml(content: dict[str, Any], indent: int = 0) -> str:
    """A mapping of texts to mappings, lists, texts and numbers."""
    lines = []
    for key, value in content.items():
        head = f"{' ' * indent}{_key(key)}:"
        if isinstance(value, dict) and indent < 2 and value:
            lines += [head, format_yaml(value, indent + 2).rstrip("\n")]
        else:
            lines.append(f"{head} {format_flow(value)}")
    return "\n".join(lines) + "\n"


def format_flow(value: Any) -> str:
    """A mapping, list, text or number on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)}: {format_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(format_flow, value)) + "]"
    return _scalar(value)


def _key(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
    return name if plain and name.lower() not in _WORDS else _scalar(name)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return repr(value)
    return '"' + "".join(map(_character, value)) + '"'


def _character(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    if c.isprintable():
        return c
    return f"\\U{ord(c):08X}"
