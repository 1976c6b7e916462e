"""The runner of published tables: cells, resuming, missing data, published figures, the page."""

import csv
import functools
import hashlib
import http.server
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import core, datasets, download, render, store, tables, train
from experiments.__main__ import PAGES, main
from experiments.published import figures
from experiments.tables import dp_xgb_figure3

TINY = ["--seeds", "1", "--size", "600x5", "--epsilon", "8", "--jobs", "1"]
SYNTHETIC = ["--data", "synthetic_cls", "synthetic_reg"]
SYNTHETIC += ["--systems", "default", "sarus", "not private"]


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("XGB_DP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XGB_DP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(download.SWITCH, raising=False)


def rows_of(folder: Path, name: str = "sarus_figure4") -> list[dict[str, Any]]:
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_tiny_table_through_the_command_line(tmp_path):
    command = [sys.executable, "-m", "experiments", "sarus_figure4", *TINY, *SYNTHETIC]
    command += ["--jobs", "2"]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)],
        cwd=root,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = rows_of(tmp_path)
    by_cell = {(r["dataset"], r["system"], r["epsilon"]) for r in rows}
    assert by_cell == {
        (f"{data}(600x5)", system, epsilon)
        for data in ("synthetic_cls", "synthetic_reg")
        for system, epsilon in (("default", "8"), ("sarus", "8"), ("not private", "inf"))
    }
    for row in rows:
        assert not row["note"]
        metric = "rmse" if "reg" in row["dataset"] else "error"
        assert float(row[metric]) > 0
        if row["system"] == "not private":
            assert not row["spent_epsilon"]
            continue
        assert 7.5 < float(row["spent_epsilon"]) <= 8.0  # from the ledger, not the target
        assert float(row["spent_delta"]) == (0.0 if row["system"] == "sarus" else 1e-6)
        assert "leaves" in row["releases"]
    (run,) = json.loads((tmp_path / "sarus_figure4.runs.json").read_text()).values()
    assert run["command"].startswith("python -m experiments sarus_figure4 --seeds 1")
    assert {"python", "xgboost", "xgb-dp", "numpy"} <= set(run["versions"])
    assert done.stdout.strip() + "\n" == (tmp_path / "sarus_figure4.md").read_text()
    assert "| Sarus (published) | 12.0 | 10.0 | 11.0 | 8.0 | 8.0 | 8.0 |" in done.stdout
    assert (tmp_path / "sarus_figure4.png").stat().st_size > 1000
    assert "100%" in done.stderr


def test_finished_cells_are_kept(tmp_path, capsys):
    command = ["sarus_figure4", *TINY, *SYNTHETIC, "--out", str(tmp_path)]
    assert main([*command, "--limit", "2"]) == 0
    first = rows_of(tmp_path)
    assert len(first) == 2
    path = tmp_path / "sarus_figure4.csv"
    with path.open("a", encoding="utf-8") as file:  # a row that was torn in the middle
        file.write("synthetic_reg(600x5),default,8,0,,,12")
    assert main(command) == 0
    rows = rows_of(tmp_path)
    assert len(rows) == 6
    assert [r for r in rows if r in first] == sorted(first, key=lambda r: rows.index(r))
    assert main(command) == 0
    assert rows_of(tmp_path) == rows  # nothing is run again
    capsys.readouterr()


def test_cells_of_another_build_are_run_again(tmp_path, capsys):
    command = ["sarus_figure4", *TINY, "--data", "synthetic_cls", "--systems", "default"]
    command += ["--out", str(tmp_path)]
    main(command)
    runs_path = tmp_path / "sarus_figure4.runs.json"
    runs = json.loads(runs_path.read_text())
    runs["1"]["build"] = "another"
    runs_path.write_text(json.dumps(runs))
    (before,) = rows_of(tmp_path)
    main([*command, "--any-build"])
    assert rows_of(tmp_path) == [before]
    main(command)
    (after,) = rows_of(tmp_path)
    assert after["run"] != before["run"]
    assert "another build" in capsys.readouterr().err
    main([*command, "--redo", "default"])
    (again,) = rows_of(tmp_path)
    assert again["run"] != after["run"]  # equal scores and times would say nothing


