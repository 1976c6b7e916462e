"""`examples/demo.py` and the benchmarks, as users run them, at a small size."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import xgb_dp
from benchmarks import trainers, wide
from benchmarks.bench import write
from tests.children import light_environment

ROOT = Path(__file__).resolve().parents[2]


def _run(*command: str, light: Path | None = None, both: bool = False) -> str:
    start = os.environ if light is None else light_environment(light)
    env = {k: v for k, v in start.items() if k != "XGB_DP_DATA"}
    run = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False, env=env
    )
    assert run.returncode == 0, run.stderr
    return run.stdout + (run.stderr if both else "")


def test_demo(tmp_path):
    pytest.importorskip("statsmodels")
    text = _run(
        "examples/demo.py",
        "--repeats",
        "2",
        "--epsilons",
        "3",
        "1",
        "--out",
        str(tmp_path),
        both=True,
    )
    assert "4472 training rows, 1894 test rows, 8 columns." in text
    assert "not private" in text and "-differentially private per row" in text
    assert "Warning" not in text
    rows = [line.split() for line in text.splitlines()]
    assert [r[0] for r in rows if len(r) == 5 and r[3] == "to"][-2:] == ["1", "3"]
    assert (tmp_path / "score_against_epsilon.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "model.json").read_text())["learner"]["attributes"]["dp_ledger"]
    assert len(xgb_dp.Budget(tmp_path / "budget.json").entries) == 4


@pytest.mark.slow
@pytest.mark.parametrize("case", ["dense", "sparse"])
def test_bench(tmp_path, case):
    out = tmp_path / "bench.json"
    small = ("--rows", "2000", "--rounds", "4", "--depth", "3", "--repeats", "1", "--threads", "1")
    text = _run("benchmarks/bench.py", "--case", case, *small, "--out", str(out), light=tmp_path)
    assert "| hist | " in text
    runs = json.loads(out.read_text())[case]
    assert set(runs) == {
        "hist",
        "dp_hist",
        "dp_hist, public bounds",
        "hist, 64 bins",
        "dp_hist, its default of 64 bins",
        "dp_hist, random splits",
    }
    for (run,) in runs.values():
        assert 0 < run["tree_s"] < run["train_s"]
        assert run["peak_mib"] > 0


@pytest.mark.slow
def test_growth(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text("A head.\n\n<!-- figures: written by benchmarks/growth.py -->\nan old table\n")
    small = ("--factor", "rows", "--most", "10000", "--rounds", "2", "--repeats", "1")
    command = ("-m", "benchmarks.growth", *small, "--out", str(tmp_path), "--page", str(page))
    text = _run(*command, light=tmp_path)
    assert "| 10,000 |" in text
    with (tmp_path / "performance.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    assert [run["method"] for run in runs] == ["hist", "dp_hist", "random"]
    assert all(float(run["tree_s"]) > 0 for run in runs)
    assert (tmp_path / "performance.png").read_bytes().startswith(b"\x89PNG")
    written = page.read_text()
    assert written.startswith("A head.")
    assert "| 10,000 |" in written
    assert "an old table" not in written


def test_trainers():
    """The slope of a tree, a whole training and a command; of our library only."""
    ours = [trainers.HIST, trainers.DP_HIST]
    tree, training = trainers.Task(2_000, rounds=(2, 6)), trainers.Task(500)
    lines: list[trainers.Line] = [
        (str(task), trainers.CPU, trainers.take_turns(ours, task, repeats=1))
        for task in (tree, training)
    ]
    lines.append(("CSV", trainers.ELAPSED, trainers.train_from_csv(ours, training, repeats=1)))
    heads = dict(zip(ours, ours, strict=True))
    rows, brief = (
        [line.strip("| ").split(" | ") for line in text.splitlines()]
        for text in (
            trainers.table(lines, heads, trainers.DP_HIST),
            trainers.table(lines, heads, trainers.DP_HIST, brief=True),
        )
    )
    assert rows[0] == ["ms", "hist", "dp_hist", "dp_hist / hist"]
    assert brief[0] == rows[0][:3]
    assert [row[0] for row in rows[2:]] == ["tree, 2,000 x 20", "training, 500 x 20", "CSV"]
    for row, short, (_, kind, runs) in zip(rows[3:], brief[3:], lines[1:], strict=True):
        times = [float(cell.split(" ")[0]) for cell in row[1:]]
        assert times[:2] == [float(cell) for cell in short[1:]]
        hist, private = (float(runs[trainer][0][kind]) for trainer in ours)
        assert times[1] == pytest.approx(1e3 * private, abs=1)
        assert times[2] == pytest.approx(private / hist, abs=0.01)


def test_wide(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text(f"A head.\n\n{wide.BEGIN}\n\nan old table\n\n{wide.END}\n\nA tail.\n")
    name = "texts, 1,000 columns"
    results: dict[str, dict[str, list[dict[str, float]]]] = {name: {}}
    for method in ("hist", "dp_hist"):
        job = json.dumps({"case": name, "method": method, "rounds": 2})
        text = _run("-m", "benchmarks.wide", "--job", job)
        results[name][method] = [json.loads(text.splitlines()[-1])]
        assert results[name][method][0]["tree_cpu_s"] > 0
    assert 3 < results[name]["hist"][0]["stored_mib"] < 6
    table = wide.table(results)
    write(table, page, wide.BEGIN, wide.END)
    assert [line.split(" | ")[2] for line in table.splitlines()[2:]] == ["hist", "dp_hist"]
    assert page.read_text() == f"A head.\n\n{wide.BEGIN}\n\n{table}\n\n{wide.END}\n\nA tail.\n"


def test_shares(tmp_path):
    # So many rounds that each kind of work is more than a tenth of a percent, whatever else runs.
    small = ("--rows", "20000", "--rounds", "60", "--repeats", "1")
    text = _run("-m", "benchmarks.shares", *small, light=tmp_path)
    shares = {}
    for line in text.splitlines():
        if match := re.match(r"\| (.+) \| ([0-9.]+) ", line.replace("*", "")):
            shares[match[1]] = float(match[2])
    private = shares.pop("all that is for privacy")
    assert len(shares) == 10
    assert min(shares.values()) >= 0  # in tenths of a percent, which the shortest may not reach
    assert sum(share > 0 for share in shares.values()) > 5
    assert sum(shares.values()) == pytest.approx(100, abs=1)
    assert 0 < private < 100


def test_times():
    text = _run("-m", "benchmarks.times", "--rounds", "2", "--repeats", "1", "--most-rows", "1000")
    draws, trainings = (part.splitlines()[2:] for part in text.strip().split("\n\n"))
    assert len(draws) == 6
    assert [line.split(" | ")[0] for line in trainings] == ["| 0 rows", "| 1,000 rows"]
    assert all(float(cell) >= 0 for line in trainings for cell in line.strip("| ").split(" | ")[1:])


def test_external(tmp_path):
    small = ("--rows", "2000", "--columns", "5", "--batches", "4", "--rounds", "2")
    command = ("-m", "benchmarks.external", *small, "--methods", "dp_hist")
    folder = tmp_path / "batches"
    folder.mkdir()
    text = _run(*command, "--folder", str(folder), light=tmp_path)
    cells = text.splitlines()[-1].split("|")[1:-1]
    assert cells[0].strip() == "dp_hist"
    before, peak = (float(cell) for cell in cells[5:7])
    assert 0 < before < peak
    assert not list(folder.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="connections tell what they sent")
def test_exchanges():
    """Workers send the bytes that are counted; sketches may give `hist` some bins more or less."""
    text = _run("-m", "benchmarks.exchanges", "--seen", "--workers", "5")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")][1:]
    assert [row[0].strip() for row in rows] == ["hist", "dp_hist"]
    assert float(rows[0][3]) == pytest.approx(float(rows[0][4]), rel=0.05)
    assert rows[1][3] == rows[1][4]
