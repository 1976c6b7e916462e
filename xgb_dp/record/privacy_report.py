"""Privacy reports of one or several models, as Python objects, text, JSON and HTML.

A report is computed from ledgers, which contain only noisy releases and public inputs. Reports are
therefore free post-processing.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import numpy as np

from ..accounting import ACCOUNTANTS, Event, SelectionEvent, Unit, make_accountant
from ..accounting.events import release_counts
from ..accounting.units import MOST_GROUP, all_same
from ..engine.saved_model import load_booster
from ..errors import LedgerError, PrivacyParameterError, named
from ..mechanisms.plan import MECHANISMS
from .formatting import (
    html_details,
    html_list,
    html_table,
    html_text,
    json_number,
    round_up,
    text_columns,
    visible,
)
from .ledger import checksum, read_ledger
from .ledger_model import Ledger, RecordedRelease, TrainingRecord
from .pipelines import fitted_in, split_pipeline
from .privacy_warnings import concerns, doubts, scope
from .spending import Spending, spending


@dataclass(frozen=True)
class PrivacyReport:
    """Privacy report of one model over all of its trainings.

    Epsilon is recomputed from the events in the ledger, not copied from the calibration target.

    Attributes:
        ledger: The ledger in JSON form, as stored in the model.
        record: The parsed and checked ledger.
        steps: Names of the pipeline steps before the model that were fitted on rows. No epsilon
            covers them.

    Examples:
        >>> report = xgb_dp.privacy_report(model)
        >>> report.epsilon <= 1.0, report.unit.phrase
        (True, 'one row')
        >>> report.get_epsilon(1e-6, group_size=2) > report.epsilon
        True
    """

    ledger: dict[str, Any]
    steps: tuple[str, ...] = ()
    record: Ledger = field(init=False, repr=False, compare=False)
    _cache: dict[tuple[str, float, int, str], float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "record", Ledger.from_json(self.ledger))

    @property
    def private(self) -> bool:
        """Whether the model is private: every training has finished, and all noise is secret."""
        return self.record.is_private

    @property
    def delta(self) -> float:
        """Target delta; the largest over all trainings and column discoveries."""
        trainings = self.record.trainings
        evaluations = (e.get("delta", 0.0) for t in trainings for e in t.evaluations)
        return max(0.0, *(float(t.target[1]) for t in trainings), *evaluations)

    @property
    def unit(self) -> Unit:
        """The privacy unit, such as one row or all rows of one person."""
        return self.record.unit

    @property
    def epsilon(self) -> float:
        """Certified epsilon of the whole model at :attr:`delta`; infinite if not private.

        It holds for the declared :attr:`unit`; with ``dp_group_size``, for a group of that size.
        """
        return self.get_epsilon(self.delta)

    def get_epsilon(
        self,
        delta: float,
        group_size: int | None = None,
        *,
        accountant: str = "exact",
        adjacency: str = "add_remove",
    ) -> float:
        """Certified epsilon at a chosen delta.

        Args:
            delta: Failure probability, 0 <= delta < 1. With Gaussian noise, epsilon is infinite at
                delta = 0.
            group_size: Number of rows added or removed together, such as the largest number of
                rows of one person; a number of persons if the :attr:`unit` is a person. The
                default is the ``dp_group_size`` of the training.
            accountant: "exact" (the tightest), "rdp", "gdp", "classic" or "pure".
            adjacency: "add_remove", or "replace_one" if neighbours differ by the replacement of
                `group_size` rows (or persons). A replacement is a removal and an addition with the
                same randomness.

        Returns:
            float: Upper bound, in nats; infinite if the model is not private or the accountant does
            not support one of its mechanisms.

        Raises:
            PrivacyParameterError: An argument is out of range.
        """
        if not self.private:
            return math.inf
        group_size = self.unit.group_size if group_size is None else group_size
        if not (_is_number(delta) and 0 <= delta < 1 and _is_group_size(group_size)):
            raise PrivacyParameterError(
                "`delta` must be in [0, 1), and `group_size` must be an integer of at least 1."
            )
        if accountant not in ACCOUNTANTS or adjacency not in ("add_remove", "replace_one"):
            raise PrivacyParameterError(
                f"`accountant` must be one of {', '.join(ACCOUNTANTS)}, and `adjacency` must "
                "be add_remove or replace_one."
            )
        key = (accountant, float(delta), int(group_size), adjacency)
        if key not in self._cache:
            budgets = make_accountant(accountant, self.record.events)
            self._cache[key] = budgets.get_epsilon(
                float(delta), int(group_size), replaced=adjacency == "replace_one"
            )
        return self._cache[key]

    def get_delta(self, epsilon: float, group_size: int | None = None) -> float:
        """Certified failure probability at a chosen epsilon, by the exact accountant.

        Args:
            epsilon: In nats, >= 0.
            group_size: As for :meth:`get_epsilon`.

        Returns:
            float: Upper bound in [0, 1]; 1 if the model is not private.

        Raises:
            PrivacyParameterError: An argument is out of range.
        """
        if not self.private:
            return 1.0
        group_size = self.unit.group_size if group_size is None else group_size
        if not (_is_number(epsilon) and epsilon >= 0 and _is_group_size(group_size)):
            raise PrivacyParameterError(
                "`epsilon` must be at least 0, and `group_size` must be an integer of at least 1."
            )
        budgets = make_accountant("exact", self.record.events)
        return min(budgets.get_delta(float(epsilon), int(group_size)), 1.0)

    @property
    def attack_success(self) -> float:
        """Upper bound on the success probability of membership inference for one :attr:`unit`.

        With even prior odds, any attack on the model succeeds with probability at most
        (1 + delta(0)) / 2, where delta(0) bounds the total variation distance between neighbours.
        """
        return (1.0 + self.get_delta(0.0)) / 2.0

    def epsilon_curve(self, deltas: Sequence[float] | None = None) -> list[tuple[float, float]]:
        """Certified epsilon at several values of delta.

        Args:
            deltas: Values of delta; by default 1e-3, 1e-4, ..., 1e-12.

        Returns:
            list of (delta, epsilon).
        """
        return [(d, self.get_epsilon(d)) for d in (DELTAS if deltas is None else deltas)]

    def spending(self, delta: float | None = None) -> list[Spending]:
        """Privacy cost of each kind of release.

        Args:
            delta: Delta for the epsilon of each kind; by default :attr:`delta`.

        Returns:
            list of Spending: One per kind of release; see :mod:`xgb_dp.record.spending`. If the
            training chose among several plans, the entries are for the executed plan.
        """
        planned = [event for t in self.record.trainings for event in t.planned]
        return spending(planned, self.delta if delta is None else delta, self.unit.group_size)

    def statement(self) -> str:
        """The guarantee in prose, with its assumptions and limits."""
        if not self.private:
            if self.record.private and not self.record.is_complete:
                return (
                    "This model is NOT known to be differentially private. It is a checkpoint of "
                    "an unfinished training. The ledger of a checkpoint does not list its trees, "
                    "so any tree could have been added. Do not publish it; publish the model that "
                    "xgboost.train returns at the end."
                )
            reason = {
                "none": "It was trained without noise (dp_epsilon is infinite).",
                "fixed": "Its noise comes from a fixed key for tests and can be subtracted.",
            }.get(self.record.noise, "It continues the training of a model that is not private.")
            return f"This model is NOT differentially private. {reason} Do not publish it."
        return "\n\n".join(self.paragraphs().values())

    def paragraphs(self) -> dict[str, str]:
        """The paragraphs of a private model's statement, by topic.

        The possible keys, in order, are guarantee, population, concerns, preprocessing, released,
        chosen, masked, public, history and not covered. Empty paragraphs are left out.
        """
        record = self.record
        every = {
            "guarantee": _guarantee(self),
            "population": _population(record),
            "concerns": _concerns(self),
            "preprocessing": _preprocessing(record, self.steps),
            "released": _released(record),
            "chosen": _chosen(record),
            "masked": _masked(record),
            "public": _public(record),
            "history": _history(record),
            "not covered": _NOT_COVERED,
        }
        return {key: visible(text) for key, text in every.items() if text}

    def summary(self, width: int = 100, *, name: str = "", evaluation: Any = None) -> str:
        """The report as text: key facts for a release decision, then the statement and tables.

        Args:
            width: Line width of the prose, in characters.
            name: Name of the model, for the title.
            evaluation: Result of :func:`xgb_dp.evaluate` to include. Its epsilon is separate from
                the epsilon of the model.

        Raises:
            PrivacyParameterError: `evaluation` is of another model.
        """
        statement = [textwrap.fill(p, width) for p in self.statement().split("\n\n")]
        if not self.private:
            return "\n\n".join(statement)
        parts = [f"Privacy report{f': {visible(name)}' if name else ''}"]
        for title, text in _release_sheet(self, evaluation):
            start, indent = f"{title}: ".ljust(21), " " * 21
            parts.append(textwrap.fill(text, width, initial_indent=start, subsequent_indent=indent))
        parts += ["Full statement", *statement]
        for title, head, rows in tables(self):
            parts.append(f"{title}\n\n{text_columns([head, *rows])}")
        return "\n\n".join(parts)

    def to_json(self) -> str:
        """The report as JSON.

        Keys: epsilon, delta, private, unit, group_size, attack_success, statement, budget,
        epsilon_curve, groups and ledger. All figures except `groups` are for `group_size` rows of
        one person, or for `group_size` persons. An infinite epsilon is the string "inf".
        """
        return json.dumps(as_dict(self), indent=2, allow_nan=False)

    def to_html(self, *, name: str = "", evaluation: Any = None) -> str:
        """The report as a self-contained HTML page with collapsed details.

        Args:
            name: As for :meth:`summary`.
            evaluation: As for :meth:`summary`.
        """
        return _PAGE.format(self._repr_html_(name, evaluation))

    def __str__(self) -> str:
        return self.statement()

    __repr__ = __str__

    def _repr_html_(self, name: str = "", evaluation: Any = None) -> str:
        """The report as an HTML element without scripts or external resources."""
        paragraphs = [f"<p>{html_text(p)}</p>" for p in self.statement().split("\n\n")]
        if self.private:
            head = (
                f"epsilon = {round_up(self.epsilon)}, delta = {self.delta:g}, for "
                f"{self.unit.phrase} added or removed"
            )
            color = "#1b7f4b"
            parts = [
                html_list(_release_sheet(self, evaluation)),
                html_details("Full statement", paragraphs),
            ]
            figures = [html_table(*table) for table in tables(self)]
            parts.append(html_details("Budget and further figures", figures))
        else:
            head, color, parts = "NOT differentially private", "#b3261e", paragraphs
        return (
            f'<div style="border-left:4px solid {color};padding:0 0 0 1em;max-width:52em">'
            f'<p style="margin:0"><b>Privacy report{html_text(f": {name}" if name else "")}</b></p>'
            f'<p style="font-size:1.2em;margin:.2em 0;color:{color}"><b>{html_text(head)}</b></p>'
            f"{''.join(parts)}</div>"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _is_group_size(value: Any) -> bool:
    return _is_number(value) and 1 <= value < MOST_GROUP and int(value) == value


def as_booster(model: Any) -> Any:
    """Return the xgboost.Booster of a fitted estimator, a pipeline or the path of a saved model."""
    from xgboost import Booster

    if isinstance(model, (str, os.PathLike)):
        return load_booster(model)
    model = split_pipeline(model)[1]
    if not isinstance(model, Booster) and hasattr(model, "get_booster"):
        model = model.get_booster()
    if not isinstance(model, Booster):
        raise PrivacyParameterError(
            "`model` must be an xgboost.Booster, a fitted xgboost estimator or the path of a "
            f"model; got {type(model).__name__}."
            + " It contains several models; call privacy_report(model.estimators_) for their total."
            * hasattr(model, "estimators_")
        )
    return model


@overload
def privacy_report(model: list[Any] | tuple[Any, ...]) -> PrivacyTotal: ...


@overload
def privacy_report(model: Any) -> PrivacyReport: ...


def privacy_report(model: Any) -> PrivacyReport | PrivacyTotal:
    """Return the privacy report of a model, or of several models together.

    The report is recomputed from the ledger, which is free post-processing. Only the trees are
    compared with the ledger; :func:`xgb_dp.verify` also detects later changes to names, intercepts
    and attributes.

    Args:
        model: xgboost.Booster, a fitted scikit-learn estimator of xgboost, a pipeline that ends in
            one, or the path of a saved model. For a list of models trained on the same table, the
            result is their total; trainings that several models share count once.

    Returns:
        PrivacyReport; PrivacyTotal for a list.

    Raises:
        LedgerError: The ledger is missing or damaged, or does not match the model.
        PrivacyParameterError: `model` is not a supported model.

    Examples:
        >>> report = xgb_dp.privacy_report(model)
        >>> 0.99 < report.epsilon <= 1.0
        True
    """
    if isinstance(model, (list, tuple)):
        return PrivacyTotal(tuple(map(privacy_report, model)))
    steps = tuple(name for name, _ in fitted_in(model))
    return PrivacyReport(read_ledger(as_booster(model)).to_json(), steps)


@dataclass(frozen=True)
class PrivacyTotal:
    """Privacy of several models together, composed by the exact accountant.

    Attributes:
        reports: One report per model.

    Examples:
        >>> total = xgb_dp.privacy_report([model, xgb.train(params, data, 5)])
        >>> 1.0 < total.epsilon < 2.0
        True
    """

    reports: tuple[PrivacyReport, ...]

    def __post_init__(self) -> None:
        if not self.reports:
            raise PrivacyParameterError("`model` is an empty list. Pass at least one model.")
        if not all_same(report.unit for report in self.reports):
            raise PrivacyParameterError(
                "The models have different privacy units, so their costs cannot be added. Train "
                f"all models with the same {named.dp_privacy_id} and {named.dp_group_size}."
            )
        known: dict[str, TrainingRecord] = {}
        for training in (t for report in self.reports for t in report.record.trainings):
            if not _may_be_same(training, known.setdefault(training.id, training)):
                raise LedgerError(
                    "Two of the models contain the same training, but their ledgers describe it "
                    "differently: one of the models was changed. Pass the models as they were "
                    "saved."
                )

    @property
    def private(self) -> bool:
        """Whether every model is private."""
        return all(report.private for report in self.reports)

    @property
    def delta(self) -> float:
        """Largest delta of all models."""
        return max(report.delta for report in self.reports)

    @property
    def unit(self) -> Unit:
        """The privacy unit, the same for all models."""
        return self.reports[0].unit

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Events of all models; shared releases count once."""
        seen, events = set[object](), list[Event]()
        for report in self.reports:
            for training in report.record.trainings:
                for number, release in enumerate(training.releases):
                    key = _name(training, number, release)
                    if key is None or key not in seen:
                        events += release.events
                    seen.add(key)
        return tuple(events)

    @property
    def epsilon(self) -> float:
        """Certified epsilon of all models at :attr:`delta`; infinite if one is not private."""
        return self.get_epsilon(self.delta)

    def get_epsilon(self, delta: float, group_size: int | None = None) -> float:
        """Certified epsilon at a chosen delta, in nats.

        Args:
            delta: Failure probability, 0 <= delta < 1.
            group_size: Number of rows (or persons) added or removed together; by default the
                ``dp_group_size`` of the trainings.
        """
        if not self.private:
            return math.inf
        accountant = make_accountant("exact", self.events)
        return accountant.get_epsilon(
            delta, self.unit.group_size if group_size is None else group_size
        )

    def statement(self) -> str:
        """The guarantee in prose."""
        if not self.private:
            return (
                "Not all of these models are differentially private, so there is no bound on their "
                "total privacy loss."
            )
        return (
            f"Together, these {len(self.reports)} models are ({round_up(self.epsilon)}, "
            f"{self.delta:g})-differentially private for adding or removing "
            f"{self.unit.neighbours()}, provided that the privacy cost of every model was fixed "
            "before the first one was trained. A budget bounds the total even if the costs were "
            "chosen later, and also includes other releases."
        )

    def __str__(self) -> str:
        return self.statement()


