"""Statistics in a saved model are functions of its noisy leaves; names are the declared ones."""

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from xgb_dp.testing import fixed_noise

from ..models import trees
from .scan import COMMON, DATA, KINDS, OBJECTIVE, N, matrix


@pytest.mark.parametrize("kind", KINDS)
def test_inner_statistics_follow_from_the_leaves(kind):
    """Cover and gain of inner nodes hold nothing that the noisy leaves do not.

    Real noise. ``reference/against_cpp`` compares base weights and the covers of leaves.
    """
    params = COMMON | OBJECTIVE[kind] | {"max_depth": 3}
    if kind == "regression":  # which shifts all weights of the last tree
        params["dp_mean_correction"] = False
    scales = {"regression": [40.0], "targets": [40.0, 4.0, 100.0]}.get(kind, [1.0])
    for i, tree in enumerate(trees(xgb.train(params, matrix(kind), 2))):
        w = np.array(tree["base_weights"], np.float64) / scales[i % len(scales)]
        h = np.array(tree["sum_hessian"], np.float64)
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        for node in reversed(range(len(w))):
            if left[node] == -1:
                assert tree["loss_changes"][node] == 0
                continue
            at = [left[node], right[node]]
            assert np.float32(h[node]) == np.float32(h[at[0]]) + np.float32(h[at[1]])
            w[node] = np.average(w[at], weights=h[at])
            gain = (h[at] * (w[at] - w[node]) ** 2).sum()
            assert tree["loss_changes"][node] == pytest.approx(gain, rel=1e-3, abs=1e-6)


def test_importance_and_dumps_read_only_the_statistics(private_models):
    model = private_models["binary"][0]
    saved = trees(model)
    for kind, field in (("total_gain", "loss_changes"), ("total_cover", "sum_hessian")):
        expected: dict[str, float] = {}
        for tree in saved:
            for node, left in enumerate(tree["left_children"]):
                if left != -1:
                    f = f"f{tree['split_indices'][node]}"
                    expected[f] = expected.get(f, 0.0) + tree[field][node]
        assert model.get_score(importance_type=kind) == pytest.approx(expected, rel=1e-5)
    frame = model.trees_to_dataframe()
    assert frame["Cover"].tolist() == pytest.approx(
        [v for tree in saved for v in tree["sum_hessian"]], rel=1e-5
    )


def test_a_model_has_no_attribute_but_the_ledger(private_models):
    """No best iteration, no best score, no metric."""
    for model, _ in private_models.values():
        assert set(model.attributes()) == {"dp_ledger"}


@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_categorical_splits_are_one_category_and_names_are_the_declared_ones():
    """No split sorts categories by exact sums, and absent categories are kept by name too.

    One category against the others where a selection fills one level; random sets, which the rows
    do not touch, where it fills several.
    """
    X, _ = DATA["binary"]
    names = ["alice", "bob", "carol", "never seen", "dave"]
    codes = np.arange(N) % 3
    frame = pd.DataFrame({"c": pd.Categorical.from_codes(codes, categories=names), "x": X[:, 0]})
    d = xgb.DMatrix(frame, codes == 1, enable_categorical=True)
    params = COMMON | OBJECTIVE["binary"] | {"dp_categories": {"c": names}, "dp_epsilon": 20.0}
    for levels in (1, 2):
        with fixed_noise(3):
            model = xgb.train(params | {"dp_split_levels": levels, "max_depth": 3}, d, 20)
        sizes = [size for tree in trees(model) for size in tree["categories_sizes"]]
        assert sizes and (set(sizes) == {1}) == (levels == 1)
        assert model.get_categories(export_to_arrow=True).to_arrow()[0][1].to_pylist() == names
