"""The result of column discovery, and the schema derived from it.

Everything here is post-processing of noisy counts, so viewing and storing it is free.
"""

from __future__ import annotations

import datetime
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..accounting import Event, Unit, make_accountant
from ..domain.columns import format_yaml
from ..domain.domain import from_mapping
from ..errors import PrivacyParameterError
from ..noisy_sums import ColumnPlan, CountTree, Strings
from ..record.formatting import round_up, visible
from .column_reader import DATES

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_OTHER = "other"
_TAIL = 0.005  # share of rows outside each end of a range; larger if the noise requires it
# Negative noisy counts are cut to 0, so an empty cell counts 0.4 noise deviations on average. About
# five empty cells, each many powers of two wide, lie beyond the rows of a column. With a smaller
# value than this, in deviations, the range often started in an empty cell.
_EMPTY_CELLS = 4.0
_FEW = 0.02  # share of cells, besides noise, that may lie beyond the values 0 and 1
_Z = 1.96  # of intervals with level 95%
# Largest deviation of a cumulative count minus a share of all, in deviations of a count.
_DEEPEST = 1.85
Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class FoundColumn:
    """Result for one column. All numbers are noisy; each interval has level 95% for the noise.

    Attributes:
        kind: "text", "number", "date" or "datetime".
        categories: Text columns: noisy number of rows (or persons) per category, largest first.
        other: Text columns: approximate share of rows whose category was not released; None if
            unknown, because no column of numbers gives the number of rows.
        missing: Approximate share of missing cells; None if unknown.
        noise: Text columns: standard deviation of the noise of each category.
        intervals: Intervals of `other` and `missing`, and of each quantile by its probability; with
            infinite ends where noise hides a quantile.
        values: Numbers: intervals of the shares of 0, or of 0 and 1, if nearly all cells have these
            values; else None.
        range: Numbers, and days of dates: (low, high), a range that contains all but a few rows;
            None if it is hidden by noise.
        quantiles: Numbers, and days of dates: rough quantiles by probability.
        cuts: Numbers, and days of dates: cuts that can be declared for training.

    Examples:
        >>> columns = {"smoker": np.array(["yes", "no"] * 1000)}
        >>> found = xgb_dp.discover(columns, {"smoker": "text"}, epsilon=1.0, delta=1e-6)
        >>> sorted(found.columns["smoker"].categories)
        ['no', 'yes']
    """

    kind: str
    categories: Mapping[str, float] | None = None
    other: float | None = None
    missing: float | None = None
    range: tuple[float, float] | None = None
    quantiles: Mapping[float, float] | None = None
    cuts: tuple[float, ...] | None = None
    noise: float | None = None
    intervals: Mapping[Any, Interval] = field(default_factory=dict)
    values: Mapping[float, Interval] | None = None


def summarize_text(
    released: Strings, total: float | None, total_noise: float, plan: ColumnPlan
) -> FoundColumn:
    """Summarize a text column from its released counts."""
    column = FoundColumn("text", dict(released.counts), noise=plan.text_noise)
    if not total:
        return column
    other = total - sum(released.counts.values()) - released.missing
    noise2, total2 = plan.text_noise**2, total_noise**2
    other2 = total2 + (len(released.counts) + 1) * noise2
    return replace(
        column,
        other=_share(other, total),
        missing=_share(released.missing, total),
        intervals={
            "other": _share_interval(other, total, other2, total2, total2),
            "missing": _share_interval(released.missing, total, noise2, total2),
        },
    )


def summarize_number(tree: CountTree, kind: str, plan: ColumnPlan) -> FoundColumn:
    """Summarize a column of numbers or dates from its released counts."""
    present = sum(count for *_, count in tree.leaves)
    noise, noise2 = plan.number_noise, plan.number_noise**2
    total = present + tree.missing
    column = FoundColumn(kind)
    if total > noise:
        share = _share_interval(tree.missing, total, noise2, 2.0 * noise2, noise2)
        column = replace(column, missing=_share(tree.missing, total), intervals={"missing": share})
    # With few rows compared with the noise of one count, the released tree locates no values.
    tail = max(_TAIL * present, _EMPTY_CELLS * noise)
    if present <= 4.0 * tail:
        return column
    values = _zeros_and_ones(tree, present, noise) if kind == "number" else None
    column = replace(column, values=values)
    low, high = _at(tree, tail, below=True), _at(tree, present - tail, below=False)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return column
    if values and 1.0 in values:
        low, high = 0.0, 1.0
    quantiles = {q: _between(tree, q * present, low, high) for q in QUANTILES}
    slack = (_Z * _DEEPEST + _EMPTY_CELLS) * noise
    ends = [
        (_at(tree, q * present - slack, below=True), _at(tree, q * present + slack, below=False))
        for q in QUANTILES
    ]
    intervals = {**column.intervals, **dict(zip(QUANTILES, ends, strict=True))}
    return replace(
        column, intervals=intervals, cuts=tree.cuts, range=(low, high), quantiles=quantiles
    )


