"""Public rows that give candidates to a private training."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.base import clone

import xgb_dp
from xgb_dp.errors import PrivacyError, PrivacyParameterError, PrivacyRefusal
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
    assert "public rows used for split candidates" in report.statement()
    X = public(kind).get_data().tocsc()
    for tree in trees(model):
        for f, cut, left in zip(
            tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True
        ):
            # A split that parts missing values only has no threshold.
            column = X.data[X.indptr[f] : X.indptr[f + 1]]
            assert left == -1 or not np.isfinite(cut) or cut > column.max() or cut in column


def test_what_is_declared_stays(params, matrix):
    config = params(dp_public_data=public(), dp_feature_cuts={1: [0.25]})
    with fixed_noise(3):
        model = xgb.train(config, matrix(), 10)
    cuts = {
        float(cut)
        for tree in trees(model)
        for f, cut, left in zip(
            tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True
        )
        if left != -1 and f == 1 and cut < 100
    }
    assert cuts <= {0.25}


def test_open_rounds(params, matrix):
    config = params(dp_public_data=public(), max_depth=None)
    model = xgb.train(config, matrix())
    assert "plan_choice" in training(model)["public"]


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
        (xgb.DMatrix(X[:, :3], y), "different columns", PrivacyParameterError),
        (xgb.DMatrix(X[:0], y[:0]), "no rows", PrivacyParameterError),
        (X, "pair", PrivacyParameterError),
        ("x", "pair", PrivacyParameterError),
    ):
        refused(params(dp_public_data=value), d, match, kind)


def test_categories_have_the_same_names(params):
    codes = np.arange(300) % 4
    tables = [
        pd.DataFrame({"c": pd.Categorical.from_codes(codes, list(n))}) for n in ("abcd", "dcba")
    ]
    d, other = (xgb.DMatrix(t, codes == 2, enable_categorical=True) for t in tables)
    config = params(dp_categories={"c": list("abcd")}, dp_public_data=other)
    refused(config, d, "different category names")


def test_estimators_take_pairs():
    X, y = arrays("binary", 600)
    model = xgb_dp.DPXGBClassifier(
        epsilon=1.0, delta=1e-6, classes=2, n_estimators=4, dp_public_data=(X[300:], y[300:])
    )
    fitted = clone(model).fit(X[:300], y[:300])
    assert "candidates" not in releases(fitted.get_booster())
    assert training(fitted)["public"]["public_data"] is True
