"""Searches that would publish exact scores are refused; the private one and ensembles are not."""

import inspect
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, RANSACRegressor
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import all_estimators

import xgb_dp
from xgb_dp import (
    Budget,
    BudgetError,
    DPXGBClassifier,
    DPXGBRegressor,
    PrivacyRefusal,
    PrivacyWarning,
)

from ..conftest import arrays

SHARED: dict[str, Any] = {
    "epsilon": 1.0, "delta": 1e-6, "n_estimators": 3, "max_depth": 2, "n_jobs": 1
}  # fmt: skip
MODEL = DPXGBClassifier(classes=2, **SHARED)
GRID = {"param_grid": {"max_depth": [1, 2]}, "cv": 2}
SEARCHES: dict[str, tuple[Any, str, str]] = {  # training, reason, remedy
    "grid": (lambda m, X, y: GridSearchCV(m, **GRID, error_score="raise").fit(X, y),
        "scores them exactly", "xgb_dp.select"),
    "scores": (lambda m, X, y: cross_val_score(m, X, y, cv=2, error_score="raise"),
        "scores them exactly", "xgb_dp.evaluate"),
    "learning curve": (lambda m, X, y: learning_curve(m, X, y, cv=2, error_score="raise"),
        "scores them exactly", "xgb_dp.evaluate"),
    "permutations": (lambda m, X, y: permutation_test_score(m, X, y, cv=2, n_permutations=2),
        "scores them exactly", "xgb_dp.evaluate"),
    "predictions": (lambda m, X, y: cross_val_predict(m, X, y, cv=2),
        "returns a prediction of each row", "xgb_dp.split"),
    "threshold": (lambda m, X, y: TunedThresholdClassifierCV(m, cv=2).fit(X, y),
        "chooses a threshold", "threshold(cost=...)"),
    "stacking": (lambda m, X, y: StackingClassifier([("m", m)], cv=2).fit(X, y),
        "sklearn.ensemble.StackingClassifier: it trains on predictions of other models",
        "with one `budget`"),
    "calibration": (lambda m, X, y: CalibratedClassifierCV(m, cv=2).fit(X, y),
        "exact calibrations", "calibrated(model)"),
    "recursive": (lambda m, X, y: RFECV(m, cv=2).fit(X, y), "sets of columns", "xgb_dp.select"),
    "columns": (lambda m, X, y: SequentialFeatureSelector(m, cv=2).fit(X, y),
        "sets of columns", "xgb_dp.select"),
    "boosting": (lambda m, X, y: AdaBoostClassifier(m, n_estimators=2).fit(X, y),
        "exact errors", "n_estimators"),
    "exact boosting": (lambda m, X, y: GradientBoostingClassifier(init=m, n_estimators=2).fit(X, y),
        "exact trees", "n_estimators"),
    "stacking on fitted models": (lambda m, X, y: StackingClassifier(
        [("m", LogisticRegression().fit(X, y))], final_estimator=m, cv="prefit").fit(X, y),
        "predictions of other models", "`fit` of the private model itself"),
    "labels of earlier models": (lambda m, X, y: SelfTrainingClassifier(m).fit(
        X, np.where(np.arange(len(y)) % 2, y, -1)), "earlier models",
        "`fit` of the private model itself"),
    "chain of predictions": (lambda m, X, y: ClassifierChain(m, cv=2).fit(
        X, np.stack([y, 1 - y], axis=1)), "predictions of other models", "Set cv=None"),
    "columns without a budget": (lambda m, X, y: RFE(m, n_features_to_select=3).fit(X, y),
        "only the last ledger remains", "xgb_dp.select"),
    "bagging": (lambda m, X, y: BaggingClassifier(m, n_estimators=2).fit(X, y),
        "can count several times", "with one `budget`"),
    "one against the rest": (lambda m, X, y: OneVsRestClassifier(m).fit(X, y),
        "determine the number of models", "Declare all classes"),
    "one against one": (lambda m, X, y: OneVsOneClassifier(m).fit(X, y),
        "determine the number of models", "Declare all classes"),
    "codes": (lambda m, X, y: OutputCodeClassifier(m, random_state=0).fit(X, y),
        "determine the number of models", "Declare all classes"),
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_are_refused(name, tmp_path):
    """With the reason and the remedy; public evaluation sets do not make training rows public."""
    X, y = arrays()
    train, reason, remedy = SEARCHES[name]
    budget = Budget(tmp_path / "budget.json", epsilon=50.0, delta=1e-3)
    for public in (False, True):
        model = clone(MODEL).set_params(public_evals=public)
        if name != "columns without a budget":
            model.set_params(budget=budget)
        with pytest.raises(ValueError, match=r"PrivacyRefusal|inside sklearn") as caught:
            train(model, np.nan_to_num(X), y.astype(int))
        assert reason in str(caught.value)
        assert remedy in str(caught.value)
    assert not budget.entries


@pytest.mark.parametrize(
    "kind", [OneVsRestClassifier, OneVsOneClassifier, partial(OutputCodeClassifier, random_state=0)]
)
def test_one_row_does_not_decide_how_many_models_there_are(kind):
    """With and without the only row of a class, in this process and in others."""
    X, y = arrays()
    X, y = np.nan_to_num(X), y.astype(int)
    y[-1] = 2
    for rows, jobs in ((len(y) - 1, 1), (len(y), 2 if kind is OneVsRestClassifier else 1)):
        with pytest.raises(PrivacyRefusal, match="determine the number of models"):
            kind(clone(MODEL), n_jobs=jobs).fit(X[:rows], y[:rows])


REGRESSIONS = {
    "rows by errors": lambda m, X, y: RANSACRegressor(m, min_samples=50).fit(X, y),
    "cells by models": lambda m, X, y: IterativeImputer(m, max_iter=1).fit(
        np.where(X > 1, np.nan, X)),
    "labels of all rows": lambda m, X, y: TransformedTargetRegressor(
        m, transformer=MaxAbsScaler()).fit(X, y),
}  # fmt: skip


@pytest.mark.parametrize("name", REGRESSIONS)
def test_rows_made_from_other_rows_are_refused(name, tmp_path):
    X, y = arrays("regression")
    budget = Budget(tmp_path / "budget.json", epsilon=50.0, delta=1e-3)
    model = DPXGBRegressor(target_bounds=(-3, 3), **SHARED, budget=budget)
    with pytest.raises(PrivacyRefusal, match="inside sklearn"):
        REGRESSIONS[name](model, np.nan_to_num(X), y)
    assert not budget.entries


@pytest.mark.filterwarnings("ignore:The provided functions are not strictly inverse")
def test_labels_may_be_transformed_each_by_itself():
    X, y = arrays("regression")
    model = DPXGBRegressor(target_bounds=(0.1, 8), **SHARED)
    fitted = TransformedTargetRegressor(model, func=np.exp, inverse_func=np.log).fit(X, y)
    assert np.isfinite(fitted.predict(X)).all()


DECIDED = {
    "refused": [
        "AdaBoostClassifier", "AdaBoostRegressor", "BaggingClassifier", "BaggingRegressor",
        "CalibratedClassifierCV", "GradientBoostingClassifier", "GradientBoostingRegressor",
        "GridSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer",
        "OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier", "RANSACRegressor",
        "RFECV", "RandomizedSearchCV", "SelfTrainingClassifier", "SequentialFeatureSelector",
        "StackingClassifier", "StackingRegressor", "TunedThresholdClassifierCV",
        "VotingClassifier",
    ],
    "refused with `cv`, which predicts by other models": ["ClassifierChain", "RegressorChain"],
    "refused without a budget": ["RFE"],
    "refused with a transformer, which sees all labels": ["TransformedTargetRegressor"],
    "a public number of members, each with a ledger, which read every row as it is": [
        "MultiOutputClassifier", "MultiOutputRegressor", "VotingRegressor",
    ],
    "one training on the rows that it is given": [
        "ColumnTransformer", "FeatureUnion", "FixedThresholdClassifier", "FrozenEstimator",
        "Pipeline", "SelectFromModel",
    ],
}  # fmt: skip


def test_every_estimator_that_fits_others_has_been_decided_on():
    fitting = {
        name
        for name, kind in all_estimators()
        if {"estimator", "estimators", "regressor", "transformers", "steps", "transformer_list"}
        & set(inspect.signature(kind).parameters)
    }
    assert fitting <= {name for names in DECIDED.values() for name in names}


@pytest.mark.parametrize("frozen", [False, True])
def test_a_public_threshold_is_compared_with_the_scores(frozen):
    X, y = strings()
    model = DPXGBClassifier(**OWN, classes=["no", "yes"])
    one = FrozenEstimator(model.fit(X, y)) if frozen else model
    fitted = FixedThresholdClassifier(one, threshold=0.2).fit(X, y)
    expected = np.where(fitted.estimator_.predict_proba(X)[:, 1] >= 0.2, "yes", "no")
    np.testing.assert_array_equal(fitted.predict(X), expected)
    assert xgb_dp.privacy_report(fitted.estimator_.get_booster()).private


def test_a_threshold_of_more_classes_is_refused():
    """Scikit-learn counts those that occur."""
    X, y = strings()
    model = DPXGBClassifier(**OWN, classes=["maybe", "no", "yes"])
    with pytest.raises(PrivacyRefusal, match="inside sklearn"):
        FixedThresholdClassifier(model, threshold=0.2).fit(X, y)


EXACT = {
    "calibration": lambda m, X, y: CalibratedClassifierCV(m, cv=2).fit(X, y),
    "threshold": lambda m, X, y: TunedThresholdClassifierCV(m, cv=2).fit(X, y),
    "stacking": lambda m, X, y: StackingClassifier([("m", m)], cv="prefit").fit(X, y),
    "scores": lambda m, X, y: cross_val_score(m, X, y, cv=2),
    "importances": lambda m, X, y: permutation_importance(m, X, y, n_repeats=1),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_fits_on_predictions_of_a_private_model_warn(name):
    X, y = strings()
    model = FrozenEstimator(DPXGBClassifier(**OWN, classes=["no", "yes"]).fit(X, y))
    with pytest.warns(PrivacyWarning, match="no epsilon covers the result"):
        fitted = EXACT[name](model, X, y)
    if hasattr(fitted, "predict"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PrivacyWarning)
            fitted.predict(X)


@pytest.mark.parametrize(
    ("remedy", "search"),
    [
        (r"xgb_dp\.select", lambda X, y: GridSearchCV(clone(MODEL), **GRID).fit(X, y)),
        (r"xgb_dp\.evaluate", lambda X, y: cross_val_score(clone(MODEL), X, y, cv=2)),
        (r"xgb_dp\.evaluate", lambda X, y: learning_curve(make_pipeline(MODEL), X, y, cv=2)),
    ],
)
def test_a_search_that_swallows_errors_of_fit_is_refused_before(remedy, search):
    X, y = arrays()
    with pytest.raises(PrivacyRefusal, match=remedy):
        search(X, y)


def test_xgboosts_own_estimator_is_refused_too():
    X, y = arrays()
    model = xgb.XGBClassifier(tree_method="dp_hist", dp_epsilon=1, dp_delta=1e-6, dp_classes=2)
    with pytest.raises(PrivacyRefusal, match=r"xgb_dp\.select"):
        cross_val_score(model, X, y, cv=2, error_score="raise")
    assert cross_val_score(xgb.XGBClassifier(n_estimators=2, n_jobs=1), X, y, cv=2).min() > 0.5


def test_private_models_may_choose_columns(tmp_path):
    """Importances are noisy, so that only the trainings count."""
    X, y = arrays()
    budget = Budget(tmp_path / "budget.json", epsilon=4.0, delta=1e-5)
    model = clone(MODEL).set_params(budget=budget)
    assert SelectFromModel(model).fit(X, y).transform(X).shape[1] >= 1
    assert RFE(model, n_features_to_select=3).fit(X, y).transform(X).shape[1] == 3
    assert len(budget.entries) == 3


def test_several_models_side_by_side_draw_on_a_budget(tmp_path):
    X, y = arrays("multiclass")
    both = np.stack([y > 0, y > 1], axis=1).astype(int)
    budget = Budget(tmp_path / "budget.json", epsilon=2.0, delta=1e-5)
    chain = ClassifierChain(clone(MODEL).set_params(budget=budget)).fit(np.nan_to_num(X), both)
    assert [entry.state for entry in budget.entries] == ["spent"] * 2
    assert len(chain.estimators_) == 2
    with pytest.raises(BudgetError, match="exceed"):
        clone(MODEL).set_params(budget=str(budget.path), epsilon=2.0).fit(X, y > 0)
    assert len(budget.entries) == 2


def test_private_search_of_the_classifier(tmp_path):
    X, y = arrays(n=2000)
    labels = np.array(["no", "yes"])[y.astype(int)]
    budget = Budget(tmp_path / "b.json", epsilon=9.0, delta=1e-5, selection_epsilon=8.0)
    model = DPXGBClassifier(epsilon=8.0, delta=1e-6, classes=["no", "yes"], n_jobs=1, budget=budget)
    grid = {"n_estimators": [2, 10], "feature_bounds": [None, {0: (-4, 4)}]}
    assert model.fit_select(X, labels, grid, mean_runs=3) is model
    assert set(model.best_params_) == {"n_estimators", "feature_bounds"}
    assert model.best_params_["n_estimators"] == model.get_booster().num_boosted_rounds()
    assert 7.8 < model.privacy_report_.epsilon <= 8.0
    assert set(model.predict(X)) <= {"no", "yes"}
    assert budget.remaining_selection() == pytest.approx(8.0 - model.privacy_report_.epsilon)


def test_private_search_of_the_regressor_and_of_several_classes():
    X, y = arrays("regression", n=1000)
    few = {"epsilon": 8.0, "delta": 1e-6, "n_estimators": 2, "n_jobs": 1}
    model = DPXGBRegressor(**few, target_bounds=(-3, 3))
    model.fit_select(X, y, [{"max_depth": 1}, {"max_depth": 2}], score="absolute_error")
    assert model.best_params_["max_depth"] in (1, 2)
    assert xgb_dp.privacy_report(model).epsilon <= 8.0
    X, y = arrays("multiclass", n=1000)
    many = DPXGBClassifier(**few, classes=3)
    many.fit_select(X, y, [{}], score="accuracy")
    assert many.predict_proba(X).shape == (1000, 3)
    assert 0.0 <= many.best_score_ <= 1.0


OWN: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6, "n_estimators": 3, "n_jobs": 1}


def strings() -> tuple[Any, Any]:
    X, y = arrays()
    return np.nan_to_num(X), np.array(["no", "yes"])[y.astype(int)]


def members(classes: Any) -> Any:
    return [(name, DPXGBClassifier(**OWN, classes=classes)) for name in "ab"]


def test_members_that_were_fitted_before():
    X, y = strings()
    fitted = [(name, m.fit(X, (y == "yes").astype(int))) for name, m in members(2)]
    with pytest.warns(PrivacyWarning, match="no epsilon covers"):
        predicted = StackingClassifier(fitted, cv="prefit").fit(X, y).predict(X)
    assert set(predicted) <= {"no", "yes"}
    assert (predicted == y).mean() > 0.6


@pytest.mark.parametrize(
    ("around", "jobs"), [(lambda m: m, 2), (lambda m: make_pipeline("passthrough", m), 1)]
)
def test_labels_that_are_coded_by_the_classes_that_occur_are_refused(around, jobs):
    """One row of another class would change the labels of all rows."""
    X, y = strings()
    several = [(name, around(m)) for name, m in members(2)]
    with pytest.raises(PrivacyRefusal, match="classes that occur"):
        VotingClassifier(several, voting="soft", n_jobs=jobs).fit(X, y)
