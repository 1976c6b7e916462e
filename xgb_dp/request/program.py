"""Compile a user's loss to instructions on the numbers of one row.

The function is called once, before any row is read, with symbols that record every operation. It is
never called on a row, so even a malicious function cannot couple, store or send rows.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import PrivacyParameterError
from ..parameters.config import Config

_MOST = 1000  # instructions
_SHOWN = 2000  # characters of the record
_SAME = ("sign", "exp", "expm1", "log", "log1p", "sqrt", "tanh", "sin", "cos")
_ARITHMETIC = dict.fromkeys(("absolute", "fabs"), "abs") | {name: name for name in _SAME}
_ARITHMETIC |= {"negative": "neg", "logical_not": "not", "arctan": "atan"}
_ARITHMETIC |= {"add": "add", "subtract": "sub", "multiply": "mul"}
_ARITHMETIC |= {"maximum": "max", "minimum": "min"}
_ARITHMETIC |= dict.fromkeys(("divide", "true_divide"), "div")
_ARITHMETIC |= dict.fromkeys(("power", "float_power"), "pow")
_ARITHMETIC |= dict.fromkeys(("logical_and", "bitwise_and"), "and")
_ARITHMETIC |= dict.fromkeys(("logical_or", "bitwise_or"), "or")
_ARITHMETIC |= {"less": "lt", "less_equal": "le", "equal": "eq"}
_SWAPPED = {"greater": "lt", "greater_equal": "le"}
_USE = (
    "Use arithmetic, comparisons and NumPy functions: np.where(condition, a, b) instead of `if`, "
    "np.minimum and np.maximum instead of `min` and `max`."
)


@dataclass(frozen=True)
class Program:
    """Gradient and Hessian of one row, as instructions that read earlier ones."""

    # each a name with the positions of its operands, or a number as a string
    instructions: tuple[tuple[Any, ...], ...]
    gradient: int  # position of the gradient
    hessian: int  # position of the Hessian

    def plan(self, s: Config) -> dict[str, Any]:
        """The entry in the plan. Its margins are in units of half the label range."""
        return {
            "unit": s.half_width,
            "program": [list(one) for one in self.instructions],
            "gradient": self.gradient,
            "hessian": self.hessian,
        }

    def to_record(self) -> dict[str, str]:
        """The entry in a model's public record: both formulas and a digest of the program."""
        text = json.dumps([self.instructions, self.gradient, self.hessian])
        return {
            "gradient": self._text(self.gradient),
            "hessian": self._text(self.hessian),
            "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
        }

    def _text(self, at: int) -> str:
        """A formula in one line, truncated if it is long."""
        strings: list[str] = []
        for name, *read in self.instructions:
            if name == "number":
                strings.append(read[0])
            else:
                inner = ", ".join(strings[i] for i in read)
                strings.append((f"{name}({inner})" if read else name)[: _SHOWN + 1])
        text = strings[at]
        return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."


class _UntracedError(TypeError):
    """An operation that cannot be recorded as arithmetic; the message names it."""


class _Trace:
    """The distinct instructions so far."""

    def __init__(self) -> None:
        self.instructions: dict[tuple[Any, ...], int] = {}

    def add(self, name: str, *read: Any) -> _Symbol:
        """Add an instruction and return its symbol."""
        at = self.instructions.setdefault((name, *read), len(self.instructions))
        if len(self.instructions) > _MOST:
            raise PrivacyParameterError(
                f"`dp_objective` needs more than {_MOST} arithmetic operations. Simplify it."
            )
        return _Symbol(self, at)

    def at(self, value: Any) -> int:
        """Position of a symbol or a number."""
        if isinstance(value, _Symbol):
            if value.trace is not self:
                raise _UntracedError("a symbol from another function")
            return value.at
        if isinstance(value, (bool, np.bool_)):
            value = float(value)
        if not isinstance(value, (int, float, np.integer, np.floating)) and not (
            isinstance(value, np.ndarray) and value.ndim == 0
        ):
            raise _UntracedError(f"a value of type {type(value).__name__}")
        number = float(value)
        if not math.isfinite(number):
            raise _UntracedError("a number that is not finite")
        return self.add("number", repr(number)).at


