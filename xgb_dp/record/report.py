"""The privacy report of a model: what it cost, recomputed from the ledger of what was released."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from ..accounting import ACCOUNTANTS, Unit, make_accountant
from ..engine.models import load_booster
from ..errors import PrivacyParameterError
from .form import Ledger
from .ledger import read_ledger
from .pipelines import fitted_in, taken_apart
from .report_views import DELTAS, as_dict, as_html, as_text
from .spending import Spending, spending
from .statement import paragraphs
from .total import PrivacyTotal


@dataclass(frozen=True)
class PrivacyReport:
    """Privacy of one model, of all trainings that made it.

    Epsilon is recomputed from the ledger's events at every call and never copied from the target.

    Attributes:
        ledger: The ledger as stored with the model.
        record: The same, read and checked.
        steps: Steps of a pipeline in front of the model that were fitted on rows, by name. No
            epsilon covers them.

    Examples:
        >>> report = xgb_dp.privacy_report(model)
        >>> report.epsilon <= 1.0, report.unit.phrase
        (True, 'one row')
        >>> report.get_epsilon(1e-6, group=2) > report.epsilon
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
        """Whether the model is private: its training has ended, and nobody knows its noise."""
        return self.record.is_private

    @property
    def delta(self) -> float:
        """Target delta; of several trainings, or of a look at the columns, the largest."""
        trainings = self.record.trainings
        looks = (e.get("delta", 0.0) for t in trainings for e in t.evaluations)
        return max(0.0, *(float(t.target[1]) for t in trainings), *looks)

    @property
    def unit(self) -> Unit:
        """Whom the guarantee is about, such as one row, or all rows of one person."""
        return self.record.unit

    @property
    def epsilon(self) -> float:
        """Certified epsilon of the whole model at :attr:`delta`; infinite if not private.

        It is that of the :attr:`unit` that was asked for: of ``dp_group`` rows where that is set.
        """
        return self.get_epsilon(self.delta)

    def get_epsilon(
        self,
        delta: float,
        group: int | None = None,
        *,
        accountant: str = "exact",
        adjacency: str = "add_remove",
    ) -> float:
        """Certified epsilon at a chosen delta.

        Args:
            delta: Failure probability, 0 <= delta < 1; at 0 infinite with Gaussian noise.
            group: Rows added or removed together, e.g. the largest number of rows of one person;
                persons, where the :attr:`unit` is a person. By default so many as the model was
                calibrated for, ``dp_group``: 1 where that was not set.
            accountant: "exact" (the tightest), "rdp", "gdp", "classic" or "pure".
            adjacency: "add_remove", or "replace_one" where neighbours have `group` rows (or
                persons) exchanged; an exchange is a removal and an addition, which share their
                coins.

        Returns:
            float: Upper bound, in nats; infinite if the model is not private, or the accountant
            has no bound for one of its mechanisms.

        Raises:
            PrivacyParameterError: An argument is out of range.
        """
        if not self.private:
            return math.inf
        group = self.unit.group if group is None else group
        if not (_is_number(delta) and 0 <= delta < 1 and _is_group(group)):
            raise PrivacyParameterError(
                "`delta` must be at least 0 and below 1, and `group` a whole number of at least 1."
            )
        if accountant not in ACCOUNTANTS or adjacency not in ("add_remove", "replace_one"):
            raise PrivacyParameterError(
                f"`accountant` must be one of {', '.join(ACCOUNTANTS)}, and `adjacency` must be "
                "add_remove or replace_one."
            )
        key = (accountant, float(delta), int(group), adjacency)
        if key not in self._cache:
            books = make_accountant(accountant, self.record.events)
            self._cache[key] = books.get_epsilon(
                float(delta), int(group), replaced=adjacency == "replace_one"
            )
        return self._cache[key]

    def get_delta(self, epsilon: float, group: int | None = None) -> float:
        """Certified failure probability for a chosen epsilon, by the exact accountant.

        Args:
            epsilon: In nats, >= 0.
            group: As for :meth:`get_epsilon`.

        Returns:
            float: Upper bound in [0, 1]; 1 if the model is not private.

        Raises:
            PrivacyParameterError: An argument is out of range.
        """
        if not self.private:
            return 1.0
        group = self.unit.group if group is None else group
        if not (_is_number(epsilon) and epsilon >= 0 and _is_group(group)):
            raise PrivacyParameterError(
                "`epsilon` must be at least 0, and `group` a whole number of at least 1."
            )
        books = make_accountant("exact", self.record.events)
        return min(books.get_delta(float(epsilon), int(group)), 1.0)

    @property
    def attack_success(self) -> float:
        """Bound on the success of guessing, at even odds, whether one :attr:`unit` was used.

        The best attack on any function of the model is right with probability (1 + delta(0)) / 2,
        where delta(0) bounds the total variation of neighbours.
        """
        return (1.0 + self.get_delta(0.0)) / 2.0

    def epsilon_curve(self, deltas: Sequence[float] | None = None) -> list[tuple[float, float]]:
        """Certified epsilon at several delta.

        Args:
            deltas: Failure probabilities; by default 1e-3, 1e-4, ..., 1e-12.

        Returns:
            list of (delta, epsilon).
        """
        return [(d, self.get_epsilon(d)) for d in (DELTAS if deltas is None else deltas)]

    def spending(self, delta: float | None = None) -> list[Spending]:
        """The budget by mechanism.

        Args:
            delta: Failure probability for the epsilons of the parts; by default :attr:`delta`.

        Returns:
            list of Spending: One for each kind of release; see :mod:`xgb_dp.record.spending`.
            Where one of several plans was taken, those of this plan.
        """
        planned = [event for t in self.record.trainings for event in t.planned]
        return spending(planned, self.delta if delta is None else delta, self.unit.group)

    def statement(self) -> str:
        """The guarantee in prose: what it says, about what, and what it does not say."""
        if not self.private:
            if self.record.private and not self.record.is_complete:
                return (
                    "This model is NOT known to be differentially private. It is a checkpoint of "
                    "a training that has not ended, so its ledger does not name its trees, and "
                    "any tree could have been added to it. Do not publish it: publish the model "
                    "that xgboost.train returns at the end."
                )
            reason = {
                "none": "It was trained without noise (dp_epsilon is infinite).",
                "fixed": "Its noise was drawn from a fixed key for tests, so it can be subtracted.",
            }.get(self.record.noise, "It continues a model that is not private.")
            return f"This model is NOT differentially private. {reason} Do not publish it."
        return "\n\n".join(self.paragraphs().values())

    def paragraphs(self) -> dict[str, str]:
        """The paragraphs of the statement of a private model, by what they are about.

        Keys, in this order and only where there is something to say: guarantee, population,
        concerns, preprocessing, released, chosen, masked, public, history and not
        covered.
        """
        return paragraphs(self)

    def summary(self, width: int = 100, *, name: str = "", evaluation: Any = None) -> str:
        """What somebody who signs a release must know, then the statement and tables as details.

        Args:
            width: Characters of a line of prose.
            name: Name of the model, for the title.
            evaluation: Result of :func:`xgb_dp.evaluate` to show. It has an epsilon of its own.
        """
        return as_text(self, width, name=name, evaluation=evaluation)

    def to_json(self) -> str:
        """The report as JSON text.

        Keys: epsilon, delta, private, unit, group, attack_success, statement, budget,
        epsilon_curve, groups and ledger. Where `group` is above 1, so many rows of one person, or
        so many persons, are what all other figures are about but `groups`. An infinite epsilon is
        the text "inf".
        """
        return json.dumps(as_dict(self), indent=2, allow_nan=False)

    def to_html(self, *, name: str = "", evaluation: Any = None) -> str:
        """The report as a whole HTML page, with details folded away; it loads nothing.

        Args:
            name: As for :meth:`summary`.
            evaluation: As for :meth:`summary`.
        """
        return as_html(self, page=True, name=name, evaluation=evaluation)

    def __str__(self) -> str:
        return self.statement()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _is_group(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value) and int(value) == value and value >= 1


