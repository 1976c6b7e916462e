"""A discovery from front to back: read the cells, calibrate, book, release.

Proof: docs/proofs/discovery.md
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..accounting import Unit
from ..budget import Budget
from ..budget.booked import booked, check_alone, unit_of
from ..budget.gate import check_free
from ..data.arrays import collected
from ..data.cells import MISSING
from ..data.dates import EPOCH, read_day
from ..data.frames import columns_of
from ..data.ids import column_of, persons_of
from ..engine import native
from ..engine.progress import progress
from ..errors import PrivacyParameterError
from ..noisy_sums import ColumnPlan, release_numbers, release_texts
from ..parameters.parse import parse_number
from ..record.caution import warn_of
from ..request.arguments import takes
from .discovered import Discovery, found_number, found_text
from .least_noise import plan_discovery
from .reading import DATES, cells_by_name, kinds_of, read_numbers, read_texts

__all__ = ["discover"]

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

    A text column shows the categories that enough rows have, with noisy counts: one that a single
    person has never appears. A column of numbers shows a range and rough quantiles, a date those of
    its days. Every column shows the share of missing cells. All columns have the same part of the
    budget.

    Privacy: spends epsilon and delta, besides whatever is trained on the rows later on. With
    `privacy_id` they hold for all rows of a person: each votes for the text of one of their rows,
    which is drawn evenly, and counts 1 / (number of their rows) with each number.

    Args:
        data: A data frame, or a mapping of names to arrays, of one row for each record.
        columns: Names of the columns to look at, with the kind of each: "text", "number", "date" or
            "datetime" (a date with an hour). A list of names, or None for all, takes the kinds from
            the types of the columns of a data frame. Public.
        epsilon: Of the whole discovery, in nats, > 0.
        delta: Of the whole discovery, 0 < delta < 1.
        privacy_id: One id for each row, or the name of the column of ids, which is then not looked
            at: the unit of privacy is a person. By default it is a row.
        missing: Texts that stand for a missing cell. Public.
        since: Day that days are counted from, as YYYY-MM-DD. Public.
        group: So many rows of one person (with `privacy_id` so many persons) for whom epsilon and
            delta are meant together, as ``dp_group`` of trainings; by default that of the budget,
            or 1.
        budget: A budget, or the path of one, on which it draws.
        note: What it is, for the book of the budget.

    Returns:
        Discovery: What was found and what it cost; :meth:`Discovery.save` writes a schema file.

    Raises:
        PrivacyParameterError: An argument is out of range, or names a column that is not there.
        PrivacyRefusal: Noise from a fixed key, or several workers.
        BudgetError: The budget has no room, or the target is too small. Nothing was released.
        RowDomainError: A cell is no number, no date or no text, which one row shows by itself.

    Examples:
        >>> columns = {"smoker": np.array(["yes", "no"] * 1000), "days": table[:, 2]}
        >>> kinds = {"smoker": "text", "days": "number"}
        >>> found = xgb_dp.discover(columns, kinds, epsilon=1.0, delta=1e-6)
        >>> sorted(found.columns["smoker"].categories)
        ['no', 'yes']
    """
    epsilon = parse_number("epsilon", epsilon, low=0.0, open_low=True)
    delta = parse_number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    since = read_day("`since`", since)
    check_alone("a discovery", "its coins and noise are", _ONE_MACHINE)
    if budget is not None:
        check_free()
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
    unit = unit_of(codes is not None, column, group, budget)
    plan = plan_discovery(len(texts), len(numbers), epsilon, delta, unit)
    warn_of(epsilon, delta, None, stacklevel=2, unit=unit)
    native.lib()

    release = partial(_release, kinds, texts, numbers, codes, plan, delta, since, missing, unit)
    with progress("discover: count"):
        return booked(release, plan.events, budget, note, unit=unit)[0]


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


def _release(
    kinds: Mapping[str, str],
    texts: Mapping[str, Any],
    numbers: Mapping[str, Any],
    codes: Any,
    plan: ColumnPlan,
    delta: float,
    since: str,
    missing: Sequence[str],
    unit: Unit,
) -> Discovery:
    trees = {}
    if numbers:
        released = release_numbers(plan, np.stack(list(numbers.values())), codes)
        trees = dict(zip(numbers, released, strict=True))
    counted = release_texts(plan, texts, codes)
    sums = [sum(count for *_, count in tree.leaves) + tree.missing for tree in trees.values()]
    # Noisy number of rows or persons, as each column of numbers tells it.
    total = max(0.0, float(np.mean(sums))) if sums else None
    columns = {
        name: found_text(counted[name], total)
        if kind == "text"
        else found_number(trees[name], kind, plan)
        for name, kind in kinds.items()
    }
    return Discovery(
        columns=columns,
        units=total,
        unit=unit,
        delta=delta,
        events=tuple(plan.events),
        since=since if any(kind in DATES for kind in kinds.values()) else None,
        missing=tuple(missing),
    )
