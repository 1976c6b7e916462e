"""Guarantees that say little are told as such: before anything is released, and in the report."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.record.privacy_warnings import concerns

CASES = [
    ({"dp_epsilon": 10.0, "dp_delta": 1e-3}, None),
    ({"dp_epsilon": 10.5}, "Epsilon is above 10"),
    ({"dp_delta": 0.0011}, "Delta is 0.0011, above 0.001"),
    ({"dp_delta": 0.5}, "Delta is 0.5, above 0.001"),
    ({"dp_delta": 9e-4, "dp_public_num_rows": 1000}, None),
    ({"dp_delta": 9e-4, "dp_public_num_rows": 1200}, "inverse of the declared number of rows"),
    ({"dp_epsilon": math.inf}, "NOT private"),
]

# A noisy number of rows that warns of few rows only where they are few.
PRECISE = {"dp_budget_shares": {"base_score": 0.2}}


def warnings_of(run: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in caught if w.category is xgb_dp.PrivacyWarning]


@pytest.mark.parametrize(("changes", "text"), CASES)
def test_a_training_warns_and_its_report_repeats_it(params, matrix, changes, text):
    models = []
    given = params(**PRECISE, **changes)
    warned = warnings_of(lambda: models.append(xgb.train(given, matrix(), 2)))
    statement = xgb_dp.privacy_report(models[0]).statement()
    if text is None:
        assert warned == []
        assert not any(
            word in statement for word in ("hardly any protection", "can fail", "inverse of")
        )
    else:
        assert len(warned) == 1
        assert text in warned[0]
        if math.isfinite(changes.get("dp_epsilon", 1.0)):
            assert text in statement
            assert text in xgb_dp.privacy_report(models[0]).summary(width=10_000)


def test_warnings_can_be_refused_before_anything_is_spent(params, matrix, tmp_path):
    budget = xgb_dp.Budget(tmp_path / "b.json", epsilon=100.0, delta=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", xgb_dp.PrivacyWarning)
        with pytest.raises(xgb_dp.PrivacyWarning):
            budget.train(params(dp_epsilon=20.0), matrix(), 2)
    assert budget.entries == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", xgb_dp.PrivacyWarning)
        budget.train(params(dp_epsilon=20.0), matrix(), 2)
    assert len(budget.entries) == 1


@pytest.mark.parametrize(
    ("totals", "text"),
    [((10.0, 1e-3), None), ((10.5, 1e-6), "Epsilon is above 10"), ((1.0, 0.01), "Delta is 0.01")],
)
def test_a_budget_warns_when_it_is_made(tmp_path, totals, text):
    path = tmp_path / "b.json"
    warned = warnings_of(lambda: xgb_dp.Budget(path, epsilon=totals[0], delta=totals[1]))
    assert len(warned) == (text is not None)
    statement = xgb_dp.Budget(path).statement()
    if text is None:
        assert not any(word in statement for word in ("protects hardly", "may fail"))
    else:
        assert text in warned[0]
        assert text in statement
    assert warnings_of(lambda: xgb_dp.Budget(path)) == []


def test_the_warning_points_at_the_caller(params, matrix, tmp_path):
    first = xgb.train(params(dp_epsilon=8.0), matrix(), 1)
    for epsilon, model in ((20.0, None), (math.inf, None), (8.0, first)):
        with pytest.warns(xgb_dp.PrivacyWarning) as caught:
            xgb.train(params(dp_epsilon=epsilon), matrix(), 1, xgb_model=model)
        assert caught[0].filename == __file__
    with pytest.warns(xgb_dp.PrivacyWarning) as caught:
        xgb_dp.Budget(tmp_path / "budget.json", epsilon=20.0, delta=1e-6)
    assert caught[0].filename == __file__
    X = np.random.default_rng(0).normal(size=(50, 2))
    estimator = xgb_dp.DPXGBClassifier(epsilon=20.0, delta=1e-6, classes=[0, 1], n_estimators=2)
    with pytest.warns(xgb_dp.PrivacyWarning) as caught:
        estimator.fit(X, (X[:, 0] > 0).astype(int))
    assert caught[0].filename == __file__


def test_estimators_and_continued_models():
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = xgb_dp.DPXGBClassifier(epsilon=20.0, delta=1e-6, classes=[False, True], n_estimators=2)
    assert len(warnings_of(lambda: model.fit(X[:, :1], X[:, 0] > 0))) == 1
    params = {"tree_method": "dp_hist", "objective": "binary:logistic"}
    params |= {"dp_epsilon": 7.0, "dp_delta": 1e-6, **PRECISE}
    d = xgb.DMatrix(X, X[:, 0] > 0)
    models: list[Any] = [None]
    none, warned = (
        warnings_of(lambda: models.append(xgb.train(params, d, 2, xgb_model=models[-1])))
        for _ in range(2)
    )
    assert none == []  # each training asks for little, both together do not
    [warning] = warned
    alone, both = map(xgb_dp.privacy_report, models[1:])
    assert "Together with the training before this one" in warning
    assert f"{both.epsilon:.4g}" in warning
    assert "hardly any protection" not in alone.statement()
    assert "hardly any protection" in both.statement()


def test_a_selection_warns_once_whatever_the_number_of_runs(params, matrix, monkeypatch):
    common = {k: v for k, v in params().items() if k not in ("dp_epsilon", "dp_delta")}
    for runs in (1, 5):
        monkeypatch.setattr(
            "xgb_dp.record.selection_record.repetitions", lambda distribution, runs=runs: runs
        )
        warned = warnings_of(
            lambda: xgb_dp.select(
                common, matrix(), [{}], epsilon=60.0, delta=0.01, num_boost_round=2
            )
        )
        assert len(warned) == 2  # epsilon, and delta


def test_every_reason_is_told():
    assert len(concerns(11.0, 0.01, 5)) == 2
    assert concerns(1.0, 1e-6, 1_000_000) == []
    assert len(concerns(1.0, 1e-6, 1_000_001)) == 1
