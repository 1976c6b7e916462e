"""DP-XGBoost by Sarus (Grislain and Gonzalvez 2021): formulas, budgets and presets.

See docs/sarus.md for migration from Sarus. The trainer computes the same values in
``plugin_cpp/mechanisms/leaves/leaves.cc`` and from the budget shares; tests compare them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import BOUNDS, MISSING, NO_DATA, PURE, Preset, System


def leaf_sensitivity(min_child_weight: float, penalty: float = 0.1) -> float:
    """Return the sensitivity of a leaf value to one row (equation 7 of the paper).

    A leaf value is a sum of gradients bounded by 1, divided by max(n, N) + lambda, for n rows and
    N = max(min_child_weight, 1). Its sensitivity is (2 N + lambda) / ((N + lambda) (N + lambda +
    1)). Proof: docs/proofs/leaves.md, "Leaf values".

    Args:
        min_child_weight: Minimum number of rows in the denominator, >= 0. Public.
        penalty: XGBoost's ``lambda``, in rows, >= 0. Public.

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
    """Pure epsilon of the mechanisms in one tree, without amplification by row sampling.

    Attributes:
        tree: Epsilon of the whole tree.
        histogram: Epsilon of the candidates of one column.
        split: Epsilon of the splits of one level.
        leaves: Epsilon of the leaves.

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
        """Return the Laplace noise scale of a leaf value, in units of :func:`leaf_sensitivity`.

        Examples:
            >>> from xgb_dp.published import sarus
            >>> round(sarus.tree_budget(1.0, trees=20, columns=80).leaf_noise(50), 3)
            0.283
        """
        return leaf_sensitivity(min_child_weight, penalty) / self.leaves


def tree_budget(
    epsilon: float, trees: int, columns: int, depth: int = 6, subsample: float = 0.1
) -> TreeBudget:
    """Divide epsilon as in the paper: equally among trees, and in each among three mechanisms.

    A tree with epsilon e reads each row with probability q = subsample, so its amplified cost is
    log(1 + q (exp(e) - 1)) (section 4.4). Proof: docs/proofs/sampling.md.

    Args:
        epsilon: Epsilon of the whole training, > 0.
        trees: Number of trees.
        columns: Number of columns; each has a noisy histogram.
        depth: Number of levels of a tree.
        subsample: Probability that a tree reads a row, in (0, 1].

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
    "candidates from a weight histogram on an even grid with Laplace noise, for each feature and "
    "tree (section 4.1)",
    "splits by the exponential mechanism over the published gain S^2 / (n + lambda) of all "
    "candidates (section 4.2)",
    "rows with |g| > 1 are left out of a tree (gradient filtering)",
    "pure epsilon-differential privacy, with a third each for candidates, splits and leaves; "
    "Poisson row sampling with rate 0.1, with amplification for each tree (section 4.4)",
)
_SARUS_DIFFERS = (
    "the range of the gain is 4 instead of 6 (twice the published sensitivity 3): its change lies "
    "in (-3, 1], so the splits are less noisy at the same epsilon",
    "gains and leaves use row counts instead of sums of Hessians: the published bound on the gain "
    "fails if Hessians vary, as in logistic loss",
    "the noisy histogram is divided into bins of equal mass directly; XGBoost's sketch would add "
    "an approximation error",
    "row sampling is secret and never seeded; each row is drawn independently",
    MISSING,
    NO_DATA,
)

_PRESETS = (
    Preset(
        "sarus", "DP-XGBoost", "Grislain and Gonzalvez (2021), sections 4 and 5", _SARUS,
        (*_SARUS_FOLLOWS, "Laplace noise on leaf values, whose sensitivity decreases with "
         "min_child_weight (equation 7)"),
        (*_SARUS_DIFFERS, "min_child_weight N is a lower bound in the denominator max(n, N) + "
         "lambda, with sensitivity (2 N + lambda) / ((N + lambda)(N + 1 + lambda)): a test n >= N "
         "on exact counts would distinguish neighbours"),
        (BOUNDS,),
    ),
    Preset(
        "sarus_average", "DP-XGBoost, noisy average", "Grislain and Gonzalvez (2021), algorithm 1",
        {**_SARUS, "dp_leaf_noise": "laplace", "dp_hessian_weight": 1.0, "max_delta_step": 1.0},
        (*_SARUS_FOLLOWS, "a leaf value is a noisy sum divided by a count, clipped to 1"),
        (*_SARUS_DIFFERS, "the count is noisy too: with the exact count, as published, one row "
         "changes the density of a leaf value by a factor (n + 1) / n, and no epsilon holds"),
        (BOUNDS,),
    ),
)  # fmt: skip

SYSTEM = System(
    "DP-XGBoost by Sarus",
    "Parameters set by the presets [`sarus`](presets.md#sarus) and "
    "[`sarus_average`](presets.md#sarus_average): candidates from noisy histograms, leaf noise "
    "that decreases with `min_child_weight`, and rounds that read a sample of the rows.",
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