def _may_be_same(a: TrainingRecord, b: TrainingRecord) -> bool:
    """Whether two records can describe the same training; evaluations can have scaled its trees."""
    if not (a.complete and b.complete):
        return True  # a checkpoint claims its whole plan and is never private
    if not (a.evaluations or b.evaluations) and a.trees != b.trees:
        return False
    return (a.plans, a.rounds, a.target, a.mechanisms, a.releases[0].events) == (
        b.plans, b.rounds, b.target, b.mechanisms, b.releases[0].events
    )  # fmt: skip


def _name(training: TrainingRecord, number: int, release: RecordedRelease) -> object:
    """A key that identifies a release by its training or its budget entry; None if unknown."""
    if not number:
        return training.id, release.events
    return None if release.entry is None else (release.entry, release.events)


DELTAS = tuple(10.0**-k for k in range(3, 13))
"""Default values of delta for epsilon curves."""
_GROUPS = (1, 2, 3, 5, 10)  # group sizes in reports: rows of one person, or persons
_FIGURES = {
    "auc": "AUC",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "gini": "Gini coefficient",
    "mean ratio": "mean prediction / mean label",
    "concordance": "concordance",
    "auc difference": "difference in AUC",
}


def meaning(report: PrivacyReport) -> str:
    """Explain the guarantee as a bound on membership inference."""
    success = f"{math.ceil(1000 * report.attack_success) / 10:g}%"
    unit = report.unit
    others = "the rows of all other persons" if unit.of_persons else "all other rows"
    return (
        f"Suppose an attacker knows {others} and wants to find out whether {unit.counted()} "
        f"{'was' if unit.group_size == 1 else 'were'} in the training data. If both answers are "
        f"equally likely in advance, the attacker is right with probability at most "
        f"{success}, regardless of how the model is used."
    )


