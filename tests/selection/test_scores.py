"""Scores: what one row changes, and that they estimate what they are named after."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss, mean_pinball_loss, roc_auc_score

from xgb_dp.errors import PrivacyParameterError
from xgb_dp.selection import scores
from xgb_dp.selection.scores import Predicted, Score, pinball, time_log_loss

EXAMPLES = settings(max_examples=200, deadline=None, derandomize=True)
PROBABILITY = st.floats(0.0, 1.0, width=32)
ANY = st.floats(width=32, allow_nan=True, allow_infinity=True)
TARGET = (-2.0, 6.0)


def sums_of(
    score: Score, p: Any, y: Any, target: Any, persons: Any = None, predicted: Any = None
) -> Any:
    """What is released, without its noise."""
    return score._block.sums(score._cells(p, y, target, predicted), persons)[0]


def moved(score: Score, p: Any, y: Any, target: Any = None, predicted: Any = None) -> int:
    """Squared L2 norm of what the last row changes."""
    p, y = np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64)
    after, before = (sums_of(score, p[:n], y[:n], target, None, predicted) for n in (len(p), -1))
    return int(np.sum((after - before).astype(object) ** 2))


@EXAMPLES
@given(
    st.lists(st.tuples(PROBABILITY, st.integers(0, 1)), min_size=1, max_size=5),
    st.sampled_from(
        [Score("log_loss"), Score("log_loss", 0.1), Score("brier"), Score("accuracy"), Score("auc")]
    ),
)
def test_one_row_of_two_classes(rows, score):
    assert moved(score, *zip(*rows, strict=True)) <= score.sensitivity2


@EXAMPLES
@given(
    st.lists(st.tuples(PROBABILITY, PROBABILITY, st.integers(0, 2)), min_size=1, max_size=4),
    st.sampled_from([Score("log_loss"), Score("brier"), Score("accuracy")]),
)
def test_one_row_of_three_classes(rows, score):
    p = np.array([[a, b, 1.0] for a, b, _ in rows])
    p /= p.sum(axis=1, keepdims=True)
    assert moved(score, p, [y for *_, y in rows]) <= score.sensitivity2


@EXAMPLES
@given(
    st.lists(st.tuples(ANY, ANY), min_size=1, max_size=5),
    st.sampled_from(
        [Score("squared_error"), Score("absolute_error"), Score("squared_error", 1e-3)]
    ),
)
def test_one_row_of_regression(rows, score):
    assert moved(score, *zip(*rows, strict=True), TARGET) <= score.sensitivity2


DISTRIBUTIONS = st.sampled_from(["normal", "logistic", "extreme"])


@EXAMPLES
@given(st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=5), st.booleans())
def test_one_row_of_quantiles(rows, several):
    first, second, y = (np.array(v, dtype=np.float64) for v in zip(*rows, strict=True))
    p = np.stack([first, second], axis=1) if several else first
    predicted = Predicted((0.2, 0.9) if several else (0.7,))
    for score in (Score("pinball_loss"), Score("pinball_loss", 1e-3)):
        assert moved(score, p, y, TARGET, predicted) <= score.sensitivity2


@EXAMPLES
@given(
    st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=5),
    DISTRIBUTIONS,
    st.sampled_from([1e-3, 1, 9]),
)
def test_one_row_of_times(rows, distribution, scale):
    p, low, high = (np.array(v, dtype=np.float64) for v in zip(*rows, strict=True))
    ends, predicted = (
        np.stack([low, high], axis=1),
        Predicted(distribution=distribution, scale=scale),
    )
    for score in (Score("time_log_loss"), Score("time_log_loss", 0.1)):
        assert moved(score, p, ends, (0.5, 900.0), predicted) <= score.sensitivity2


def test_losses_of_quantiles_and_times():
    rng = np.random.default_rng(5)
    y, p = rng.normal(2, 1, 500), rng.normal(2, 1, (500, 2))
    exact = [
        mean_pinball_loss(y, column, alpha=q) for column, q in zip(p.T, (0.2, 0.9), strict=True)
    ]
    wide = (-50.0, 50.0)
    assert pinball(p, y, wide, (0.2, 0.9)).mean() == pytest.approx(np.mean(exact))
    # By integrals of the density: of a seen end, an open one, and one between two bounds.
    ends = np.array([[3.0, 3.0], [3.0, np.inf], [2.0, 5.0]])
    for distribution, of in (("normal", stats.norm), ("logistic", stats.logistic)):
        around = of(loc=np.log(4.0), scale=0.7)
        between = around.cdf(np.log(5)) - around.cdf(np.log(2))
        densities = [around.pdf(np.log(3)), 1 - around.cdf(np.log(3)), between]
        losses = time_log_loss(
            np.full(3, 4.0), ends, (1.0, 100.0), Predicted((), distribution, 0.7)
        )
        np.testing.assert_allclose(losses, -np.log(densities), rtol=1e-9)
    # The extreme law is that of XGBoost: density w exp(-w) with w = exp(z).
    losses = time_log_loss(np.full(1, 4.0), ends[:1], (1.0, 100.0), Predicted((), "extreme", 0.7))
    w = np.exp((np.log(3) - np.log(4)) / 0.7)
    assert losses[0] == pytest.approx(-np.log(w * np.exp(-w) / 0.7))


def test_better_times_rank_higher():
    rng = np.random.default_rng(7)
    p = np.exp(rng.normal(4, 1, 4000))
    times = p * np.exp(0.5 * rng.logistic(size=4000))
    end = rng.uniform(5, 400, 4000)
    ends = np.stack([np.minimum(times, end), np.where(times <= end, times, np.inf)], axis=1)
    score, predicted = Score("time_log_loss"), Predicted(scale=0.5)
    event = score.event(50.0)
    good, bad, flat = (
        score.release(column, ends, (1.0, 1000.0), event, None, predicted)
        for column in (p, rng.permutation(p), np.full(4000, np.median(p)))
    )
    assert good.rank > flat.rank > bad.rank
    exact = np.clip(time_log_loss(p, ends, (1.0, 1000.0), predicted), -4.0, 4.0).mean()
    assert good.value == pytest.approx(exact, abs=8.0 * good.noise)


def released(score: Score, p: Any, y: Any, target: Any = None) -> float:
    """With next to no noise."""
    value = score.release(np.asarray(p), np.asarray(y), target, score.event(50.0))
    assert value.noise < 0.05
    return value.value


def test_scores_are_what_they_say():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 4000)
    p = 1 / (1 + np.exp(-(2.0 * y - 1.0) - rng.normal(size=4000)))
    assert released(Score("accuracy"), p, y) == pytest.approx(np.mean((p > 0.5) == y), abs=2e-3)
    assert released(Score("brier"), p, y) == pytest.approx(brier_score_loss(y, p), abs=2e-3)
    clipped = np.minimum(-np.log(np.where(y > 0, p, 1 - p)), 3.0).mean()
    assert released(Score("log_loss"), p, y) == pytest.approx(clipped, abs=5e-3)
    assert abs(clipped - log_loss(y, p)) < 0.02
    assert released(Score("auc"), p, y) == pytest.approx(roc_auc_score(y, p), abs=5e-3)
    value, truth = rng.normal(2, 1, 4000), rng.normal(2, 1, 4000)
    error = np.clip(value, *TARGET) - np.clip(truth, *TARGET)
    absolute = released(Score("absolute_error", 8.0), value, truth, TARGET)
    assert absolute == pytest.approx(np.abs(value - np.clip(truth, *TARGET)).mean(), abs=2e-2)
    squared = released(Score("squared_error"), value, truth, TARGET)
    assert squared == pytest.approx(np.minimum(error**2, 4.0).mean(), abs=2e-2)
    three = rng.dirichlet(np.ones(3), 4000)
    label = np.array([rng.choice(3, p=row) for row in three])
    right = np.minimum(-np.log(three[np.arange(4000), label]), 3.0).mean()
    assert released(Score("log_loss"), three, label) == pytest.approx(right, abs=5e-3)


@pytest.mark.parametrize("name", ["log_loss", "brier", "accuracy", "auc"])
def test_better_models_rank_higher(name):
    y = np.tile([0, 1], 500)
    good, bad = np.where(y > 0, 0.9, 0.1), np.where(y > 0, 0.4, 0.45)
    score = Score(name)
    event = score.event(50.0)
    first, second = (score.release(p, y, None, event).rank for p in (good, bad))
    assert first > second


def test_no_rows_at_all():
    for name in ("log_loss", "auc"):
        score = Score(name)
        value = score.release(np.zeros(0), np.zeros(0), None, score.event(1.0))
        assert np.isfinite([value.value, value.noise, value.rank]).all()


def test_every_pair_of_runs_has_an_order(monkeypatch):
    """The best of some runs is defined for whatever noisy sums there are."""
    score = Score("auc")
    none = SimpleNamespace(auc=SimpleNamespace(value=math.nan, noise=math.nan))
    monkeypatch.setattr(scores, "two_classes", lambda *_: None)
    monkeypatch.setattr(scores, "TwoClasses", lambda _: none)
    losses = score.release(np.array([0.5]), np.array([1.0]), None, score.event(1.0))
    assert losses.rank == -math.inf
    assert math.isnan(losses.value)


def test_bad_scores():
    for wrong in (("f1",), ("accuracy", 2.0), ("log_loss", 0.0)):
        with pytest.raises(PrivacyParameterError, match="bound" if wrong[1:] else "score"):
            Score(*wrong)
    with pytest.raises(PrivacyParameterError, match="numbers"):
        Score("auc").check("regression")
    assert Score.default("regression").name == "squared_error"
    assert Score.default("multiclass").name == "log_loss"
