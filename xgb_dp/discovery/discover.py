"""Run column discovery: read the cells, calibrate the noise, charge the budget, release.

Proof: docs/proofs/discovery.md
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .. import policy
from ..accounting import ThresholdEvent, Unit, make_accountant
from ..accounting.curve import narrow
from ..accounting.gaussian import failure_of
from ..accounting.units import ONE_ROW
from ..budget import Budget
from ..budget.budget import check_single_process, choose_unit, claim_and_draw
from ..data.arrays import EPOCH, collect_table
from ..data.cells import MISSING
from ..data.ids import encode_persons, read_id_column
from ..domain.columns import read_day
from ..engine import native
from ..engine.progress import progress
from ..errors import BudgetError, PrivacyParameterError, RowDomainError, spelling
from ..mechanisms.mechanism import count_noise
from ..noisy_sums import LEVELS, ColumnPlan, release_numbers, release_strings
from ..parameters.parse import parse_target
from ..record.authorization import check_free
from ..record.privacy_warnings import concerns, warn
from ..request.names import takes
from .column_reader import (
    DATES,
    column_kinds,
    names_of,
    read_columns,
    read_numbers,
    read_strings,
)
from .result import Discovery, summarize_number, summarize_text

_ONE_MACHINE = (
    "Column discovery does not run on several workers: it needs all rows on one machine. Run it on "
    "a single machine."
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
    group_size: int | None = None,
    budget: Budget | str | os.PathLike[str] | None = None,
    note: str = "discovery",
) -> Discovery:
    """Privately discover what the columns of a table may contain, as a basis for a schema.

    Text columns yield the categories that enough rows have, numbers and dates yield rough
    quantiles, and every column yields its share of missing cells.

    Privacy: spends epsilon and delta, divided equally among the columns. With `privacy_id`, each
    person contributes one uniformly chosen row to a text column, and a total weight of one to a
    column of numbers.

    Args:
        data: A data frame, or a mapping from names to arrays, with one row per record.
        columns: Kinds by name: "text", "number", "date" or "datetime" (a date with an hour); or a
            list of names, or None for all, with the kinds taken from the types of a data frame.
            Public.
        epsilon: Total epsilon of the discovery, in nats, > 0.
        delta: Total delta of the discovery, in (0, 1).
        privacy_id: One id per row, or the name of the id column; by default, each row is its own
            privacy unit.
        missing: Strings that mark missing cells. Public.
        since: Day 0 of the numbers that dates are converted to, as YYYY-MM-DD. Public.
        group_size: Number of rows of one person, or of persons, to protect together; by default the
            group size of the budget.
        budget: The budget to charge, or its path.
        note: A note for the budget entry.

    Returns:
        Discovery: The result and its cost; :meth:`Discovery.save` writes a schema file.

    Raises:
        PrivacyParameterError: An argument is out of range, or names a column that does not exist.
        PrivacyRefusal: The noise key is fixed, or there are several workers.
        BudgetError: The budget is exhausted, or no noise meets the target. Nothing was released.
        RowDomainError: A cell does not have the kind of its column.

    Examples:
        >>> rows = {"smoker": np.array(["yes", "no"] * 1000)}
        >>> discovery = xgb_dp.discover(rows, {"smoker": "text"}, epsilon=1.0, delta=1e-6)
        >>> sorted(discovery.columns["smoker"].categories)
        ['no', 'yes']
    """
    epsilon, delta = parse_target(epsilon, delta)
    if (rules := policy.in_force()) is not None:
        rules.check_allowed("discoveries")
    check_single_process("column discovery", "its sampling and noise are", _ONE_MACHINE)
    if budget is not None:
        check_free()
    with spelling({"dp_privacy_id": "privacy_id"}):
        cells = _ColumnCells.read(data, columns, privacy_id, missing, read_day("`since`", since))
    unit = choose_unit(cells.codes is not None, cells.id_column, group_size, budget)
    warn(concerns(epsilon, delta, None, unit))
    plan = plan_discovery(len(cells.strings), len(cells.numbers), epsilon, delta, unit)
    native.lib()
    draw = partial(_release, cells, plan, delta, unit)
    with progress("discover: count"):
        discovery, entry = claim_and_draw(draw, plan.events, budget, note, unit=unit)
    return discovery if entry is None else replace(discovery, entry=entry)


@dataclass(frozen=True, eq=False)
class _ColumnCells:
    """The cells of the examined columns, read row by row."""

    kinds: Mapping[str, str]
    strings: Mapping[str, Any]
    numbers: Mapping[str, Any]
    codes: Any  # the person of each row; None if every row is its own privacy unit
    id_column: str | None
    missing: tuple[str, ...]
    since: str

    @classmethod
    def read(
        cls, data: Any, columns: Any, privacy_id: Any, missing: Sequence[str], since: str
    ) -> _ColumnCells:
        data = collect_table(data)
        kinds, ids = _apart(data, columns, privacy_id)
        cells = read_columns(data, list(kinds))
        rows = len(next(iter(cells.values())))
        codes = None if ids is None else encode_persons(ids, rows).codes
        strings, numbers = {}, {}
        with progress("discover", len(kinds)) as step:
            for name, kind in kinds.items():
                step(name)
                try:
                    if kind == "text":
                        strings[name] = read_strings(cells[name], missing)
                    else:
                        numbers[name] = read_numbers(cells[name], kind, since, missing)
                except RowDomainError as error:
                    raise RowDomainError(f"{name!r}: {error}") from None
        column = privacy_id if isinstance(privacy_id, str) else read_id_column(privacy_id)
        return cls(kinds, strings, numbers, codes, column, tuple(missing), since)


def _apart(data: Any, columns: Any, privacy_id: Any) -> tuple[dict[str, str], Any]:
    """Return the kinds of all columns other than the id column, and the ids."""
    if not isinstance(privacy_id, str):
        return column_kinds(data, columns), privacy_id
    names = names_of(data)
    if names.count(privacy_id) != 1:
        raise PrivacyParameterError(
            f"`privacy_id` is {privacy_id!r}, but the data does not have exactly one column of "
            "this name. Pass the name of a column, or the ids themselves."
        )
    if columns is None:
        columns = [name for name in names if name != privacy_id]
    kinds = column_kinds(data, columns)
    if privacy_id in kinds:
        raise PrivacyParameterError(
            "`columns` contains the id column, which cannot be examined. Remove it."
        )
    return kinds, data[privacy_id]


def _release(cells: _ColumnCells, plan: ColumnPlan, delta: float, unit: Unit) -> Discovery:
    trees = {}
    if cells.numbers:
        released = release_numbers(plan, np.stack(list(cells.numbers.values())), cells.codes)
        trees = dict(zip(cells.numbers, released, strict=True))
    counted = release_strings(plan, cells.strings, cells.codes)
    sums = [sum(count for *_, count in tree.leaves) + tree.missing for tree in trees.values()]
    # Noisy number of rows or persons; every column of numbers yields one estimate.
    total = max(0.0, float(np.mean(sums))) if sums else None
    noise = plan.number_noise * math.sqrt(2.0 / max(len(sums), 1))  # of two counts per column
    columns = {
        name: summarize_text(counted[name], total, noise, plan)
        if kind == "text"
        else summarize_number(trees[name], kind, plan)
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
        units_noise=noise if sums else None,
    )


_THRESHOLD_SHARE = 0.25  # share of delta spent on the thresholds of categories


def compute_epsilon(plan: ColumnPlan, delta: float, group_size: int = 1) -> float:
    """Return the certified epsilon of the discovery, in nats, for a group of rows or persons."""
    return make_accountant("exact", plan.events).get_epsilon(delta, group_size)


def plan_discovery(
    strings: int, numbers: int, epsilon: float, delta: float, unit: Unit = ONE_ROW
) -> ColumnPlan:
    """Calibrate the least noise that meets the target; all columns spend equally."""

    def plan_at(mu: float) -> ColumnPlan:
        return _with_noise(strings, numbers, unit, mu * mu / (strings + numbers), delta)

    def fits(mu: float) -> bool:
        try:
            return compute_epsilon(plan_at(mu), delta, unit.group_size) <= epsilon
        except BudgetError:  # too much noise for the accountant's grid
            return True

    # The noise of mu = epsilon / 100 suffices for any useful delta.
    low = high = max(epsilon, 1e-6) / (100.0 * unit.group_size)
    while fits(high) and high < 1e4:
        low, high = high, 2.0 * high
    mu, _ = narrow(fits, low, high, 40)
    plan = plan_at(mu)
    if compute_epsilon(plan, delta, unit.group_size) > epsilon:
        raise BudgetError(
            f"No noise level meets epsilon={epsilon:g} at delta={delta:g} for this number of "
            "columns. Examine fewer columns, or increase epsilon or delta."
        )
    return plan


def _with_noise(strings: int, numbers: int, unit: Unit, each: float, delta: float) -> ColumnPlan:
    """Build a plan that spends mu^2 = `each` per column, rounding towards more noise."""
    plan, persons = ColumnPlan(strings, numbers, unit.name), unit.of_persons
    if numbers:
        touched = numbers * LEVELS
        noise = count_noise(touched, numbers * each, persons=persons)
        plan = replace(plan, number_shift=noise.shift, number_sigma2=noise.sigma2)
    if strings:
        noise = count_noise(strings, strings * each, persons=False)  # one vote per unit and column
        plan = replace(plan, text_shift=noise.shift, text_sigma2=noise.sigma2)
        share = _THRESHOLD_SHARE * delta
        least = _threshold(noise.shift, noise.sigma2, strings, share, unit.group_size)
        plan = replace(plan, threshold=least)
    return plan


def _threshold(shift: int, sigma2: int, strings: int, delta: float, group_size: int) -> int:
    """Return the least count that a group's own categories reach with probability at most delta.

    A group can have a category of its own in each of `strings` columns, and all of its rows may
    have the same category, so such a count is at most the size of the group.
    """
    unit = 1 << shift

    def holds(count: int) -> bool:
        event = ThresholdEvent("categories", unit, sigma2, count, strings)
        return failure_of(event, group_size) <= delta

    high = group_size * unit + math.isqrt(sigma2) + 1
    while not holds(high):
        high *= 2
    return bisect_left(range(high), True, lo=1, key=holds)
