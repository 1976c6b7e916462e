"""Draws everything that an evaluation, a selection and a look at columns release of private rows.

Callers hand in exact cells, texts or numbers of rows, and whose the rows are. A unit, which is a
row or a person with all their rows, counts as one row at most: the weights that hold this are
computed here, from the ids alone. The events follow from the same fields as the bound and the
noise, so a caller cannot book less than what is drawn.

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
"""Largest parameter of the noise that the sampler takes."""
LEVELS = 13
"""Levels of a quantile tree: sign, exponent and 3 bits of the fraction, an eighth of an octave."""
_MAX_BIN = 64
_FEWER_ROWS = 1 << 32  # of which every sum stays within 64 bits, see Layout
_REPORT = "This is a defect of xgb_dp: please report it."
_MORE = f"This would release more than was booked, or for another unit of privacy. {_REPORT}"


def _check_rows(columns: Iterable[npt.NDArray[Any]], persons: Codes | None) -> None:
    """Every column has one entry for each row, and every row belongs to one person."""
    arrays = [*columns, *(() if persons is None else (persons,))]
    if any(array.ndim != 1 for array in arrays) or len(set(map(len, arrays))) > 1:
        raise LedgerError(f"A row would count several times. Nothing was released. {_REPORT}")
    if any(len(array) >= _FEWER_ROWS for array in arrays):
        raise RowDomainError("There are 2^32 rows or more, whose sums would overflow. Give fewer.")


def weights(persons: Codes | None, rows: int, shift: int) -> Ints:
    """What each row weighs: 2**shift, or an equal part of it for each row of a person."""
    if persons is None:
        return np.full(rows, 1 << shift, dtype=np.int64)
    return (1 << shift) // np.bincount(persons)[persons] if rows else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Block:
    """Sums over the cells of a division, or of copies of it: a row adds the column of one cell."""

    matrix: Ints  # what a row in each cell adds, in grid units; (sums, cells)
    copies: int = 1

    def __post_init__(self) -> None:
        if self.matrix.dtype != np.int64:
            raise LedgerError(f"What a row adds must be whole numbers of 64 bits. {_REPORT}")
        self.matrix.setflags(write=False)  # the sensitivity is that of these numbers

    @property
    def cells(self) -> int:
        """Cells of all copies."""
        return self.matrix.shape[1] * self.copies

    @cached_property
    def norm2(self) -> int:
        """Squared norm of what one row adds at most."""
        return int((self.matrix**2).sum(axis=0).max())

    def sums(self, cells: Ints, persons: Codes | None = None, shift: int = 0) -> Ints:
        """The exact sums: (copies, sums). They must get noise before anybody sees them.

        Without a shift a person counts with the mean of what their rows add, rounded towards 0.
        """
        inside = (cells >= 0) & (cells < self.cells)
        if persons is not None and shift == 0:
            return self._means(cells, persons, inside)
        counts = np.zeros(self.cells, dtype=np.int64)
        np.add.at(counts, cells[inside], weights(persons, len(cells), shift)[inside])
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
    """What a second step may release; fixed before the first."""

    norm2: int  # squared norm of what one row adds at most, in the unit of the blocks
    sums: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Blocks that are released together, and what that may cost; public."""

    blocks: tuple[Block, ...]
    shift: int = 0  # a unit counts 2**shift at most
    unit: str = ROW
    later: Later | None = None  # room of a second step
    name: str = "evaluation"  # of the release, in ledgers and budgets
    all_sums: bool = True  # whether a row is said to touch every sum, which is never too few

    @property
    def sensitivity2(self) -> int:
        """Squared L2 norm of what one unit adds to all sums."""
        for matrix in (block.matrix for block in self.blocks):
            largest = max(int(matrix.max()), -int(matrix.min()))
            # Of fewer than 2^32 rows, every sum stays within 64 bits; so does a column's norm.
            if largest >= 1 << (31 - self.shift) or len(matrix) * largest**2 >= 1 << 62:
                raise LedgerError(
                    "A row would count more than its sums can hold. Nothing of this step was "
                    f"released. {_REPORT}"
                )
        return sum(block.norm2 for block in self.blocks) << (2 * self.shift)

    @property
    def coordinates(self) -> int:
        """Sums that one unit may touch; the rows of a person may touch all."""
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
        """What each step costs with this noise."""
        return tuple(
            GaussianEvent(self.name, sensitivity2, sigma2, coordinates, 1, unit=self.unit)
            for sensitivity2, coordinates in self.steps
        )


@dataclass(frozen=True, eq=False)
class NoisySums:
    """The noisy sums, and what is known about their noise."""

    layout: Layout
    sums: tuple[Floats, ...]  # (copies, sums) for each block, in the units of its matrix
    noise: float  # standard deviation of the noise, in the same unit
    events: tuple[GaussianEvent, ...] = ()  # what it cost
    aimed: NoisySums | None = None  # the second step, if there was one


