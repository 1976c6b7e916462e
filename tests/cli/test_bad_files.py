"""Every command with files that are missing, damaged or something else: one line, no stack."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import xgb_dp
from xgb_dp.errors import PrivacyParameterError

pytest.importorskip("click")

from .calls import SPENT, TARGET, fails, invoke, run

TRAIN = ["--target", "y", "--classes", "0,1", *SPENT]
SECRET = "secret cell"
CONTENT = {
    "missing": None,
    "folder": None,
    "empty": b"",
    "bytes": bytes(range(256)) * 4,
    "text": f"{SECRET}\nworld\n".encode(),
    "list": b"[1, 2]",
    "mapping": b"{}",
    "deep": b"[" * 100_000,
    "nested": b'{"x":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    "half": None,  # of a model
    "ubj": b"{L\x00\x00\x00\x00\x00\x00\x00\x07learnerN",
}
# Schemas that declare nothing, which is no fault of the file.
SOUND = [("empty", ".toml"), ("mapping", ".json"), ("mapping", ".yaml")]
# Command, the endings that it is tried with, and the arguments; FILE is replaced.
COMMANDS = {
    "report": (["", ".json", ".ubj"], ["report", "FILE"]),
    "card": (["", ".json", ".ubj"], ["card", "FILE"]),
    "predict": (["", ".json", ".ubj"], ["predict", "FILE", "rows.csv"]),
    "continue": (["", ".json", ".ubj"], ["train", "rows.csv", *TRAIN, "--continue", "FILE"]),
    "predict rows": (
        ["", ".csv", ".parquet", ".csv.gz", ".csv.zip", ".csv.xz", ".csv.bz2", ".csv.zst", ".tsv"],
        ["predict", "model.json", "FILE"],
    ),
    "train rows": (["", ".csv", ".parquet", ".csv.gz", ".csv.zip"], ["train", "FILE", *TRAIN]),
    "schema": (["", ".parquet", ".csv.gz", ".csv.zip"], ["schema", "FILE"]),
    "train schema": (
        ["", ".yaml", ".json", ".toml"],
        ["train", "rows.csv", *TRAIN, "--schema", "FILE"],
    ),
    "calibrate schema": ([".yaml", ".json", ".toml"], ["calibrate", *TARGET, "--schema", "FILE"]),
    "train budget": (["", ".json"], ["train", "rows.csv", *TRAIN, "--budget", "FILE"]),
    "budget": (["", ".json"], ["budget", "FILE"]),
    "budget check": (
        ["", ".json", ".ubj"],
        ["budget", "new budget", "--epsilon", "1", "--delta", "1e-6", "--check", "FILE"],
    ),
    "evaluate": (["", ".json", ".ubj"], ["evaluate", "FILE", "rows.csv", *SPENT[:4]]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("files")
    frame = pd.DataFrame({"a": np.arange(20.0), "y": [0, 1] * 10})
    frame.to_csv(place / "rows.csv", index=False)
    run("train", place / "rows.csv", *TRAIN, "--model", place / "model.json")
    return place


def bad_file(folder: Path, name: str, ending: str) -> str:
    path = folder / f"{name}{ending}"
    if name == "folder":
        path.mkdir(exist_ok=True)
    elif name == "half":
        path.write_bytes((folder / "model.json").read_bytes()[:500])
    elif name != "missing":
        path.write_bytes(CONTENT[name] or b"")
    return str(path)


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("command", COMMANDS)
def test_bad_files(command, name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    endings, arguments = COMMANDS[command]
    for ending in endings:
        path = bad_file(folder, name, ending)
        given = [path if a == "FILE" else a for a in arguments]
        if command.startswith(("train", "continue")):
            given += ["--model", "new.json"]
        if command.endswith("schema") and (name, ending) in SOUND:
            continue
        result = invoke(*given)
        where = f"{command} {name}{ending}: {result.output}"
        assert result.exit_code in (1, 2), where
        lines = result.stderr.splitlines()
        errors = [line for line in lines if line and not line.startswith(("Usage:", "Try "))]
        assert errors == [lines[-1]] and errors[0].startswith("Error: "), where
        for sign in ("Traceback", "Unexpected ", ".cc", "Check failed", "Stack", "0x", SECRET):
            assert sign not in result.output, where
        assert not Path("new.json").exists()


@pytest.mark.parametrize("path", ["\0", "a" * 5000, "\ud800"], ids=["NUL", "long", "surrogate"])
def test_paths_that_no_file_has(path):
    with pytest.raises(PrivacyParameterError):
        xgb_dp.privacy_report(path)


def test_nothing_is_spent_on_files_that_cannot_be_written(folder, monkeypatch):
    """Found before training: a model that cannot be saved has cost its budget."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("xgb_dp.cli.tables.read_table", lambda *_, **__: pytest.fail("read"))
    xgb_dp.Budget("total.json", epsilon=5.0, delta=1e-5)
    rows, total = Path("rows.csv").read_bytes(), Path("total.json").read_bytes()
    proc = [("cannot be written", "/proc/self/new.json")] if os.path.isdir("/proc/self") else []
    for message, *arguments in (
        ("cannot be written", "a" * 300 + ".json"),
        *proc,
        ("is also read", "rows.csv", "--force"),
        ("is also read", "total.json", "--budget", "total.json", "--force"),
        ("is written twice", "new.json", "--report", "./new.json"),
    ):
        assert message in fails("train", "rows.csv", *TRAIN, "--model", *arguments)
    assert (rows, total) == (Path("rows.csv").read_bytes(), Path("total.json").read_bytes())
    assert not Path("new.json").exists()
