"""Steps in front of a private estimator that are fitted on its rows are named, and recorded."""

import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

import xgb_dp
from xgb_dp import DPXGBClassifier, PrivacyWarning

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = (X[:, 0] > 0).astype(int)
T = pd.DataFrame({"a": X[:, 0], "t": rng.choice(["x", "y"], 200)})


def model(**more) -> DPXGBClassifier:
    return DPXGBClassifier(
        n_estimators=2, epsilon=1.0, delta=1e-6, classes=[0, 1], n_jobs=1, **more
    )


class Own(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


FITTED = [
    (make_pipeline(StandardScaler(), model()), X, "standardscaler", "no scaling"),
    (make_pipeline(SelectKBest(k=2), model()), X, "SelectKBest", "keep all"),
    (make_pipeline(SimpleImputer(), model()), X, "SimpleImputer", "no imputation"),
    (make_pipeline(Own(), model()), X, "Own", "FrozenEstimator"),
    (make_pipeline(OneHotEncoder(sparse_output=False), model()), T[["t"]], "OneHotEncoder",
     "`categories`"),
    (make_pipeline(OrdinalEncoder(), model()), T[["t"]], "OrdinalEncoder", "`categories`"),
    (make_pipeline(TargetEncoder(), model()), T[["t"]], "TargetEncoder", "labels"),
    (make_pipeline(make_pipeline(StandardScaler()), model()), X, "StandardScaler", "scaling"),
    (make_pipeline(ColumnTransformer([("s", StandardScaler(), [0])]), model()), X,
     "s (StandardScaler)", "scaling"),
    (make_pipeline(ColumnTransformer([], remainder=StandardScaler()), model()), X,
     "remainder (StandardScaler)", "scaling"),
    (make_pipeline(FeatureUnion([("u", StandardScaler())]), model()), X, "u (StandardScaler)",
     "scaling"),
    (make_pipeline(ColumnTransformer([("s", "passthrough", lambda table: [0])]), model()), X,
     "s (columns)", "by name"),
    (make_pipeline(ColumnTransformer([("s", "passthrough", make_column_selector("a"))]), model()),
     T, "s (columns)", "by name"),
    (make_pipeline(ColumnTransformer([("o", OneHotEncoder(categories=[["x", "y"]]), ["t"])]),
                   model()), T, "(ColumnTransformer)", "sparse_threshold=0"),
    (make_pipeline(ColumnTransformer([("a", "passthrough", [0])]), model()), csr_array(abs(X)),
     "(ColumnTransformer)", "sparse_threshold=0"),
    (make_pipeline(SimpleImputer(strategy="constant", keep_empty_features=True,
                                 add_indicator=True), model()), X, "SimpleImputer",
     "no imputation"),
    (Pipeline([("outer", StandardScaler()), ("inner", make_pipeline(model()))]), X, "outer",
     "scaling"),
]  # fmt: skip


@pytest.mark.parametrize(("pipeline", "rows", "name", "instead"), FITTED)
def test_fitted_steps_are_named(pipeline, rows, name, instead):
    with pytest.warns(PrivacyWarning, match="without noise") as caught:
        pipeline.fit(rows, y)
    (text,) = [str(w.message) for w in caught if "Pipeline steps" in str(w.message)]
    assert name in text and instead in text
    last = pipeline[-1]
    report = xgb_dp.privacy_report(last[-1] if isinstance(last, Pipeline) else last)
    assert "NOT COVERED" in report.statement() and name.split(" ")[0] in report.statement()
    assert report.ledger["trainings"][0]["public"]["preprocessing"]


@pytest.mark.parametrize(
    ("pipeline", "rows"),
    [
        (make_pipeline(FunctionTransformer(np.abs), model()), X),
        (make_pipeline(Normalizer(), model()), X),
        (make_pipeline(PolynomialFeatures(2), model()), X),
        (make_pipeline("passthrough", model()), X),
        (make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0,
                                     keep_empty_features=True), model()), X),
        (make_pipeline(OneHotEncoder(categories=[["x", "y"]], sparse_output=False), model()),
         T[["t"]]),
        (make_pipeline(OrdinalEncoder(categories=[["x", "y"]]), model()), T[["t"]]),
        (make_pipeline(ColumnTransformer([("a", "passthrough", [0])]), model()), X),
        (make_pipeline(ColumnTransformer([("o", OneHotEncoder(categories=[["x", "y"]]), ["t"])],
                                         sparse_threshold=0), model()), T),
        (make_pipeline(FrozenEstimator(StandardScaler().fit(X[:5])), model()), X),
        (model(), X),
    ],
)  # fmt: skip
def test_steps_that_look_at_one_row_pass(pipeline, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        pipeline.fit(rows.copy(), y)  # of which nobody has trained before
    last = pipeline[-1] if isinstance(pipeline, Pipeline) else pipeline
    assert "NOT COVERED" not in xgb_dp.privacy_report(last).statement()


def test_as_an_error_nothing_is_released(monkeypatch):
    released = []
    monkeypatch.setattr(xgb_dp.engine.native, "release_before_trees", lambda *a: released.append(a))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="StandardScaler"):
            make_pipeline(StandardScaler(), model()).fit(X, y)
    assert not released


def test_resampling_of_imbalanced_learn(monkeypatch):
    """Its pipeline is a class of its own; here a stand-in under its module's name."""
    module = types.ModuleType("imblearn.pipeline")
    monkeypatch.setitem(sys.modules, "imblearn.pipeline", module)
    exec(
        "class Pipeline:\n"
        "    def __init__(self, steps):\n"
        "        self.steps = steps\n"
        "    def fit(self, X, y):\n"
        "        X, y = self.steps[0][1].fit_resample(X, y)\n"
        "        self.steps[-1][1].fit(X, y)\n",
        module.__dict__,
    )

    class SMOTE:
        def fit_resample(self, X, y):
            return np.concatenate([X, X]), np.concatenate([y, y])

    private = model()
    with pytest.warns(PrivacyWarning, match="smote .SMOTE.: .*scale_pos_weight"):
        module.Pipeline([("smote", SMOTE()), ("model", private)]).fit(X, y)
    assert "smote (SMOTE)" in xgb_dp.privacy_report(private).statement()


def test_warnings_of_steps_say_nothing_of_rows():
    steps = make_pipeline(FunctionTransformer(np.log1p), model()).fit(abs(X), y)
    rows = abs(X)
    rows[0, 0] = -2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        xgb_dp.evaluate(steps, (rows, y), epsilon=1.0, delta=1e-6)