def _groups(report: PrivacyReport) -> list[tuple[int, float]]:
    """Epsilon by group size: rows of one person, or persons."""
    sizes = sorted({*_GROUPS, report.unit.group_size})
    return [(k, report.get_epsilon(report.delta, group_size=k)) for k in sizes]


def tables(report: PrivacyReport) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, header and rows of each table of a private model: budget, epsilon curve, groups."""
    budget = [
        [s.release, s.mechanism, str(s.count), s.noise, f"{s.share:.1%}", round_up(s.epsilon)]
        for s in report.spending()
    ]
    curve = [[f"{d:g}", round_up(e)] for d, e in report.epsilon_curve()]
    groups = [[str(k), round_up(epsilon)] for k, epsilon in _groups(report)]
    members = "persons" if report.unit.of_persons else "rows of one person"
    return [
        (
            "Budget by mechanism",
            ["release", "mechanism", "count", "noise per release", "share", "epsilon alone"],
            [list(map(visible, row)) for row in budget],
        ),
        ("Epsilon at other values of delta", ["delta", "epsilon"], curve),
        (f"Epsilon for groups of {members}, at delta = {report.delta:g}",
         [report.unit.plural, "epsilon"], groups),
    ]  # fmt: skip


def _release_sheet(report: PrivacyReport, evaluation: Any = None) -> list[tuple[str, str]]:
    """Key facts for the release decision on a private model, as pairs of title and text."""
    texts = report.paragraphs()
    rows = [
        ("Date of this report", datetime.date.today().isoformat()),
        ("Privacy unit", f"{report.unit.phrase}, added or removed"),
        ("Epsilon, delta", f"{round_up(report.epsilon)}, {report.delta:g}"),
        ("Meaning", meaning(report)),
        ("Population", texts.get("population", "")),
        ("Warning", " ".join(texts[key] for key in ("concerns", "preprocessing") if key in texts)),
        ("Assumed public", _untitled(texts["public"])),
        ("Not covered", _untitled(texts["not covered"])),
        ("Evaluation", evaluated(evaluation, report.record)),
    ]
    return [(title, visible(text)) for title, text in rows if text]


def _untitled(paragraph: str) -> str:
    """Remove the part of a paragraph before its first colon, which repeats the title."""
    text = paragraph.partition(": ")[2]
    return text[0].upper() + text[1:]


def evaluated(evaluation: Any, record: Ledger) -> str:
    """The main figures of an evaluation, and their privacy cost.

    Raises:
        PrivacyParameterError: Another model was evaluated.
    """
    if evaluation is None:
        return ""
    parts = []
    for name, figure in evaluation.figures().items():
        plain = name.removeprefix("clipped ")
        if plain in _FIGURES:
            parts.append(f"{name.removesuffix(plain)}{_FIGURES[plain]} {figure}")
    texts = [f"{'; '.join(parts)}."]
    # A comparison of two models does not name their trees.
    trees = getattr(evaluation, "trees", None)
    if trees not in (None, tuple(record.tree_names)):
        calibrated = [e.get("evaluated") for t in record.trainings for e in t.evaluations]
        if checksum({"trees": list(trees)}) not in calibrated:
            raise PrivacyParameterError(
                "`evaluation` evaluated another model. Pass the evaluation of this model."
            )
        texts.append("The figures are for the model before it was calibrated.")
    return " ".join([*texts, *evaluation.statement().split()])


def spending_rows(spent: Sequence[Spending]) -> list[dict[str, Any]]:
    """Convert the cost of each kind of release to JSON values."""
    return [{**asdict(s), "epsilon": json_number(s.epsilon)} for s in spent]


def as_dict(report: PrivacyReport) -> dict[str, Any]:
    """Convert a report to JSON values; infinity becomes the string "inf"."""
    return {
        "epsilon": json_number(report.epsilon),
        "delta": report.delta,
        "private": report.private,
        "unit": f"{replace(report.unit, group_size=1).phrase}, added or removed",
        "group_size": report.unit.group_size,
        "attack_success": report.attack_success,
        "statement": report.statement(),
        "budget": spending_rows(report.spending()) if report.private else [],
        "epsilon_curve": [
            {"delta": d, "epsilon": json_number(e)} for d, e in report.epsilon_curve()
        ],
        "groups": [
            {report.unit.plural: k, "epsilon": json_number(epsilon)}
            for k, epsilon in _groups(report)
        ],
        "ledger": report.ledger,
    }


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Privacy report</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}}
</style></head><body>
{}
</body></html>
"""


