"""Bad input: a clear error before noise is drawn, and never one that two rows decide together."""

import re

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from scipy import sparse

import xgb_dp
from xgb_dp.data.row_checks import check_weights
from xgb_dp.engine import native
from xgb_dp.errors import (
    BudgetError,
    PrivacyError,
    PrivacyParameterError,
    PrivacyRefusal,
    RowDomainError,
)

from ..conftest import arrays


@pytest.fixture
def no_noise(monkeypatch):
    def fail(*args):
        pytest.fail("noise was drawn before the error")

    monkeypatch.setattr(native, "release_before_trees", fail)


OUTPUT = {"dp_leaf": "gradient", "dp_leaf_noise": "output", "dp_gradient_bound": 10}
GAIN = {"dp_score": "gain", "dp_leaf": "gradient"}
BOTH = {"dp_feature_bounds": {0: (0, 1)}, "dp_feature_cuts": {0: [1]}}
NAN = float("nan")
# Of each of these parameters, values that are refused by its name.
WRONG: dict[str, list[object]] = {
    "dp_epsilon": [None, 0, -1.0, NAN, "much", True],
    "dp_delta": [None, 0.0, 1.0, -1e-6, NAN],
    "dp_group_size": [0, 1.5, "all", True, 1 << 21],
    "dp_no_such_thing": [1.0],
    "objective": [None],
    "subsample": [0, 1.5],
    "dp_accountant": ["hope"],
    "num_parallel_tree": [0],
    "colsample_bytree": [0],
    "dp_features_per_tree": [5],
    "dp_split": ["best"],
    "dp_feature_order": ["sorted"],
    "monotone_constraints": ["(1,0,0,0,1)", "1;0", [2], {"income": 1}],
    "interaction_constraints": [[[0, 4]], [0, 1]],
    "alpha": [-1.0],
    "max_depth": [0, 2.5],
    "max_bin": [1],
    "eta": [0],
    "lambda": [-1],
    "base_score": [1.0],
    "scale_pos_weight": [float("inf")],
    "dp_gradient_bound": [0],
    "dp_score": ["exact"],
    "dp_classes": [["no", "yes"]],
    "dp_public_num_rows": [-5],
    "dp_feature_bounds": [{"income": (0, 1)}, {0: (1, 0)}, {0: ()}, {0: (1.0,)}, {0: (NAN, 1.0)},
                          {9: (0.0, 1.0)}],
    "dp_feature_cuts": [{0: [NAN]}],
    "dp_categories": [{0: 3}],
    "dp_budget_shares": [{"leaves": 2}],
    "dp_candidate_levels": [40],
}  # fmt: skip
PARAMETERS = [
    *(({name: value}, PrivacyParameterError, name) for name in WRONG for value in WRONG[name]),
    ({"dp_preset": "sarrus"}, PrivacyParameterError, "dp_tr"),
    ({"dp_epsilson": 1.0}, PrivacyParameterError, "dp_epsilon"),
    ({"max_dept": 3}, PrivacyParameterError, "max_depth"),
    ({"objective": "reg:absoluteerror"}, PrivacyParameterError, "dp_target_bounds"),
    ({"objective": "reg:squarederror"}, PrivacyParameterError, "dp_target_bounds"),
    ({"objective": "multi:softprob"}, PrivacyParameterError, "num_class"),
    *(({"tree_method": m}, PrivacyRefusal, "tree_method") for m in ("hist", None, "dp_exact")),
    ({"updater": "grow_quantile_histmaker"}, PrivacyRefusal, "updater"),
    *(({name: 0.1}, PrivacyError, name)
      for name in ("dp_sigma", "dp_noise_multiplier", "sigma", "noise_multiplier")),
    (BOTH, PrivacyParameterError, "dp_feature_cuts"),
    (OUTPUT | {"dp_hessian_weight": 1e-12}, PrivacyParameterError, "dp_hessian_weight"),
    (GAIN | {"dp_hessian_weight": 1e-12}, PrivacyParameterError, "dp_hessian_weight"),
]  # fmt: skip


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("change", "error", "named"), PARAMETERS, ids=[str(sorted(c.items())) for c, _, _ in PARAMETERS]
)
def test_bad_parameters(params, matrix, change, error, named):
    with pytest.raises(error, match=named):
        xgb.train(params(**change), matrix(), 2)


def test_all_errors_are_value_errors():
    assert issubclass(PrivacyError, ValueError)


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (0, float("inf")), (float("nan"), 1), 5, "ab"])
def test_bad_target_bounds(params, matrix, bounds):
    with pytest.raises(PrivacyParameterError, match="dp_target_bounds"):
        xgb.train(params("regression", dp_target_bounds=bounds), matrix("regression"), 2)


