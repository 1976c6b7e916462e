"""Sums of the cells by class and column before the first tree, for wide sparse tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..accounting.events import GaussianEvent, PlainEvent
from ..accounting.sensitivity import RowBound, columns_sens2
from ..errors import PrivacyRefusal
from ..parameters.parameter import SPENDS, Config, Parameter, Rule, Table
from ..parameters.parse import OneOf
from .mechanism import EXACT_BITS, DrawBudget, Mechanism, Noise, count_noise

SHARE = 2.0 / 3.0
PRESENT = float(str(np.finfo(np.float32).tiny))
"""Smallest cell that counts as present: the smallest normal 32-bit float."""

# fmt: off
_PARAMETERS = (
    Parameter("dp_start", "what the trees start from: the intercept; or noisy sums of the cells "
              "above 0 of each class in each column. With these and dp_features_per_tree the other "
              "trees are offered the columns that say most",
              OneOf(("intercept", "columns")), "intercept", SPENDS, "sensitivity",
              Table.DEFAULT, shown="'intercept'; open rounds, two classes: may be 'columns'"),
)
_RULES = (
    Rule("columns of two classes",
         lambda s: s.starts_from_columns and (s.kind != "binary" or s.labels > 1),
         "`dp_start`='columns' is for one label of two classes, whose cells it sums. Leave it "
         "out."),
    Rule("columns of rows",
         lambda s: s.starts_from_columns and s.unit != "row",
         "`dp_start`='columns' is refused with {`dp_privacy_id`}: what a person adds to sums by "
         "class and column is not proved. Leave one of them out.", PrivacyRefusal),
    Rule("columns and labels are read together",
         lambda s: s.starts_from_columns and s.intercept != "released",
         "`dp_start`='columns' needs a released intercept, to which the first trees are centred. "
         "Leave `base_score`, `dp_base_margin` or xgb_model out."),
    Rule("columns are numbers",
         lambda s: s.starts_from_columns and any(f.kind == "categorical" for f in s.features),
         "`dp_start`='columns' is for numeric columns, whose cells are above 0 or not. Store the "
         "categories as columns of 0 and 1, or leave it out."),
    Rule("trees after columns",
         lambda s: s.starts_from_columns and (
             s["num_parallel_tree"] != 1 or s.schema.weights is not None
             or s["dp_feature_order"] == "cyclic"
             or any(s["monotone_constraints"]) or bool(s["interaction_constraints"])),
         "`dp_start`='columns' grows a tree a round on the columns that say most: it is refused "
         "with `num_parallel_tree`, `feature_weights`, dp_feature_order='cyclic', "
         "`monotone_constraints` and `interaction_constraints`. Leave them out."),
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
    words = (("columns", "what each column says of the label (noisy sums of its cells by class)"),)
    always_listed = False
    parameters = _PARAMETERS
    rules = _RULES

    columns: int  # number of columns
    shift: int = 0  # sums are multiplied by 2**shift

    @classmethod
    def is_enabled(cls, s: Config) -> bool:
        """With ``dp_start="columns"``."""
        return s.starts_from_columns

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """The request for the sums."""
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
