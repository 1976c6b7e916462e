"""The privacy report of a model: what it cost, recomputed from the ledger of what was released."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..accounting import ACCOUNTANTS, SelectionEvent, Unit, make_accountant
from ..accounting.events import release_counts
from ..engine.models import load_booster
from ..errors import PrivacyParameterError
from .caution import concerns
from .form import Ledger
from .ledger import read_ledger
from .report_views import DELTAS, as_dict, as_html, as_text, round_up
from .spending import Spending, spending

__all__ = ["PrivacyReport", "as_booster", "privacy_report"]

_RELEASES = {
    "intercept": "the intercept (noisy label sums)",
    "rows": "the number of rows (a noisy count)",
    "plan": "one of several plans",
    "candidates": "the split candidates (noisy counts)",
    "splits": "the splits (exponential mechanism)",
    "histograms": "the noisy sums of split candidates (splits and leaf values)",
    "leaves": "the leaf values (noisy sums, or the values with noise)",
    "correction": "the mean residual (noisy sums)",
    "evaluation": "figures of the model on private rows (noisy counts of scores)",
    "selection": "the whole model, as the best by noisy score of a secret number of trainings",
}
_NOT_COVERED = (
    "Not covered: running time, memory use and other side channels; anything else that is "
    "published about the same rows, such as exact metrics, other models or choices of parameters "
    "made by looking at the data; errors that say a row lies outside the declared domain; and a "
    "person with access to the process that trains."
)


@dataclass(frozen=True)
class PrivacyReport:
    """Privacy of one model, of all trainings that made it.

    Epsilon is recomputed from the ledger's events at every call and never copied from the target.

    Attributes:
        ledger: The ledger as stored with the model.
    """

    ledger: dict[str, Any]
    _record: Ledger = field(init=False, repr=False, compare=False)
    _cache: dict[tuple[str, float, int, str], float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_record", Ledger.from_json(self.ledger))

    @property
    def private(self) -> bool:
        """Whether the model is private at all, with noise from the operating system's key."""
        return self._record.private and self._record.noise == "os"

    @property
    def delta(self) -> float:
        """Target delta; of several trainings the largest."""
        return max(float(t.target[1]) for t in self._record.trainings)

    @property
    def unit(self) -> Unit:
        """Whom the guarantee is about: one row, so many rows of one person, or persons."""
        return self._record.unit

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
            accountant: "exact" (the tightest), "rdp", "gdp", "zcdp", "classic" or "pure".
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
                "`delta` must be at least 0 and below 1, `group` be an int >= 1."
            )
        if accountant not in ACCOUNTANTS or adjacency not in ("add_remove", "replace_one"):
            raise PrivacyParameterError(
                f"`accountant` must be one of {', '.join(ACCOUNTANTS)}, `adjacency` add_remove or "
                "replace_one."
            )
        key = (accountant, float(delta), int(group), adjacency)
        if key not in self._cache:
            books = make_accountant(accountant, self._record.events)
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
            raise PrivacyParameterError("`epsilon` must be at least 0, `group` be an int >= 1.")
        books = make_accountant("exact", self._record.events)
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
        planned = [event for t in self._record.trainings for event in t.planned]
        return spending(planned, self.delta if delta is None else delta, self.unit.group)

    def statement(self) -> str:
        """The guarantee in prose: what it says, about what, and what it does not say."""
        if not self.private:
            reason = {
                "none": "It was trained without noise (dp_epsilon is infinite).",
                "fixed": "Its noise was drawn from a fixed key for tests, so it can be subtracted.",
            }.get(self._record.noise, "It continues a model that is not private.")
            return f"This model is NOT differentially private. {reason} Do not publish it."
        return "\n\n".join(self.paragraphs().values())

    def paragraphs(self) -> dict[str, str]:
        """The paragraphs of the statement of a private model, by what they are about.

        Keys, in this order and only where there is something to say: guarantee, concerns,
        preprocessing, released, chosen, masked, public, history and not covered.
        """
        found = {
            "guarantee": self._guarantee(),
            "concerns": self._concerns(),
            "preprocessing": self._preprocessing(),
            "released": self._released(),
            "chosen": self._chosen(),
            "masked": self._masked(),
            "public": self._public(),
            "history": self._history(),
            "not covered": _NOT_COVERED,
        }
        return {key: text for key, text in found.items() if text}

    def _guarantee(self) -> str:
        unit, epsilon = self.unit, round_up(self.epsilon)
        return (
            f"This model is ({epsilon}, {self.delta:g})-differentially private: adding or removing "
            f"{unit.neighbours()} of the training data changes the probability of any outcome of "
            f"training by a factor of at most e^{epsilon}, except with probability delta = "
            f"{self.delta:g}. {unit.scope()} {self._other_groups()} Replacing one {unit.name} is a "
            "removal and an addition, adjacency='replace_one'. Noise came from a generator keyed "
            "by the operating system."
        )

    def _other_groups(self) -> str:
        """What holds for more or fewer rows or persons than were asked for."""
        unit = self.unit
        if unit.group > 1:
            alone = round_up(self.get_epsilon(self.delta, 1))
            return f"For one {unit.name} alone epsilon is {alone}."
        most = "k persons together" if unit.of_persons else "a person with at most k rows"
        return f"For {most} get_epsilon(delta, group=k) gives the epsilon."

    def _concerns(self) -> str:
        rows = [t.public.get("n_public") for t in self._record.trainings]
        n_public = max((n for n in rows if n is not None), default=None)
        return " ".join(concerns(self.epsilon, self.delta, n_public, self.unit))

    def _preprocessing(self) -> str:
        """What was fitted on the rows before training, without noise."""
        steps = [name for t in self._record.trainings for name in t.public.get("preprocessing", [])]
        if not steps:
            return ""
        return (
            "NOT COVERED: before training the rows went through steps of a pipeline that were "
            f"fitted on them without noise ({', '.join(dict.fromkeys(steps))}). What these have "
            "learnt of the rows is in the model and in the pipeline, and no epsilon holds for it."
        )

    def _released(self) -> str:
        counts = release_counts(e for t in self._record.trainings for e in t.released)
        parts = [
            f"{_RELEASES.get(name, name)}, {count} {'time' if count == 1 else 'times'}"
            for name, count in counts.items()
        ]
        return (
            f"Released with noise: {'; '.join(parts) or 'nothing'}. Everything else in the model "
            "is computed from these or public."
        )

    def _chosen(self) -> str:
        """Which of several plans was taken, and that this is a private release."""
        parts = []
        trainings = self._record.trainings
        for i, training in enumerate(trainings):
            choice = training.public.get("plan_choice")
            if not choice:
                continue
            which = f" of training {i + 1}" if len(trainings) > 1 else ""
            plans = choice["plans"]
            taken = plans[choice["taken"]].items()
            shown = ", ".join(f"{k} {v}" for k, v in taken if k != "budget_shares")
            rows = "" if choice["rows"] is None else f", about {choice['rows']},"
            cells = " and of their cells" if any("split" in plan for plan in plans) else ""
            parts.append(
                f"The plan{which} was taken among {len(plans)} public ones after a noisy number of "
                f"rows{rows}{cells} had been released: {shown}. Which one it is follows from that "
                "release and costs nothing beyond it; the figures hold for the worst of the plans."
            )
        return " ".join(parts)

    def _masked(self) -> str:
        """What the workers saw of each other, where it was not everything."""
        parts = []
        trainings = self._record.trainings
        for i, training in enumerate(trainings):
            masked = training.public.get("masked_sums")
            if masked:
                which = f" of training {i + 1}" if len(trainings) > 1 else ""
                curious = int(masked["colluders"])
                against = (
                    f"any {'one' if curious == 1 else curious} of them, for the rows of the others"
                    if curious
                    else "whoever took no part in the training"
                )
                parts.append(
                    f"The sums{which} were masked: each of {masked['workers']} workers added its "
                    "share of the noise to its own sums and saw nothing but noisy sums of all. If "
                    f"all followed the protocol, the figures hold against {against}."
                )
        return " ".join(parts)

    def _public(self) -> str:
        lines = ["Taken as public, and not protected: the number, names and types of the columns"]
        names = {
            "target_bounds": "the target bounds",
            "public_cuts": "the declared feature bounds or cuts",
            "public_grids": "the declared feature bounds",
            "public_data": "the public rows that candidates or trees come from",
            "categories": "the declared categories",
            "classes": "the declared classes",
            "n_public": "the number of rows, as declared",
            "max_weight": "the bound of row weights",
        }
        seen = [t.public for t in self._record.trainings]
        lines += [text for key, text in names.items() if any(p.get(key) for p in seen)]
        if any(isinstance(p.get("base_score"), (int, float, list)) for p in seen):
            lines.append("the given intercept")
        if self._record.start is not None:
            lines.append("the model that training started from")
        if any(p.get("evals") for p in seen):
            lines.append("every evaluation set, and so the time of early stopping")
        chosen = any(e.mechanism == SelectionEvent.mechanism for e in self._record.events)
        lines.append(
            ("the list of settings among which was chosen" if chosen else "the hyperparameters")
            + ", which must not have been chosen by looking at these rows (as a "
            "grid search or cross-validation on them does)"
        )
        return ", ".join(lines[:-1]) + ", and " + lines[-1] + "."

    def _history(self) -> str:
        trainings = self._record.trainings
        parts = []
        start = self._record.start
        if start is not None:
            parts.append(
                f"The private trees stand on a public model of {start.rounds} rounds "
                f"({len(start.trees)} trees, digest {start.digest[:16]}), which was declared to be "
                "made without any private row. The figures say nothing of the rows that it was "
                "made of."
            )
        if len(trainings) > 1:
            parts.append(
                f"The model was trained in {len(trainings)} steps; the figures compose all of them."
            )
        if any(t.stopped for t in trainings):
            parts.append(
                "A training released less than planned. It counts in full, because when it ended "
                "was an outcome of training."
            )
        return " ".join(parts)

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

    def _repr_html_(self) -> str:
        return as_html(self)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _is_group(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value) and int(value) == value and value >= 1


def as_booster(model: Any) -> Any:
    """The xgboost.Booster of a booster, a fitted estimator or the path of a saved model.

    Raises:
        PrivacyParameterError: Not a model, or no file of one.
        LedgerError: The file is damaged.
    """
    from xgboost import Booster

    if isinstance(model, (str, os.PathLike)):
        return load_booster(model)
    if not isinstance(model, Booster) and hasattr(model, "get_booster"):
        model = model.get_booster()
    if not isinstance(model, Booster):
        raise PrivacyParameterError(
            "`model` must be an xgboost.Booster, a fitted xgboost estimator or the path of a "
            f"model; got {type(model).__name__}."
        )
    return model


def privacy_report(model: Any) -> PrivacyReport:
    """Privacy report of a model, read from the ledger that it carries.

    Args:
        model: xgboost.Booster, a fitted scikit-learn estimator of xgboost, or the path of a saved
            model.

    Returns:
        PrivacyReport: Recomputed from what was released. Costs no privacy.

    Raises:
        LedgerError: The model carries no ledger, or one that is damaged or does not describe it.
        PrivacyParameterError: Not a model.
    """
    return PrivacyReport(read_ledger(as_booster(model)).to_json())
