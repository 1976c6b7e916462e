"""Sums of the cells by class and column before the first tree, for wide sparse tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..accounting.events import GaussianEvent, PlainEvent
from ..accounting.sensitivity import RowBound, columns_sens2
from ..errors import PrivacyRefusal
from ..parameters.config import Config
from ..parameters.parameter import SPENDS, Parameter, Rule, Table
from ..parameters.parse import OneOf
from .mechanism import EXACT_BITS, DrawBudget, Mechanism, Noise, count_noise

SHARE = 2.0 / 3.0
PRESENT = float(str(np.finfo(np.float32).tiny))
"""Smallest cell that counts as present: the smallest normal 32-bit float."""

# fmt: off
_PARAMETERS = (
    Parameter("dp_start", "Start of the trees: the intercept, or trees from noisy sums of the "
              "cells above 0 by class and column ('columns'), which then also choose "
              "the columns of dp_features_per_tree.",
              OneOf(("intercept", "columns")), "intercept", SPENDS, "sensitivity",
              Table.DEFAULT, shown="'intercept'; 'columns' for some tables, see "
              "[Rounds](#rounds)"),
)
_RULES = (
    Rule("column start needs two classes",
         lambda s: s.starts_from_columns and (s.kind != "binary" or s.labels > 1),
         "`dp_start`='columns' requires a binary objective with one label. Remove it."),
    Rule("column start needs rows as units",
         lambda s: s.starts_from_columns and s.unit != "row",
         "`dp_start`='columns' is refused with {`dp_privacy_id`}: the sensitivity of the sums by "
         "class and column is not proved for persons. Remove one.", PrivacyRefusal),
    Rule("column start needs a released intercept",
         lambda s: s.starts_from_columns and s.intercept != "released",
         "`dp_start`='columns' needs a released intercept, because the first trees are centred on "
         "it. Remove `base_score`, `dp_base_margin` or xgb_model."),
    Rule("column start needs numeric columns",
         lambda s: s.starts_from_columns and bool(s.schema.categorical),
         "`dp_start`='columns' requires numeric columns, because it sums the cells above 0. Encode "
         "categories as 0/1 columns, or remove it."),
    Rule("column start without constraints",
         lambda s: s.starts_from_columns and (
             s["num_parallel_tree"] != 1 or s.schema.weights is not None
             or s["dp_feature_order"] == "cyclic"
             or any(s["monotone_constraints"]) or bool(s["interaction_constraints"])),
         "`dp_start`='columns' is refused with `num_parallel_tree`, `feature_weights`, "
         "dp_feature_order='cyclic', `monotone_constraints` and `interaction_constraints`, because "
         "it grows one unconstrained tree per round on the most informative columns. Remove them."),
)
# fmt: on


@dataclass(frozen=True)
class ColumnSums(Mechanism):
    """Total weight of the cells above 0, for each class and column.

    Proof: docs/proofs/sensitivity.md, "A start from columns"
    """

    name = "columns"
    section = ("before", "columns")
    integers = ("sigma2", "shift")
    share = "columns"
    of_all = SHARE  # it determines the first trees, see docs/accuracy.md
    exact_shift = EXACT_BITS  # weights of cells are not integers
    words = (
        (
            "columns",
            "the association of each column with the label (noisy sums of its cells by class)",
        ),
    )
    always_listed = False
    parameters = _PARAMETERS
    rules = _RULES

    columns: int  # number of columns
    shift: int = 0  # sums are multiplied by 2**shift

    @classmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether ``dp_start`` is "columns"."""
        return s.starts_from_columns

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """The plan's request for the sums by class and column."""
        if not cls.is_enabled(s):
            return {}
        request = {"kind": "columns", "columns": s.schema.width, "num_class": s.trees_per_round}
        return {"before": {"columns": request}}

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> ColumnSums | None:
        """One sum for each class and column."""
        request = plan["before"].get("columns")
        if request is None:
            return None
        return cls(bound, plan["n_features"], request.get("shift", 0))

    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """Gaussian noise on each sum."""
        return count_noise(columns_sens2(0), budget.mu2, persons=False)

    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """The event of the sums by class and column."""
        sens2 = columns_sens2(noise.shift)
        return GaussianEvent(self.name, sens2, noise.sigma2, self.columns, count)