@pytest.mark.usefixtures("no_noise")
def test_call_site(params, matrix):
    d = matrix()
    cases = [
        ({"early_stopping_rounds": 2}, {"dp_public_evals": True}, "early_stopping_rounds"),
        ({"callbacks": [xgb.callback.EarlyStopping(rounds=2)]}, {}, "early_stopping_rounds"),
        ({"callbacks": [xgb.callback.LearningRateScheduler([0.1, 0.1])]}, {}, "eta"),
        ({"obj": lambda p, m: (p, p)}, {}, "obj"),
    ]
    for kwargs, change, named in cases:
        with pytest.raises(PrivacyRefusal, match=named):
            xgb.train(params(**change), d, 2, **kwargs)
    for rounds, named in ((0, "num_boost_round"), (2.0, "integer")):
        with pytest.raises(PrivacyParameterError, match=named):
            xgb.train(params(), d, rounds)
    with pytest.raises(PrivacyParameterError, match="dp_foo"):
        xgb.train({**params(), "dp_foo": None}, d, 2)
    for given in (params(), {"tree_method": "hist", "dp_epsilon": 1.0}):
        with pytest.raises(PrivacyRefusal, match="cv"):
            xgb.cv(given, d, 2)


@pytest.mark.usefixtures("no_noise")
def test_matrix(params):
    X, y = arrays()
    plain = xgb.DMatrix(X, y)
    margins = xgb.DMatrix(X, y, base_margin=np.where(y == 1, np.nan, 0))
    weighted = xgb.DMatrix(*arrays("regression"), weight=np.full(len(y), 1.5))
    targets = xgb.DMatrix(X, np.stack([y, y], axis=1))
    for given, d, error, named in (
        (params(), xgb.QuantileDMatrix(X, y), PrivacyRefusal, "QuantileDMatrix"),
        (params(dp_base_margin=True), margins, RowDomainError, "base_margin"),
        (params(dp_base_margin=True), plain, RowDomainError, "has no `base_margin`"),
        (params(), margins, RowDomainError, "dp_base_margin=True"),
        (params(), xgb.DMatrix(X), PrivacyParameterError, "label"),
        (params("multiclass"), targets, PrivacyRefusal, "Several targets"),
        (params("regression"), weighted, RowDomainError, "dp_max_weight"),
    ):
        with pytest.raises(error, match=named):
            xgb.train(given, d, 2)


@pytest.mark.usefixtures("no_noise")
def test_matrices_read_from_files_are_refused(params, tmp_path):
    """One row with an entry in a further column would add that column to the model."""
    text = tmp_path / "rows.libsvm"
    for rows in ("0 0:1\n1 1:2\n", "0 0:1\n1 1:2\n1 7:1\n"):
        text.write_text(rows)
        d = xgb.DMatrix(f"{text}?format=libsvm")
        d.save_binary(tmp_path / "rows.buffer")
        for matrix in (d, d.slice([0]), d.slice([0, 1]).slice([1])):
            with pytest.raises(PrivacyRefusal, match="n_features"):
                xgb.train(params(), matrix, 2)
        with pytest.raises(PrivacyRefusal, match="n_features"):
            xgb.train(params(), xgb.DMatrix(tmp_path / "rows.buffer"), 2)
        with pytest.raises(PrivacyRefusal, match="n_features"):
            xgb_dp.select(params(), d, [{"max_depth": 1}, {}], epsilon=1.0, delta=1e-6)
    X, y = arrays()
    plain = xgb.DMatrix(X, y)
    assert plain.slice([0, 1])._dp_doubt == ""
    with pytest.raises(PrivacyRefusal, match="A set in `evals` was read from a file"):
        xgb.train(params(dp_public_evals=True), plain, 2, evals=[(d, "public")])


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("metrics", ["acu", ["logloss", "acu"], 3])
def test_unknown_metrics(params, matrix, metrics):
    """Told with its name and no stack, with public sets and without."""
    expected = re.escape(repr("3" if metrics == 3 else "acu"))
    for evals in ([], [(matrix(), "public")]):
        with pytest.raises(
            PrivacyParameterError, match=f"`eval_metric` contains {expected}, "
        ) as caught:
            xgb.train(params(eval_metric=metrics, dp_public_evals=True), matrix(), 2, evals=evals)
        assert "Stack trace" not in str(caught.value)


@pytest.mark.usefixtures("no_noise")
def test_categories_must_be_declared(params):
    X, y = arrays()
    frame = pd.DataFrame({"x": X[:, 0], "c": pd.Categorical(["u", "v"] * 150)})
    d = xgb.DMatrix(frame, y, enable_categorical=True)
    lists = (2, ["u", "w"], ["u", "v", "w"], ["u", "u"], ["u", "v\ud800"])
    for declared in ({}, *({"c": names} for names in lists), {"c": ["u", "v"], "x": 3}):
        with pytest.raises(PrivacyParameterError, match="dp_categories"):
            xgb.train(params(dp_categories=declared), d, 2)


