"""A loss of one's own is traced once, before any row is read, into a list of instructions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xgb_dp.errors import PrivacyParameterError
from xgb_dp.request.program import Program, own_objective

ONE: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "not": np.logical_not, "exp": np.exp,
    "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "tanh": np.tanh,
    "sin": np.sin, "cos": np.cos, "atan": np.arctan,
}  # fmt: skip
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "max": np.maximum, "min": np.minimum, "lt": np.less, "le": np.less_equal, "eq": np.equal,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip


def value(program: Program, at: int, margin: Any, label: Any, weight: Any) -> Any:
    """What the instructions say, by NumPy."""
    values: list[Any] = []
    given = {"margin": margin, "label": label, "weight": weight}
    for name, *read in program.instructions:
        if name in given:
            values.append(given[name])
        elif name == "number":
            values.append(float(read[0]))
        elif name == "where":
            condition, a, b = (values[i] for i in read)
            values.append(np.where(np.asarray(condition) != 0, a, b))
        elif name in ONE:
            values.append(ONE[name](values[read[0]]))
        else:
            values.append(TWO[name](*(values[i] for i in read)))
    return values[at]


def huber(p: Any, y: Any, w: Any) -> tuple[Any, Any]:
    r = p - y
    return np.where(abs(r) <= 2.0, r, 2.0 * np.sign(r)), np.where(np.abs(r) > 2, 0.1, 1.0)


def asymmetric(p: Any, y: Any, w: Any) -> tuple[Any, Any]:
    z = np.tanh((p - y) / 3)
    cost = 1 + 2 * ((y > p) & (y != 0))
    return w * cost * z, w * np.clip(1 - z**2, 0.01, 1.0)


def odds(p: Any, y: Any, w: Any) -> tuple[Any, Any]:
    share = 1 / (1 + np.exp(-p))
    return share - np.minimum(np.maximum(y, 0), 1), +share * (1.0 - share)


@pytest.mark.parametrize("function", [huber, asymmetric, odds])
def test_instructions_say_what_the_function_says(function):
    program = own_objective("dp_objective", function)
    rng = np.random.default_rng(3)
    rows = 3 * rng.normal(size=200), 3 * rng.normal(size=200), rng.uniform(0, 2, 200)
    for at, expected in zip((program.gradient, program.hessian), function(*rows), strict=True):
        np.testing.assert_allclose(value(program, at, *rows), expected, rtol=1e-12)


def test_the_function_is_called_once_and_never_with_a_row():
    calls: list[tuple[Any, ...]] = []

    def remembers(p: Any, y: Any, w: Any) -> tuple[Any, Any]:
        calls.append((p, y, w))
        return (p - y) * len(calls), 1.0

    program = own_objective("dp_objective", remembers)
    assert own_objective("dp_objective", program) is program
    assert len(calls) == 1
    assert not any(isinstance(v, (int, float, np.ndarray)) for v in calls[0])


def _by_if(p: Any, y: Any, w: Any) -> tuple[Any, Any]:
    return (p - y, 1.0) if p > y else (0.0, 1.0)


def _too_long(p: Any, y: Any, w: Any) -> tuple[Any, Any]:
    for i in range(1200):
        p = p + i * y
    return p, 1.0


@pytest.mark.parametrize(
    "function, message",
    [
        (_by_if, "branch by `if`"),
        (lambda p, y, w: (math.exp(p), 1.0), "functions of `math`"),
        (lambda p, y, w: (max(p, y), 1.0), "branch by"),
        (lambda p, y, w: (np.add.reduce(p), 1.0), "np.add with options"),
        (lambda p, y, w: (np.sum(p), 1.0), "np.sum|np.add"),
        (lambda p, y, w: (np.arcsinh(p), 1.0), "np.arcsinh"),
        (lambda p, y, w: (p * math.inf, 1.0), "not finite"),
        (lambda p, y, w: (p * np.arange(3), 1.0), "ndarray"),
        (lambda p, y, w: ("a", 1.0), "type str"),
        (lambda p, y, w: p - y, "conversion to a plain number"),
        (lambda p, y: (p, y), "TypeError|positional"),
        (lambda p, y, w: (1 / 0, 1.0), "ZeroDivisionError"),
        (_too_long, "more than 1000"),
        (lambda p, y, w: (list(p), 1.0), "conversion to a plain number"),
    ],
)
def test_what_cannot_be_traced_is_refused(function, message):
    with pytest.raises(PrivacyParameterError, match=message):
        own_objective("dp_objective", function)


def test_messages_of_the_function_are_not_repeated():
    """It may close over rows."""
    labels = np.array([17.25, 4.0])

    def shows(p: Any, y: Any, w: Any) -> Any:
        raise TypeError(f"labels {labels}")

    with pytest.raises(PrivacyParameterError, match="failed with: TypeError") as refusal:
        own_objective("dp_objective", shows)
    assert "17.25" not in str(refusal.value)
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize("given", [3, "margin - label", [1], object()])
def test_only_functions_are_taken(given):
    with pytest.raises(PrivacyParameterError, match="must be a function"):
        own_objective("dp_objective", given)


def test_the_record_names_the_formulas():
    record = own_objective("dp_objective", lambda p, y, w: (p - y, 1.0)).to_record()
    assert record["gradient"] == "sub(margin, label)"
    assert record["hessian"] == "1.0"
    other = own_objective("dp_objective", lambda p, y, w: (p - y, 2.0)).to_record()
    assert record["digest"] != other["digest"]


def test_shared_formulas_are_not_written_out_without_end():
    def doubled(p: Any, y: Any, w: Any) -> tuple[Any, Any]:
        for _ in range(60):
            p = p + p
        return p, 1.0

    record = own_objective("dp_objective", doubled).to_record()
    assert len(record["gradient"]) < 2100


def test_what_no_result_reads_is_left_out():
    """A program that reads no weight has none: the trainer multiplies both derivatives by it."""

    def reads_no_weight(prediction: Any, label: Any, weight: Any) -> tuple[Any, Any]:
        unused = np.exp(weight) * 3.0
        del unused
        return prediction - label, 1.0

    program = own_objective("dp_objective", reads_no_weight)
    assert program.instructions == (("margin",), ("label",), ("sub", 0, 1), ("number", "1.0"))
    assert (program.gradient, program.hessian) == (2, 3)
    program = own_objective("dp_objective", lambda p, y, w: (w * (p - y), w))
    assert ("weight",) in program.instructions