def test_an_interruption_keeps_what_is_finished(tmp_path, monkeypatch):
    run, seen = train.run, []

    def stop(*args: Any) -> dict[str, Any]:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append("one")
        return run(*args)

    monkeypatch.setattr(train, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        main(["sarus_figure4", *TINY, *SYNTHETIC, "--out", str(tmp_path)])
    assert len(rows_of(tmp_path)) == 2
    assert not list(tmp_path.glob("*.part"))


def test_data_that_cannot_be_had_are_named(tmp_path, capsys):
    assert main(["maddock_table4", "--out", str(tmp_path), "--seeds", "1"]) == 0
    text = capsys.readouterr().out
    assert "Not run: Bank: bank_full.parquet is not in the folder that XGB_DP_DATA names" in text
    assert "Not run: Higgs: 200,000 rows" in text
    assert "| IH (s=5) (published) | 0.8888 ± 0.0035 |" in text  # the published figures stay
    assert rows_of(tmp_path, "maddock_table4") == []


def test_a_failed_cell_is_named_and_run_again(tmp_path, monkeypatch, capsys):
    def fail(*args: Any) -> dict[str, Any]:
        raise ValueError("no such luck")

    command = ["sarus_figure4", *TINY, "--data", "synthetic_cls", "--systems", "default"]
    command += ["--out", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(train, "run", fail)
        main(command)
    text = capsys.readouterr().out
    assert "Failed: default on synthetic_cls(600x5): ValueError: no such luck." in text
    main(command)
    (row,) = rows_of(tmp_path)
    assert not row["note"]


def test_a_file_of_another_form_is_not_touched(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("data,score\nPol,1\n")
    with pytest.raises(ValueError, match=r"t\.csv is no file of results; give --out"):
        store.Store(path)
    assert path.read_text() == "data,score\nPol,1\n"


def test_two_writers_of_one_table_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    run = store.this_run("x")
    with store.Store(path).writing(run):  # noqa: SIM117
        with pytest.raises(RuntimeError, match="Another process"):
            with store.Store(path).writing(run):
                pass


@pytest.mark.parametrize("name", tables.NAMES)
def test_every_table_is_consistent(name):
    table = tables.get(name)
    assert table.name == name
    cells = list(table.cells(core.Options(seeds=1)))
    assert len(set(cells)) == len(cells) > 0
    published = figures(name)
    published_systems = {f.system for f in published}
    assert {s.reproduces for s in table.systems if s.reproduces} <= published_systems
    known = {core.base(d.name) for d in table.datasets} | set(table.absent)
    known |= {"mean rank", "Covtype", "Higgs", *dp_xgb_figure3.GROUPS, "total"}
    assert {f.dataset for f in published} <= known
    assert all(f.source and math.isfinite(f.mean) for f in published)


def test_published_figures_are_those_of_the_papers():
    def mean(table: str, *key: Any) -> float:
        (figure,) = (f for f in figures(table) if (f.dataset, f.system, f.epsilon) == key)
        return figure.mean

    assert mean("sarus_figure4", "Abalone", "Sarus", 4.0) == 3.2
    assert mean("dp_xgb_table1", "Credit 1", "TR_ada", 1.0) == 0.8435
    assert mean("dp_xgb_table1", "Pol", "TR", 1.0) == 0.9652
    assert mean("maddock_table3", "Adult", "PR newton", 0.25) == 0.8103
    assert mean("maddock_table3", "Nomao", "TR averaging", 1.0) == 0.8884
    assert mean("maddock_table4", "Credit 1", "Uniform", 1.0) == 0.7822
    assert mean("maddock_table5", "Bank", "Batch (B=20)", 0.1) == 0.819
    assert mean("ebm_slides", "Phishing", "DP-EBM GDP, recreated", 2.0) == 0.977
    assert mean("dp_xgb_figure3", "50 trees and fewer", "XGB_ada", 1.0) == 30.56
    assert mean("dpboost_table2", "Webdata", "DPBoost", 100.0) == 32
    assert mean("sbdt_paper", "Abalone, R²", "S-BDT v1", 0.54) == 0.47
    assert len(figures("dp_xgb_table1")) == 18 * 7
    assert len(figures("maddock_table3")) == 5 * 9 * 5
    assert len(figures("dpboost_table2")) == 10 * 2
    groups: dict[str, list[float]] = {}
    for f in figures("dp_xgb_figure3"):
        groups.setdefault(f.system, []).append(f.mean)
    assert len(groups) == 7
    for *parts, total in groups.values():
        assert sum(parts) == pytest.approx(total, abs=0.02)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_pages_have_the_committed_results(path):
    text = path.read_text(encoding="utf-8")
    assert "<!-- end -->" in text
    assert render.page(text) == text, "run: python -m experiments docs"


def test_no_result_names_a_place_on_a_machine():
    for file in render.RESULTS.iterdir():
        if file.suffix != ".png":
            text = file.read_text(encoding="utf-8")
            assert not any(word in text for word in ("/tmp", "/work", "/home", "/root"))


def test_classes_are_balanced_by_a_public_draw(tmp_path):
    frame = pd.DataFrame({"a": range(10), "target": [0] * 7 + [1] * 3})
    frame.to_parquet(tmp_path / "data" / "x.parquet")
    data = datasets.Dataset("X", "x", balance=True)
    x, y, _ = datasets.load(data)
    assert sorted(y) == [0, 0, 0, 1, 1, 1]
    assert x.equals(datasets.load(data)[0])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "www" / "abalone").mkdir(parents=True)
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *a: None})
    handler = functools.partial(quiet, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()


def test_downloads_are_checked_and_cached(tmp_path, server, monkeypatch):
    content = b"M,0.455,0.365,0.095,0.514,0.2245,0.101,0.15,15\nF,0.53,0.42,0.135,1,1,1,1,9\n"
    file = tmp_path / "www" / "abalone" / "abalone.data"
    file.write_bytes(content)
    monkeypatch.setattr(download, "UCI", server)
    with pytest.raises(datasets.MissingDataError, match="--download"):
        datasets.load(datasets.ABALONE)
    monkeypatch.setenv(download.SWITCH, "1")
    with pytest.raises(datasets.MissingDataError, match="hash"):
        datasets.load(datasets.ABALONE)  # not the file that its checksum names
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(download.SHA256, "abalone/abalone.data", digest)
    x, y, categories = datasets.load(datasets.ABALONE)
    assert y.tolist() == [15.0, 9.0]
    assert categories == {"sex": ["F", "M"]}
    file.unlink()
    assert datasets.load(datasets.ABALONE)[0].equals(x)  # from the cache
