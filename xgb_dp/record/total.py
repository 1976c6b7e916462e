"""What several private models of one table cost together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..accounting import Event, Unit, make_accountant
from ..accounting.units import all_same
from ..errors import LedgerError, PrivacyParameterError, named
from .form import Released, TrainingRecord
from .report_views import round_up

if TYPE_CHECKING:
    from .report import PrivacyReport


@dataclass(frozen=True)
class PrivacyTotal:
    """Privacy of several models together, composed by the exact accountant.

    Attributes:
        reports: Those of the models.

    Examples:
        >>> total = xgb_dp.privacy_report([model, xgb.train(params, data, 5)])
        >>> 1.0 < total.epsilon < 2.0
        True
    """

    reports: tuple[PrivacyReport, ...]

    def __post_init__(self) -> None:
        if not self.reports:
            raise PrivacyParameterError("`model` is an empty list. Give at least one model.")
        if not all_same(report.unit for report in self.reports):
            raise PrivacyParameterError(
                "The models have different units of privacy, so what they cost does not add up. "
                f"Train all of them with the same {named.dp_privacy_id} and {named.dp_group}."
            )
        known: dict[str, TrainingRecord] = {}
        for training in (t for report in self.reports for t in report.record.trainings):
            if not _may_be_same(training, known.setdefault(training.id, training)):
                raise LedgerError(
                    "Two of the models name the same training, and their ledgers say different "
                    "things of it: one of them was changed. Take the models as they were saved."
                )

    @property
    def private(self) -> bool:
        """Whether every model is private."""
        return all(report.private for report in self.reports)

    @property
    def delta(self) -> float:
        """The largest delta of a model."""
        return max(report.delta for report in self.reports)

    @property
    def unit(self) -> Unit:
        """Whom the guarantee is about, which is the same for all."""
        return self.reports[0].unit

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What all of them have released; what several models share counts once."""
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
        """Certified epsilon of all of them at :attr:`delta`; infinite if one is not private."""
        return self.get_epsilon(self.delta)

    def get_epsilon(self, delta: float, group: int | None = None) -> float:
        """Certified epsilon at a chosen delta, in nats.

        Args:
            delta: Failure probability, 0 <= delta < 1.
            group: Rows (or persons) added or removed together; by default as in training.
        """
        if not self.private:
            return math.inf
        accountant = make_accountant("exact", self.events)
        return accountant.get_epsilon(delta, self.unit.group if group is None else group)

    def statement(self) -> str:
        """The guarantee in prose."""
        epsilon = round_up(self.epsilon) if self.private else ""
        if not epsilon:
            return "Not all of these models are differentially private: nothing bounds their total."
        return (
            f"These {len(self.reports)} models are together ({epsilon}, {self.delta:g})-"
            f"differentially private for adding or removing {self.unit.neighbours()}, if how much "
            "each of them spends was fixed before the first of them was trained. A budget bounds "
            "the total however it was chosen, and counts what else was released."
        )

    def __str__(self) -> str:
        return self.statement()


def _may_be_same(a: TrainingRecord, b: TrainingRecord) -> bool:
    """Whether two records can be of one training; evaluations may have scaled its trees."""
    if not (a.complete and b.complete):
        return True  # a checkpoint claims the plan, and is not private
    if not (a.evaluations or b.evaluations) and a.trees != b.trees:
        return False
    return (a.plans, a.rounds, a.target, a.mechanisms, a.releases[0].events) == (
        b.plans, b.rounds, b.target, b.mechanisms, b.releases[0].events
    )  # fmt: skip


def _name(training: TrainingRecord, number: int, release: Released) -> object:
    """What tells a release apart from all others: its training, or its entry in a book."""
    if not number:
        return training.id, release.events
    return None if release.entry is None else (release.entry, release.events)
