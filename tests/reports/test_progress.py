"""Progress bars: on a terminal, after a while, and with nothing that depends on the rows."""

import io
import re
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.cli.calls import run
from xgb_dp.engine import progress as module
from xgb_dp.engine.progress import progress

pytest.importorskip("tqdm")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    screen = Terminal()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=screen))
    monkeypatch.setattr(module, "DELAY", 0.0)
    return screen


def test_steps_and_counts_are_shown(terminal):
    with progress("look", 3) as step:
        for name in ("age", "town", "income"):
            step(name)
            time.sleep(0.15)
        with progress("inner", 7) as inner:
            inner("not shown")
    output = terminal.getvalue()
    assert "look" in output and "/3" in output and "income" in output
    assert "inner" not in output and "not shown" not in output


def test_what_is_short_or_no_terminal_is_silent(terminal, monkeypatch):
    monkeypatch.setattr(module, "DELAY", 3600.0)
    with progress("short", 2) as step:
        step("one")
        step("two")
    assert "short" not in terminal.getvalue()
    quiet = io.StringIO()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=quiet))
    monkeypatch.setattr(module, "DELAY", 0.0)
    with progress("piped", 2) as step:
        step("one")
        time.sleep(0.1)
    assert quiet.getvalue() == ""


def test_an_error_ends_the_bar(terminal):
    with pytest.raises(KeyError), progress("broken", 1):
        raise KeyError("x")
    with progress("after", 1) as step:
        step("again")
        time.sleep(0.1)
    assert "after" in terminal.getvalue()


def test_the_command_line_shows_that_it_reads(terminal, tmp_path):
    pytest.importorskip("click")
    pd.DataFrame({"age": range(100)}).to_csv(tmp_path / "rows.csv", index=False)
    run("discover", tmp_path / "rows.csv", "--epsilon", "1", "--delta", "1e-6", "--number", "age")
    assert "discover: read" in terminal.getvalue()


def words(text: str) -> list[str]:
    """What was shown, without clocks, rates, control codes and repetitions."""
    chosen = re.findall(r"[a-z][a-z: ]+[a-z]", re.sub(r"\x1b\[\w", "", text))
    return sorted({w for w in chosen if w not in ("it", "it/s")})


def test_bars_do_not_depend_on_the_rows(terminal):
    """Neither on their number nor on what they are; a selection shows no number of runs."""
    seen = []
    for n, seed in ((400, 0), (900, 1)):
        terminal.truncate(0)
        rng = np.random.default_rng(seed)
        town = pd.array(rng.choice(["a", "b"], n), dtype="string")  # an object before pandas 3
        table = pd.DataFrame({"age": rng.integers(18, 90, n), "town": town})
        y = (table["age"] > rng.integers(30, 60)).astype(int)
        xgb_dp.discover(table, epsilon=1.0, delta=1e-6)
        params: dict[str, Any] = {"tree_method": "dp_hist", "objective": "binary:logistic"}
        matrix = xgb.DMatrix(table[["age"]], y)
        more = {"epsilon": 3.0, "delta": 1e-6, "num_boost_round": 2, "mean_runs": 3}
        chosen = xgb_dp.select({**params, "nthread": 1}, matrix, [{}, {"max_depth": 2}], **more)
        xgb_dp.evaluate(chosen.booster, matrix, epsilon=1.0, delta=1e-6)
        output = terminal.getvalue()
        assert not re.search(r"select: train and score[^\r\n]*\d+/", output)
        seen.append([w for w in words(output) if ":" in w])
    assert seen[0] == seen[1] and "select: train and score" in seen[0]
    assert {"evaluate: predict", "evaluate: figures", "discover: count"} <= set(seen[0])
