"""What the commands write: whole or elsewhere, and what the book says of it."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp

pytest.importorskip("click")

from xgb_dp.cli import files as written
from xgb_dp.training import hook

from .calls import SPENT, TARGET, TRAIN, fails, invoke, rows, run


@pytest.fixture
def full(folder: Path, tmp_path_factory: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder has no more room when files are written, and another one has."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr(written.tempfile, "gettempdir", lambda: str(elsewhere))
    fill = written._fill

    def filling(place: Path, content: Any) -> None:
        if place.resolve().is_relative_to(folder.resolve()):
            place.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        fill(place, content)

    monkeypatch.setattr(written, "_fill", filling)
    return elsewhere


def test_a_paid_model_is_kept_elsewhere_where_the_disk_is_full(full):
    xgb_dp.Budget("total.json", epsilon=5.0, delta=1e-5)
    output = fails(*TRAIN, "--budget", "total.json", "--card", "card.md")
    places = {place.name: place for place in full.glob("*/*")}
    assert set(places) == {"card.md", "model.json"}
    assert all(str(place) in output for place in places.values())
    assert "No space left on device" in output
    (entry,) = xgb_dp.Budget("total.json").entries
    assert f"total.json was charged (entry {entry.id})" in output
    assert xgb_dp.privacy_report(places["model.json"]).epsilon <= 1.0
    assert {path.name for path in Path().iterdir()} == {
        "rows.csv", "schema.yaml", "total.json", "total.json.lock",
    }  # fmt: skip


@pytest.mark.parametrize("command", ["evaluate", "schema", "predict", "report", "card", "split"])
def test_every_command_writes_by_the_same_function(folder, command, monkeypatch):
    arguments = {
        "evaluate": ["evaluate", "model.json", "rows.csv", *TARGET, "--json", "new.json",
                     "--calibrated", "mended.json"],
        "schema": ["schema", "rows.csv", "--out", "new.yaml"],
        "predict": ["predict", "model.json", "rows.csv", "--out", "new.csv"],
        "report": ["report", "model.json", "--out", "new.html"],
        "card": ["card", "model.json", "--out", "new.md"],
        "split": ["split", "rows.csv", "--train", "new.csv", "--test", "other.csv"],
    }[command]  # fmt: skip
    run(*TRAIN)
    before = set(folder.iterdir())

    def full(path: Path, content: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(written, "_fill", full)
        output = fails(*arguments)
    assert "No space left on device" in output and "could not be saved" in output
    assert set(folder.iterdir()) == before
    run(*arguments)
    assert all(path.stat().st_size for path in folder.iterdir())


def test_models_are_written_as_xgboost_does(folder):
    for name in ("a.json", "a.ubj", "a.model"):
        run(*TRAIN, "--model", name)
        model = xgb.Booster(model_file=name)
        model.save_model(f"again-{name}")
        assert Path(name).read_bytes() == Path(f"again-{name}").read_bytes()


def test_a_replaced_file_keeps_its_mode_and_what_links_to_it(folder):
    run(*TRAIN)
    Path("model.json").chmod(0o600)
    Path("link.json").symlink_to("model.json")
    old = Path("model.json").read_bytes()
    run(*TRAIN, "--model", "link.json", "--force")
    assert Path("link.json").is_symlink() and Path("model.json").read_bytes() != old
    assert Path("model.json").stat().st_mode & 0o777 == 0o600


def test_a_disk_that_is_full_already_is_found_before_anything_is_drawn(
    folder, no_training, monkeypatch
):
    write = Path.write_bytes

    def full(self: Path, content: bytes) -> int:
        if len(content) > 1000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    assert "is empty" in fails(*TRAIN, "--model", "") and fails(*TRAIN, "--model", ".")
    assert "free disk space" in fails(*TRAIN)
    assert not Path("model.json").exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_says_what_the_book_says(folder, when, monkeypatch):
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    xgb_dp.Budget("total.json", epsilon=5.0, delta=1e-5)
    where = xgb_dp.engine.native if when == "after" else hook
    name = "release_before_trees" if when == "after" else "check_rows"
    monkeypatch.setattr(where, name, stop)
    output = fails(*TRAIN, "--budget", "total.json")
    assert "Interrupted." in output
    assert ("counts as spent" if when == "after" else "was not charged") in output
    assert len(xgb_dp.Budget("total.json").entries) == (when == "after")
    assert "nothing was charged" in fails(*TRAIN)


def command(*arguments: str, closed: bool = False, **streams: Any) -> Any:
    whole = [sys.executable, "-m", "xgb_dp", *arguments]
    if closed:
        whole = ["sh", "-c", 'exec "$@" >&-', "sh", *whole]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(whole, check=False, **streams)


@pytest.mark.parametrize("name", ["verify", "report", "card"])
def test_an_output_that_takes_nothing(name, folder):
    """It is closed, its reader has gone, or its disk is full: an error of one line."""
    run(*TRAIN)
    closed = command(name, "model.json", closed=True)
    assert closed.returncode == 1 and b"Standard output is closed" in closed.stderr
    read, write = os.pipe()
    os.close(read)
    gone = command(name, "model.json", stdout=write)
    os.close(write)
    assert gone.returncode not in (0, 120)
    assert b"Traceback" not in gone.stderr and b"Exception ignored" not in gone.stderr
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as file:
            full = command(name, "model.json", stdout=file)
        assert full.returncode == 1
        assert b"No space left on device" in full.stderr and full.stderr.count(b"\n") == 1


def test_arguments_that_are_no_text_are_refused(folder):
    ended = command(*TRAIN, "--model", os.fsdecode(b"m\xe9.json"))
    assert ended.returncode == 1
    assert b"is not valid UTF-8" in ended.stderr and b"Traceback" not in ended.stderr


def test_names_that_utf_8_cannot_hold(folder, no_training):
    Path("schema.json").write_text('{"target": "buys", "columns": {"\\ud800": "number"}}')
    assert "UTF-8" in fails("train", "rows.csv", "--schema", "schema.json", *SPENT)
    Path("odd.csv").write_text("a,\\ud800\n1,2\n")
    assert "--encoding" in fails("schema", "odd.csv", "--encoding", "unicode_escape")
    frame = rows().rename(columns={"age": "Größe"})
    frame.to_csv("latin.csv", index=False, encoding="latin-1")
    assert "--encoding" in fails("schema", "latin.csv")
    assert "Größe" in run("schema", "latin.csv", "--encoding", "latin-1").stdout


def test_rows_from_standard_input(folder):
    run(*TRAIN)
    expected = run("predict", "model.json", "rows.csv").stdout
    frame = rows()
    frame.to_csv("rows.csv.gz", index=False)
    frame.to_parquet("rows.parquet")
    for name in ("rows.csv", "rows.csv.gz", "rows.parquet"):
        for path in ("-", "/dev/stdin"):
            result = invoke("predict", "model.json", path, input=Path(name).read_bytes())
            assert (result.exit_code, result.stdout) == (0, expected), result.output
    with open("rows.parquet", "rb") as file:
        ended = command("predict", "model.json", "-", stdin=file)
    assert ended.stdout.decode() == expected, ended.stderr
    for arguments in (
        ["train", "-", "--schema", "schema.yaml", *SPENT, "--model", "b.json"],
        ["evaluate", "model.json", "-", *TARGET],
        ["discover", "-", *TARGET, "--number", "age"],
        ["select", "-", "--schema", "schema.yaml", *SPENT, "--grid", "eta=0.1,0.3", "--model", "c"],
    ):
        result = invoke(*arguments, input=Path("rows.csv").read_bytes())
        assert result.exit_code == 0, result.output
    assert xgb_dp.privacy_report("b.json").epsilon <= 1.0
    assert pd.read_csv("rows.csv").shape == frame.shape
    assert "is empty" in invoke("predict", "model.json", "-", input=b"").stderr
