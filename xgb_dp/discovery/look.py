"""A discovery from front to back: read the cells, calibrate, book, release.

Proof: docs/proofs/discovery.md
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..accounting import Unit
from ..budget import Budget
from ..budget.booked import booked, check_alone, unit_of
from ..budget.gate import check_free
from ..data.arrays import collected
from ..data.cells import MISSING
from ..data.dates import EPOCH
from ..data.frames import columns_of
from ..data.ids import column_of, persons_of
from ..domain.declared import read_day
from ..engine import native
from ..engine.progress import progress
from ..errors import PrivacyParameterError, spelling
from ..noisy_sums import ColumnPlan, release_numbers, release_texts
from ..parameters.parse import parse_target
from ..record import policy
from ..record.caution import concerns, warn
from ..request.arguments import takes
from .discovered import Discovery, found_number, found_text
from .least_noise import plan_discovery
from .reading import DATES, cells_by_name, kinds_of, read_numbers, read_texts

_ONE_MACHINE = (
    "A discovery is refused on several workers: it runs on one machine, which has all rows. Run it "
    "there."
)


@takes(missing="texts", note="text")
def discover(
    data: Any,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    *,
    epsilon: float,
    delta: float,
    privacy_id: Any = None,
    missing: Sequence[str] = MISSING,
    since: str = EPOCH,
    group: int | None = None,
    budget: Budget | str | os.PathLike[str] | None = None,
    note: str = "discovery",
) -> Discovery:
    """What the columns of a table may contain, found privately: the beginning of a schema.

    Texts show what enough rows have, numbers and dates rough quantiles, all the share of missing.

    Privacy: spends epsilon and delta, the same part on each column. With `privacy_id` a person
    votes for the text of one of their rows, drawn evenly, and counts one in columns of numbers.

    Args:
        data: A data frame, or a mapping of names to arrays, of one row for each record.
        columns: Kinds by name: "text", "number", "date" or "datetime" (a date with an hour); or a
            list of names, or None for all, with the types of a data frame. Public.
        epsilon: Of the whole discovery, in nats, > 0.
        delta: Of the whole discovery, in (0, 1).
        privacy_id: One id for each row, or the name of the column of ids; by default each row.
        missing: Texts that stand for a missing cell. Public.
        since: Day that days are counted from, as YYYY-MM-DD. Public.
        group: Rows of one person, or persons, who are meant together; by default as the budget.
        budget: A budget, or its path, on which it draws.
        note: What it is, for the book of the budget.

    Returns:
        Discovery: What was found and what it cost; :meth:`Discovery.save` writes a schema file.

    Raises:
        PrivacyParameterError: An argument is out of range, or names a column that is not there.
        PrivacyRefusal: Noise from a fixed key, or several workers.
        BudgetError: The budget has no room, or the target is too small. Nothing was released.
        RowDomainError: A cell is not of its kind.

    Examples:
        >>> rows = {"smoker": np.array(["yes", "no"] * 1000)}
        >>> look = xgb_dp.discover(rows, {"smoker": "text"}, epsilon=1.0, delta=1e-6)
        >>> sorted(look.columns["smoker"].categories)
        ['no', 'yes']
    """
    epsilon, delta = parse_target(epsilon, delta)
    if (rules := policy.in_force()) is not None:
        rules.check_allowed("looks")
    check_alone("a discovery", "its coins and noise are", _ONE_MACHINE)
    if budget is not None:
        check_free()
    with spelling({"dp_privacy_id": "privacy_id"}):
        cells = _Cells.read(data, columns, privacy_id, missing, read_day("`since`", since))
    unit = unit_of(cells.codes is not None, cells.id_column, group, budget)
    warn(concerns(epsilon, delta, None, unit))
    plan = plan_discovery(len(cells.texts), len(cells.numbers), epsilon, delta, unit)
    native.lib()
    draw = partial(_release, cells, plan, delta, unit)
    with progress("discover: count"):
        discovery, entry = booked(draw, plan.events, budget, note, unit=unit)
    return discovery if entry is None else replace(discovery, entry=entry)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The columns that are looked at, as they are read row by row."""

    kinds: Mapping[str, str]
    texts: Mapping[str, Any]
    numbers: Mapping[str, Any]
    codes: Any  # whose row each row is; None where every row counts for itself
    id_column: str | None
    missing: tuple[str, ...]
    since: str

    @classmethod
    def read(
        cls, data: Any, columns: Any, privacy_id: Any, missing: Sequence[str], since: str
    ) -> _Cells:
        data = collected(data)
        kinds, ids = _apart(data, columns, privacy_id)
        cells = cells_by_name(data, list(kinds))
        rows = len(next(iter(cells.values())))
        codes = None if ids is None else persons_of(ids, rows).codes
        texts, numbers = {}, {}
        with progress("discover", len(kinds)) as step:
            for name, kind in kinds.items():
                step(name)
                if kind == "text":
                    texts[name] = read_texts(cells[name], missing)
                else:
                    numbers[name] = read_numbers(cells[name], kind, since, missing)
        column = privacy_id if isinstance(privacy_id, str) else column_of(privacy_id)
        return cls(kinds, texts, numbers, codes, column, tuple(missing), since)


def _apart(data: Any, columns: Any, privacy_id: Any) -> tuple[dict[str, str], Any]:
    """The kinds of the columns without that of ids, and the ids."""
    if not isinstance(privacy_id, str):
        return kinds_of(data, columns), privacy_id
    names = list(data) if isinstance(data, Mapping) else columns_of(data)
    if names.count(privacy_id) != 1:
        raise PrivacyParameterError(
            f"`privacy_id` names the column {privacy_id!r}, and the data does not have exactly "
            "one of this name. Give the name of a column, or the ids themselves."
        )
    if columns is None:
        columns = [name for name in names if name != privacy_id]
    kinds = kinds_of(data, columns)
    if privacy_id in kinds:
        raise PrivacyParameterError(
            "`columns` names the column of ids, which cannot be looked at. Leave it out."
        )
    return kinds, data[privacy_id]


def _release(cells: _Cells, plan: ColumnPlan, delta: float, unit: Unit) -> Discovery:
    trees = {}
    if cells.numbers:
        released = release_numbers(plan, np.stack(list(cells.numbers.values())), cells.codes)
        trees = dict(zip(cells.numbers, released, strict=True))
    counted = release_texts(plan, cells.texts, cells.codes)
    sums = [sum(count for *_, count in tree.leaves) + tree.missing for tree in trees.values()]
    # Noisy number of rows or persons, as each column of numbers tells it.
    total = max(0.0, float(np.mean(sums))) if sums else None
    columns = {
        name: found_text(counted[name], total)
        if kind == "text"
        else found_number(trees[name], kind, plan)
        for name, kind in cells.kinds.items()
    }
    return Discovery(
        columns=columns,
        units=total,
        unit=unit,
        delta=delta,
        events=tuple(plan.events),
        since=cells.since if any(kind in DATES for kind in cells.kinds.values()) else None,
        missing=cells.missing,
    )