def as_booster(model: Any) -> Any:
    """The xgboost.Booster of a booster, a fitted estimator or pipeline, or a saved model's path."""
    from xgboost import Booster

    if isinstance(model, (str, os.PathLike)):
        return load_booster(model)
    model = taken_apart(model)[1]
    if not isinstance(model, Booster) and hasattr(model, "get_booster"):
        model = model.get_booster()
    if not isinstance(model, Booster):
        raise PrivacyParameterError(
            "`model` must be an xgboost.Booster, a fitted xgboost estimator or the path of a "
            f"model; got {type(model).__name__}."
            + " It has several models: ask for privacy_report(model.estimators_), their total."
            * hasattr(model, "estimators_")
        )
    return model


@overload
def privacy_report(model: list[Any] | tuple[Any, ...]) -> PrivacyTotal: ...


@overload
def privacy_report(model: Any) -> PrivacyReport: ...


def privacy_report(model: Any) -> PrivacyReport | PrivacyTotal:
    """Privacy report of a model, read from the ledger that it carries; or of several together.

    Only the trees are compared with the ledger. :func:`xgb_dp.verify` also finds names, intercepts
    and attributes that were changed after the training.

    Args:
        model: xgboost.Booster, a fitted scikit-learn estimator of xgboost, a pipeline that ends in
            one, or the path of a saved model. A list of them, trained on one table, gives the
            total: trainings that two of them share count once.

    Returns:
        PrivacyReport, or PrivacyTotal of a list: Recomputed from what was released. Costs no
        privacy.

    Raises:
        LedgerError: The model carries no ledger, or one that is damaged or does not describe it.
        PrivacyParameterError: Not a model.

    Examples:
        >>> report = xgb_dp.privacy_report(model)
        >>> 0.99 < report.epsilon <= 1.0
        True
    """
    if isinstance(model, (list, tuple)):
        return PrivacyTotal(tuple(map(privacy_report, model)))
    steps = tuple(name for name, _ in fitted_in(model))
    return PrivacyReport(read_ledger(as_booster(model)).to_json(), steps)
