"""DP-XGBoost of Sarus (Grislain and Gonzalvez 2021): its formulas, its budgets and its settings.

docs/sarus.md is the page for its users. The trainer computes the same in
``plugin_cpp/mechanisms/leaves/leaves.cc`` and from the shares of the budget; tests compare them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .system import BOUNDS, MISSING, NO_DATA, PURE, Preset, System


def leaf_sensitivity(min_child_weight: float, penalty: float = 0.1) -> float:
    """What one row changes of the value of a leaf at most: equation 7 of the paper.

    The value is the sum of gradients of at most 1 over max(n, N) + lambda, with n rows and
    N = max(min_child_weight, 1); its largest change is (2 N + lambda) / ((N + lambda) (N + lambda
    + 1)). Proof: docs/proofs/leaves.md, "Leaf values".

    Args:
        min_child_weight: Rows, >= 0. Public.
        penalty: ``lambda`` of XGBoost, in rows, >= 0. Public.

    Returns:
        float: In units of ``dp_gradient_bound``, before eta.

    Examples:
        >>> from xgb_dp.published import sarus
        >>> [round(sarus.leaf_sensitivity(n), 4) for n in (1, 50, 500)]
        [0.9091, 0.0391, 0.004]
    """
    floor = max(min_child_weight, 1.0)
    return (2.0 * floor + penalty) / ((floor + penalty) * (floor + penalty + 1.0))


@dataclass(frozen=True)
class TreeBudget:
    """Pure epsilon of one tree, on the rows that it reads.

    Attributes:
        tree: Of the whole tree, before the sampling of rows makes it less.
        histogram: Of the candidates of each column.
        split: Of the splits of each level.
        leaves: Of the leaves.

    Examples:
        >>> from xgb_dp.published import sarus
        >>> sarus.tree_budget(1.0, trees=20, columns=80).histogram < 0.002
        True
    """

    tree: float
    histogram: float
    split: float
    leaves: float

    def leaf_noise(self, min_child_weight: float, penalty: float = 0.1) -> float:
        """Scale of the Laplace noise on a leaf value, in the unit of :func:`leaf_sensitivity`.

        Examples:
            >>> from xgb_dp.published import sarus
            >>> round(sarus.tree_budget(1.0, trees=20, columns=80).leaf_noise(50), 3)
            0.283
        """
        return leaf_sensitivity(min_child_weight, penalty) / self.leaves


def tree_budget(
    epsilon: float, trees: int, columns: int, depth: int = 6, subsample: float = 0.1
) -> TreeBudget:
    """How the paper divides epsilon: trees alike, and in each a third for every mechanism.

    A tree reads each row with probability q = subsample and costs log(1 + q (e^e - 1)) where its
    own epsilon is e (section 4.4). Proof: docs/proofs/sampling.md.

    Args:
        epsilon: Of the whole training, > 0.
        trees: Number of trees.
        columns: Number of columns, each of which has a noisy histogram.
        depth: Levels of a tree.
        subsample: Probability with which a tree reads a row, in (0, 1].

    Examples:
        >>> from xgb_dp.published import sarus
        >>> round(sarus.tree_budget(1.0, trees=20, columns=80).tree, 3)
        0.414
    """
    tree = math.log1p(math.expm1(epsilon / trees) / subsample)
    return TreeBudget(tree, tree / 3 / columns, tree / 3 / depth, tree / 3)


_SARUS = {
    **PURE,
    "tree_method": "dp_approx",
    "dp_candidates": "histogram",
    "dp_candidate_noise": "laplace",
    "dp_budget_shares": {"candidates": 1 / 3, "splits": 1 / 3, "leaves": 1 / 3},
    "min_child_weight": 50.0,
    "subsample": 0.1,
    "eta": 0.3,
}
_SARUS_FOLLOWS = (
    "a histogram of weights on an even grid with Laplace noise, for each feature and tree, gives "
    "the candidates (section 4.1)",
    "the exponential mechanism over the published gain S^2 / (n + lambda) of all candidates "
    "(section 4.2)",
    "rows with |g| > 1 take no part in a tree (gradient filtering)",
    "pure epsilon, a third each for candidates, splits and leaves; Poisson row sampling of 0.1 "
    "with amplification of each tree (section 4.4)",
)
_SARUS_DIFFERS = (
    "the range of the gain is 4, not the sensitivity 3 in both directions that doubles to 6: its "
    "change lies in (-3, 1], so the splits are less noisy at the same epsilon",
    "gains and leaves count rows instead of adding Hessians: the published bound of the gain "
    "fails where Hessians vary, as in logistic loss",
    "the noisy histogram is cut at equal mass directly; XGBoost's sketch would do the same with "
    "an error of its own",
    "coins of the row sampling are secret, never a seed; each row is drawn independently",
    MISSING,
    NO_DATA,
)

_PRESETS = (
    Preset(
        "sarus", "DP-XGBoost", "Grislain and Gonzalvez (2021), sections 4 and 5", _SARUS,
        (*_SARUS_FOLLOWS, "Laplace noise on the leaf value, whose sensitivity shrinks with "
         "min_child_weight (equation 7)"),
        (*_SARUS_DIFFERS, "min_child_weight N is a floor of the denominator, max(n, N) + lambda, "
         "with sensitivity (2 N + lambda) / ((N + lambda)(N + 1 + lambda)): a test n >= N on exact "
         "counts tells neighbours apart"),
        (BOUNDS,),
    ),
    Preset(
        "sarus_average", "DP-XGBoost, noisy average", "Grislain and Gonzalvez (2021), algorithm 1",
        {**_SARUS, "dp_leaf_noise": "laplace", "dp_hessian_weight": 1.0, "max_delta_step": 1.0},
        (*_SARUS_FOLLOWS, "a leaf is a noisy sum over a count, clipped to 1"),
        (*_SARUS_DIFFERS, "the count is noisy too: with the exact one, as published, the density "
         "of a leaf changes by (n + 1) / n at one row and no epsilon holds"),
        (BOUNDS,),
    ),
)  # fmt: skip

SYSTEM = System(
    "DP-XGBoost of Sarus",
    "What the presets [`sarus`](presets.md#sarus) and [`sarus_average`](presets.md#sarus_average) "
    "set: noisy histograms as candidates, leaves whose noise follows `min_child_weight`, and "
    "rounds that read a sample of the rows.",
    _PRESETS,
    (
        "dp_candidates",
        "dp_candidate_rounds",
        "dp_candidate_weight",
        "dp_candidate_noise",
        "dp_candidate_cells",
        "dp_leaf",
        "dp_leaf_noise",
        "min_child_weight",
        "subsample",
    ),
)