class _Symbol(NDArrayOperatorsMixin):
    """An unknown number of a row, which records its operations."""

    __slots__ = ("at", "trace")

    def __init__(self, trace: _Trace, at: int) -> None:
        self.trace, self.at = trace, at

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        """Record arithmetic, comparisons and NumPy functions."""
        name = ufunc.__name__
        if method != "__call__" or options:
            raise _UntracedError(f"np.{name} with options")
        trace = self.trace
        if name == "positive":
            return trace.add("add", trace.at(given[0]), trace.at(0.0))
        if name == "square":
            return trace.add("mul", trace.at(given[0]), trace.at(given[0]))
        if name == "not_equal":
            return trace.add("not", trace.add("eq", *map(trace.at, given)).at)
        if name in _SWAPPED:
            return trace.add(_SWAPPED[name], *map(trace.at, reversed(given)))
        if name not in _ARITHMETIC:
            raise _UntracedError(f"np.{name}")
        return trace.add(_ARITHMETIC[name], *map(trace.at, given))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Record ``np.where`` and ``np.clip``."""
        trace = self.trace
        if func is np.where and len(args) == 3 and not kwargs:
            return trace.add("where", *map(trace.at, args))
        if func is np.clip and len(args) == 3 and not kwargs:
            value, low, high = args
            return trace.add(
                "min", trace.add("max", *map(trace.at, (value, low))).at, trace.at(high)
            )
        raise _UntracedError(f"this form of np.{func.__name__}")

    def __bool__(self) -> bool:
        raise _UntracedError("a branch by `if`, `and`, `or`, `not`, `min`, `max` or `while`")

    def _refuse(self, *_: Any) -> Any:
        raise _UntracedError("a conversion to a plain number, as by functions of `math`")

    __float__ = __int__ = __index__ = __complex__ = __len__ = __iter__ = __getitem__ = _refuse


def own_objective(name: str, value: Any, s: Any = None) -> Program:
    """Compile a function of (prediction, label, weight) that returns gradient and Hessian."""
    if isinstance(value, Program):
        return value
    if not callable(value):
        raise PrivacyParameterError(
            f"`{name}` must be a function (prediction, label, weight) -> (gradient, Hessian) of "
            f"one row; got {type(value).__name__}."
        )
    trace = _Trace()
    row = [trace.add(name) for name in ("margin", "label", "weight")]
    try:
        gradient, hessian = value(*row)
        at = trace.at(gradient), trace.at(hessian)
    except PrivacyParameterError:
        raise
    except Exception as error:
        # The message of the exception could contain values from the closure.
        what = str(error) if isinstance(error, _UntracedError) else type(error).__name__
        raise PrivacyParameterError(
            "`dp_objective` must be a function (prediction, label, weight) -> (gradient, Hessian) "
            f"of one row; it failed with: {what}. {_USE} No row was read."
        ) from None
    return _needed(tuple(trace.instructions), *at)


def _needed(instructions: tuple[tuple[Any, ...], ...], gradient: int, hessian: int) -> Program:
    """Drop unused instructions. If the weight is unused, it will multiply both results."""
    kept = {gradient, hessian}
    for at in reversed(range(len(instructions))):
        name, *read = instructions[at]
        if at in kept and name != "number":
            kept |= set(read)
    place = {at: i for i, at in enumerate(sorted(kept))}
    needed = []
    for at in sorted(kept):
        name, *read = instructions[at]
        needed.append((name, *(read if name == "number" else (place[i] for i in read))))
    return Program(tuple(needed), place[gradient], place[hessian])