_RELEASES = {
    **dict(pair for kind in MECHANISMS for pair in kind.words),
    "plan": "the choice among several plans",
    "ranges": "the ranges of number and date columns (noisy counts)",
    "categories": "the categories of string columns (noisy counts)",
    "evaluation": "an evaluation of the model on private rows (noisy counts of scores)",
    "selection": "the model with the best noisy score among a secret number of trainings",
}
_PUBLIC = {
    "target_bounds": "the target bounds",
    "exposure_bounds": "the exposure bounds",
    "own_objective": "the formulas and constants of the custom loss",
    "public_cuts": "the declared feature bounds or cuts",
    "public_grids": "the declared feature bounds",
    "public_data": "the public rows used for split candidates",
    "categories": "the declared categories",
    "classes": "the declared classes",
    "public_num_rows": "the declared number of {}",
    "max_weight": "the bound on row weights",
}
_NOT_COVERED = (
    "Not covered: running time, memory use and other side channels; anything else published about "
    "the same rows, such as exact metrics, other models or parameters chosen by looking at the "
    "data; errors that report a row outside the declared domain; and attackers with access to the "
    "training process."
)


def _guarantee(report: PrivacyReport) -> str:
    unit, epsilon = report.unit, round_up(report.epsilon)
    return (
        f"This model is ({epsilon}, {report.delta:g})-differentially private: adding or removing "
        f"{unit.neighbours()} in the training data changes the probability of any set of training "
        f"outcomes by a factor of at most e^{epsilon}, plus an additive term of at most delta = "
        f"{report.delta:g}. {scope(unit)} {_other_groups(report)} Replacing one {unit.name} is a "
        "removal and an addition; for a replacement, call get_epsilon(delta, "
        "adjacency='replace_one'). The noise was generated with a secret key from the operating "
        "system."
    )