# --------------------------------------------------------------------- one row alone
@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("label", [77.125, -1, 0.5, 2])
def test_undeclared_label(params, label):
    X, y = arrays()
    y[123] = label
    with pytest.raises(RowDomainError) as error:
        xgb.train(params(), xgb.DMatrix(X, y), 2)
    assert "77" not in str(error.value)
    assert "123" not in str(error.value)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weight_that_is_no_weight(weight):
    """XGBoost refuses most of them when the matrix is made: this is the check of our own."""
    weights = np.array([1.0, weight, 0.0], np.float32)
    with pytest.raises(RowDomainError, match="negative, missing or infinite weight"):
        check_weights(weights, 3, "binary", unit="", declared=True)
    check_weights(weights[[0, 2]], 2, "binary", unit="", declared=True)


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("label", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_label_that_is_no_number(params, kind, label):
    X, y = arrays(kind)
    y[123] = label
    with pytest.raises(ValueError, match=r"(?i)label") as error:
        xgb.train(params(kind), xgb.DMatrix(X, y), 2)
    # The addresses of XGBoost's stack trace may hold any digits.
    assert not re.search(r"\b123\b", str(error.value).split("Stack trace")[0])


@pytest.mark.parametrize("field", ["label", "weight"])
@pytest.mark.parametrize(
    "bad", [["yes"], np.array(["yes"]), np.array(["2024"], "M8[D]"), [-np.inf]]
)
def test_labels_of_matrices_are_explained(field, bad):
    """Without a list of addresses in C++."""
    with pytest.raises(ValueError, match=f"(?i){field[:5]}") as error:
        xgb.DMatrix([[0.0]], **{field: bad})
    assert "[bt]" not in str(error.value)


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("code", [5, 2.5])
def test_undeclared_category(params, code):
    X, y = arrays()
    X[:, 3] = np.arange(len(y)) % 3
    X[123, 3] = code
    d = xgb.DMatrix(X, y, feature_types=["q", "q", "q", "c"], enable_categorical=True)
    with pytest.raises(RowDomainError, match="dp_categories") as error:
        xgb.train(params(dp_categories={3: 3}), d, 2)
    assert "123" not in str(error.value)
    assert str(code) not in str(error.value)


# --------------------------------------------------------------------- nothing aggregate
def _edge_cases():
    X, y = arrays()
    constant, empty, twice = X.copy(), X.copy(), X.copy()
    constant[:, 1] = 3.0
    empty[:, 1] = np.nan
    twice[:, 1] = twice[:, 0]
    whole = np.arange(len(X), dtype=np.float32)
    return {
        "no rows": (X[:0], y[:0]),
        "one row": (X[:1], y[:1]),
        "one class": (X, np.ones_like(y)),
        "constant column": (constant, y),
        "missing column": (empty, y),
        "all missing": (np.full_like(X, np.nan), y),
        "duplicate columns": (twice, y),
        "equal columns": (np.repeat(whole[:, None], 4, axis=1), y),
        "huge": (np.full_like(X, np.finfo(np.float32).max), y),
        "subnormal": (np.full_like(X, 1e-42), y),
    }


@pytest.mark.parametrize("case", list(_edge_cases()))
@pytest.mark.parametrize("kind", ["binary", "regression", "multiclass"])
def test_nothing_aggregate_raises(params, kind, case, capfd):
    X, y = _edge_cases()[case]
    model = xgb.train(params(kind), xgb.DMatrix(X, y), 3)
    assert model.num_boosted_rounds() == 3
    assert xgb_dp.privacy_report(model).epsilon <= 1.0
    assert np.isfinite(model.predict(xgb.DMatrix(arrays()[0]))).all()
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""


@pytest.mark.parametrize("names", [["ä", "b c", ""], [3, 5, 8]])
def test_dictionaries_of_names_and_numbers(params, names):
    X, y = arrays()
    column = pd.Categorical([names[i % 2] for i in range(len(y))], categories=names)
    frame = pd.DataFrame({"x": X[:, 0], "c": column})
    d = xgb.DMatrix(frame, y, enable_categorical=True)
    assert xgb.train(params(dp_categories={"c": names}), d, 2).num_boosted_rounds() == 2
    for others in (names[::-1], [*names[:2], "z"], [*names, "z"]):
        with pytest.raises(PrivacyParameterError, match="dp_categories"):
            xgb.train(params(dp_categories={"c": others}), d, 2)


@pytest.mark.usefixtures("no_noise")
def test_a_target_that_no_noise_meets(params, matrix):
    with pytest.raises(BudgetError, match="epsilon"):
        xgb.train(params(dp_epsilon=1e-12, dp_delta=1e-30), matrix(), 2)


@pytest.mark.usefixtures("no_noise")
def test_more_columns_than_can_be_verified(params):
    wide = sparse.csr_matrix((np.ones(4, np.float32), (range(4), range(4))), shape=(4, 1 << 20))
    with pytest.raises(PrivacyParameterError, match="1,048,576 columns"):
        xgb.train(params(), xgb.DMatrix(wide, [0, 1, 0, 1]), 2)
