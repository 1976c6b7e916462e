"""Guarantees that say little are told as such: before anything is released, and in the report."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from click.testing import CliRunner

import xgb_dp
from xgb_dp.cli.commands import cli
from xgb_dp.record.caution import concerns

CASES = [
    ({"dp_epsilon": 10.0, "dp_delta": 1e-3}, None),
    ({"dp_epsilon": 10.5}, "Epsilon is above 10"),
    ({"dp_delta": 0.0011}, "Delta is 0.0011, above 0.001"),
    ({"dp_delta": 0.5}, "Delta is 0.5, above 0.001"),
    ({"dp_delta": 9e-4, "dp_n_public": 1000}, None),
    ({"dp_delta": 9e-4, "dp_n_public": 1200}, "one over the declared number of rows"),
    ({"dp_epsilon": math.inf}, "NOT private"),
]


def said(run: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in caught if w.category is xgb_dp.PrivacyWarning]


@pytest.mark.parametrize(("changes", "text"), CASES)
def test_a_training_warns_and_its_report_repeats_it(
    params: Any, matrix: Any, changes: dict[str, Any], text: str | None
) -> None:
    models = []
    found = said(lambda: models.append(xgb.train(params(**changes), matrix(), 2)))
    statement = xgb_dp.privacy_report(models[0]).statement()
    if text is None:
        assert found == []
        assert not any(word in statement for word in ("protects hardly", "may fail", "one over"))
    else:
        assert len(found) == 1
        assert text in found[0]
        if math.isfinite(changes.get("dp_epsilon", 1.0)):
            assert text in statement
            assert text in xgb_dp.privacy_report(models[0]).summary(width=10_000)


def test_warnings_can_be_refused_before_anything_is_spent(
    params: Any, matrix: Any, tmp_path: Path
) -> None:
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
def test_a_budget_warns_when_it_is_made(
    tmp_path: Path, totals: tuple[float, float], text: str | None
) -> None:
    path = tmp_path / "b.json"
    found = said(lambda: xgb_dp.Budget(path, epsilon=totals[0], delta=totals[1]))
    assert len(found) == (text is not None)
    statement = xgb_dp.Budget(path).statement()
    if text is None:
        assert not any(word in statement for word in ("protects hardly", "may fail"))
    else:
        assert text in found[0]
        assert text in statement
    assert said(lambda: xgb_dp.Budget(path)) == []


def test_the_warning_points_at_the_caller(params: Any, matrix: Any) -> None:
    with pytest.warns(xgb_dp.PrivacyWarning) as caught:
        xgb.train(params(dp_epsilon=20.0), matrix(), 1)
    assert caught[0].filename == __file__
    with pytest.warns(xgb_dp.PrivacyWarning) as caught:
        xgb.train(params(dp_epsilon=math.inf), matrix(), 1)
    assert caught[0].filename == __file__
    first = xgb.train(params(dp_epsilon=8.0), matrix(), 1)
    with pytest.warns(xgb_dp.PrivacyWarning) as caught:
        xgb.train(params(dp_epsilon=8.0), matrix(), 1, xgb_model=first)
    assert caught[0].filename == __file__


def test_estimators_and_continued_models() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = xgb_dp.DPXGBClassifier(epsilon=20.0, delta=1e-6, classes=[False, True], n_estimators=2)
    assert len(said(lambda: model.fit(X, X[:, 0] > 0))) == 1
    params = {"tree_method": "dp_hist", "objective": "binary:logistic"}
    params |= {"dp_epsilon": 7.0, "dp_delta": 1e-6}
    d = xgb.DMatrix(X, X[:, 0] > 0)
    models: list[Any] = [None]
    found = [
        said(lambda: models.append(xgb.train(params, d, 2, xgb_model=models[-1]))) for _ in range(2)
    ]
    assert found[0] == []  # each training asks for little, both together do not
    assert len(found[1]) == 1
    assert "With the training before this one" in found[1][0]
    assert f"{xgb_dp.privacy_report(models[2]).epsilon:.4g}" in found[1][0]
    assert "protects hardly" not in xgb_dp.privacy_report(models[1]).statement()
    assert "protects hardly" in xgb_dp.privacy_report(models[2]).statement()


def test_a_selection_warns_once_whatever_the_number_of_runs(
    params: Any, matrix: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {k: v for k, v in params().items() if k not in ("dp_epsilon", "dp_delta")}
    for runs in (1, 5):
        monkeypatch.setattr("xgb_dp.tuning.draws.repetitions", lambda law, runs=runs: runs)
        found = said(
            lambda: xgb_dp.select(own, matrix(), [{}], epsilon=60.0, delta=0.01, num_boost_round=2)
        )
        assert len(found) == 2  # epsilon, and delta


def test_command_line(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,y\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(60)))
    arguments = ["train", rows, "--target", "y", "--classes", "0,1", "--epsilon", "30"]
    arguments += ["--delta", "1e-6", "--rounds", "2", "--model", tmp_path / "m.json"]
    answer = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert answer.exit_code == 0
    assert "Warning: Epsilon is above 10" in answer.output


def test_every_reason_is_told() -> None:
    assert len(concerns(11.0, 0.01, 5)) == 2
    assert concerns(1.0, 1e-6, 1_000_000) == []
    assert len(concerns(1.0, 1e-6, 1_000_001)) == 1
