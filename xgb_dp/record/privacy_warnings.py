"""Warnings about guarantees that are formally correct but weak.

Trainings check before any release, and reports check again. The checks use only public numbers.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..accounting import GaussianEvent, Unit, make_accountant
from ..accounting.events import plain_events
from ..accounting.gaussian import gaussian_epsilon, gaussian_mu
from ..accounting.units import ONE_ROW, all_same
from ..errors import PrivacyWarning
from ..request.names import looks_like_id
from .ledger_model import Ledger

if TYPE_CHECKING:
    from ..request.schema import Schema
    from ..request.settings import Settings
    from .ledger_model import Ledger, TrainingRecord

# Warnings point at the first caller outside of these.
_LIBRARIES = {"xgb_dp", "xgboost", "sklearn", "contextlib", "functools"}
_LARGE_EPSILON = 10.0
_LARGE_DELTA = 1e-3  # for any number of rows
_MOST_SHOWN = 10  # columns per warning
_FAR_TOO_WIDE = 8.0  # ratio to the released range of labels: three octaves


def concerns(
    epsilon: float, delta: float, public_num_rows: int | None, unit: Unit = ONE_ROW
) -> list[str]:
    """Weaknesses of a guarantee, as whole sentences."""
    reasons = []
    if epsilon > _LARGE_EPSILON:
        reasons.append(
            f"Epsilon is above {_LARGE_EPSILON:g}: the probability of an outcome may change by a "
            f"factor of e^{epsilon:.4g} with {unit.counted()}, which protects hardly anybody. 1 is "
            "strong and 4 is usual."
        )
    if delta > _LARGE_DELTA:
        reasons.append(
            f"Delta is {delta:.4g}, above {_LARGE_DELTA:g}: with this probability the guarantee "
            "may fail altogether. Take 1e-6 or less."
        )
    elif public_num_rows is not None and delta * public_num_rows > 1.0:
        reasons.append(
            f"Delta is {delta:.4g}, above 1 / {public_num_rows}, one over the declared number of "
            f"{unit.plural}: a mechanism that publishes a random {unit.name} as it is would have "
            "this guarantee. Take a far smaller one."
        )
    return reasons


def warn(strings: Iterable[str]) -> None:
    """Issue a ``PrivacyWarning`` for each string, attributed to the caller's own line of code."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and str(frame.f_globals.get("__name__")).split(".")[0] in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    for text in strings:
        warnings.warn(text, PrivacyWarning, stacklevel=level)


def of_target(settings: Settings) -> list[str]:
    """Weaknesses of a training's target."""
    if math.isinf(settings.epsilon):
        return [
            "`dp_epsilon` is infinite: this trains without noise, for debugging, and the model is "
            "NOT private."
        ]
    public_num_rows, unit = settings["dp_public_num_rows"], settings.privacy_unit
    return concerns(settings.epsilon, settings.delta, public_num_rows, unit)


def of_columns(schema: Schema, for_persons: bool) -> list[str]:
    """Features named like an id.

    Declared categories are exempt: a user who lists them knows that they are not ids of persons.
    """
    numbers = [name for i, name in enumerate(schema.names) if i not in schema.categorical]
    ids = [repr(name) for name in numbers if looks_like_id(name)]
    if not schema.named or not ids:
        return []
    fix = (
        "Whose the rows are is declared already, so leave the column out: an id is not a feature."
        if for_persons
        else "If it says who a row belongs to, name it as that, so that all rows of a person are "
        "protected together, and not each row by itself: `dp_privacy_id` (estimators: "
        "fit(..., privacy_id=); command line: --privacy-id). Otherwise leave the column out: an id "
        "is not a feature."
    )
    named = f"By its name the feature {', '.join(ids)} looks like an id."
    return [f"{named} {fix} A feature that is none can be renamed."]


def doubts(training: TrainingRecord, unit: Unit) -> list[str]:
    """Problems shown by the noisy counts of a training. Privacy: post-processing, free."""
    public, reasons = training.public, []
    rows = (public.get("plan_choice") or {}).get("rows") or public.get("public_num_rows")
    if rows is not None:
        counted, delta = "persons" if unit.of_persons else "rows", training.target[1]
        leaves = [
            e
            for e in plain_events(training.released)
            if isinstance(e, GaussianEvent) and e.release == "leaves" and e.sensitivity2
        ]
        noise = max((math.sqrt(e.sigma2 / e.sensitivity2) for e in leaves), default=0.0)
        if 2.0 * noise > rows:
            reasons.append(
                f"The noise of a leaf is as large as what {noise:.0f} {counted} can add to it, and "
                f"there are about {max(rows, 0):.0f} in all: the model may be little else than "
                f"noise. Take more {counted}, a larger epsilon, or fewer rounds."
            )
        if public.get("public_num_rows") is None and delta * rows > 1.0 and delta <= _LARGE_DELTA:
            reasons.append(
                f"Delta is {delta:.4g}, above one over the released number of {counted}, about "
                f"{rows:.0f}. Take a far smaller one."
            )
    declared, seen = public.get("target_bounds"), public.get("target_seen")
    if declared and seen and declared[1] - declared[0] > _FAR_TOO_WIDE * (seen[1] - seen[0]):
        reasons.append(
            f"The target bounds, {declared[0]:g} to {declared[1]:g}, are far too wide: about all "
            f"labels lie between {seen[0]:g} and {seen[1]:g}. Bounds that are known to hold and "
            "lie closer make evaluations and figures sharper."
        )
    return reasons