def _population(record: Ledger) -> str:
    """Explain, for person-level privacy, that the model describes persons and not rows."""
    if not record.unit.of_persons:
        return ""
    rows = max(t.public.get("max_rows_per_person") or 1 for t in record.trainings)
    return (
        "The model describes persons rather than rows: all rows of one person together count as "
        f"at most {'one row' if rows == 1 else f'{rows:g} rows'}. If persons with many rows differ "
        "from other persons, the mean prediction and the accuracy per row differ from the mean "
        "prediction and the accuracy per person."
    )


def _other_groups(report: PrivacyReport) -> str:
    """State how to get epsilon for a smaller or larger group than declared."""
    unit = report.unit
    if unit.group_size > 1:
        alone = round_up(report.get_epsilon(report.delta, 1))
        return f"For a single {unit.name}, epsilon is {alone}."
    group_size = "k persons together" if unit.of_persons else "a person with at most k rows"
    return f"For {group_size}, call get_epsilon(delta, group_size=k)."


def _concerns(report: PrivacyReport) -> str:
    rows = [t.public.get("public_num_rows") for t in report.record.trainings]
    public_num_rows = max((n for n in rows if n is not None), default=None)
    reasons = concerns(report.epsilon, report.delta, public_num_rows, report.unit)
    for training in report.record.trainings:
        reasons += doubts(training, report.unit)
    return " ".join(dict.fromkeys(reasons))