def release(
    layout: Layout,
    events: Sequence[GaussianEvent],
    cells: Sequence[Ints],
    persons: Codes | None = None,
    aim: Callable[[NoisySums], tuple[Block, ...]] | None = None,
    later: Sequence[Ints] | None = None,
) -> NoisySums:
    """Draw the noise and release the sums. The exact ones leave this function in no form.

    A second step has blocks that `aim` makes of what the first has released, and of nothing else.

    Privacy: spends `events`, which must cover what is drawn.
    """
    booked = events[0]
    drawn = layout.events(booked.sigma2)[0]
    if (
        (persons is None) != (layout.unit == ROW)
        or (booked.release, booked.unit, booked.count) != (drawn.release, drawn.unit, drawn.count)
        or booked.sensitivity2 < drawn.sensitivity2
        or booked.coordinates < drawn.coordinates
    ):
        raise LedgerError(_MORE)
    _check_rows(cells, persons)
    sums = []
    for block, places in zip(layout.blocks, cells, strict=True):
        exact = block.sums(places, persons, layout.shift)
        noisy = exact + discrete_gaussian(booked.sigma2, exact.size).reshape(exact.shape)
        sums.append(noisy / float(1 << layout.shift))
    noise = math.sqrt(booked.sigma2) / (1 << layout.shift)
    first = NoisySums(layout, tuple(sums), noise, (booked,))
    if aim is None:
        return first
    second = replace(layout, blocks=aim(first), later=None)
    aimed = release(second, events[1:], cells if later is None else later, persons)
    return replace(first, events=(booked, *aimed.events), aimed=aimed)


@dataclass(frozen=True)
class ColumnPlan:
    """What a look at columns releases, with its noise, which counts times 2**shift get; public."""

    texts: int  # text columns
    numbers: int  # columns of numbers, dates included
    unit: str
    text_shift: int = 0
    text_sigma2: int = 0
    threshold: int = 0  # the least noisy count of a text that is shown, in units of 2**-text_shift
    number_shift: int = 0
    number_sigma2: int = 0

    @property
    def events(self) -> list[Event]:
        """In release order."""
        out: list[Event] = []
        if self.numbers:
            norm2 = self.numbers * LEVELS << (2 * self.number_shift)
            # The rows of a person may be in all nodes of a level.
            touched = self.numbers * (LEVELS if self.unit == ROW else 1 << LEVELS)
            out.append(
                GaussianEvent("ranges", norm2, self.number_sigma2, touched, 1, unit=self.unit)
            )
        if self.texts:
            norm2, sigma2 = self.texts << (2 * self.text_shift), self.text_sigma2
            out.append(
                GaussianEvent("categories", norm2, sigma2, self.texts, 1, unit=self.unit),
            )
            out.append(
                ThresholdEvent(
                    "categories",
                    1 << self.text_shift,
                    sigma2,
                    self.threshold,
                    self.texts,
                    unit=self.unit,
                )
            )
        return out

    def check(self, texts: int, numbers: int, persons: Codes | None) -> None:
        """Refuse to look at more columns than are paid for, or for another unit."""
        if texts > self.texts or numbers > self.numbers or (persons is None) != (self.unit == ROW):
            raise LedgerError(_MORE)


@dataclass(frozen=True)
class Texts:
    """What is released of a text column: noisy counts of the texts shown, and of missing cells."""

    counts: dict[str, float]
    missing: float


@dataclass(frozen=True)
class CountTree:
    """What is released of a column of numbers; cells are by keys of 32-bit floats."""

    leaves: tuple[tuple[int, int, float], ...]  # (low, high, noisy count), ascending
    cuts: tuple[float, ...]  # split points for training
    missing: float  # noisy number of missing cells


def votes(persons: Codes) -> Ints:
    """One row of each person, by an even draw among the person's rows."""
    order = np.lexsort((draw_words(len(persons)), persons))
    first = np.ones(len(persons), dtype=bool)
    first[1:] = persons[order][1:] != persons[order][:-1]
    return order[first]


def release_texts(
    plan: ColumnPlan,
    columns: Mapping[str, tuple[Ints, Sequence[str]]],
    persons: Codes | None = None,
) -> dict[str, Texts]:
    """Noisy counts of the texts that reach the threshold, and of missing cells, of each column.

    A column has the code of the text of each row, -1 for a missing cell, and the texts. Only one
    row of a person counts.
    """
    plan.check(len(columns), 0, persons)
    _check_rows((codes for codes, _ in columns.values()), persons)
    unit = 1 << plan.text_shift
    released = {}
    for name, (codes, texts) in columns.items():
        voted = codes if persons is None else codes[votes(persons)]
        exact = np.bincount(voted + 1, minlength=len(texts) + 1).astype(np.int64) * unit
        noisy = exact + discrete_gaussian(plan.text_sigma2, len(exact))
        # A text without a row here is one that another row may have named: it is not shown.
        shown = [
            (int(count), text)
            for count, rows, text in zip(noisy[1:], exact[1:], texts, strict=True)
            if rows and count >= plan.threshold
        ]
        # By noisy counts: the order of the rows is theirs.
        shown.sort(key=lambda pair: (-pair[0], pair[1]))
        counts = {text: count / unit for count, text in shown}
        released[name] = Texts(counts, float(noisy[0]) / unit)
    return released


def numbers_request(plan: ColumnPlan, **changes: Any) -> dict[str, Any]:
    """What C++ is asked for; `changes` are those of tests."""
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
    """Quantile trees of columns of numbers, (columns, rows)."""
    plan.check(0, len(columns), persons)
    _check_rows(columns, persons)
    each = weights(persons, columns.shape[1], plan.number_shift)
    answer = native.discover_numbers(columns, each, numbers_request(plan))
    draws = [(draw["release"], draw["sigma2"], draw["count"]) for draw in answer["events"]]
    if draws != [("ranges", plan.number_sigma2, 1)]:
        raise LedgerError("A discovery has drawn other noise than planned. Please report it.")
    return [
        CountTree(
            tuple((int(low), int(high), float(count)) for low, high, count in column["leaves"]),
            tuple(map(float, column["cuts"])),
            float(column["missing"]),
        )
        for column in answer["columns"]
    ]
