"""Warnings about guarantees that are formally correct but weak.

A training runs these checks before its first release, and a report runs them again. They use only
public and released numbers.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..accounting import GaussianEvent, Unit, make_accountant
from ..accounting.events import plain_events
from ..accounting.gaussian import gaussian_epsilon, gaussian_mu
from ..accounting.units import ONE_ROW, all_same
from ..errors import PrivacyWarning, named
from ..parameters.parse import OpenRounds
from ..request.names import looks_like_id
from .formatting import round_up
from .ledger_model import Ledger

if TYPE_CHECKING:
    from ..parameters.config import Config
    from ..request.schema import Schema
    from .ledger_model import TrainingRecord

# Warnings point at the first caller outside of these.
_LIBRARIES = {"xgb_dp", "xgboost", "sklearn", "contextlib", "functools"}
_LARGE_EPSILON = 10.0
_STEPS = 12.0  # eta times rounds
_LARGE_DELTA = 1e-3  # for any number of rows
_MOST_SHOWN = 10  # columns per warning
_APART = 1.96 * math.sqrt(2.0)  # smallest visible difference of two counts, in their deviations
_GROUPS = 10.0  # a model needs rows for this many groups of which it sees the difference
_TINY_DELTA, _SMALL_DELTA = 1e-6, 1e-3  # times the number of rows
_SEED = (
    "{} has no effect: every private training draws fresh noise, because anyone who knows the seed "
    "could remove the noise. Remove it. In tests, use xgb_dp.testing.fixed_noise."
)
_FAR_TOO_WIDE = 8.0  # ratio of the target bounds to the released label range


def concerns(
    epsilon: float, delta: float, public_num_rows: int | None, unit: Unit = ONE_ROW
) -> list[str]:
    """Describe the weaknesses of a guarantee, one string each."""
    reasons = []
    if epsilon > _LARGE_EPSILON:
        reasons.append(
            f"Epsilon is above {_LARGE_EPSILON:g}: adding or removing {unit.counted()} can change "
            f"the probability of an outcome by a factor of e^{round_up(epsilon)}, which gives "
            "hardly any protection. An epsilon of 1 is strong; 4 is common."
        )
    if delta > _LARGE_DELTA:
        reasons.append(
            f"Delta is {delta:.4g}, above {_LARGE_DELTA:g}: with this probability, the guarantee "
            "can fail completely. Use 1e-6 or less."
        )
    elif public_num_rows is not None and delta * public_num_rows > 1.0:
        reasons.append(
            f"Delta is {delta:.4g}, above 1 / {public_num_rows}, the inverse of the declared "
            f"number of {unit.plural}: a mechanism that publishes one random {unit.name} in full "
            "would satisfy this guarantee. Use a much smaller delta."
        )
    return reasons


def warn(strings: Iterable[str]) -> None:
    """Issue a ``PrivacyWarning`` for each string, attributed to the caller's own line of code."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and str(frame.f_globals.get("__name__")).split(".")[0] in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    for string in strings:
        warnings.warn(string, PrivacyWarning, stacklevel=level)


def training_warnings(s: Config, claimed: Ledger, *, without_budget: bool) -> list[str]:
    """Return the warnings before a training, from its settings and its claimed ledger."""
    strings = [*learning_rate_warnings(s), *target_warnings(s), *continuation_warnings(claimed)]
    # Without a public number of rows, these warnings need a release first.
    if s["dp_public_num_rows"] is not None:
        strings += last_training_warnings(claimed)
    if without_budget:
        strings += repeated_training_warnings(s.schema, claimed)
    return [*strings, *id_column_warnings(s.schema, s.privacy_unit.of_persons)]


def target_warnings(settings: Config) -> list[str]:
    """Describe the weaknesses of a training's target (epsilon, delta); name a seed."""
    seed = [_SEED.format(named.seed)] if "seed" in settings.given else []
    if math.isinf(settings.epsilon):
        return [
            *seed,
            "`dp_epsilon` is infinite: the training adds no noise, for debugging only, and the "
            "model is NOT private.",
        ]
    public_num_rows, unit = settings["dp_public_num_rows"], settings.privacy_unit
    return [*seed, *concerns(settings.epsilon, settings.delta, public_num_rows, unit)]


def learning_rate_warnings(settings: Config) -> list[str]:
    """Warn if the learning rate and number of rounds are too small for the fit to converge."""
    eta, rounds = settings["eta"], int(settings.rounds)
    if "eta" not in settings.given or settings["dp_preset"] != "default" or settings.continues:
        return []
    if isinstance(settings.rounds, OpenRounds) or eta * rounds >= _STEPS:
        return []  # open rounds follow the learning rate
    return [
        f"`eta`={eta:g} times {rounds} rounds is {eta * rounds:.3g}. Private training needs about "
        f"{_STEPS:g}, because noise and clipping already make each step small. On our data sets, "
        "a smaller product cost up to 0.2 of R2 or 0.04 of AUC. Omit `eta` or `num_boost_round`, "
        "or raise one of them."
    ]


