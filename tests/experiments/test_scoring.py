"""Scores of predictions against values worked out by hand or by scikit-learn."""

import math

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from experiments import store, tables
from experiments.core import PROBABILITIES
from experiments.scoring import calibration_error, scores


def test_a_binary_task():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 3000)
    y = (rng.random(3000) < p).astype(np.float32)
    figures = scores("binary:logistic", y, p)
    assert figures["log_loss"] == pytest.approx(log_loss(y, p))
    assert figures["auc"] == pytest.approx(roc_auc_score(y, p))
    assert figures["mean_ratio"] == pytest.approx(p.mean() / y.mean())
    assert figures["calibration"] < 0.04  # chance alone, 200 rows a bin
    low = scores("binary:logistic", y, 0.5 * p)
    assert low["mean_ratio"] == pytest.approx(0.5 * figures["mean_ratio"])
    assert low["calibration"] == pytest.approx(0.5 * p.mean(), abs=0.02)
    assert low["auc"] == figures["auc"]


def test_certainty_that_is_wrong_has_a_finite_loss():
    figures = scores("binary:logistic", np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert figures["log_loss"] == pytest.approx(-math.log(1e-6))


def test_calibration_error_by_hand():
    p = np.array([0.1] * 10 + [0.6] * 10)
    happened = np.array([1] * 3 + [0] * 7 + [1] * 5 + [0] * 5)
    assert calibration_error(happened, p, 2) == pytest.approx((0.2 + 0.1) / 2)
    # Equal predictions share a bin, however the rows are sorted and however many bins there are.
    order = np.random.default_rng(1).permutation(20)
    for bins in (2, 15):
        assert calibration_error(happened[order], p[order], bins) == pytest.approx(0.15)
    assert calibration_error(happened, np.full(20, 0.4)) == pytest.approx(0.0)


def test_several_classes():
    y = np.array([0, 0, 1, 2])
    p = np.array([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    figures = scores("multi:softprob", y, p)
    assert figures["error"] == 25.0
    assert figures["log_loss"] == pytest.approx(log_loss(y, p, labels=[0, 1, 2]))
    shares = np.array([0.5, 0.25, 0.25])
    assert figures["mean_gap"] == pytest.approx(np.abs(p.mean(axis=0) - shares).sum())
    assert 0 < figures["calibration"] <= 0.5
    assert "auc" not in figures


def test_numbers():
    figures = scores("reg:squarederror", np.array([1.0, 3.0]), np.array([1.0, 2.0]))
    assert figures == pytest.approx({"rmse": math.sqrt(0.5), "r2": 0.5, "mean_ratio": 0.75})
    with pytest.raises(ValueError, match="not finite"):
        scores("reg:squarederror", np.array([1.0]), np.array([np.nan]))


@pytest.mark.parametrize("name", ["bar", "tasks", "sizes", "peers_table", "alternatives"])
def test_tables_of_the_default_show_probabilities(name):
    assert set(PROBABILITIES) <= set(tables.get(name).also)


def test_cells_of_other_libraries_outlast_a_build(tmp_path):
    table = store.Store(tmp_path / "t.csv")
    with table.writing({"build": "old", "command": "x"}) as add:
        for system, note in (("default", ""), ("peer", ""), ("slow peer", "ran out of time")):
            add({"dataset": "d", "system": system, "epsilon": 1.0, "seed": 0, "note": note})
    peers = frozenset({"peer", "slow peer"})
    assert table.keep("new", (), peers) == 1
    assert {c.system for c in table.rows} == peers
    assert table.keep("new", ("slow peer",), peers) == 0
    assert {c.system for c in table.rows} == {"peer"}