def _preprocessing(record: Ledger, more: tuple[str, ...]) -> str:
    """List the pipeline steps that were fitted on the rows without noise before training."""
    steps = [name for t in record.trainings for name in t.public.get("preprocessing", [])]
    steps += more
    if not steps:
        return ""
    return (
        "NOT COVERED: pipeline steps were fitted on the rows without noise before training "
        f"({', '.join(dict.fromkeys(steps))}). The pipeline and the model contain what these steps "
        "learned from the rows, and no epsilon covers it."
    )


def _released(record: Ledger) -> str:
    counts = release_counts(e for t in record.trainings for e in t.released)
    parts = [
        f"{_RELEASES.get(name, name)}, {'once' if count == 1 else f'{count} times'}"
        for name, count in counts.items()
    ]
    return (
        f"Released with noise: {'; '.join(parts) or 'nothing'}. Everything else in the model "
        "is computed from these releases or is public."
    )


def _public_values(record: Ledger, key: str) -> Iterator[tuple[str, Any]]:
    """Yield each training's public value for a key, after a phrase that names the training."""
    for number, training in enumerate(record.trainings, 1):
        value = training.public.get(key)
        if value:
            yield f" of training {number}" if len(record.trainings) > 1 else "", value


def _chosen(record: Ledger) -> str:
    """Describe the choice among several plans, which depends on a noisy release."""
    parts = []
    counted = record.unit.plural
    for which, choice in _public_values(record, "plan_choice"):
        plans = choice["plans"]
        taken = plans[choice["taken"]].items()
        choices = ", ".join(f"{k} {v}" for k, v in taken if k != "budget_shares")
        rows = "" if choice["rows"] is None else f" (about {choice['rows']})"
        sparse = any("start" in plan for plan in plans)
        cells = " and a noisy count of their present cells" if sparse else ""
        parts.append(
            f"The plan{which} is one of {len(plans)} public plans: {choices}. It was chosen "
            f"based on a noisy count of {counted}{rows}{cells}, which was released first. The "
            "choice has no privacy cost beyond that release, and the figures hold for the worst "
            "case over all plans."
        )
    return " ".join(parts)


