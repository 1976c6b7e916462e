"""Whether a file is sound UBJSON, the form in which XGBoost saves models.

XGBoost reads the typed arrays of a file without looking where it ends, so that a file that was cut
off can end the process. This looks at the structure first; it reads no array.
"""

from __future__ import annotations

import struct

__all__ = ["check"]

_SIZES = {b"i": 1, b"U": 1, b"C": 1, b"I": 2, b"l": 4, b"d": 4, b"L": 8, b"D": 8}
_INTEGERS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q"}
_CONSTANTS = (b"Z", b"T", b"F")
_DEEPEST = 100


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError("the file ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def skip(self, size: int) -> None:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError("the file ends too early")
        self.at += size

    def length(self) -> int:
        form = _INTEGERS.get(self.take(1))
        if form is None:
            raise ValueError("a length is no integer")
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        if value < 0:
            raise ValueError("a length is negative")
        return int(value)

    def value(self, mark: bytes, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        if mark in _SIZES:
            self.skip(_SIZES[mark])
        elif mark == b"S":
            self.skip(self.length())
        elif mark == b"{":
            while self.data[self.at : self.at + 1] != b"}":
                self.skip(self.length())
                self.value(self.take(1), depth + 1)
            self.skip(1)
        elif mark == b"[":
            self.array(depth)
        elif mark not in _CONSTANTS:
            raise ValueError("a value is of an unknown type")

    def array(self, depth: int) -> None:
        mark = self.data[self.at : self.at + 1]
        if mark == b"$":
            self.skip(1)
            size = _SIZES.get(self.take(1))
            if size is None or self.take(1) != b"#":
                raise ValueError("an array is of an unknown type")
            self.skip(size * self.length())
        elif mark == b"#":
            self.skip(1)
            for _ in range(self.length()):
                self.value(self.take(1), depth + 1)
        else:
            while (mark := self.take(1)) != b"]":
                self.value(mark, depth + 1)


def check(data: bytes) -> None:
    """Refuse what is not one UBJSON object from the first to the last byte.

    Raises:
        ValueError: It is not.
    """
    reader = _Reader(data)
    if reader.take(1) != b"{":
        raise ValueError("the file does not begin with an object")
    reader.value(b"{", 0)
    if reader.at != len(data):
        raise ValueError("the file goes on after its end")
