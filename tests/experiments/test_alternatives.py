"""What is run in processes of their own, and the own gradient descent among it."""

import csv
import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import chi2

from experiments import kept, peers, render, runner, store, tables
from experiments.__main__ import main
from experiments.core import Cell
from experiments.workers import adassp, codes, descent
from experiments.workers.__main__ import METHODS
from xgb_dp.accounting import GaussianEvent, make_accountant


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("XGB_DP_DATA", str(tmp_path / "data"))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 900),
            "gain": np.where(rng.random(900) < 0.9, 0.0, rng.exponential(100, 900)),
            "pet": rng.choice(np.array(["cat", "dog", None], dtype=object), 900),
        }
    )
    frame.loc[::50, "age"] = np.nan
    odds = (frame["age"].fillna(40) - 40) / 5 + (frame["pet"] == "dog")
    frame["target"] = (rng.random(900) < 1 / (1 + np.exp(-odds))).astype("int8")
    frame.to_parquet(tmp_path / "data" / "adult.parquet")
    return tmp_path


def _rows(folder: Path) -> list[dict[str, Any]]:
    with (folder / "alternatives.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.filterwarnings("ignore:Delta is")
def test_own_trainings_and_gradient_descent(folder, capsys):
    command = ["alternatives", "--data", "Adult", "--seeds", "1", "--epsilon", "4", "--jobs", "1"]
    command += ["--out", str(folder), "--systems", "default", "not private"]
    command += ["gradient descent on bins"]
    assert main(command) == 0
    rows = _rows(folder)
    table = tables.get("alternatives")
    assert len(rows) == 2 + sum(s.grid for s in table.systems)
    for row in rows:
        assert not row["note"]
        assert 0.55 < float(row["auc"]) < 1
        assert float(row["seconds"]) > 0
        assert 20 < float(row["peak_mib"]) < 2000
        assert float(row["log_loss"]) > 0
    (default,) = (r for r in rows if r["system"] == "default")
    assert 3.9 < float(default["spent_epsilon"]) <= 4.0
    text = capsys.readouterr().out
    assert "| system | ε = 4 | no privacy | seconds | MiB |" in text
    assert text.count("| gradient descent on bins |") == 1
    kept.write(folder / "kept.csv", table, store.read(folder / "alternatives.csv"))
    again = store.read(folder / "kept.csv")
    assert len({r["system"] for r in again}) == 3
    shape = re.sub(r"[0-9.]+", "0", text)  # the committed form has fewer digits
    assert re.sub(r"[0-9.]+", "0", render.markdown(table, again, {})).strip() == shape.strip()
    assert main(command) == 0
    assert _rows(folder) == rows  # nothing is run again


def test_settings_of_a_grid_share_a_process():
    table = tables.get("alternatives")
    names = [s.name for s in table.systems if s.grid][:3]
    cells = [Cell("Adult", n, e, 0) for e in (1.0, 4.0) for n in ["default", *names]]
    groups = runner.together(table, cells)
    assert sorted(map(len, groups)) == [1, 1, 3, 3]
    assert set(itertools.chain.from_iterable(groups)) == set(cells)


def test_workers_that_fail_or_are_late_say_so(monkeypatch):
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    y = np.array([0.0, 1.0])
    from experiments.train import Split

    parts = Split(frame, frame, y, y, {}, {}, {}, ())
    request = peers.Request("descent", [{}], 1.0, 0.1, None, 0, True, (0, 1), [False], ["a"], {})
    with pytest.raises(peers.PeerError, match="KeyError: 'bins'"):
        peers.predict(peers.HERE, request, parts, 900.0)
    stack = "Traceback\nxgboost.core.XGBoostError: wrong:\n  [bt] (8) /some/library.so(+0xb)\n"
    assert peers._last_error(stack) == "xgboost.core.XGBoostError: wrong:"
    with pytest.raises(peers.PeerError, match="not finished within"):
        peers.predict(peers.HERE, request, parts, 0.01)
    monkeypatch.setattr(peers, "FOLDER", Path("nowhere"))
    with pytest.raises(peers.PeerError, match="opacus is not installed"):
        peers.predict("opacus", request, parts, 1.0)
    with pytest.raises(peers.PeerError, match="build its module sbdt"):
        peers.install("sbdt")


def test_every_method_and_environment_is_known():
    for name in tables.NAMES:
        for system in tables.get(name).systems:
            if system.peer or system.apart:
                assert (system.method or system.peer) in METHODS
            if system.peer not in ("", peers.HERE):
                assert system.peer in peers.REQUIREMENTS | peers.BY_HAND


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-5), (4.0, 1e-3)])
def test_budget_of_the_gradients(epsilon, delta):
    mu = descent.gaussian_mu(epsilon, delta)
    bits = 40
    sensitivity2 = round(mu**2 * 4**bits)
    event = GaussianEvent("leaves", sensitivity2, 4**bits, 1, 1)
    assert make_accountant("exact", [event]).get_epsilon(delta) == pytest.approx(epsilon, rel=1e-3)


