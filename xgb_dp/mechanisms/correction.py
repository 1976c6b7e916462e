"""Correction of the mean prediction of a regression, after the last tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..accounting.events import GaussianEvent, PlainEvent
from ..accounting.sensitivity import RowBound, correction_sens2
from ..errors import BudgetError
from ..parameters.config import Config
from ..parameters.parameter import SPENDS, Parameter, Rule, Table
from ..parameters.parse import Flag
from .mechanism import MAX_SIGMA2, DrawBudget, Mechanism, Noise, grid_sigma2

# Smallest epsilon at which a correction is useful: for squared error (True), where the mean is
# shifted, and for other losses, where it is multiplied by a factor.
_LEAST_EPSILON = {True: 0.25, False: 1.0}


def _reads_all_rows(s: Config) -> bool:
    """Whether every round has one tree, on Gaussian, unmasked sums of all rows."""
    return not (
        s["dp_accountant"] == "pure"
        or s["dp_ensemble"] > 1
        or s["dp_leaf_noise"] == "output"
        or s["subsample"] < 1.0
        or s["num_parallel_tree"] > 1
        or s["dp_secure_aggregation"]
    )


def _has_mean(s: Config) -> bool:
    return s.squared or s.objective.intercept == "capped mean"


def _default(s: Config) -> bool:
    """Whether the default corrects means: epsilon is large enough and no shares are given."""
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
    Parameter("dp_mean_correction", "Releases the mean residual after the last tree, twice, and "
                                    "corrects the mean of the predictions.",
              Flag(), _default, SPENDS, "leaves", Table.DEFAULT,
              values="bool; regression with sums over all rows", shown="True for regression in the "
              "default preset with dp_epsilon / dp_group_size >= 0.25 (counts and amounts: >= 1) "
              "and without dp_budget_shares; otherwise False",
              plan="correction.on"),
)
_RULES = (
    Rule("mean correction needs sums of all rows",
         lambda s: s["dp_mean_correction"] and not (
             _has_mean(s) and _reads_all_rows(s)),
         "`dp_mean_correction` requires squared error, counts or amounts with one target, and one "
         "tree per round on Gaussian sums over all rows. Remove it with {`dp_accountant`}='pure', "
         "dp_leaf_noise='output', dp_ensemble, subsample, num_parallel_tree or "
         "dp_secure_aggregation."),
)
# fmt: on


@dataclass(frozen=True)
class Correction(Mechanism):
    """Sum of residuals, and number or sum of predictions within the range, released twice.

    Proof: docs/proofs/sensitivity.md
    """

    name = "correction"
    section = ("correction",)
    integers = ("sigma2",)
    share = "correction"
    of_all = 0.05  # with a correction, the intercept may be less precise
    draws = 2  # the mean is corrected twice
    words = (("correction", "the mean residual (noisy sums)"),)
    parameters = _PARAMETERS
    rules = _RULES

    @classmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether ``dp_mean_correction`` is set."""
        return bool(s["dp_mean_correction"])

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """A section with the number of rows: 0, unknown before the first release."""
        return {"correction": {"rows": 0.0}}

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> Correction | None:
        """Create the mechanism if the plan corrects the mean."""
        return cls(bound) if plan["correction"]["on"] else None

    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """Noise parameters of both sums; Gaussian."""
        sigma2 = grid_sigma2(correction_sens2() / budget.mu2)
        if sigma2 > MAX_SIGMA2:
            raise BudgetError(
                "The noise of `dp_mean_correction` would exceed half a million rows: epsilon is "
                "too small for a useful result. Set dp_mean_correction=False, or raise epsilon."
            )
        return Noise(sigma2=sigma2)

    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """The event of the mean residual."""
        return GaussianEvent(self.name, correction_sens2(), noise.sigma2, 2, count)
