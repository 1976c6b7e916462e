"""UBJSON, the form in which XGBoost saves models, read without it.

XGBoost reads the typed arrays of a file without looking where it ends, so that a file that was cut
off can end the process. Every file is read here first.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

__all__ = ["check", "loads"]

_TYPES = {
    b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8",
    b"C": ">S1",
}  # fmt: skip
_INTEGERS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q"}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_DEEPEST = 100


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError("the file ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def length(self) -> int:
        form = _INTEGERS.get(self.take(1))
        if form is None:
            raise ValueError("a length is no integer")
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        if value < 0:
            raise ValueError("a length is negative")
        return int(value)

    def value(self, mark: bytes, depth: int) -> Any:
        """The value of a type; arrays of numbers as NumPy holds them."""
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        if mark in _TYPES:
            return self.numbers(mark, 1)[0]
        if mark == b"S":
            return self.text()
        if mark == b"{":
            return self.members(depth)
        if mark == b"[":
            return self.array(depth)
        if mark not in _CONSTANTS:
            raise ValueError("a value is of an unknown type")
        return _CONSTANTS[mark]

    def numbers(self, mark: bytes, count: int) -> Any:
        kind = np.dtype(_TYPES[mark])
        return np.frombuffer(self.take(kind.itemsize * count), kind)

    def text(self) -> bytes:
        return self.take(self.length())

    def members(self, depth: int) -> dict[bytes, Any]:
        found: dict[bytes, Any] = {}
        while self.data[self.at : self.at + 1] != b"}":
            name = self.text()
            value = self.value(self.take(1), depth + 1)
            if name in found:  # readers differ in which one they take
                raise ValueError("a key is given twice")
            found[name] = value
        self.take(1)
        return found

    def array(self, depth: int) -> Any:
        mark = self.data[self.at : self.at + 1]
        if mark == b"$":
            self.take(1)
            kind = self.take(1)
            if kind not in _TYPES or self.take(1) != b"#":
                raise ValueError("an array is of an unknown type")
            return self.numbers(kind, self.length())
        if mark == b"#":
            self.take(1)
            return [self.value(self.take(1), depth + 1) for _ in range(self.length())]
        found = []
        while (mark := self.take(1)) != b"]":
            found.append(self.value(mark, depth + 1))
        return found


def _read(data: bytes) -> dict[bytes, Any]:
    reader = _Reader(data)
    if reader.take(1) != b"{":
        raise ValueError("the file does not begin with an object")
    found: dict[bytes, Any] = reader.value(b"{", 0)
    if reader.at != len(data):
        raise ValueError("the file goes on after its end")
    return found


def check(data: bytes) -> None:
    """Refuse what is not one UBJSON object from the first to the last byte."""
    _read(data)


def loads(data: bytes) -> dict[str, Any]:
    """The object that a file holds, as ``json.loads`` reads it from XGBoost's JSON."""
    found: dict[str, Any] = _plain(_read(data))
    return found


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
