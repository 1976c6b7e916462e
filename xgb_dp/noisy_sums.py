"""Noisy sums of private rows for evaluation, private selection and column discovery.

Callers pass the exact cells, strings or numbers of the rows, and the person of each row. A privacy
unit (a row, or a person with all their rows) counts as at most one row; this module computes the
required weights from the ids alone. Events are derived from the same fields as the sensitivity and
the noise, so a caller cannot charge less than the cost of the noise.

Proofs: docs/proofs/evaluation.md, docs/proofs/selection.md, docs/proofs/discovery.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from .accounting.events import Event, GaussianEvent, ThresholdEvent
from .accounting.units import PERSON, ROW
from .engine import native
from .engine.native import discrete_gaussian, draw_words
from .errors import LedgerError, RowDomainError

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.uint32]

MOST_SIGMA2 = 1 << 56
"""Largest sigma^2 that the sampler supports."""
LEVELS = 13
"""Levels of a quantile tree: sign, exponent and 3 fraction bits, so 8 leaves per power of two."""
_MAX_BIN = 64
_FEWER_ROWS = 1 << 32  # with fewer rows, every sum fits into 64 bits; see Layout
_REPORT = "This is a bug in xgb_dp: please report it."
_MORE = (
    "The release would exceed the charged events, or differs from them in its privacy unit. "
    f"Nothing was released. {_REPORT}"
)


def _check_rows(columns: Iterable[npt.NDArray[Any]], persons: Codes | None) -> None:
    """Require one entry per row in every column, and one person per row."""
    arrays = [*columns, *(() if persons is None else (persons,))]
    if any(array.ndim != 1 for array in arrays) or len(set(map(len, arrays))) > 1:
        raise LedgerError(f"A row would count several times. Nothing was released. {_REPORT}")
    if any(len(array) >= _FEWER_ROWS for array in arrays):
        raise RowDomainError(
            "The data has 2^32 rows or more, so sums could overflow. Pass fewer than 2^32 rows."
        )


def weights(persons: Codes | None, rows: int, shift: int, most: int = 1) -> Ints:
    """Return the weight of each row: 2**shift, divided by the rows of a person, at least `most`."""
    if persons is None:
        return np.full(rows, 1 << shift, dtype=np.int64)
    each = np.maximum(np.bincount(persons), most)
    return (1 << shift) // each[persons] if rows else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Block:
    """Sums over rows that are divided into cells. A row adds its cell's column of `matrix`.

    With several copies, each copy has its own cells and its own sums.
    """

    matrix: Ints  # contribution of a row in each cell, in grid units; shape (sums, cells)
    copies: int = 1

    def __post_init__(self) -> None:
        if self.matrix.dtype != np.int64:
            raise LedgerError(f"Contributions of rows must be 64-bit integers. {_REPORT}")
        self.matrix.setflags(write=False)  # the sensitivity is computed from these numbers

    @property
    def cells(self) -> int:
        """Number of cells of all copies."""
        return self.matrix.shape[1] * self.copies

    @cached_property
    def norm2(self) -> int:
        """Largest squared norm of one row's contribution."""
        return int((self.matrix**2).sum(axis=0).max())

    def sums(
        self, cells: Ints, persons: Codes | None = None, shift: int = 0, most: int = 1
    ) -> Ints:
        """Return the exact sums, shape (copies, sums). Not private: add noise before publishing.

        With shift 0, a person contributes the mean over their rows, rounded towards 0.
        """
        inside = (cells >= 0) & (cells < self.cells)
        if persons is not None and shift == 0:
            return self._means(cells, persons, inside)
        counts = np.zeros(self.cells, dtype=np.int64)
        np.add.at(counts, cells[inside], weights(persons, len(cells), shift, most)[inside])
        return np.asarray(counts.reshape(self.copies, -1) @ self.matrix.T)

    def _means(self, cells: Ints, persons: Codes, inside: npt.NDArray[np.bool_]) -> Ints:
        rows, width = np.maximum(np.bincount(persons), 1), self.matrix.shape[1]
        ones = np.ones(int(inside.sum()), dtype=np.int64)
        places = persons[inside].astype(np.int64), cells[inside]
        counts = csr_array((ones, places), shape=(len(rows), self.cells)).tocsc()
        sums = np.zeros((self.copies, len(self.matrix)), dtype=np.int64)
        for copy in range(self.copies):
            in_copy = counts[:, copy * width : (copy + 1) * width]
            for number, adds in enumerate(self.matrix):
                total = in_copy @ adds
                sums[copy, number] = (np.sign(total) * (np.abs(total) // rows)).sum()
        return sums


@dataclass(frozen=True)
class Later:
    """Limits of a second release step, fixed before the first step."""

    norm2: int  # largest squared norm of one row's contribution, in the unit of the blocks
    sums: int  # largest number of sums


@dataclass(frozen=True, eq=False)
class Layout:
    """Blocks that are released together, and the parameters of their events; public."""

    blocks: tuple[Block, ...]
    shift: int = 0  # log2 of the largest weight of a privacy unit
    unit: str = ROW
    max_rows: int = 1  # rows for which a person has the whole weight; sums are in units of these
    later: Later | None = None  # limits of a second step
    name: str = "evaluation"  # name of the release in ledgers and budgets
    all_sums: bool = True  # whether to assume that a row affects every sum (an upper bound)

    @property
    def sensitivity2(self) -> int:
        """Squared L2 sensitivity of all sums to one privacy unit."""
        for matrix in (block.matrix for block in self.blocks):
            largest = max(int(matrix.max()), -int(matrix.min()))
            # With fewer than 2^32 rows, every sum fits in 64 bits; so does the norm of a column.
            if largest >= 1 << (31 - self.shift) or len(matrix) * largest**2 >= 1 << 62:
                raise LedgerError(
                    "The contributions of rows could overflow 64-bit sums. Nothing of this step "
                    f"was released. {_REPORT}"
                )
        return sum(block.norm2 for block in self.blocks) << (2 * self.shift)

    @property
    def coordinates(self) -> int:
        """Largest number of sums that one privacy unit affects; a person can affect all sums."""
        if self.all_sums or self.unit == PERSON:
            return sum(len(block.matrix) * block.copies for block in self.blocks)
        return sum(int(np.count_nonzero(b.matrix, axis=0).max()) for b in self.blocks)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """`sensitivity2` and `coordinates` of each step."""
        first = (self.sensitivity2, self.coordinates)
        if self.later is None:
            return [first]
        return [first, (self.later.norm2 << (2 * self.shift), self.later.sums)]

    def events(self, sigma2: int) -> tuple[GaussianEvent, ...]:
        """Return the event of each step with this noise."""
        return tuple(
            GaussianEvent(self.name, sensitivity2, sigma2, coordinates, 1, unit=self.unit)
            for sensitivity2, coordinates in self.steps
        )


@dataclass(frozen=True, eq=False)
class NoisySums:
    """Released noisy sums and their public noise parameters."""

    layout: Layout
    sums: tuple[Floats, ...]  # (copies, sums) for each block, in the units of its matrix
    noise: float  # standard deviation of the noise, in the same units
    events: tuple[GaussianEvent, ...] = ()  # charged events
    second_step: NoisySums | None = None  # the second step, if there was one


def release(
    layout: Layout,
    events: Sequence[GaussianEvent],
    cells: Sequence[Ints],
    persons: Codes | None = None,
    plan_second_step: Callable[[NoisySums], tuple[Block, ...]] | None = None,
    later: Sequence[Ints] | None = None,
) -> NoisySums:
    """Draw the noise and release the noisy sums; the exact sums are not returned.

    If `plan_second_step` is given, it computes the blocks of a second step from the first release
    alone.

    Privacy: spends the cost of `events`, which must cover all releases.

    Raises:
        LedgerError: The events do not cover a release; nothing of that step is released.
    """
    charged = events[0]
    drawn = layout.events(charged.sigma2)[0]
    if (
        (persons is None) != (layout.unit == ROW)
        or (charged.release, charged.unit, charged.count)
        != (drawn.release, drawn.unit, drawn.count)
        or charged.sensitivity2 < drawn.sensitivity2
        or charged.coordinates < drawn.coordinates
    ):
        raise LedgerError(_MORE)
    _check_rows(cells, persons)
    unit = layout.max_rows * ((1 << layout.shift) // layout.max_rows)
    sums = []
    for block, places in zip(layout.blocks, cells, strict=True):
        exact = block.sums(places, persons, layout.shift, layout.max_rows)
        noisy = exact + discrete_gaussian(charged.sigma2, exact.size).reshape(exact.shape)
        sums.append(noisy / float(unit))
    noise = math.sqrt(charged.sigma2) / unit
    first = NoisySums(layout, tuple(sums), noise, (charged,))
    if plan_second_step is None:
        return first
    second = replace(layout, blocks=plan_second_step(first), later=None)
    second_step = release(second, events[1:], cells if later is None else later, persons)
    return replace(first, events=(charged, *second_step.events), second_step=second_step)


@dataclass(frozen=True)
class ColumnPlan:
    """Releases of column discovery and their noise, in units of 2**-shift counts; public."""

    strings: int  # text columns
    numbers: int  # columns of numbers, dates included
    unit: str
    text_shift: int = 0
    text_sigma2: int = 0
    threshold: int = 0  # smallest published noisy count of a string, in units of 2**-text_shift
    number_shift: int = 0
    number_sigma2: int = 0

    @property
    def text_noise(self) -> float:
        """Standard deviation of the noise of a count of strings."""
        return math.sqrt(self.text_sigma2) / 2**self.text_shift

    @property
    def number_noise(self) -> float:
        """Standard deviation of the noise of a count of numbers."""
        return math.sqrt(self.number_sigma2) / 2**self.number_shift

    @property
    def events(self) -> list[Event]:
        """Events in release order."""
        out: list[Event] = []
        unit, columns = self.unit, self.strings
        if self.numbers:
            norm2 = self.numbers * LEVELS << (2 * self.number_shift)
            # The rows of a person can be in all nodes of a level.
            touched = self.numbers * (LEVELS if unit == ROW else 1 << LEVELS)
            out.append(GaussianEvent("ranges", norm2, self.number_sigma2, touched, 1, unit=unit))
        if columns:
            sigma2, one = self.text_sigma2, 1 << self.text_shift
            norm2 = columns * one**2
            out += [
                GaussianEvent("categories", norm2, sigma2, columns, 1, unit=unit),
                ThresholdEvent("categories", one, sigma2, self.threshold, columns, unit=unit),
            ]
        return out

    def check(self, strings: int, numbers: int, persons: Codes | None) -> None:
        """Refuse more columns than the plan charges, or another privacy unit."""
        more = strings > self.strings or numbers > self.numbers
        if more or (persons is None) != (self.unit == ROW):
            raise LedgerError(_MORE)


@dataclass(frozen=True)
class Strings:
    """Release of a text column: noisy counts of the published strings and of missing cells."""

    counts: dict[str, float]
    missing: float


@dataclass(frozen=True)
class CountTree:
    """Release of a numeric column; its cells are ranges of keys of 32-bit floats."""

    leaves: tuple[tuple[int, int, float], ...]  # (low, high, noisy count), ascending
    cuts: tuple[float, ...]  # split points for training
    missing: float  # noisy number of missing cells


def votes(persons: Codes) -> Ints:
    """Return one row index per person, drawn uniformly from the person's rows."""
    order = np.lexsort((draw_words(len(persons)), persons))
    first = np.ones(len(persons), dtype=bool)
    first[1:] = persons[order][1:] != persons[order][:-1]
    return order[first]


def release_strings(
    plan: ColumnPlan,
    columns: Mapping[str, tuple[Ints, Sequence[str]]],
    persons: Codes | None = None,
) -> dict[str, Strings]:
    """Release noisy counts of missing cells, and of strings whose count reaches the threshold.

    A column consists of the string code of each row (-1 if missing) and the strings. Only one row
    of each person counts.

    Privacy: spends the "categories" events of the plan.
    """
    plan.check(len(columns), 0, persons)
    _check_rows((codes for codes, _ in columns.values()), persons)
    unit = 1 << plan.text_shift
    released = {}
    for name, (codes, strings) in columns.items():
        voted = codes if persons is None else codes[votes(persons)]
        exact = np.bincount(voted + 1, minlength=len(strings) + 1).astype(np.int64) * unit
        noisy = exact + discrete_gaussian(plan.text_sigma2, len(exact))
        # Strings without rows are not published: they could come from other data, such as unused
        # categories.
        shown = [
            (int(count), text)
            for count, rows, text in zip(noisy[1:], exact[1:], strings, strict=True)
            if rows and count >= plan.threshold
        ]
        # Sort by noisy counts: the original order would reveal the order of the rows.
        shown.sort(key=lambda pair: (-pair[0], pair[1]))
        counts = {text: count / unit for count, text in shown}
        released[name] = Strings(counts, float(noisy[0]) / unit)
    return released


def numbers_request(plan: ColumnPlan, **changes: Any) -> dict[str, Any]:
    """Return the request to the native library; tests pass `changes`."""
    return {
        "levels": LEVELS,
        "max_bin": _MAX_BIN,
        "shift": plan.number_shift,
        "sigma2": plan.number_sigma2,
        "persons": plan.unit == PERSON,
        "noise_free": False,
        **changes,
    }


def release_numbers(
    plan: ColumnPlan, columns: npt.NDArray[np.float32], persons: Codes | None = None
) -> list[CountTree]:
    """Release quantile trees of numeric columns, an array of shape (columns, rows).

    Privacy: spends the "ranges" event of the plan.
    """
    plan.check(0, len(columns), persons)
    _check_rows(columns, persons)
    each = weights(persons, columns.shape[1], plan.number_shift)
    answer = native.discover_numbers(columns, each, numbers_request(plan))
    draws = [(draw["release"], draw["sigma2"], draw["count"]) for draw in answer["events"]]
    if draws != [("ranges", plan.number_sigma2, 1)]:
        raise LedgerError(f"The noise drawn by a discovery differs from its plan. {_REPORT}")
    return [
        CountTree(
            tuple((int(low), int(high), float(count)) for low, high, count in column["leaves"]),
            tuple(map(float, column["cuts"])),
            float(column["missing"]),
        )
        for column in answer["columns"]
    ]