def _zeros_and_ones(tree: CountTree, present: float, noise: float) -> dict[float, Interval] | None:
    """Return intervals of the shares of 0 and 1 if these are nearly all values."""
    few, counts = _FEW * present + 2.0 * _EMPTY_CELLS * noise, {}
    for value in (0.0, 1.0):
        key = int(np.float32(value).view(np.uint32)) | 1 << 31
        low, high, count = next(leaf for leaf in tree.leaves if leaf[0] <= key < leaf[1])
        if value - 0.5 <= _value(low) and _value(high) <= value + 0.5:
            counts[value] = count
        others = present - sum(counts.values())
        if 0.0 in counts and others <= few:
            share = partial(_share_interval, whole=present, part2=noise**2, whole2=noise**2)
            # Noise moves some of a count to empty cells.
            return {v: (share(n)[0], share(n + others)[1]) for v, n in counts.items()}
    return None


def _share_interval(
    part: float, whole: float, part2: float, whole2: float, covariance: float = 0.0
) -> Interval:
    """Return an interval of the share of two noisy sums with these variances, by Fieller's method.

    It contains each share q for which `part - q * whole` is within the noise.
    """
    square = whole**2 - _Z**2 * whole2
    if square <= 0.0:  # the whole may be 0
        return 0.0, 1.0
    middle = (part * whole - _Z**2 * covariance) / square
    half = math.sqrt(max(middle**2 - (part**2 - _Z**2 * part2) / square, 0.0))
    return min(max(middle - half, 0.0), 1.0), min(max(middle + half, 0.0), 1.0)


def _share(part: float, total: float) -> float:
    return min(1.0, max(0.0, part / total))


def _value(key: int) -> float:
    """Return the 32-bit float of a key; infinite outside the finite floats.

    See plugin_cpp/mechanisms/candidates/quantile_tree.h.
    """
    key = min(max(key, 0), (1 << 32) - 1)
    bits = key ^ (1 << 31) if key & (1 << 31) else key ^ 0xFFFFFFFF
    with np.errstate(invalid="ignore"):
        value = float(np.array(bits, dtype=np.uint32).view(np.float32))
    if math.isnan(value):
        return math.inf if key >> 31 else -math.inf
    return 0.0 if abs(value) < float(np.finfo(np.float32).tiny) else value


def _at(tree: CountTree, mass: float, *, below: bool) -> float:
    """Return the lower or upper end of the cell in which the cumulative count reaches `mass`."""
    passed = np.cumsum([count for *_, count in tree.leaves])
    cells = np.flatnonzero(passed >= mass)
    return _value(tree.leaves[cells[0]][0 if below else 1]) if len(cells) else math.inf


def _between(tree: CountTree, mass: float, least: float, most: float) -> float:
    """Estimate the value at cumulative count `mass` by interpolating in the order of floats."""
    passed = 0.0
    for low, high, count in tree.leaves:
        if count > 0.0 and passed + count >= mass:
            inside = _value(low + int((mass - passed) / count * (high - low)))
            return min(max(inside, least), most)
        passed += count
    return most


