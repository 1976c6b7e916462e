"""Scores of counts, amounts, times and quantiles, and the table that shows them."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from experiments import losses, objectives
from experiments.__main__ import main

from .test_runner import rows_of


def test_deviances_and_pinball_losses_are_the_usual_ones():
    rng = np.random.default_rng(0)
    mean = rng.gamma(2.0, 1.0, 500) + 0.1
    counts = rng.poisson(mean).astype(float)
    amounts = rng.gamma(2.0, mean)
    assert losses.poisson_deviance(counts, mean) == pytest.approx(
        metrics.mean_poisson_deviance(counts, mean)
    )
    assert losses.gamma_deviance(amounts, mean) == pytest.approx(
        metrics.mean_gamma_deviance(amounts, mean)
    )
    assert losses.tweedie_deviance(counts, mean) == pytest.approx(
        metrics.mean_tweedie_deviance(counts, mean, power=1.5)
    )
    both = np.stack([mean, mean + 1], axis=1)
    expected = [
        metrics.mean_pinball_loss(counts, both[:, k], alpha=a) for k, a in ((0, 0.2), (1, 0.7))
    ]
    assert losses.pinball(counts, both, (0.2, 0.7)) == pytest.approx(np.mean(expected))


def test_coverage_counts_ties_one_half():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    assert losses.coverage_gap(y, np.full((4, 1), 1.0), (0.5,)) == pytest.approx(0.5 - 1.5 / 4)


def test_gini_is_one_for_the_best_order_and_near_zero_for_none():
    rng = np.random.default_rng(1)
    exposure = rng.uniform(0.1, 1.0, 4000)
    rate = rng.gamma(1.0, 1.0, 4000)
    y = rng.poisson(rate * exposure).astype(float)
    assert losses.gini(y, y, exposure) == pytest.approx(1.0)
    assert losses.gini(y, y.mean() * exposure, exposure) == pytest.approx(0.0, abs=0.05)
    assert 0.2 < losses.gini(y, rate * exposure, exposure) < 1.0
    assert losses.gini(y, exposure / (rate + 1e-3), exposure) < -0.2


def test_concordance_is_the_share_of_comparable_pairs_in_order():
    rng = np.random.default_rng(2)
    time = rng.integers(1, 20, 60).astype(float)
    seen = rng.random(60) < 0.6
    predicted = rng.integers(0, 10, 60).astype(float)
    right = pairs = 0.0
    for i, j in itertools.permutations(range(60), 2):
        if seen[i] and time[j] > time[i]:
            pairs += 1
            right += 1.0 if predicted[j] > predicted[i] else 0.5 * (predicted[j] == predicted[i])
    assert losses.concordance(time, seen, predicted) == pytest.approx(right / pairs)


def test_survival_is_compared_with_kaplan_and_meier():
    assert losses.kaplan_meier(
        np.array([1.0, 2.0, 2.0, 5.0]), np.array([True, True, False, True]), 3.0
    ) == pytest.approx(0.75 * 2 / 3)
    rng = np.random.default_rng(3)
    margin = rng.normal(5.0, 1.0, 20_000)
    time = np.exp(margin + rng.normal(0.0, 1.0, 20_000))
    censored = np.exp(rng.normal(6.5, 1.0, 20_000))
    seen = time <= censored
    observed = np.minimum(time, censored)
    assert losses.survival_gap(observed, seen, margin, "normal", 1.0) < 0.03
    assert losses.survival_gap(observed, seen, margin + 1.5, "normal", 1.0) > 0.1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("XGB_DP_DATA", str(tmp_path / "data"))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(20, 80, 3000), "fuel": rng.choice(["a", "b"], 3000)})
    frame["exposure"] = rng.uniform(0.2, 1.0, 3000).astype(np.float32)
    rate = 0.5 * np.exp(-(frame["age"] - 50) / 20)
    frame["target"] = np.minimum(rng.poisson(rate * frame["exposure"]), 5)
    frame["amount"] = (frame["target"] * rng.gamma(2.0, 500.0, 3000)).astype(np.float32)
    frame.to_parquet(tmp_path / "data" / "bemtpl97.parquet")
    frame = pd.DataFrame({"age": rng.uniform(20, 80, 800)})
    days = np.exp(8 - frame["age"] / 20 + rng.normal(0, 0.5, 800))
    frame["death"] = (days < 300).astype(int)
    frame["target"] = np.clip(days, 1, 300).astype(int)
    frame.to_parquet(tmp_path / "data" / "support2.parquet")
    return tmp_path


def test_stock_is_better_than_the_constant(folder, capsys, monkeypatch):
    monkeypatch.setattr(objectives, "GRID", objectives.GRID[:1])
    monkeypatch.setattr(objectives, "TIMES", objectives.TIMES[:1])
    command = ["objectives", "--systems", "constant", "not private", "--seeds", "1", "--jobs", "1"]
    assert main([*command, "--out", str(folder)]) == 0
    rows = rows_of(folder, "objectives")
    assert len(rows) == 8  # prices are not in this folder
    assert not [r["note"] for r in rows if r["note"]]
    by_system = {(r["dataset"], r["system"]): r for r in rows}
    for data, metric, sign in (
        ("Claims", "deviance", -1),
        ("Amounts a policy", "gini", 1),
        ("Survival", "concordance", 1),
    ):
        stock, none = (float(by_system[data, s][metric]) for s in ("not private", "constant"))
        assert sign * (stock - none) > 0.01
    assert float(by_system["Claims", "constant"]["mean_ratio"]) == pytest.approx(1.0, abs=0.2)
    text = capsys.readouterr().out
    assert "| Claims, mean deviance |" in text
    assert "Not run: California, prices" in text