def id_column_warnings(schema: Schema, for_persons: bool) -> list[str]:
    """Warn about features with names that look like ids.

    Features with declared categories are exempt: a user who lists the categories knows that they do
    not identify persons.
    """
    numbers = [name for i, name in enumerate(schema.names) if i not in schema.categorical]
    ids = [repr(name) for name in numbers if looks_like_id(name)]
    if not schema.named or not ids:
        return []
    fix = (
        "The privacy id is already declared. Remove any other id: an id is not a feature."
        if for_persons
        else "If it identifies persons, declare it as the privacy id, so that all rows of a person "
        "are protected together: `dp_privacy_id` (estimators: fit(..., privacy_id=); command line: "
        "--privacy-id). Remove any other id: an id is not a feature."
    )
    verb = "looks like an id" if len(ids) == 1 else "look like ids"
    return [
        f"Feature{'s' if len(ids) > 1 else ''} {', '.join(ids)} {verb}. {fix} If this is not an "
        "id, rename the column."
    ]


def doubts(training: TrainingRecord, unit: Unit, rows: float | None = None) -> list[str]:
    """Describe problems visible in a training's released counts. Privacy: free post-processing.

    Args:
        training: The training.
        unit: Its privacy unit.
        rows: Released number of rows or persons, if the record of the training may lack it.
    """
    public, reasons = training.public, []
    known = (public.get("plan_choice") or {}).get("rows") or public.get("public_num_rows")
    rows = rows if known is None else known
    if rows is not None:
        counted, (epsilon, delta) = "persons" if unit.of_persons else "rows", training.target
        leaves = [
            e
            for e in plain_events(training.released)
            if isinstance(e, GaussianEvent) and e.release == "leaves" and e.sensitivity2
        ]
        mu2 = sum(e.count * e.sensitivity2 / e.sigma2 for e in leaves if e.sigma2)
        if mu2 and _GROUPS * (hidden := _APART / math.sqrt(mu2)) > rows:
            reasons.append(
                f"The noise of all trees together hides differences between groups of {hidden:.0f} "
                f"{counted}, and there are only about {max(rows, 0):.0f} in total, so the model "
                f"may be little more than noise: use more {counted} or a larger epsilon."
            )
        if public.get("public_num_rows") is None and delta * rows > 1.0 and delta <= _LARGE_DELTA:
            reasons.append(
                f"Delta is {delta:.4g}, above the inverse of the released number of {counted}, "
                f"about {rows:.0f}: use a much smaller delta."
            )
        if 0.0 < delta * rows < _TINY_DELTA:
            enough = min(_SMALL_DELTA / rows, 1e-6)
            less = 1.0 - gaussian_mu(epsilon, delta) / gaussian_mu(epsilon, enough)
            reasons.append(
                f"Delta is {delta:.4g}, far below the inverse of the number of {counted}, about "
                f"{rows:.0f}: a delta of {enough:.1g} would need {less:.0%} less noise."
            )
    declared, seen = public.get("target_bounds"), public.get("target_seen")
    if declared and seen and declared[1] - declared[0] > _FAR_TOO_WIDE * (seen[1] - seen[0]):
        reasons.append(
            f"The target bounds, {declared[0]:g} to {declared[1]:g}, are far too wide: nearly all "
            f"labels lie between {seen[0]:g} and {seen[1]:g} by noisy counts, and tighter bounds "
            "make evaluations more accurate."
        )
    return reasons


def last_training_warnings(claimed: Ledger, rows: float | None = None) -> list[str]:
    """Return the :func:`doubts` about the last training."""
    return doubts(claimed.trainings[-1], claimed.unit, rows) if claimed.private else []


def narrow_column_warnings(columns: Mapping[str, Sequence[float]]) -> list[str]:
    """Warn about columns with split candidates too coarse for their values.

    Privacy: free post-processing of released counts.

    Args:
        columns: Low end, high end and distance of the candidates, by column name.
    """
    if not columns:
        return []
    shown = [
        f"{name!r} ({low:.7g} to {high:.7g}, at least {step:.3g} apart)"
        for name, (low, high, step) in columns.items()
    ]
    if len(shown) > _MOST_SHOWN:
        shown[_MOST_SHOWN:] = [f"and {len(shown) - _MOST_SHOWN} more"]
    return [
        "Nearly all values of a column lie in a narrow range, and the split candidates in this "
        f"range are far apart: {', '.join(shown)}. Ignore this if the column is constant or if the "
        "distances between its values are larger. Otherwise the trees can hardly use the column: "
        "declare (low, high) close to its values in `dp_feature_bounds`, or subtract the low end."
    ]