@dataclass(frozen=True)
class Discovery:
    """The result of column discovery, and its privacy cost.

    Attributes:
        columns: Results by name, in the order of the table.
        units: Approximate number of rows (or persons); None if no column is numeric.
        unit: The privacy unit of the cost.
        delta: Total delta of the discovery.
        events: The privacy events, as recorded in ledgers.
        since: Day 0 of the numbers that dates are converted to; None if there are no dates.
        missing: Strings that mark missing cells.
        entry: Name of the budget entry; None if no budget was charged.
        units_noise: Standard deviation of `units`; None if `units` is.

    Examples:
        >>> columns, kinds = {"days": table[:, 2]}, {"days": "number"}
        >>> found = xgb_dp.discover(columns, kinds, epsilon=1.0, delta=1e-6)
        >>> round(found.epsilon, 1)
        1.0
    """

    columns: Mapping[str, FoundColumn]
    units: float | None
    unit: Unit
    delta: float
    events: tuple[Event, ...]
    since: str | None = None
    missing: tuple[str, ...] = ()
    entry: str | None = None
    units_noise: float | None = None

    @property
    def epsilon(self) -> float:
        """Certified epsilon at :attr:`delta` in nats, recomputed from :attr:`events`."""
        return self.get_epsilon(self.delta, self.unit.group_size)

    def get_epsilon(self, delta: float, group_size: int = 1) -> float:
        """Compute the certified epsilon at another delta, or for several rows or persons.

        Args:
            delta: Failure probability. Epsilon is infinite if delta is below the share that the
                thresholds of the categories use.
            group_size: Number of rows (or persons) that are added or removed together.
        """
        return make_accountant("exact", self.events).get_epsilon(delta, group_size)

    def statement(self) -> str:
        """Describe the privacy cost of the discovery in a sentence."""
        return (
            f"These findings are ({round_up(self.epsilon)}, {self.delta:g})-differentially private "
            f"for adding or removing {self.unit.phrase}. Their cost adds to the cost of every "
            "other release from the same rows."
        )

    def schema(
        self,
        target: str | None = None,
        *,
        use: str = "nothing",
        least: float = 0.0,
    ) -> dict[str, Any]:
        """Return the content of a schema file for ``xgb-dp train``; see ``docs/howto/domains.md``.

        Args:
            target: Label column. A text column becomes the classes, a column of numbers the target
                bounds.
            use: What to declare for columns of numbers: "nothing" (training finds its own cuts),
                "bounds", or "cuts" (training spends nothing on cuts, but these are only as precise
                as the discovery).
            least: Categories with a smaller share of rows are merged into "other".

        Returns:
            Mappings, lists, strings and numbers. Text columns without a released category are
            dropped. The key ``discovered`` contains the privacy cost.

        Raises:
            PrivacyParameterError: The target was not examined, or nothing was released about it.
        """
        if use not in ("cuts", "bounds", "nothing"):
            raise PrivacyParameterError("`use` must be 'cuts', 'bounds' or 'nothing'.")
        schema: dict[str, Any] = {}
        if target is not None:
            schema = {"target": target, **self._target_schema(target)}
        if self.unit.column is not None:
            schema["privacy_id"] = self.unit.column
        if self.missing:
            schema["missing"] = list(self.missing)
        declared = {
            name: self._declared(column, use, least)
            for name, column in self.columns.items()
            if name != target
        }
        if hidden := [name for name, value in declared.items() if value is None]:
            schema["drop"] = hidden
        if len(hidden) < len(declared):
            schema["columns"] = {n: value for n, value in declared.items() if value is not None}
        schema["discovered"] = {
            "epsilon": float(round_up(self.epsilon)),
            "delta": self.delta,
            "unit": self.unit.name,
            **({} if self.unit.group_size == 1 else {"group_size": self.unit.group_size}),
            **({} if self.unit.column is None else {"column": self.unit.column}),
            "events": [event.to_json() for event in self.events],
            **({} if self.entry is None else {"entry": self.entry}),
        }
        return schema

    def params(self, target: str | None = None, **how: Any) -> dict[str, Any]:
        """Return the declarations and the privacy cost as parameters of ``xgboost.train``.

        The ledger of a model that is trained with them includes the cost of the discovery. The
        model has no rules for dates and other categories: :meth:`save` them for :class:`Schema`.

        Args:
            target: See :meth:`schema`. This column must not be among the features.
            how: See :meth:`schema`.

        Examples:
            >>> rows = {"smoker": np.array(["yes", "no"] * 1000)}
            >>> found = xgb_dp.discover(rows, {"smoker": "text"}, epsilon=1.0, delta=1e-6)
            >>> sorted(found.params())
            ['dp_categories', 'dp_discovered']
        """
        params = from_mapping(self.schema(target, **how)).parameters()
        return {name: value for name, value in params.items() if name != "dp_privacy_id"}

    def apply(self, table: Any) -> Any:
        """Prepare a table for training and prediction, cell by cell; releases nothing.

        Categories that were not released become "other", dates are replaced by their parts, and
        strings that mark missing cells become missing. The id column is dropped. Columns that were
        not examined are read as numbers.

        Args:
            table: A data frame of any library, or a mapping from column names to arrays.

        Returns:
            pandas.DataFrame: For ``xgboost.DMatrix(..., enable_categorical=True)``.

        Raises:
            RowDomainError: A cell does not have the kind of its column.
        """
        return from_mapping(self.schema()).read_table(table)

    def _target_schema(self, name: str) -> dict[str, Any]:
        column = self.columns.get(name)
        if column is None:
            raise PrivacyParameterError(
                f"`target`: column {name!r} was not examined. Add it to the `columns` of "
                "`discover`, or omit `target`."
            )
        if column.kind == "text" and column.categories is not None:
            if len(column.categories) < 2:
                raise PrivacyParameterError(
                    f"`target`: fewer than two classes of {name!r} were released. Declare "
                    "`classes` yourself."
                )
            return {"classes": sorted(column.categories)}
        if column.kind != "number" or column.range is None:
            raise PrivacyParameterError(
                f"`target`: no range of {name!r} was released. Declare `target_bounds` yourself."
            )
        return {"target_bounds": list(column.range)}

    def _declared(self, column: FoundColumn, use: str, least: float) -> Any:
        if column.categories is not None:
            floor = least * (self.units or sum(column.categories.values()))
            kept = [name for name, count in column.categories.items() if count >= floor]
            if not kept:
                return None
            # The names "error" and "missing" have a special meaning in `other`.
            return {"categories": [*kept, *([] if _OTHER in kept else [_OTHER])], "other": _OTHER}
        declared: dict[str, Any] = {}
        if column.kind in DATES:
            declared = {"date": list(DATES[column.kind]), "since": self.since}
        if use == "bounds" and column.range is not None:
            declared["bounds"] = list(column.range)
        if use == "cuts" and column.cuts:
            declared["cuts"] = list(column.cuts)
        return declared or "number"

    def save(self, path: str | os.PathLike[str], target: str | None = None, **how: Any) -> None:
        """Write a schema file.

        Args:
            path: Must end in .yaml, .yml or .json; an existing file is overwritten.
            target: See :meth:`schema`.
            how: See :meth:`schema`.

        Raises:
            PrivacyParameterError: The extension is unknown; see also :meth:`schema`.
        """
        file = Path(path)
        if file.suffix.lower() == ".json":
            text = json.dumps(self.schema(target, **how), indent=2, allow_nan=False) + "\n"
        elif file.suffix.lower() in (".yaml", ".yml"):
            text = self.to_yaml(target, **how)
        else:
            raise PrivacyParameterError(
                "Unknown file extension. A schema file must end in .yaml, .yml or .json."
            )
        file.write_text(text, encoding="utf-8")

    def to_yaml(self, target: str | None = None, **how: Any) -> str:
        """Format the schema file as YAML; see :meth:`schema`."""
        return f"# {self.statement()}\n{format_yaml(self.schema(target, **how))}"

    def __str__(self) -> str:
        lines = [self.statement(), "Intervals account for the noise, with level 95%."]
        if self.units is not None and self.units_noise is not None:
            margin = _Z * self.units_noise
            lines.append(f"About {self.units:.0f} ± {margin:.0f} {self.unit.plural}.")
        lines.append("")
        for name, column in self.columns.items():
            summary = _column_summary(column, self.since if column.kind in DATES else None)
            lines.append(f"{name} ({column.kind}): {'; '.join(summary)}")
        return "\n".join(map(visible, lines))

    def __repr__(self) -> str:
        return f"Discovery({', '.join(map(repr, self.columns))})"


