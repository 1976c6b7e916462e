"""Mean residual of a regression after the last tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..accounting import GaussianEvent, sensitivity
from ..accounting.events import PlainEvent
from ..errors import BudgetError
from ..parameters.parameter import SPENDS, Parameter, Rule, Table
from ..parameters.parse import Flag
from .release import MAX_SIGMA2, Asked, Noise, Part, Release, grid_sigma2

if TYPE_CHECKING:
    from ..request.settings import Settings

_LEAST_EPSILON = {True: 0.25, False: 1.0}  # of means that are shifted, and of factors


def _reads_all_rows(s: Settings) -> bool:
    """Whether every round has one tree, on Gaussian sums of all rows that are in the clear."""
    return not (
        s["dp_accountant"] == "pure"
        or s["dp_ensemble"] > 1
        or s["dp_leaf_noise"] == "output"
        or s["subsample"] < 1.0
        or s["num_parallel_tree"] > 1
        or s["dp_secure_sum"]
    )


def _has_mean(s: Settings) -> bool:
    return s.squared or s.objective.intercept == "capped mean"


def _pays(s: Settings) -> bool:
    """On for means by the default, where epsilon pays and the user divides nothing."""
    return (
        _has_mean(s)
        and s["dp_preset"] == "default"
        and s.unit_epsilon >= _LEAST_EPSILON[s.squared]
        and "dp_budget_shares" not in s.given
        and s["dp_split"] == "exponential"
        and s["dp_leaf_noise"] == "gaussian"
        and _reads_all_rows(s)
    )


# fmt: off
_PARAMETERS = (
    Parameter("dp_mean_correction", "releases the mean residual after the last tree and shifts the "
              "tree by it, twice",
              Flag(), _pays, SPENDS, "leaves", Table.DEFAULT,
              values="bool; regression with sums of all rows", shown="False; regression with "
              "dp_epsilon / dp_group >= 0.25 (counts and amounts: >= 1), dp_preset='default' and "
              "without dp_budget_shares True",
              plan="correction.on"),
)
_RULES = (
    Rule("the mean of a regression is corrected",
         lambda s: s["dp_mean_correction"] and not (
             _has_mean(s) and _reads_all_rows(s)),
         "`dp_mean_correction` is for squared error, counts and amounts of one target, whose "
         "rounds read all rows, with one tree a round and Gaussian noise. Leave it out with "
         "{`dp_accountant`}='pure', dp_leaf_noise='output', dp_ensemble, subsample, "
         "num_parallel_tree or dp_secure_sum."),
)
# fmt: on


@dataclass(frozen=True)
class Correction(Release):
    """Sums of residuals and of predictions in the range, released twice.

    Proof: docs/proofs/sensitivity.md
    """

    name = "correction"
    share = "correction"
    of_all = 0.05  # which makes a good intercept less dear
    draws = 2  # the mean is corrected, and corrected again
    words = (("correction", "the mean residual (noisy sums)"),)
    parameters = _PARAMETERS
    rules = _RULES

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """With ``dp_mean_correction``."""
        return bool(s["dp_mean_correction"])

    @classmethod
    def of(cls, asked: Asked) -> Correction:
        """Two sums."""
        return cls(asked.settings.row_bound.of_person)

    @classmethod
    def section(cls, s: Settings, noise: Noise) -> dict[str, Any]:
        """Its noise, and how many rows there are, which is not known before the first release."""
        return {"correction": {"sigma2": noise.sigma2, "rows": 0.0}}

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Gaussian noise on both sums."""
        sens2 = sensitivity.correction_sens2()
        sigma2 = grid_sigma2(sens2 / part.mu2)
        if sigma2 > MAX_SIGMA2:
            raise BudgetError(
                "The noise of `dp_mean_correction` would be above half a million rows: epsilon is "
                "too small for a useful result. Take dp_mean_correction=False or a larger epsilon."
            )
        return Noise(sigma2=sigma2), GaussianEvent(self.name, sens2, sigma2, 2, self.draws)
