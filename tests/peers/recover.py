"""What a model's statistics say about the noise in it, for somebody who has the training rows."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xgboost as xgb

from tests.models import starts, trees
from tests.reference import objective as objectives
from tests.reference.trainer import RowBound
from tests.training.plans import plan_of

Floats = npt.NDArray[np.float64]
# Leaves say their sums plainly: no shrinkage and no clip; nothing but trees is released, and each
# split is chosen among all cuts.
PLAIN: dict[str, Any] = {
    "tree_method": "dp_hist",
    "dp_epsilon": 20.0,
    "dp_delta": 1e-6,
    "dp_shrinkage": False,
    "dp_split_levels": 1,
    "max_delta_step": 0,
    "lambda": 1.0,
    "max_depth": 2,
    "nthread": 1,
    "verbosity": 0,
    "dp_feature_bounds": dict.fromkeys(range(3), (-2.0, 2.0, "even")),
}
KINDS: dict[str, dict[str, Any]] = {
    "binary": PLAIN | {"objective": "binary:logistic", "base_score": 0.5},
    "regression": PLAIN
    | {"objective": "reg:squarederror", "dp_target_bounds": (-1.0, 1.0), "base_score": 0.0},
}


def make_rows(kind: str, n: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Three columns, and labels that follow the first two."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    signal = X[:, 0] - X[:, 1] + rng.normal(size=n)
    return X, ((signal > 0) if kind == "binary" else np.tanh(signal)).astype(np.float32)


def structure(model: xgb.Booster) -> list[tuple[Any, ...]]:
    """Features, thresholds, directions and shape of all trees, without any leaf value."""
    out: list[tuple[Any, ...]] = []
    for tree in trees(model):
        fields = ("split_indices", "split_conditions", "default_left")
        nodes = zip(*(tree[f] for f in fields), strict=True)
        out += [
            node if left != -1 else ("leaf",)
            for node, left in zip(nodes, tree["left_children"], strict=True)
        ]
    return out


class Leaf(NamedTuple):
    """One leaf in grid units: exact and released sums of gradients and Hessians."""

    tree: int
    exact: Floats
    released: Floats
    rows: int

    @property
    def noise(self) -> Floats:
        return self.released - self.exact


def leaves(model: xgb.Booster, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> list[Leaf]:
    """All leaves of a model of PLAIN parameters; the exact sums are those of the oracle.

    Covers estimate the Hessians of leaves. Gradients are exact where these do not matter: where
    there are many rows, or `min_child_weight` or `lambda` is larger.
    """
    plan = plan_of(model)
    least, lam = (float(plan["leaf"][name]) for name in ("min_child_weight", "lambda"))
    bound = RowBound.of(plan)
    regression = plan["objective"] == "reg:squarederror"
    at = model.predict(xgb.DMatrix(X), pred_leaf=True).reshape(len(X), -1).astype(int)
    margin = objectives.initial_margin(plan["objective"], starts(model)[0], len(X), 1)
    units = np.array([bound.g_unit, bound.h_unit])
    out = []
    for t, tree in enumerate(trees(model)):
        g, h = objectives.gradients(plan["objective"], margin, y, np.ones_like(y))
        pairs = bound.quantise(g[:, 0].astype(float), h[:, 0].astype(float), y.astype(float),
                               regression)[:, :2]  # fmt: skip
        for node, left in enumerate(tree["left_children"]):
            if left != -1:
                continue
            inside = at[:, t] == node
            H = tree["sum_hessian"][node]
            G = -tree["base_weights"][node] / bound.scale * (max(H, least) + lam)
            exact = pairs[inside].sum(axis=0).astype(float)
            out.append(Leaf(t, exact, np.array([G, H]) / units, int(inside.sum())))
        value = np.array(tree["split_conditions"], np.float32)
        margin[:, 0] += value[at[:, t]]
    return out
