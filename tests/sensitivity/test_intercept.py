"""Sums before the first tree: a row or person moves them by what is stated at most, and attains it.

Each kind of sums says what one row adds. A person adds the mean of its rows, rounded towards zero.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from tests.stated import describe_intercept
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native
from xgb_dp.mechanisms.label_range import edges, weight_edges

from .cpp import IN_THE_CLEAR
from .strategies import CLASSES, EXAMPLES, HEAVY, LABELS, MARGINS

SIZES = (1, 2, 3, 7, 40, 1000)
"""Numbers of rows of the person that the neighbour lacks."""
CELLS = sensitivity.LABEL_CELLS
EDGES = edges(-4.0, 4.0)
WEIGHTS = weight_edges(10.0)
RANGES = [(-4.0, 4.0), (0.1, 0.3), (-1e30, 2e30)]
TIMES = (math.log(0.5), math.log(40.0))
FINITE = [m for m in MARGINS if math.isfinite(m)]
Array = npt.NDArray[Any]
Rows = dict[str, Array]
"""Arguments of a DMatrix."""


def on_grid(values: Array, low: float, high: float, shift: int) -> Array:
    """Numbers from a range, scaled to [-1, 1], as integers."""
    half = (high - low) / 2
    with np.errstate(all="ignore"):
        centred = np.clip((values.astype(np.float64) - low - half) / half, -1, 1)
    return np.rint(np.where(np.isnan(centred), 0.0, centred) * 2.0**shift).astype(np.int64)


def in_cells(cells: Array, n_cells: int, shift: int) -> Array:
    """One unit in one cell of each row."""
    return (np.arange(n_cells) == cells[:, None]).astype(np.int64) << shift


def pick(*values: float, columns: tuple[int, ...] = ()) -> Callable[[Any, int], Array]:
    """A column, or several, of any of these values."""
    return lambda rng, n: rng.choice(np.array(values, np.float32), (n, *columns))


def cells_present(n_columns: int, rows: Rows, shift: int) -> Array:
    """A row adds its share of the columns, one at most, whatever their number is said to be."""
    present = ((rows["data"] != 0) & ~np.isnan(rows["data"])).sum(axis=1)
    share = (np.minimum(present, n_columns) << shift) // n_columns
    return np.stack([on_grid(rows["label"], 0.0, 1.0, shift), share], axis=1)


def column_sums(n_columns: int, rows: Rows, shift: int) -> Array:
    """A row adds a vector of bounded norm to the columns that it has, of its class alone."""
    out = np.zeros((len(rows["label"]), 2, n_columns), dtype=np.int64)
    has = (rows["data"] > 0)[:, :n_columns]
    for row, cells, label in zip(out, has, rows["label"], strict=True):
        if cells.any():
            row[int(label > 0.5), : len(cells)] = math.isqrt(4**shift // int(cells.sum())) * cells
    return out.reshape(-1, 2 * n_columns)


def exposures(rows: Rows, shift: int) -> Array:
    """Labels, and exposures, which are the exponentials of margins."""
    with np.errstate(over="ignore"):
        exposure = np.exp(rows["base_margin"].astype(np.float64))
    return np.stack(
        [on_grid(rows["label"], 0.0, 4.0, shift), on_grid(exposure, 0.01, 1.0, shift)], axis=1
    )


def first_times(rows: Rows, shift: int) -> Array:
    """Logarithms of first times; a time of 0 is at the lower end."""
    with np.errstate(divide="ignore"):
        return on_grid(np.log(rows["label_lower_bound"].astype(np.float64)), *TIMES, shift)[:, None]


def equal_cells(rows: Rows, shift: int) -> Array:
    """Counts of equal cells of a range."""
    with np.errstate(over="ignore"):
        cells = np.floor((rows["label"].astype(np.float64) + 4.0) / 8.0 * CELLS)
    return in_cells(np.clip(cells, 0, CELLS - 1), CELLS, shift)


def both_lists(rows: Rows, shift: int) -> Array:
    """A row is in one cell of its label and in one of its weight."""
    lists = (("label", EDGES), ("weight", WEIGHTS))
    each = [np.searchsorted(ends, rows[name], side="right") for name, ends in lists]
    return np.hstack([in_cells(cells, CELLS, shift) for cells in each])


@dataclass
class Sums:
    """A kind of sums."""

    adds: Callable[[Rows, int], Array]
    """What rows add to each sum at a shift, without the number of rows; shape (rows, sums)."""
    worst: list[dict[str, Any]]
    """Rows that each attain the bound; the first one moves as many sums as a row can."""
    draw: dict[str, Callable[[Any, int], Array]] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    count_at: int | None = None
    """Where the number of rows is among the sums; None if it is not."""
    may_be_public: bool = True
    of_persons: bool = True
    tolerance: int = 0


def target(low: float, high: float) -> dict[str, str]:
    return {"target_lower": repr(low), "target_upper": repr(high)}


NUMBER, CLASS = {"label": pick(*LABELS)}, {"label": pick(0.0, 1.0)}
TABLE = {"data": pick(0.0, -0.0, 1.0, -1e-45, 3e38, math.nan, columns=(5,))}
WEIGHT = {"weight": pick(*HEAVY, 9.99, 10.0)}
RANGE: dict[str, Any] = {"num_class": CELLS, "kind": "range", "edges": [repr(v) for v in EDGES]}
KINDS = {
    "rows": Sums(lambda rows, shift: in_cells(0 * rows["label"], 1, shift), [{"label": [1]}], CLASS,
                 may_be_public=False),
    "binary": Sums(lambda rows, shift: on_grid(rows["label"], 0.0, 1.0, shift)[:, None],
                   [{"label": [1]}, {"label": [0]}], CLASS, count_at=1),
    "multiclass": Sums(lambda rows, shift: in_cells(rows["label"], CLASSES, shift),
                       [{"label": [1]}], {"label": pick(0, 1, 2)}, {"num_class": CLASSES}),
    "cells": Sums(equal_cells, [{"label": [1]}], NUMBER, {"num_class": CELLS} | target(-4.0, 4.0)),
    "range": Sums(
        lambda rows, shift: both_lists(rows | {"weight": rows["label"]}, shift)[:, :CELLS],
        [{"label": [1]}], NUMBER, RANGE,
    ),
    "range of labels and weights": Sums(
        both_lists, [{"label": [1], "weight": [2]}], NUMBER | WEIGHT,
        RANGE | {"num_class": 2 * CELLS, "weight_edges": [repr(v) for v in WEIGHTS]},
    ),
    "range of weights": Sums(
        lambda rows, shift: both_lists(rows, shift)[:, CELLS:],
        [{"label": [1], "weight": [2]}], NUMBER | WEIGHT,
        {"num_class": CELLS, "kind": "range", "weight_edges": [repr(v) for v in WEIGHTS]},
    ),
    "regression with exposures": Sums(
        exposures, [{"label": [9], "base_margin": [50]}],
        NUMBER | {"base_margin": pick(*FINITE)},
        {"kind": "regression", "exposure_lower": "0.01", "exposure_upper": "1.0"}
        | target(0.0, 4.0), count_at=1,
    ),
    "regression of times": Sums(
        first_times, [{"label_lower_bound": [1e9], "label_upper_bound": [np.inf]}],
        {"label_lower_bound": lambda rng, n: np.abs(pick(*LABELS, 1.5, 30.0)(rng, n)),
         "label_upper_bound": pick(np.inf)},
        {"kind": "regression", "times": True} | target(*TIMES), count_at=1, tolerance=1,
    ),
    "targets": Sums(
        lambda rows, shift: np.stack(
            [on_grid(rows["label"][:, k], *ends, shift) for k, ends in enumerate(RANGES)], axis=1
        ),
        [{"label": [[4, -9, 2e30]]}], {"label": pick(*LABELS, columns=(3,))},
        {"num_class": 3, "lower": [repr(low) for low, _ in RANGES],
         "upper": [repr(high) for _, high in RANGES]}, count_at=3,
    ),
}  # fmt: skip
KINDS |= {
    f"regression on {ends}": Sums(
        lambda rows, shift, ends=ends: on_grid(rows["label"], *ends, shift)[:, None],
        [{"label": [1e30]}],
        NUMBER,
        {"kind": "regression"} | target(*ends),
        count_at=1,
    )
    for ends in (*RANGES[:2], (-1e300, 1e308))
}
KINDS |= {
    f"binary with cells of {n} columns": Sums(
        partial(cells_present, n), [{"label": [1], "data": [[1.0] * 5]}] * (n <= 5), CLASS | TABLE,
        {"kind": "binary", "columns": n}, count_at=1, may_be_public=False, of_persons=False,
    )
    for n in (1, 3, 5, 7)
}  # fmt: skip
KINDS |= {
    f"{n} columns": Sums(
        partial(column_sums, n),
        [{"label": [y], "data": [[1.0] * k + [0.0] * (5 - k)]} for k in worst for y in (0, 1)],
        {"label": pick(0.0, 1.0, 0.5, 7.0, -1.0)} | TABLE,
        {"kind": "columns", "columns": n}, of_persons=False,
    )
    for n, worst in ((1, [1]), (3, []), (4, [4, 1]), (7, []))
}  # fmt: skip
UNITS = [(k, u) for k, s in KINDS.items() for u in ("row", "person") if s.of_persons or u == "row"]


def request_of(kind: str, shift: int = 9, unit: str = "row", **more: Any) -> dict[str, Any]:
    """A request for sums without noise."""
    return {
        **IN_THE_CLEAR, "kind": kind, "num_class": 1, "sigma2": 0, "shift": shift,
        "noise_free": True, **(KINDS[kind].request if kind in KINDS else {}), "unit": unit, **more,
    }  # fmt: skip


def sums_of(request: dict[str, Any], rows: Rows, who: Array) -> list[int]:
    """Exact sums of the C++."""
    d = xgb.DMatrix(**({"data": np.zeros((len(who), 1))} | rows))
    if request["unit"] == "person":
        native.set_persons(d, who)
    sums: list[int] = native.release_before_trees(d, request)["sums"]
    return sums


@pytest.mark.parametrize(("kind", "unit"), UNITS)
@EXAMPLES
@given(data=st.data())
def test_intercept_sums(kind, unit, data):
    """With and without the last unit; rows and codes of persons are in any order."""
    change_request, shift = KINDS[kind], data.draw(st.sampled_from((0, 7, 26)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    sizes = [1] * data.draw(st.integers(1, 13))
    if unit == "person":
        sizes = data.draw(st.lists(st.integers(1, 4), max_size=3))
        sizes = [*sizes, data.draw(st.sampled_from(SIZES))]
    who = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    kept = who < len(sizes) - 1
    rows = {name: draw(rng, len(who)) for name, draw in change_request.draw.items()}
    known = (
        data.draw(st.booleans())
        and change_request.may_be_public
        and change_request.count_at is not None
    )
    request = request_of(kind, shift, unit, **({"public_num_rows": 1} if known else {}))
    one = sums_of(request, rows, rng.permutation(len(sizes))[who])
    other = sums_of(request, {name: column[kept] for name, column in rows.items()}, who[kept])
    moved = np.subtract(one, other)
    added = change_request.adds({name: column[~kept] for name, column in rows.items()}, shift)
    mean = [int(Fraction(int(column.sum()), len(column))) for column in added.T]
    if change_request.count_at is not None and not known:
        mean.insert(change_request.count_at, 1 << shift)
    assert np.abs(moved - mean).max() <= change_request.tolerance
    event = describe_intercept(request)
    assert sum(int(v) ** 2 for v in moved) <= event["sensitivity2"]
    assert np.count_nonzero(moved) <= event["coordinates"]
    assert event.get("unit", "row") == unit


@pytest.mark.parametrize(("kind", "unit"), UNITS)
def test_the_bound_is_attained(kind, unit):
    """By one row, and by rows of a person that agree; so every figure is the smallest there is."""
    known = [{}, {"public_num_rows": 1}] if KINDS[kind].may_be_public else [{}]
    for more in known if KINDS[kind].count_at is not None else [{}]:
        request = request_of(kind, 20, unit, **more)
        event = describe_intercept(request)
        for number, worst in enumerate(KINDS[kind].worst):
            for size in SIZES if unit == "person" else (1,):
                row = {k: np.array(v, np.float32) for k, v in worst.items()}
                rows = {name: np.repeat(v, size, axis=0) for name, v in row.items()}
                sums = sums_of(request, rows, np.zeros(size))
                assert sum(v * v for v in sums) == event["sensitivity2"]
                if unit == "row" and number == 0:
                    assert np.count_nonzero(sums) == event["coordinates"]
