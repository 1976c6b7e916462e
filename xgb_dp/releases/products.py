"""Products of the scores of rows before the first tree, from which a linear model follows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting import sensitivity
from ..accounting.events import PlainEvent
from ..parameters.parameter import Rule
from .release import EXACT_BITS, Asked, Noise, Part, Release, noisy_counts

if TYPE_CHECKING:
    from ..request.settings import Settings

SHARE = 0.05
MOST_SCORES = 128  # the work of a row goes with their square


def scored(s: Settings) -> list[int]:
    """The columns that have scores: one of each column of numbers, and of each category.

    Columns with public cuts have none. Of columns with categories, those with few come first, while
    there is room.
    """
    of_numbers = [i for i, f in enumerate(s.features) if f.kind == "private"]
    room = MOST_SCORES - 1 - len(of_numbers)
    sizes = sorted((f.size, i) for i, f in enumerate(s.features) if f.kind == "categorical")
    taken = [
        i
        for (_, i), total in zip(sizes, itertools.accumulate(n for n, _ in sizes), strict=True)
        if total <= room
    ]
    return sorted(of_numbers + taken)


def positions(s: Settings) -> int:
    """Scores of a row, with a constant."""
    features = [s.features[i] for i in scored(s)]
    return 1 + sum(f.size if f.kind == "categorical" else 1 for f in features)


def products_of(scores: int) -> int:
    """Sums of the products of so many scores, and of each of them with the label."""
    return scores * (scores + 1) // 2 + scores


# fmt: off
_RULES = (
    Rule("a linear start of two classes",
         lambda s: s.starts_linearly and (
             s.kind != "binary" or s.labels > 1 or s.intercept != "released"),
         "`dp_start`='linear' is for one label of two classes with a released intercept. Leave it "
         "out, or leave `base_score`, `dp_base_margin` and xgb_model out."),
    Rule("a linear start on counted candidates",
         lambda s: s.starts_linearly and (
             s.private_features == 0 or s["dp_candidates"] != "quantile_tree"
             or s["dp_candidate_weight"] != "count" or s["dp_candidate_rounds"] != 1),
         "`dp_start`='linear' needs candidates that one quantile tree of each column gives. Leave "
         "it out where all candidates are public, and with `dp_candidates`, "
         "`dp_candidate_weight` and `dp_candidate_rounds`."),
    Rule("trees after a linear start",
         lambda s: s.starts_linearly and (
             s["num_parallel_tree"] != 1 or s.schema.weights is not None
             or any(s["monotone_constraints"])),
         "`dp_start`='linear' is refused with `num_parallel_tree`, `feature_weights` and "
         "`monotone_constraints`, which the first trees would not follow. Leave them out."),
    Rule("scores of few columns",
         lambda s: s.starts_linearly and s.private_features >= MOST_SCORES,
         f"`dp_start`='linear' is for {MOST_SCORES - 1} columns of numbers at most, as a row has a "
         "score of each. Leave it out."),
)
# fmt: on


@dataclass(frozen=True)
class Products(Release):
    """For each pair of scores the sum of their products, and of each score with the label.

    Proof: docs/proofs/sensitivity.md, "A linear start"
    """

    name = "products"
    share = "products"
    of_all = SHARE
    exact_shift = EXACT_BITS  # products are not whole numbers
    words = (("products", "what a linear model of the columns says (noisy sums of products)"),)
    always_listed = False
    rules = _RULES

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """With ``dp_start="linear"``."""
        return s.starts_linearly

    @classmethod
    def of(cls, asked: Asked) -> Products:
        """The same for rows and for persons."""
        return cls(asked.settings.row_bound.of_person)

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Gaussian noise on each sum, on the finest grid."""
        units = sensitivity.columns_sens2(0)
        return noisy_counts(self.name, units, sensitivity.MOST_PRODUCTS, part, persons=True)