def test_a_linear_model_is_the_best_one_without_noise_and_shrunk_with_it():
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.standard_normal((4000, 3)), rng.integers(0, 4, 4000)])
    data = {"x_train": table[:3000], "x_test": table[3000:]}
    x = adassp.scores(data, [False, False, False, True])
    assert x.shape == (4000, 8)
    assert np.linalg.norm(x, axis=1).max() <= 1 + 1e-12
    y = np.sign(table[:, 0] + (table[:, 3] == 2) + 0.5 * rng.standard_normal(4000))
    data["y_train"] = 0.5 + 0.5 * y[:3000]
    best = x[:3000] @ np.linalg.lstsq(x[:3000], y[:3000], rcond=None)[0]
    assert np.allclose(x[:3000] @ adassp.fit(x[:3000], y[:3000], 1e6), best, atol=1e-3)
    shrunk = [np.linalg.norm(adassp.fit(x[:3000], y[:3000], 0.01)) for _ in range(20)]
    assert np.mean(shrunk) < 0.5 * np.linalg.norm(adassp.fit(x[:3000], y[:3000], 1e3))
    request = {"nominal": [False, False, False, True], "epsilon": 4.0, "delta": 1e-4}
    predicted = adassp.predict(request, data)
    assert np.corrcoef(predicted, y[3000:])[0, 1] > 0.6


def test_a_row_adds_a_gradient_of_norm_at_most_the_clip():
    rng = np.random.default_rng(1)
    for thin in (False, True):
        table = rng.integers(0, 4, (300, 6)) * (rng.random((300, 6)) < (0.03 if thin else 0.9))
        x = descent.one_hot(table)
        norms = np.sqrt(np.asarray(x.multiply(x).sum(axis=1))).ravel()
        assert norms == pytest.approx(np.ones(300), rel=1e-5)
        assert (x[:, -1].toarray() > 0).all()  # the intercept
        assert (np.diff(x.indptr) < 7).any() == thin


def weight_of_each_round(rounds: int) -> np.ndarray:
    """What the gradient of each round adds to the weights, which are the mean of later ones."""
    steps = np.cumsum(descent.MOMENTUM ** np.arange(rounds))  # after 1, 2, ... rounds
    second = range(rounds // 2, rounds)
    return np.array([
        np.mean([steps[end - begin] if end >= begin else 0.0 for end in second])
        for begin in range(rounds)
    ])  # fmt: skip


def test_more_budget_learns_more_and_noise_is_that_of_the_budget():
    rng = np.random.default_rng(2)
    table = rng.integers(0, 4, (4000, 3))
    y = (rng.random(4000) < np.where(table[:, 0] > 1, 0.9, 0.1)).astype(np.float32)
    x = descent.one_hot(table)
    exact = descent.fit(x, y, math.inf, 100, 8.0, 1.0)
    p = 1 / (1 + np.exp(-(x @ exact)))
    assert p[table[:, 0] > 1].mean() == pytest.approx(0.9, abs=0.03)
    # Of columns that no row has, the weights are sums of the noise of all rounds.
    empty = sparse.csr_matrix((4000, 5000), dtype=np.float32)
    with_empty = sparse.csr_matrix(sparse.hstack([x, empty]))
    worse = {}
    for mu in (0.5, 50.0):
        weights = descent.fit(with_empty, y, mu, 100, 8.0, 1.0)
        worse[mu] = np.sqrt(np.mean(np.square(x @ (weights[: x.shape[1]] - exact))))
        deviation = np.sqrt(100) / mu * 8.0 / 4000 * np.linalg.norm(weight_of_each_round(100))
        total = float(np.sum(np.square(weights[x.shape[1] :] / deviation)))
        assert chi2.ppf(1e-7, 5000) < total < chi2.isf(1e-7, 5000)
    # A hundred times as much; its logarithm has a deviation of 0.45.
    assert worse[0.5] > 4.0 * worse[50.0]


def test_bins_of_columns():
    skewed = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])
    coded = codes.bin_codes(skewed, False, 5)
    assert coded[:900].max() == 0
    assert coded[900:].min() > 0  # zeros stand alone, and the rest has quantiles of its own
    assert 5 <= coded.max() <= 7
    assert (np.diff(coded) >= 0).all()
    missing = codes.bin_codes(np.array([3.0, np.nan, 1.0, 3.0]), True, 0)
    assert missing.tolist() == [1, 2, 0, 1]
    few = codes.bin_codes(np.array([5.0, 7.0, 5.0]), False, 6)
    assert few.tolist() == [0, 1, 0]


def test_numbers_for_those_who_take_nothing_else():
    data = {
        "x_train": np.array([[0.0, 1.0], [np.nan, 0.0]]),
        "x_test": np.array([[4.0, np.nan], [8.0, 1.0]]),
    }
    unit = codes.dense(data, [False, True], "unit")
    assert unit.shape == (4, 1 + 1 + 3)
    assert unit[:, 0].tolist() == [0.0, 0.5, 0.5, 1.0]
    assert unit[:, 1].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert (unit[:, 2:].sum(axis=1) == 1).all()
    standard = codes.dense(data, [False, True], "standard")
    assert standard[:, 0].mean() == pytest.approx(0.0)
    assert standard[:, 0].std() == pytest.approx(1.0)
    train, test = codes.filled(data, [False, True])
    assert (train[1, 0], test[0, 1]) == (4.0, 2.0)
    assert np.isnan(data["x_train"]).sum() == 1  # the data are not touched
