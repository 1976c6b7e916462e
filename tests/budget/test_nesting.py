"""A file that is nested without end is an error, not the end of the process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import xgboost as xgb

from tests.conftest import OBJECTIVE, arrays, private
from xgb_dp.engine import model_json

DEEP = 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("deep")
    X, y = arrays("binary")
    model = xgb.train(private() | OBJECTIVE["binary"], xgb.DMatrix(X, y), 1)
    sound = model.save_raw("json").decode()
    inner = '{"a":' * DEEP + "1" + "}" * DEEP
    (path / "deep.json").write_text(f'{{"x":{inner},{sound[1:]}')
    (path / "rows.csv").write_text("a,b,c,d,y\n1,2,3,4,0\n")
    (path / "budget.json").write_text("")
    return path


COMMANDS = [
    ["report", "MODEL"], ["card", "MODEL"], ["verify", "MODEL"], ["predict", "MODEL", "rows.csv"],
    ["evaluate", "MODEL", "rows.csv", "--epsilon", "1", "--delta", "1e-6"],
    ["budget", "new.json", "--epsilon", "1", "--delta", "1e-6", "--check", "MODEL"],
    ["train", "rows.csv", "--target", "y", "--classes", "0,1", "--epsilon", "1", "--delta", "1e-6",
     "--continue", "MODEL"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: words[0])
def test_every_command_ends_with_an_error(arguments, folder):
    words = ["deep.json" if word == "MODEL" else word for word in arguments]
    ended = subprocess.run(
        [sys.executable, "-m", "xgb_dp", *words], cwd=folder, capture_output=True, text=True
    )
    assert ended.returncode in (1, 3), ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Error: " in ended.stderr or ended.returncode == 3


def test_depth_is_that_of_brackets_outside_of_strings():
    model_json.check_depth(json.dumps({"a": "[" * 1000, 'b"\\': ["{" * 1000]}))
    model_json.check_depth("[" * 100 + "]" * 100)
    assert model_json.loads('{"a": [1]}') == {"a": [1]}
    for text in ("[" * 101, b'{"a":' * 101, '["\\"", ' + "[" * 100):
        with pytest.raises(ValueError, match="too deeply"):
            model_json.check_depth(text)
