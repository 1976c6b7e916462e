"""Tables that compute, write or draw in their own way, and metrics that were added later."""

import csv
import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from experiments import kept, render, store, summary, synthetic, tables
from experiments.__main__ import main
from experiments.core import Cell, Options
from experiments.scoring import calibration_error
from experiments.tables import dp_xgb_figure1, rare
from experiments.train import thinned
from xgb_dp.request.default_plans import SIZES

from .test_runner import rows_of


def test_a_file_of_an_older_run_lacks_later_metrics(tmp_path):
    older = [name for name in store.COLUMNS if name not in store.LATER]
    path = tmp_path / "t.csv"
    values = {"dataset": "Pol", "system": "x", "epsilon": "1", "seed": "0", "auc": "0.5"}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, older, restval="")
        writer.writeheader()
        writer.writerow({**values, "run": "1"})
    (row,) = store.read(path)
    assert (row["auc"], row["r2"], row["tree_ms"]) == (0.5, "", "")
    with store.Store(path).writing(store.this_run("x")):
        pass
    assert store.read(path) == [row]
    assert path.read_text().startswith(",".join(store.COLUMNS) + "\n")


def test_costs_of_selections_are_computed(tmp_path, capsys):
    command = ["dp_xgb_figure1", "--epsilon", "0.5", "--data", "order 2", "20 selections"]
    assert main([*command, "--out", str(tmp_path), "--jobs", "1"]) == 0
    by_name = {
        (r["dataset"], r["system"]): float(r["loss"]) for r in rows_of(tmp_path, "dp_xgb_figure1")
    }
    line = by_name["order 2", "curve zCDP"]
    assert line == pytest.approx(2 * 0.5**2 / 8)
    assert by_name["order 2", "curve formula"] == pytest.approx(by_name["order 2", "curve rdp"])
    assert by_name["order 2", "curve rdp"] < line
    total = {k[1].split()[1]: v for k, v in by_name.items() if k[0] == "20 selections"}
    assert total["exact"] < total["rdp"] < total["zCDP"] < total["gdp"] < total["pure"]
    assert total["pure"] == pytest.approx(10.0)
    text = capsys.readouterr().out
    assert "| 20 selections | 10 |" in text
    assert "splits." not in text  # nothing was split, nothing has a spread
    assert (tmp_path / "dp_xgb_figure1.png").stat().st_size > 1000


@pytest.mark.parametrize("eps0", [0.1, 2.0])
@pytest.mark.parametrize("order", [1.5, 8.0, 128.0])
def test_the_printed_formula_is_the_largest_of_two_point_distribution(eps0, order):
    t = 0.37 * eps0
    p = (math.exp(-t) - math.exp(-eps0)) / (1 - math.exp(-eps0))
    one = (order * (t - eps0) + math.log(math.expm1(order * eps0) * p + 1)) / (order - 1)
    assert one <= dp_xgb_figure1.formula(eps0, order) <= min(eps0, order * eps0**2 / 8) + 1e-12


@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_times_stand_beside_those_of_the_same_run(tmp_path, capsys):
    command = ["dpboost_table2", "--seeds", "1", "--size", "600x5", "--jobs", "1"]
    command += ["--data", "synthetic_cls", "--systems", "default", "not private"]
    command += ["--out", str(tmp_path)]
    main(command)
    rows = {r["system"]: float(r["tree_ms"]) for r in rows_of(tmp_path, "dpboost_table2")}
    assert set(rows) == {"default", "not private"}
    assert all(ms > 0 for ms in rows.values())
    text = capsys.readouterr().out
    ratio = rows["default"] / rows["not private"]
    # The times in the file have six digits, so that the ratio of the exact ones may differ by 1e-5.
    assert any(f"({ratio * (1 + off):.2f}x)" in text for off in (-1e-5, 0.0, 1e-5))
    assert "*1000 / 360 (2.78x)*" in text
    assert "| SUSY (not run) |  |  |  |  |  | *380 / 320 (1.19x)* |" in text
    assert "better than the best published" not in text


