"""The privacy report of a model: what it cost, recomputed from the ledger of what was released."""

from __future__ import annotations

import html
import json
import math
import os
from dataclasses import dataclass, field
from typing import Any

from .accounting import ACCOUNTANTS, events_from_ledger, make_accountant
from .errors import LedgerError, PrivacyParameterError
from .ledger import flat_counts, read_ledger

__all__ = ["PrivacyReport", "privacy_report"]

_RELEASES = {
    "intercept": "the intercept (noisy label sums)",
    "candidates": "the split candidates (noisy counts)",
    "splits": "the splits (exponential mechanism)",
    "histograms": "the noisy sums of split candidates (splits and leaf values)",
    "leaves": "the leaf values (noisy sums, or the values with noise)",
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
    _cache: dict[tuple[str, float, int], float] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def private(self) -> bool:
        """Whether the model is private at all: noise was drawn, from the operating system's key."""
        return bool(self.ledger["private"]) and self.ledger["noise"] == "os"

    @property
    def delta(self) -> float:
        """Target delta; of several trainings the largest."""
        return max((float(t["target"]["delta"]) for t in self.ledger["trainings"]), default=0.0)

    @property
    def epsilon(self) -> float:
        """Certified epsilon of the whole model at :attr:`delta`; infinite if not private."""
        return self.get_epsilon(self.delta)

    def get_epsilon(
        self,
        delta: float,
        group: int = 1,
        *,
        accountant: str = "exact",
        adjacency: str = "add_remove",
    ) -> float:
        """Certified epsilon at a chosen delta.

        Args:
            delta: Failure probability, 0 <= delta < 1; at 0 infinite with Gaussian noise.
            group: Rows added or removed together, e.g. the largest number of rows of one person.
            accountant: "exact" (the tightest), "rdp", "gdp", "zcdp", "classic" or "pure".
            adjacency: "add_remove", or "replace_one" where neighbours have `group` rows exchanged;
                an exchange is a removal and an addition, twice the group.

        Returns:
            float: Upper bound, in nats; infinite if the model is not private, or the accountant
            has no bound for one of its mechanisms.

        Raises:
            PrivacyParameterError: An argument is out of range.
        """
        try:
            ok = 0 <= delta < 1 and int(group) == group and group >= 1
        except (TypeError, ValueError):
            ok = False
        if not self.private:
            return math.inf
        if not ok:
            raise PrivacyParameterError(
                "`delta` must be at least 0 and below 1, `group` be an int >= 1."
            )
        if accountant not in ACCOUNTANTS or adjacency not in ("add_remove", "replace_one"):
            raise PrivacyParameterError(
                f"`accountant` must be one of {', '.join(ACCOUNTANTS)}, `adjacency` add_remove or "
                "replace_one."
            )
        rows = int(group) * (2 if adjacency == "replace_one" else 1)
        key = (accountant, float(delta), rows)
        if key not in self._cache:
            books = make_accountant(accountant, events_from_ledger(self.ledger))
            self._cache[key] = books.get_epsilon(float(delta), rows)
        return self._cache[key]

    def statement(self) -> str:
        """The guarantee in prose: what it says, about what, and what it does not say."""
        if not self.private:
            reason = {
                "none": "It was trained without noise (dp_epsilon is infinite).",
                "fixed": "Its noise was drawn from a fixed key for tests, so it can be subtracted.",
            }.get(self.ledger["noise"], "It continues a model that is not private.")
            return f"This model is NOT differentially private. {reason} Do not publish it."
        return "\n\n".join(
            (self._guarantee(), self._released(), self._public(), self._history(), _NOT_COVERED)
        ).replace("\n\n\n\n", "\n\n")

    def _guarantee(self) -> str:
        return (
            f"This model is ({_round_up(self.epsilon)}, {self.delta:g})-differentially private: "
            "adding or removing any one row of the training data changes the probability of any "
            f"outcome of training by a factor of at most e^{_round_up(self.epsilon)}, except with "
            f"probability delta = {self.delta:g}. The unit of privacy is one row. The guarantee is "
            "row-level and not person-level unless each person has at most one row; for at most k "
            "rows a person, get_epsilon(delta, group=k) gives the person-level epsilon. Replacing "
            "one row is a removal and an addition, group=2. Noise came from a generator keyed by "
            "the operating system."
        )

    def _released(self) -> str:
        drawn = [e for t in self.ledger["trainings"] for e in t.get("drawn", t["events"])]
        counts = flat_counts(drawn)
        parts = [
            f"{_RELEASES.get(name, name)}, {count} {'time' if count == 1 else 'times'}"
            for name, count in counts.items()
        ]
        return (
            f"Released with noise: {'; '.join(parts) or 'nothing'}. Everything else in the model "
            "is computed from these or public."
        )

    def _public(self) -> str:
        lines = ["Taken as public, and not protected: the number, names and types of the columns"]
        names = {
            "target_bounds": "the target bounds",
            "public_cuts": "the declared feature bounds or cuts",
        "public_grids": "the declared feature bounds",
            "categories": "the declared categories",
            "classes": "the declared classes",
            "n_public": "the number of rows, as declared",
            "max_weight": "the bound of row weights",
        }
        seen = [t["public"] for t in self.ledger["trainings"]]
        lines += [text for key, text in names.items() if any(p.get(key) for p in seen)]
        if any(isinstance(p.get("base_score"), (int, float, list)) for p in seen):
            lines.append("the given intercept")
        if any(p.get("evals") for p in seen):
            lines.append("every evaluation set, and so the time of early stopping")
        lines.append(
            "the hyperparameters, which must not have been chosen by looking at these rows (as a "
            "grid search or cross-validation on them does)"
        )
        return ", ".join(lines[:-1]) + ", and " + lines[-1] + "."

    def _history(self) -> str:
        trainings = self.ledger["trainings"]
        parts = []
        if len(trainings) > 1:
            parts.append(
                f"The model was trained in {len(trainings)} steps; the figures compose all of them."
            )
        if not all(t["complete"] and "drawn" not in t for t in trainings):
            parts.append(
                "A training released less than planned. It counts in full, because when it ended "
                "was an outcome of training."
            )
        return " ".join(parts)

    def to_json(self) -> str:
        """The report as JSON text: epsilon, delta, private, statement and ledger."""
        epsilon = self.epsilon
        return json.dumps(
            {
                "epsilon": "inf" if math.isinf(epsilon) else epsilon,
                "delta": self.delta,
                "private": self.private,
                "statement": self.statement(),
                "ledger": self.ledger,
            },
            indent=2,
        )

    def __str__(self) -> str:
        return self.statement()

    def _repr_html_(self) -> str:
        paragraphs = "".join(f"<p>{html.escape(p)}</p>" for p in self.statement().split("\n\n"))
        return f"<div><b>Privacy report</b>{paragraphs}</div>"


def _round_up(epsilon: float) -> str:
    """Four digits, rounded up: a printed figure must not promise more than the exact one."""
    if epsilon <= 0:
        return "0"
    digits = 3 - math.floor(math.log10(epsilon))
    return f"{math.ceil(epsilon * 10.0**digits) / 10.0**digits:.{max(digits, 0)}f}"


def privacy_report(model: Any) -> PrivacyReport:
    """Privacy report of a model, read from the ledger that it carries.

    Args:
        model: xgboost.Booster, a fitted scikit-learn estimator of xgboost, or the path of a saved
            model.

    Returns:
        PrivacyReport: Recomputed from what was released. Costs no privacy.

    Raises:
        LedgerError: The model carries no ledger, or one that does not describe it.
        PrivacyParameterError: Not a model.
    """
    from xgboost import Booster

    if isinstance(model, (str, os.PathLike)):
        model = Booster(model_file=os.fspath(model))
    elif not isinstance(model, Booster) and hasattr(model, "get_booster"):
        model = model.get_booster()
    if not isinstance(model, Booster):
        raise PrivacyParameterError(
            "`model` must be an xgboost.Booster, a fitted xgboost estimator or the path of a "
            f"model; got {type(model).__name__}."
        )
    ledger = read_ledger(model)
    if not ledger["trainings"]:
        raise LedgerError(
            "The privacy ledger of this model is empty: nothing was trained privately."
        )
    return PrivacyReport(ledger)