def of_last(claimed: Ledger) -> list[str]:
    """The :func:`doubts` of the last training."""
    return doubts(claimed.trainings[-1], claimed.unit) if claimed.private else []


def of_narrow(columns: Mapping[str, Sequence[float]]) -> list[str]:
    """Columns with candidates too coarse for their values. Privacy: post-processing of counts.

    Args:
        columns: Low end, high end and distance of the cuts, by column name.
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
        "Nearly all values of a column lie in a narrow range, in which candidates for splits are "
        f"far apart: {', '.join(shown)}. This is of no account if the column is constant, or if "
        "its values are further apart. Otherwise the trees hardly see it: declare (low, high) "
        "close to its values in `dp_feature_bounds`, or subtract the low end."
    ]


def of_model(claimed: Ledger) -> list[str]:
    """Whether a continued model as a whole has a large epsilon."""
    if len(claimed.trainings) < 2 or not claimed.private or claimed.noise != "os":
        return []
    *earlier, last = claimed.trainings
    before = "training" if len(earlier) == 1 else f"{len(earlier)} trainings"
    delta = max(t.target[1] for t in claimed.trainings)
    unit = claimed.unit
    epsilon = make_accountant("exact", claimed.events).get_epsilon(delta, unit.group)
    if not last.target[0] <= _LARGE_EPSILON < epsilon:
        return []
    text = (
        f"With the {before} before this one the model is at epsilon {epsilon:.4g}: `dp_epsilon` is "
        "what the new trees add."
    )
    return [" ".join([text, *concerns(epsilon, 0.0, None, unit)])]


def scope(unit: Unit) -> str:
    """The people protected by a guarantee for this unit, in one or two sentences."""
    if unit.of_persons:
        together = "" if unit.group == 1 else f", for any {unit.group} persons together"
        return (
            f"The unit of privacy is a {replace(unit, group=1).label}: all rows of one person, "
            f"however many they are{together}."
        )
    if unit.group == 1:
        return (
            "The unit of privacy is one row. A person with several rows is protected less; "
            "dp_privacy_id or dp_group_size protects people."
        )
    return (
        f"The unit of privacy is any {unit.counted()}. A person with more rows is protected less; "
        "dp_privacy_id protects people, however many rows they have."
    )


_TABLE: ContextVar[Any] = ContextVar("xgb_dp_table", default=None)


class _Spent(NamedTuple):
    """The cost of a training, for the warning."""

    noisy: bool  # whether it is private, with noise from the operating system
    unit: Unit
    targets: tuple[tuple[float, float], ...]  # epsilon and delta of each training of the model
    last: str | None  # name of the last tree; None before the first tree

    @classmethod
    def of(cls, record: Ledger) -> _Spent:
        targets = tuple(t.target for t in record.trainings)
        trees = record.trainings[-1].trees or (None,)
        return cls(record.private and record.noise == "os", record.unit, targets, trees[-1])


_trained: dict[int, dict[object, _Spent]] = {}  # by id() of the object, then by training
_lock = threading.Lock()


@contextmanager
def made_of(table: Any) -> Iterator[None]:
    """Set the table that the matrix of a training is built from."""
    token = _TABLE.set(table)
    try:
        yield
    finally:
        _TABLE.reset(token)


def _rows(dtrain: Any) -> Any:
    return dtrain if _TABLE.get() is None else _TABLE.get()


def keep(dtrain: Any, training: object, record: Ledger) -> None:
    """Record the claim of a training, and replace it by the final ledger at the end."""
    rows = _rows(dtrain)
    with _lock:
        if id(rows) not in _trained:
            with suppress(TypeError):  # the object does not support weak references
                weakref.finalize(rows, _trained.pop, id(rows), None).atexit = False
                _trained[id(rows)] = {}
        _trained.get(id(rows), {})[training] = _Spent.of(record)


def of_total(dtrain: Any, claimed: Ledger) -> list[str]:
    """A warning before the second, fourth, eighth, ... training on the same rows."""
    with _lock:
        kept = list(_trained.get(id(_rows(dtrain)), {}).values())
    # The new model includes the model that it continues.
    records = [*(r for r in kept if r.last not in claimed.tree_names), _Spent.of(claimed)]
    count = len(records)
    if count < 2 or count & (count - 1) or not all(r.noisy for r in records):
        return []
    cost = "they are for different units, so nothing bounds what they cost together"
    if all_same(record.unit for record in records):
        targets = [target for record in records for target in record.targets]
        delta, total = max(d for _, d in targets), math.fsum(epsilon for epsilon, _ in targets)
        if all(d for _, d in targets):  # treat each as a Gaussian mechanism
            mu = math.hypot(*(gaussian_mu(*target) for target in targets))
            total = min(total, gaussian_epsilon(mu, delta))
        cost = f"together they cost about epsilon {total:.3g} at delta {delta:g}"
    return [
        f"These rows train private model number {count}, and no budget counts them: {cost}. Keep "
        "one book (`xgb_dp.Budget`) for all that is shown of them. "
        "`xgb_dp.privacy_report([first, second])` gives the exact total."
    ]


if hasattr(os, "register_at_fork"):  # a fork must not copy a lock that another thread holds
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