@pytest.mark.parametrize("name", ["bar", "maddock_table4", "dp_xgb_figure3"])
def test_results_are_committed_in_a_form_that_keeps_every_score(name, tmp_path):
    table = tables.get(name)
    rows = store.read(render.RESULTS / f"{name}.csv")
    none = dict.fromkeys((table.metric(rows[0]["dataset"]), *table.also), "")
    failed = {**rows[0], "seed": "97", "note": "ValueError", **none}
    kept.write(tmp_path / "t.csv", table, [*reversed(rows), failed])
    again = store.read(tmp_path / "t.csv")
    assert sorted(map(str, again)) == sorted(map(str, [*rows, failed]))
    assert summary.means(table, again) == summary.means(table, rows)
    (line,) = (x for x in (tmp_path / "t.csv").read_text().splitlines() if "ValueError" in x)
    assert ",97," in line


def test_scores_of_single_runs_stay_small():
    size = 0
    for file in render.RESULTS.glob("*.csv"):
        with file.open(newline="", encoding="utf-8") as lines:
            size += sum(len(line.get("scores", "")) for line in csv.DictReader(lines))
    assert 0 < size < 300_000


def test_the_task_of_any_size():
    x, y, categories = synthetic.generate("many interactions", 4000, 20)
    assert (x.shape, y.dtype, categories) == ((4000, 20), np.float32, {})
    assert 0.45 < y.mean() < 0.6
    c = x.to_numpy(dtype=np.float64).T
    f = np.sin(2 * c[0]) * c[1] + 0.8 * abs(c[2]) * c[3] + 0.7 * c[4] * c[5]
    f += 0.5 * np.tanh(3 * c[6]) + 0.6 * (c[7] > 0.5) * (c[8] < 0) + 0.4 * c[9] * c[10] * c[11]
    p = 1 / (1 + np.exp(-1.5 * f))
    assert calibration_error(y > 0.5, p) < 0.05
    assert roc_auc_score(y, p) > 0.84  # the best that any model reaches
    again = synthetic.generate("many interactions", 4000, 20)
    assert again[0].equals(x)


def test_a_class_is_made_rare():
    y = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0], np.float32)
    assert thinned(y, 3).tolist() == [0, 1, 2, 3, 4, 6, 7, 8]
    assert thinned(y, 1).tolist() == list(range(9))
    assert thinned(y, 100).tolist() == [0, 1, 3, 4, 6, 7, 8]


def test_the_class_share_has_no_excess_log_loss(monkeypatch):
    """Test rows have weights, so the best constant is the share of the training rows."""
    table, seen = tables.get("rare"), {}

    def constant(params, parts, rounds, weights, private):
        seen.update(params, share=parts.y_train.mean())
        return np.full(len(parts.y_test), seen["share"]), {}

    monkeypatch.setattr(rare, "here", constant)
    row = rare.compute(table, Cell("Generated, 1:100", rare.EXACT, 0.25, 0), Options())
    assert seen["share"] == pytest.approx(1 / 101, rel=0.01)
    assert seen["base_score"] == pytest.approx(seen["share"])
    assert row["excess"] == pytest.approx(0.0, abs=1e-4)
    assert (row["auc"], row["mean_ratio"]) == (0.5, pytest.approx(1.0))


def test_the_smallest_size_has_enough_test_rows(tmp_path, capsys):
    command = ["sizes", "--data", "1,000 rows", "--seeds", "1", "--epsilon", "1", "--jobs", "1"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    rows = {r["system"]: r for r in rows_of(tmp_path, "sizes")}
    assert set(rows) == {"default", "not private"}
    assert {r["n_train"] for r in rows.values()} == {"700"}
    # Left open, and chosen by a noisy number of rows.
    assert int(rows["default"]["rounds"]) in {size.rounds for size in SIZES["binary"]}
    assert float(rows["default"]["log_loss"]) > 0
    text = capsys.readouterr().out
    assert "| data | ε = 1 | not private |" in text
    assert "Mean prediction over mean label" in text
    assert (tmp_path / "sizes.png").stat().st_size > 1000
    train = {d.name: d.size[0] - d.test_rows for d in tables.get("sizes").datasets}
    assert train["1,000,000 rows"] == 700_000
    assert train["10,000,000 rows"] == 7_000_000