def _masked(record: Ledger) -> str:
    """Describe secure aggregation: which attackers the figures hold against."""
    parts = []
    for which, masked in _public_values(record, "masked_sums"):
        colluders = int(masked["colluders"])
        workers = "one worker" if colluders == 1 else f"{colluders} colluding workers"
        against = f"any {workers}, for the rows of the other workers"
        against = against if colluders else "anyone outside the training"
        parts.append(
            f"The sums{which} were masked: each of {masked['workers']} workers added its share of "
            "the noise to its own sums and saw only the noisy totals. If all workers followed the "
            f"protocol, the figures hold against {against}."
        )
    return " ".join(parts)


def _public(record: Ledger) -> str:
    lines = ["Assumed public, and not protected: the number, names and types of the columns"]
    seen = [t.public for t in record.trainings]
    public = (text for key, text in _PUBLIC.items() if any(p.get(key) for p in seen))
    lines += [text.format(record.unit.plural) for text in public]
    if any(isinstance(p.get("base_score"), (int, float, list)) for p in seen):
        lines.append("the declared intercept")
    if record.start is not None and not record.start.released:
        lines.append("the model that training started from")
    if any(p.get("evals") for p in seen):
        lines.append("all evaluation sets, and therefore the round of early stopping")
    chosen = any(e.mechanism == SelectionEvent.mechanism for e in record.events)
    lines.append(
        ("the list of candidate settings" if chosen else "the hyperparameters")
        + ", which must not have been chosen by looking at these rows (for example by a grid "
        "search or cross-validation on them)"
    )
    return ", ".join(lines[:-1]) + ", and " + lines[-1] + "."


