"""No two neighbours differ in whether training raises."""

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import private
from tests.reference.comparison import LOGISTIC, SOFTMAX, SQUARED

from .strategies import CLASSES, FEWER, HEAVY, rows


def public_params(objective: str, kinds: list[str], score: str, weighted: bool) -> dict[str, Any]:
    params: dict[str, Any] = private(
        objective=objective, max_depth=2, nthread=1, verbosity=0, dp_score=score
    )
    categorical = {j: 3 for j, kind in enumerate(kinds) if kind == "categorical"}
    if categorical:
        params["dp_categories"] = categorical
    if objective == SQUARED:
        params["dp_target_bounds"] = (-4.0, 4.0)
    if objective == SOFTMAX:
        params["num_class"] = CLASSES
    if weighted:
        params["dp_max_weight"] = 2.0
    return params


@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED, SOFTMAX])
@FEWER
@given(data=st.data())
def test_no_neighbours_differ_in_whether_training_raises(objective, data):
    """Every data set of valid rows trains, so no two differ."""
    kinds = data.draw(st.lists(st.sampled_from(("private", "categorical")), min_size=1, max_size=4))
    drawn = data.draw(rows(objective, kinds, HEAVY))
    weighted = data.draw(st.booleans())
    params = public_params(objective, kinds, data.draw(st.sampled_from(("l1", "newton"))), weighted)
    types = ["c" if kind == "categorical" else "q" for kind in kinds]
    X: Any = drawn.X
    if data.draw(st.booleans()):
        X = sp.csr_matrix(np.nan_to_num(X, nan=0.0, posinf=0.0))  # zeros become missing
    for n in (len(drawn.y), len(drawn.y) - 1):
        d = xgb.DMatrix(
            X[:n],
            drawn.y[:n],
            weight=drawn.weight[:n] if weighted else None,
            feature_types=types,
            enable_categorical=True,
        )
        assert xgb.train(params, d, 2).num_boosted_rounds() == 2


def outcome(params: dict[str, Any], d: xgb.DMatrix) -> tuple[str, Any]:
    """What an observer of a training sees, up to noise: the error, or the public part."""
    try:
        ledger = json.loads(xgb.train(params, d, 1).attr("dp_ledger"))
    except ValueError as error:
        return "raised", str(error).split("Stack trace")[0][11:]
    return "trained", ledger["trainings"][0]["public"]


@pytest.mark.parametrize("declared", [{"dp_max_weight": 2.0}, {}, {"dp_score": "gain"}], ids=str)
def test_no_rows_with_weights_and_one_row_with_a_weight(declared):
    params = public_params(SQUARED, ["private"], "l1", False) | declared
    matrices = [xgb.DMatrix(np.zeros((n, 1)), np.zeros(n), weight=np.ones(n)) for n in (0, 1)]
    assert outcome(params, matrices[0]) == outcome(params, matrices[1])


def test_query_groups_do_not_decide_whether_training_raises():
    """Weights of a grouped matrix belong to groups: both matrices must be refused."""
    params = public_params(LOGISTIC, ["private"], "l1", True)
    X, y = np.zeros((3, 1)), np.zeros(3)
    one = xgb.DMatrix(X, y, qid=[0, 1, 1], weight=[1.0, 1.0])
    other = xgb.DMatrix(X[:2], y[:2], qid=[0, 1], weight=[1.0, 1.0])
    assert outcome(params, one)[0] == outcome(params, other)[0]
