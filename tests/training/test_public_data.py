"""Public rows that give candidates, or whole trees, to a private training."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.base import clone

import xgb_dp
from tests.stated import describe_plan
from xgb_dp.errors import PrivacyError, PrivacyParameterError, PrivacyRefusal
from xgb_dp.request.sizes import PUBLIC_ROUNDS
from xgb_dp.testing import fixed_noise

from ..conftest import arrays
from ..models import events, training, trees

KINDS = ["binary", "regression", "multiclass"]


def public(kind: str = "binary", n: int = 200) -> xgb.DMatrix:
    X, y = arrays(kind, 600)
    return xgb.DMatrix(X[300 : 300 + n], y[300 : 300 + n])


def releases(model: xgb.Booster) -> set[str]:
    return {event["release"] for event in events(model)}


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_cost_nothing(params, matrix, kind):
    model = xgb.train(params(kind, dp_public_data=public(kind)), matrix(kind), 3)
    report = xgb_dp.privacy_report(model)
    assert 0.99 < report.epsilon <= 1.0
    assert "candidates" not in releases(model)
    assert "public rows that candidates or trees come from" in report.statement()
    X = public(kind).get_data().tocsc()
    for tree in trees(model):
        for f, cut, left in zip(
            tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True
        ):
            # A split that parts missing values only has no threshold.
            column = X.data[X.indptr[f] : X.indptr[f + 1]]
            assert left == -1 or not np.isfinite(cut) or cut > column.max() or cut in column


def test_what_is_declared_stays(params, matrix):
    said = params(dp_public_data=public(), dp_feature_cuts={1: [0.25]})
    with fixed_noise(3):
        model = xgb.train(said, matrix(), 10)
    cuts = {
        float(cut)
        for tree in trees(model)
        for f, cut, left in zip(
            tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True
        )
        if left != -1 and f == 1 and cut < 100
    }
    assert cuts <= {0.25}


@pytest.mark.parametrize("kind", KINDS)
def test_public_trees_keep_their_structure(params, matrix, kind):
    """The splits are those of stock trees on the public rows; the leaves are private sums."""
    said = params(kind, dp_public_data=public(kind), dp_split="public", max_depth=3)
    model = xgb.train(said, matrix(kind), 4)
    report = xgb_dp.privacy_report(model)
    assert 0.99 < report.epsilon <= 1.0
    assert releases(model) - {"range", "correction"} == {"intercept", "leaves"}
    plain = {k: v for k, v in said.items() if not k.startswith("dp_") and k != "tree_method"}
    stock = xgb.train(
        plain | {"eta": 0.5, "min_child_weight": 1.0, "tree_method": "hist", "seed": 0},
        public(kind), 4,
    )  # fmt: skip
    grown, expected = trees(model), trees(stock)
    assert len(grown) == len(expected) == (12 if kind == "multiclass" else 4)
    assert max(len(tree["left_children"]) for tree in grown) > 3
    for one, other in zip(grown, expected, strict=True):
        assert shape(one) == shape(other)


def shape(tree: dict[str, Any], node: int = 0) -> Any:
    """Splits of a tree in preorder."""
    left, right = tree["left_children"][node], tree["right_children"][node]
    if left == -1:
        return "leaf"
    where = (tree["split_indices"][node], tree["split_conditions"][node])
    if node in tree["categories_nodes"]:
        at = tree["categories_nodes"].index(node)
        begin = tree["categories_segments"][at]
        where = (where[0], *tree["categories"][begin : begin + tree["categories_sizes"][at]])
    return (*where, bool(tree["default_left"][node]), shape(tree, left), shape(tree, right))


def test_categories_are_split_as_on_the_public_rows(params):
    rng = np.random.default_rng(4)
    cells = rng.integers(0, 4, (2, 400))
    names = list("abcd")
    tables = [pd.DataFrame({"c": pd.Categorical.from_codes(c, names), "x": c * 0.0}) for c in cells]
    ys = [(c == 2).astype(int) for c in cells]
    said = params(
        dp_categories={"c": names}, dp_split="public",
        dp_public_data=xgb.DMatrix(tables[0], ys[0], enable_categorical=True),
    )  # fmt: skip
    d = xgb.DMatrix(tables[1], ys[1], enable_categorical=True)
    model = xgb.train(said, d, 3)
    assert shape(trees(model)[0])[:2] == (0, 2)  # category c against the others
    p = model.predict(d)
    assert p[cells[1] == 2].min() > p[cells[1] != 2].max()
    pair = xgb.train(said | {"dp_public_data": (tables[0], ys[0])}, d, 3)
    assert [shape(t) for t in trees(pair)] == [shape(t) for t in trees(model)]
    few = said | {"dp_categories": {"c": 3}}
    narrow = xgb.DMatrix(
        np.c_[cells[1] % 3, cells[1]], ys[1], feature_types=["c", "q"], feature_names=["c", "x"],
        enable_categorical=True,
    )  # fmt: skip
    wide = xgb.DMatrix(
        np.c_[cells[0], cells[0]], ys[0], feature_types=["c", "q"], feature_names=["c", "x"],
        enable_categorical=True,
    )  # fmt: skip
    refused(few | {"dp_public_data": wide}, narrow, "does not declare")
    other = tables[0].assign(c=tables[0]["c"].cat.reorder_categories(list("dcba")))
    refused(said | {"dp_public_data": xgb.DMatrix(other, ys[0], enable_categorical=True)}, d,
            "other names of categories")  # fmt: skip


def test_a_leaf_of_a_public_tree_holds_its_rows(params, matrix):
    """Without noise the leaves are Newton steps of the private rows in them."""
    said = params(
        dp_epsilon=float("inf"), dp_public_data=public(), dp_split="public", max_depth=2, eta=1.0,
        dp_shrinkage=False, max_delta_step=0, base_score=0.5, dp_gradient_bound=100,
        dp_hessian_weight=0.25, **{"lambda": 1.0},
    )  # fmt: skip
    model = xgb.train(said, matrix(), 1)
    y = arrays()[1]
    leaf = model.predict(matrix(), pred_leaf=True)
    margin = model.predict(matrix(), output_margin=True)
    for name in np.unique(leaf):
        rows = leaf == name
        expected = np.sum(y[rows] - 0.5) / (0.25 * rows.sum() + 1.0)
        np.testing.assert_allclose(margin[rows], expected, rtol=1e-3)


def test_a_tree_without_splits(params, matrix):
    """Public rows of one class say nothing; the trees are leaves, and training goes on."""
    X, _ = arrays()
    nothing = xgb.DMatrix(X, np.arange(300) % 2)
    said = params(dp_public_data=nothing, dp_split="public", base_score=0.5)
    model = xgb.train(said, xgb.DMatrix(X, np.ones(300)), 3)
    assert model.predict(xgb.DMatrix(X)).mean() > 0.6
    alone = xgb.DMatrix(X[:3], [0, 1, 0])  # too few rows for any split
    model = xgb.train(said | {"dp_public_data": alone}, xgb.DMatrix(X, np.ones(300)), 3)
    assert {len(tree["left_children"]) for tree in trees(model)} == {1}
    assert model.predict(xgb.DMatrix(X)).mean() > 0.6


def test_public_trees_of_persons(params, matrix):
    ids = np.arange(300) // 3
    said = params(dp_privacy_id=ids, dp_public_data=public(), dp_split="public")
    report = xgb_dp.privacy_report(xgb.train(said, matrix(), 3))
    assert report.unit.of_persons
    assert report.epsilon <= 1.0


def test_open_rounds(params, matrix):
    said = params(dp_public_data=public(), max_depth=None)
    model = xgb.train(said, matrix())
    assert "plan_choice" in training(model)["public"]
    assert xgb.train(said | {"dp_split": "public"}, matrix()).num_boosted_rounds() == PUBLIC_ROUNDS


def refused(
    params: dict[str, Any], d: xgb.DMatrix, match: str,
    kind: type[PrivacyError] = PrivacyParameterError,
) -> None:  # fmt: skip
    with pytest.raises(kind, match=match):
        xgb.train(params, d, 2)


def test_what_is_no_public_sample(params, matrix):
    d = matrix()
    X, y = arrays()
    for value, match, kind in (
        (d, "training data", PrivacyRefusal),
        (xgb.QuantileDMatrix(X, y), "QuantileDMatrix", PrivacyRefusal),
        (xgb.DMatrix(X), "labels for each", PrivacyParameterError),
        (xgb.DMatrix(X[:, :3], y), "other columns", PrivacyParameterError),
        (xgb.DMatrix(X[:0], y[:0]), "no rows", PrivacyParameterError),
        (X, "pair", PrivacyParameterError),
        ("x", "pair", PrivacyParameterError),
    ):
        refused(params(dp_public_data=value), d, match, kind)
    grown = params(dp_split="public", dp_public_data=public())
    refused(params(dp_split="public"), d, "public rows")
    refused(grown | {"num_parallel_tree": 2}, d, "num_parallel_tree")
    refused(grown | {"colsample_bytree": 0.5}, d, "colsample_bytree")
    refused(grown | {"dp_tree_shape": "oblivious"}, d, "dp_tree_shape")
    refused(grown | {"dp_feature_cuts": {0: [1.0]}}, d, "dp_feature_cuts")
    refused(grown | {"dp_feature_bounds": {0: (0, 1)}}, d, "dp_feature_bounds")


@pytest.mark.parametrize(
    "structure",
    [[], [0], [0, 0], [0, 0, -1], [0, 0, -1, -1, -1], [-1, -1], [9, 0, -1, -1], [0, -1, -1, -1],
     [-2], [0, 0, 0, 0, 0, 0, -1, -1, -1, -1], ["a"], -1],
)  # fmt: skip
def test_the_cpp_refuses_damaged_structures(structure):
    plan = json.loads(_plan([[-1]]))
    assert describe_plan(json.dumps(plan))["events"]
    with pytest.raises(xgb.core.XGBoostError, match="dp_plan"):
        describe_plan(_plan([structure]))
    with pytest.raises(xgb.core.XGBoostError, match="one public tree for each"):
        describe_plan(_plan([[-1], [-1]]))


def _plan(structures: Any) -> str:
    from xgb_dp.request.schema import Schema
    from xgb_dp.training.plan import build_plan, dump_plan
    from xgb_dp.training.prepare import prepare

    schema = Schema(["0", "1"], named=False, categorical=frozenset(), dictionaries={})
    said = {
        "tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
        "dp_delta": 1e-6, "dp_split": "public", "dp_public_data": True, "max_depth": 2,
        "dp_feature_cuts": {0: [0.0], 1: [0.0]},
    }  # fmt: skip
    prepared = prepare(said, schema, 1)
    return dump_plan(build_plan(prepared.settings, prepared.noise, structures=structures))


def test_estimators_take_pairs():
    X, y = arrays("binary", 600)
    model = xgb_dp.DPXGBClassifier(
        epsilon=1.0, delta=1e-6, classes=2, n_estimators=4, dp_public_data=(X[300:], y[300:]),
        dp_split="public",
    )  # fmt: skip
    fitted = clone(model).fit(X[:300], y[:300])
    assert releases(fitted.get_booster()) == {"intercept", "leaves"}
    assert training(fitted)["public"]["public_data"] is True