def _history(record: Ledger) -> str:
    trainings = record.trainings
    parts = []
    start = record.start
    if start is not None and start.released:
        first = trainings[0]
        offered = first.hyperparameters.get("features_per_tree")
        kept = f" The same sums determined the {offered} columns available to the other trees."
        parts.append(
            f"The first {len(start.trees)} trees are computed from the noisy sums of each "
            f"column.{'' if offered in (None, first.public.get('columns')) else kept}"
        )
    elif start is not None:
        parts.append(
            f"The private trees were added to a public model of {start.rounds} rounds "
            f"({len(start.trees)} trees, digest {start.digest[:16]}). The user declared that no "
            "private row was used for this public model. The figures do not cover the rows that "
            "it was trained on."
        )
    used = {str(t.hyperparameters.get("accountant", "exact")) for t in trainings if t.target[1]}
    if loose := sorted(used - {"exact"}):
        parts.append(
            f"The noise was calibrated with dp_accountant={', '.join(map(repr, loose))}. This "
            "report composes the same releases exactly, so its epsilon can be far below "
            "dp_epsilon. dp_accountant='exact' would spend all of it."
        )
    if len(trainings) > 1:
        parts.append(
            f"The model was trained in {len(trainings)} steps; the figures are for all steps "
            "together."
        )
    if any(p.get("base_score") == "base_margin" for p in (t.public for t in trainings)):
        parts.append(
            "The trees start from a `base_margin` of each row. If it was computed from another "
            "release about these rows, such as another private model, the cost of that release "
            "must be added."
        )
    if any(t.stopped for t in trainings):
        parts.append(
            "One training released less than planned. It is charged in full, because its stopping "
            "time is itself an outcome of the training."
        )
    return " ".join(parts)