def continuation_warnings(claimed: Ledger) -> list[str]:
    """Warn if the total epsilon of a continued model is large."""
    if len(claimed.trainings) < 2 or not claimed.private or claimed.noise != "os":
        return []
    *earlier, last = claimed.trainings
    before = "training" if len(earlier) == 1 else f"{len(earlier)} trainings"
    delta = max(t.target[1] for t in claimed.trainings)
    unit = claimed.unit
    epsilon = make_accountant("exact", claimed.events).get_epsilon(delta, unit.group_size)
    if not last.target[0] <= _LARGE_EPSILON < epsilon:
        return []
    text = (
        f"Together with the {before} before this one, the model has epsilon {epsilon:.4g}; "
        "`dp_epsilon` is the budget of the new trees alone."
    )
    return [" ".join([text, *concerns(epsilon, 0.0, None, unit)])]


def scope(unit: Unit) -> str:
    """Describe who is protected by a guarantee for this privacy unit."""
    if unit.of_persons:
        together = f" The guarantee is for any {unit.group_size} persons together."
        together = "" if unit.group_size == 1 else together
        return (
            f"The privacy unit is a {replace(unit, group_size=1).label}: all rows of one person, "
            f"regardless of their number.{together}"
        )
    if unit.group_size == 1:
        return (
            "The privacy unit is one row. A person with several rows has weaker protection; use "
            "dp_privacy_id or dp_group_size to protect persons."
        )
    return (
        f"The privacy unit is any {unit.counted()}. A person with more rows has weaker protection; "
        "use dp_privacy_id to protect persons regardless of their number of rows."
    )


class _Spent(NamedTuple):
    """The privacy cost of a training, for :func:`repeated_training_warnings`."""

    noisy: bool  # whether it is private, with noise keyed by the operating system
    unit: Unit
    targets: tuple[tuple[float, float], ...]  # epsilon and delta of each training of the model
    last: str | None  # name of the last tree; None before the first tree

    @classmethod
    def of(cls, record: Ledger) -> _Spent:
        targets = tuple(t.target for t in record.trainings)
        trees = record.trainings[-1].trees or (None,)
        return cls(record.private and record.noise == "os", record.unit, targets, trees[-1])


_trained: dict[object, dict[object, _Spent]] = {}  # by public columns, then by training
_lock = threading.Lock()
_MOST_KEPT = 1 << 12  # trainings


def _columns(schema: Schema, record: Ledger) -> object:
    """Return what is public and equal in copies, rebuilt matrices and slices of one table.

    Parts of a split have different persons, so they count as different tables.
    """
    part = str(record.trainings[-1].public.get("part"))
    return frozenset(schema.names), len(schema.categorical), schema.named, part


def keep(schema: Schema, training: object, record: Ledger) -> None:
    """Remember the cost of a training on these columns; a later call replaces an earlier one."""
    with _lock:
        kept = _trained.setdefault(_columns(schema, record), {})
        if training in kept or len(kept) < _MOST_KEPT:
            kept[training] = _Spent.of(record)


def repeated_training_warnings(schema: Schema, claimed: Ledger) -> list[str]:
    """Warn before the second, fourth, eighth, ... training on tables with the same columns."""
    with _lock:
        kept = list(_trained.get(_columns(schema, claimed), {}).values())
    # A continued model already includes the cost of the model that it continues.
    earlier = [r for r in kept if r.noisy and r.last not in claimed.tree_names]
    records = [*earlier, _Spent.of(claimed)]
    count = len(records)
    if count < 2 or count & (count - 1) or not records[-1].noisy:
        return []
    cost = "their privacy units differ, so there is no bound on their total cost"
    if all_same(record.unit for record in records):
        targets = [target for record in records for target in record.targets]
        delta, total = max(d for _, d in targets), math.fsum(epsilon for epsilon, _ in targets)
        if all(d for _, d in targets):  # approximate each by a Gaussian mechanism
            mu = math.hypot(*(gaussian_mu(*target) for target in targets))
            total = min(total, gaussian_epsilon(mu, delta))
        cost = f"their total cost is about epsilon {total:.3g} at delta {delta:g}"
    return [
        f"This is private training number {count} on a table with these columns, and no budget "
        f"records them. If they read the same people, {cost}. Use one budget (`xgb_dp.Budget`) for "
        "all releases about the same people. "
        "`xgb_dp.privacy_report([first, second])` returns the exact total."
    ]


if hasattr(os, "register_at_fork"):  # a fork must not copy a lock held by another thread
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