def _column_summary(column: FoundColumn, since: str | None) -> Sequence[str]:
    parts, intervals = [], column.intervals
    if column.categories is not None:
        counted = [f"{name} {count:.0f}" for name, count in column.categories.items()]
        each = f" (each ± {_Z * (column.noise or 0.0):.0f})" if counted else ""
        parts.append((", ".join(counted) or "no category reached the threshold") + each)
    if column.values is not None:
        parts += [f"{value:g} in {_percent(*ends)}" for value, ends in column.values.items()]
    elif column.range is not None:
        low, high = (_value_text(value, since) for value in column.range)
        parts.append(f"nearly all {low} to {high}")
        low, high = (_value_text(value, since) for value in intervals[0.5])
        parts.append(f"median {low} to {high}")
    elif column.categories is None:
        parts.append("range hidden by noise")
    parts += [f"{n} {_percent(*intervals[n])}" for n in ("other", "missing") if n in intervals]
    return parts


def _value_text(value: float, since: str | None) -> str:
    """Format a number, or a number of days since a date as a date."""
    try:
        first = datetime.date.fromisoformat(since or "")
        return (first + datetime.timedelta(days=math.floor(value))).isoformat()
    except (ValueError, OverflowError):  # not a date, or outside the calendar
        return f"{value:.4g}"


def _percent(low: float, high: float) -> str:
    """Format an interval of shares in percent, rounded outwards."""
    unit = 1.0 if high - low >= 0.02 else 0.1
    low, high = unit * math.floor(100.0 * low / unit), unit * math.ceil(100.0 * high / unit)
    return f"{low:.3g} to {min(high, 100.0):.3g}%"
