"""Rows that lie on a disk while a model is trained are the rows that lie in memory."""

import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("click")

import xgboost as xgb

from xgb_dp.cli import tables
from xgb_dp.domain import data_files
from xgb_dp.testing import fixed_noise

from .calls import SCHEMA, TRAIN, fails, rows, run

KEY = 11


@pytest.fixture
def small(folder, monkeypatch):
    """A folder for tables, each of which has few rows; a weight, and several rows of a person."""
    monkeypatch.setattr(data_files, "BLOCK", 300)
    monkeypatch.setattr(tables, "_CELLS", 60)
    visits = rows().assign(patient=np.arange(200) % 150, heavy=np.tile([1, 0.5], 100))
    visits.to_csv("rows.csv", index=False)
    visits.to_parquet("rows.parquet", row_group_size=30)
    owners = SCHEMA.replace("drop: [id]", "drop: [id]\nprivacy_id: patient\nweight: heavy")
    Path("persons.yaml").write_text(owners)
    Path("plain.yaml").write_text(SCHEMA.replace("drop: [id]", "drop: [id, patient, heavy]"))
    Path("pages").mkdir()
    return folder


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("schema", ["plain.yaml", "persons.yaml"])
def test_the_model_is_that_of_memory(kind, schema, small):
    call = ["train", f"rows.{kind}", "--schema", schema, *TRAIN[4:]]
    for where in ([], ["--disk", "pages"]):
        with fixed_noise(KEY):
            run(*call, *where, "--model", f"model{len(where)}.json")
    models = [xgb.Booster(model_file=f"model{n}.json").save_raw("json") for n in (0, 2)]
    assert models[0] == models[1]
    assert not list(Path("pages").iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_nobody_else_may_enter_the_folder_of_the_pages(small, monkeypatch):
    modes = []
    table_of = tables.FileColumns.table

    def discovery(*given):
        modes.extend(stat.filemode(path.stat().st_mode) for path in Path("pages").iterdir())
        return table_of(*given)

    monkeypatch.setattr(tables.FileColumns, "table", discovery)
    run("train", "rows.csv", "--schema", "plain.yaml", *TRAIN[4:], "--disk", "pages")
    assert len(modes) > 5 and set(modes) == {"drwx------"}


@pytest.mark.parametrize("bad", [("age", "height"), ("height", "age"), ("buys", "age")])
def test_an_error_is_that_of_all_rows(bad, small, no_training):
    """Whichever column has its bad cell in an earlier page."""
    visits = pd.read_csv("rows.csv", dtype=str, keep_default_na=False)
    for row, column in zip((5, 190), bad, strict=True):
        visits.loc[row, column] = "many"
    visits.to_csv("rows.csv", index=False)
    call = ["train", "rows.csv", "--schema", "plain.yaml", *TRAIN[4:]]
    output = fails(*call)
    assert "'age'" in output
    assert fails(*call, "--disk", "pages") == output
    assert not list(Path("pages").iterdir())


def test_a_command_that_is_stopped_leaves_no_row(small):
    call = ["train", "rows.csv", "--schema", "plain.yaml", *TRAIN[4:-1], "100000"]
    child = subprocess.Popen(
        [sys.executable, "-m", "xgb_dp", *call, "--disk", "pages"], stderr=subprocess.DEVNULL
    )
    while not list(Path("pages").glob("*/*")):
        assert child.poll() is None
        time.sleep(0.05)
    child.terminate()
    assert child.wait(60) == 143
    assert not list(Path("pages").iterdir())


def test_a_disk_without_room_is_an_error(small, no_training, monkeypatch):
    monkeypatch.setattr(tables.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 1000))
    output = fails("train", "rows.csv", "--schema", "plain.yaml", *TRAIN[4:], "--disk", "pages")
    assert "too little free space" in output
    assert not list(Path("pages").iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are of POSIX")
def test_a_process_that_is_aborted_leaves_no_row(small):
    """A write that fails where nobody foresaw it, as beyond a quota, ends XGBoost's process."""
    frame = pd.concat([pd.read_csv("rows.csv")] * 100)
    frame.to_csv("rows.csv", index=False)
    call = [sys.executable, "-m", "xgb_dp", "train", "rows.csv", "--schema", "plain.yaml"]
    code = (
        "import resource, runpy, sys; sys.argv = sys.argv[1:]; "
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)); "
        "runpy.run_module('xgb_dp', run_name='__main__', alter_sys=True)"
    )
    ended = subprocess.run(
        [call[0], "-c", code, *call[2:], *TRAIN[4:], "--disk", "pages"], capture_output=True
    )
    assert ended.returncode != 0 and not Path("model.json").exists()
    for _ in range(200):
        if not list(Path("pages").iterdir()):
            return
        time.sleep(0.1)
    assert not list(Path("pages").iterdir())
