"""JSON texts that carry a digest of themselves, and a reader that takes nothing on trust.

The digest tells a text that was damaged, on a disk or by an editor, from a sound one. There is no
key: it does not stop anybody who changes a text on purpose and writes a new digest.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from ..engine import json_texts

DIGEST = "digest"
"""Key of the digest in a sealed text."""
_LONGEST = 100  # digits of a number: no double and no integer of ours has more


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical form of a JSON object: keys sorted, no spaces, ASCII."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def dumps(content: Mapping[str, Any], indent: int | None = None) -> str:
    """The content as JSON with its digest, which replaces any that it had."""
    content = {name: value for name, value in content.items() if name != DIGEST}
    sealed = {**content, DIGEST: digest(content)}
    separators = (",", ":") if indent is None else None
    text = json.dumps(sealed, indent=indent, separators=separators, allow_nan=False)
    loads(text)
    return text


def loads(text: str | bytes) -> dict[str, Any]:
    """Read a JSON object that carries a digest."""
    try:
        content = json_texts.loads(
            text,
            object_pairs_hook=unique,
            parse_constant=_refuse,
            parse_float=_real,
            parse_int=_whole,
        )
        if not isinstance(content, dict):
            raise ValueError("it is not a JSON object")
        json.dumps(content, ensure_ascii=False).encode()  # no half of a pair of surrogates
        named = content.pop(DIGEST, None)
        if named is None:
            raise ValueError("it has no digest")
        sound = named == digest(content)
    except UnicodeError:
        raise ValueError("it has text that is no Unicode") from None
    if not sound:
        raise ValueError("the digest is not that of the content")
    return content


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs; for ``json.loads``."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key is given twice")
    return content


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a finite number")


def _real(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _whole(text: str) -> int:
    if len(text) > _LONGEST:
        raise ValueError("a number has too many digits")
    return int(text)
