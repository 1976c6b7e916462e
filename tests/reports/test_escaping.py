"""What others wrote into names reaches no terminal, Markdown renderer or browser as a command."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.cli.calls import run
from xgb_dp.record import formatting
from xgb_dp.record.verify import Check, Verification

ESCAPE = "\x9b2K\u202e"  # an escape in eight bits, and text from right to left
HOSTILE = f"a\nmodel.json: PASSED {ESCAPE}<img src=x onerror=alert(1)> [x](y) `|*_z_"


def is_harmless(text: str) -> bool:
    return not re.search(r"[^\n -~\u00a1-\u00ac\u00ae-\u1fff\u2030-\ud7ff]", text)


@pytest.fixture(scope="module")
def model() -> xgb.Booster:
    X = pd.DataFrame({"a": np.arange(60.0), "ids": np.arange(60)})
    clf = xgb_dp.DPXGBClassifier(
        epsilon=1.0, delta=1e-6, classes=[0, 1], n_estimators=1, feature_bounds={0: (0, 60)}
    )
    clf.fit(X.rename(columns={"ids": "who\u202e"}), np.arange(60) % 2, privacy_id="who\u202e")
    booster = clf.get_booster()
    booster.feature_names = [f"b {ESCAPE} onerror=alert(1) |`"]
    booster.set_attr(**{HOSTILE: "1"})
    return booster


def test_functions():
    assert formatting.visible("a\nb\x1b[0m\ud800é") == "a\\nb\\x1b[0m\\ud800é"
    assert formatting.visible("a\nb\x1b", "\n") == "a\nb\\x1b"
    assert formatting.html_text("<b>\x1b") == "&lt;b&gt;\\x1b"
    assert formatting.markdown_text("<i>[a_b](c)|`_d_") == "&lt;i&gt;\\[a_b\\](c)\\|\\`\\_d\\_"
    assert formatting.markdown_prose("[a](b) <img>\n*c*") == "[a](b) &lt;img&gt;\n*c*"
    assert formatting.markdown_code("a``b|") == "```a``b\\|```"
    assert formatting.markdown_code("`") == "`` ` ``"


def test_every_text_of_a_model(model, tmp_path):
    path = tmp_path / f"m{ESCAPE}.json"
    model.save_model(path)
    report, verified = xgb_dp.privacy_report(model), xgb_dp.verify(path)
    strings = [str(verified), report.statement(), report.summary(name=HOSTILE), repr(report),
             report.to_html(name=HOSTILE), xgb_dp.model_card(model, name=HOSTILE, data=HOSTILE,
                                                            description=HOSTILE)]  # fmt: skip
    assert verified.verdict == "failed"
    for text in strings:
        assert is_harmless(text), ascii(text)
        if text[:1] == "<":
            assert "<img" not in text  # lines mean nothing there
        elif text != strings[-1]:
            assert "\nmodel.json: PASSED" not in text
    card = strings[-1]
    assert "<img" not in card
    assert "# a\\\\nmodel.json: PASSED" in card


def test_commands(model, tmp_path):
    path = tmp_path / "m.json"
    model.save_model(path)
    for call in (["report", path, "--name", HOSTILE], ["card", path, "--name", HOSTILE]):
        assert is_harmless(run(*call).stdout)
    shown = subprocess.run(
        [sys.executable, "-m", "xgb_dp", "verify", str(path)], capture_output=True, text=True
    )
    assert shown.returncode == 1 and is_harmless(shown.stdout)


def test_a_verdict_cannot_be_drawn():
    text = str(Verification("failed", (Check("file", False, HOSTILE),), {"name": HOSTILE}))
    assert len(text.splitlines()) == 2 and is_harmless(text)


def test_notes_of_books(tmp_path):
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=2.0, delta=1e-5)
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1}
    target = {"dp_epsilon": 1.0, "dp_delta": 1e-6}
    rows = xgb.DMatrix(np.zeros((20, 1)), np.arange(20) % 2)
    budget.train(params | target, rows, 1, note=f"{HOSTILE}\x1b[2J")
    assert is_harmless(budget.statement()) and "\nmodel.json" not in budget.statement()
    assert is_harmless(run("budget", tmp_path / "budget.json").stdout)


def test_discoveries_and_groups(tmp_path):
    names = [HOSTILE, "b"]
    rows = {HOSTILE: np.array(names * 300, object)}
    discovery = xgb_dp.discover(rows, {HOSTILE: "text"}, epsilon=20.0, delta=1e-6)
    assert is_harmless(str(discovery)) and "\nmodel.json" not in str(discovery)
    assert Path(tmp_path).is_dir()
