"""Reader for UBJSON, the binary format of XGBoost models, independent of XGBoost.

XGBoost does not check the end of the file while it reads typed arrays, so a truncated file can
crash the process. Every file is therefore parsed here first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_TYPES = {
    b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8",
    b"C": ">S1",
}  # fmt: skip
_MARKS = {dtype: mark for mark, dtype in _TYPES.items()}
_INTEGERS = frozenset({b"i", b"U", b"I", b"l", b"L"})
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_DEEPEST = 100
_ARRAYS = {name.encode(): dtype for dtype, names in {
    ">f4": "base_weights loss_changes split_conditions sum_hessian",
    ">i4": "categories categories_nodes left_children offsets parents right_children "
           "split_indices feature_segments sorted_idx",
    ">i8": "categories_segments categories_sizes",
    ">u1": "default_left split_type",
}.items() for name in names.split()}  # fmt: skip
"""Types of the numeric arrays in a model, by name."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError("the file is truncated")
        self.at += size
        return self.data[self.at - size : self.at]

    def length(self) -> int:
        mark = self.take(1)
        if mark not in _INTEGERS:
            raise ValueError("a length is not an integer")
        value = int(self.numbers(mark, 1)[0])
        if value < 0:
            raise ValueError("a length is negative")
        return value

    def value(self, mark: bytes, depth: int) -> Any:
        """Read a value of a type; typed arrays become NumPy arrays."""
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if mark in _TYPES:
            return self.numbers(mark, 1)[0]
        if mark == b"S":
            return self.text()
        if mark == b"{":
            return self.members(depth)
        if mark == b"[":
            return self.array(depth)
        if mark not in _CONSTANTS:
            raise ValueError("a value has an unknown type")
        return _CONSTANTS[mark]

    def numbers(self, mark: bytes, count: int) -> Any:
        dtype = np.dtype(_TYPES[mark])
        return np.frombuffer(self.take(dtype.itemsize * count), dtype)

    def text(self) -> bytes:
        return self.take(self.length())

    def members(self, depth: int) -> dict[bytes, Any]:
        content: dict[bytes, Any] = {}
        while self.data[self.at : self.at + 1] != b"}":
            name = self.text()
            value = self.value(self.take(1), depth + 1)
            if name in content:  # parsers differ in which of the two values they keep
                raise ValueError("a key is given twice")
            content[name] = value
        self.take(1)
        return content

    def array(self, depth: int) -> Any:
        mark = self.data[self.at : self.at + 1]
        if mark == b"$":
            self.take(1)
            mark = self.take(1)
            if mark not in _TYPES or self.take(1) != b"#":
                raise ValueError("an array has an unknown type")
            return self.numbers(mark, self.length())
        if mark == b"#":
            self.take(1)
            return [self.value(self.take(1), depth + 1) for _ in range(self.length())]
        values = []
        while (mark := self.take(1)) != b"]":
            values.append(self.value(mark, depth + 1))
        return values


def _read(data: bytes) -> dict[bytes, Any]:
    reader = _Reader(data)
    if reader.take(1) != b"{":
        raise ValueError("the file does not start with an object")
    content = reader.members(0)
    if reader.at != len(data):
        raise ValueError("the file continues after the object")
    return content


def check(data: bytes) -> None:
    """Raise ValueError unless the data consists of exactly one UBJSON object."""
    _read(data)


def is_canonical(data: bytes) -> bool:
    """Return whether a model has the exact bytes that XGBoost would write for its content."""
    return _written(_read(data)) == data


def _written(value: Any, name: bytes = b"") -> bytes:
    """Write a value as XGBoost does; empty if XGBoost never writes such a value for this name."""
    if isinstance(value, dict):
        members = (_text(key) + _written(value[key], key) for key in sorted(value))
        return b"{" + b"".join(members) + b"}"
    if isinstance(value, bytes):
        return b"S" + _text(value)
    if isinstance(value, list):
        items = b"".join(map(_written, value))
        return b"" if name in _ARRAYS else b"[#" + _size(len(value)) + items
    if isinstance(value, np.ndarray):
        dtype = value.dtype.str.replace("|", ">")  # single bytes have no byte order
        if _ARRAYS.get(name, dtype if name == b"values" else "") != dtype:
            return b""
        return b"[$" + _MARKS[dtype] + b"#" + _size(len(value)) + value.tobytes()
    if isinstance(value, np.integer):
        return _integer(int(value))
    return next((mark for mark, known in _CONSTANTS.items() if value is known), b"")


def _integer(value: int) -> bytes:
    for mark in (b"i", b"I", b"l"):
        limits = np.iinfo(_TYPES[mark])
        if limits.min < value < limits.max:
            return mark + np.array(value, _TYPES[mark]).tobytes()
    return _size(value)


def _size(value: int) -> bytes:
    return b"L" + value.to_bytes(8, "big", signed=True)


def _text(value: bytes) -> bytes:
    return _size(len(value)) + value


def loads(data: bytes) -> dict[str, Any]:
    """Return the object in the data, as ``json.loads`` would return it from XGBoost's JSON."""
    content: dict[str, Any] = _plain(_read(data))
    return content


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name.decode(): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        if value.dtype == ">f4":
            return [float(str(number)) for number in value]
        return value.tolist()
    if isinstance(value, np.float32):
        return float(str(value))
    return value.item() if isinstance(value, np.generic) else value
