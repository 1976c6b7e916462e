"""A model file is verified without libxgboost, and nothing that is wrong with it passes."""

import json
import math
import random
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.accounting import bounded_range
from xgb_dp.cli.standalone import verify_command
from xgb_dp.engine import ubjson
from xgb_dp.errors import LedgerError, PrivacyParameterError
from xgb_dp.record.verify import EXIT_CODES, read_model

from ..conftest import OBJECTIVE, arrays
from ..models import as_xgboost_writes
from ..mutations import mutations
from .test_content import TREES, put, written

SCHEMA = json.loads(
    files("xgb_dp.record").joinpath("templates/verification.schema.json").read_text("utf-8")
)
HIDDEN = """
import importlib.abc, json, sys

class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("xgboost", "sklearn", "pandas", "click", "yaml"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hide())
sys.argv = ["xgb-dp", "verify", *sys.argv[1:]]
from xgb_dp.__main__ import main
try:
    main()
finally:
    assert "xgboost" not in sys.modules
"""


@pytest.fixture(scope="module", params=["binary", "multiclass", "regression"])
def model(request: pytest.FixtureRequest) -> xgb.Booster:
    """Two trainings; with names, a categorical column and an ensemble of leaves."""
    X, y = arrays(request.param)
    X[:, 3] = np.arange(len(X)) % 3
    d = xgb.DMatrix(
        X, y, feature_names=["a", "b", "c", "d"], feature_types=["float"] * 3 + ["c"],
        enable_categorical=True,
    )  # fmt: skip
    params = {"tree_method": "dp_hist", "dp_epsilon": 0.7, "dp_delta": 1e-6, "max_depth": 3}
    params |= OBJECTIVE[request.param] | {"nthread": 1, "verbosity": 0}
    params |= {"dp_categories": {"d": 3}}
    return xgb.train(params, d, 2, xgb_model=xgb.train(params, d, 3))


def saved(model: xgb.Booster, folder: Path, ending: str = "json") -> Path:
    path = folder / f"model.{ending}"
    model.save_model(path)
    return path


def checked(answer: xgb_dp.Verification) -> dict[str, bool]:
    return {check.name: check.passed for check in answer.checks}


@pytest.mark.parametrize("ending", ["json", "ubj"])
def test_a_file_claims_what_the_report_says(model, tmp_path, ending):
    path = saved(model, tmp_path, ending)
    answer, report = xgb_dp.verify(path), xgb_dp.privacy_report(model)
    assert answer.verdict == "passed" and answer.exit_code == 0
    assert all(checked(answer).values())
    assert answer.claim["epsilon"] == report.epsilon
    assert answer.claim["statement"] == report.statement()
    assert (answer.claim["rounds"], answer.claim["trainings"]) == (5, 2)
    assert answer.claim["columns"] == ["a", "b", "c", "d"]
    assert answer.claim["unit"] == {"name": "row", "column": None, "max_rows_per_person": None}


def test_both_forms_of_a_file_are_read_alike(model):
    """The names of the trees hang on every number of the file."""
    raw = [bytes(model.save_raw(form)) for form in ("json", "ubj")]
    assert read_model(raw[0]).content == read_model(raw[1]).content
    assert json.loads(raw[0]) == ubjson.loads(raw[1])


def test_without_the_library(model, tmp_path):
    """Neither libxgboost nor what an extra brings; the same figures to the last bit."""
    path = saved(model, tmp_path, "ubj")
    call = [sys.executable, "-c", HIDDEN, str(path), "--json", "--max-epsilon", "2"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with_library = xgb_dp.verify(path, max_epsilon=2).to_dict()
    assert json.loads(done.stdout) == json.loads(json.dumps(with_library))


def test_the_kernel_in_numpy_is_the_one_in_cpp(monkeypatch):
    cases = [
        ([(0.1, 40), (0.033, 7), (0.4, 1)], 0.05, 70, 90),
        ([(7.0, 3)], 0.4, 60, 60),
        ([(1e-4, 300)], 1e-5, 200, 200),
        ([(0.02, 200)], 0.004, 2600, 1500),
        ([(0.3, 0)], 0.1, 4, 4),
    ]
    curves = []
    for loaded in (True, False):
        monkeypatch.setattr(bounded_range.native, "is_loaded", lambda loaded=loaded: loaded)
        curves += [
            bounded_range.selection_curve(steps, bounded_range.Grid(h, below, above))
            for steps, h, below, above in cases
        ]
    for compiled, plain in zip(curves[: len(cases)], curves[len(cases) :], strict=True):
        assert np.array_equal(compiled, plain)


def follows(value: Any, schema: dict[str, Any], where: str = "") -> None:
    """Whether JSON follows the part of JSON Schema that ours uses, and holds nothing else."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    kinds |= {"number": (int, float), "integer": int}
    named = schema.get("type", [])
    for kind in [named] if isinstance(named, str) else named:
        if isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool)):
            break
    else:
        assert not named, f"{where} is no {named}"
    assert value == schema.get("const", value), where
    assert value in schema.get("enum", [value]), where
    assert not isinstance(value, int) or value >= schema.get("minimum", value), where
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value), where
        more = schema.get("additionalProperties", {})
        assert "properties" not in schema or set(value) <= set(schema["properties"]), where
        for key, inner in value.items():
            follows(inner, schema.get("properties", {}).get(key, more), f"{where}.{key}")
    for i, inner in enumerate(value if isinstance(value, list) else ()):
        follows(inner, schema.get("items", {}), f"{where}[{i}]")


def test_the_answer_follows_its_schema(model, tmp_path):
    follows(xgb_dp.verify(saved(model, tmp_path), unit="row", max_epsilon=1).to_dict(), SCHEMA)
    bare = model.copy()
    bare.set_attr(dp_ledger=None)
    follows(xgb_dp.verify(saved(bare, tmp_path)).to_dict(), SCHEMA)
    fixed = SCHEMA["properties"]
    assert set(EXIT_CODES.values()) == set(fixed["exit_code"]["enum"])
    assert set(EXIT_CODES) == set(fixed["verdict"]["enum"])


def test_limits(model, tmp_path):
    path = saved(model, tmp_path)
    epsilon = xgb_dp.privacy_report(model).epsilon
    assert xgb_dp.verify(path, max_epsilon=epsilon).verdict == "passed"
    answer = xgb_dp.verify(path, max_epsilon=epsilon * (1 - 1e-9))
    assert answer.exit_code == 1 and not checked(answer)["max_epsilon"]
    assert xgb_dp.verify(path, max_epsilon=epsilon, delta=1e-7).exit_code == 1
    assert xgb_dp.verify(path, max_epsilon=epsilon, group_size=2).exit_code == 1
    assert xgb_dp.verify(path, max_epsilon=epsilon, adjacency="replace_one").exit_code == 1
    assert xgb_dp.verify(path, unit="row").exit_code == 0
    assert not checked(xgb_dp.verify(path, unit="person"))["unit"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_epsilon": 0}, {"max_epsilon": True}, {"max_epsilon": math.nan}, {"delta": 1.0},
        {"group_size": 0}, {"adjacency": "both"}, {"unit": "household"},
    ],
)  # fmt: skip
def test_wrong_calls(model, tmp_path, wrong):
    with pytest.raises(PrivacyParameterError):
        xgb_dp.verify(saved(model, tmp_path), **wrong)


def test_no_file(tmp_path, capsys):
    for path in (tmp_path / "none.json", tmp_path, "\0"):
        with pytest.raises(PrivacyParameterError):
            xgb_dp.verify(path)
    with pytest.raises(PrivacyParameterError, match="path of a model"):
        xgb_dp.verify(3)  # type: ignore[arg-type]
    assert verify_command([str(tmp_path / "none.json")]) == 2
    assert "no model file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "value"), [("split_conditions.-1", 7.25), ("sum_hessian.0", 1e4), ("rows", [1, 2])]
)
def test_other_trees_are_unknown(model, tmp_path, place, value):
    content = json.loads(model.save_raw("json"))
    put(f"{TREES}.trees.0.{place}", value)(content)
    answer = xgb_dp.verify(written(content, tmp_path / "m.json"))
    assert answer.exit_code == 3 and not checked(answer)["trees"]
    assert answer.claim is None


def test_no_changed_field_passes(model, tmp_path):
    """Removed, doubled or of another value: what is read as another number is not this model."""
    content, path = json.loads(model.save_raw("json")), tmp_path / "model.json"
    for what, changed in mutations(content, 211):
        text = as_xgboost_writes(changed)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        free = what.startswith("('version'")  # which XGBoost wrote it
        assert free or xgb_dp.verify(path).verdict != "passed", what


def test_a_key_that_is_given_twice(model, tmp_path):
    """XGBoost and Python might read different values."""
    text = model.save_raw("json").decode()
    path = tmp_path / "model.json"
    path.write_text(text.replace('"learner":', '"learner":{},"learner":', 1))
    assert xgb_dp.verify(path).exit_code == 3
    with pytest.raises(LedgerError, match="twice"):
        read_model(path.read_bytes())
    twice = b"{" + b"L\0\0\0\0\0\0\0\1aZ" * 2 + b"}"
    with pytest.raises(ValueError, match="twice"):
        ubjson.check(twice)


def test_not_private(params, matrix, tmp_path):
    with pytest.warns(xgb_dp.PrivacyWarning):
        model = xgb.train(params(dp_epsilon=math.inf), matrix(), 2)
    answer = xgb_dp.verify(saved(model, tmp_path))
    assert answer.exit_code == 1 and not checked(answer)["private"]
    assert answer.claim["epsilon"] == "inf"
    follows(answer.to_dict(), SCHEMA)


def test_a_model_of_stock_xgboost(matrix, tmp_path):
    model = xgb.train({"max_depth": 2, "verbosity": 0}, matrix(), 2)
    answer = xgb_dp.verify(saved(model, tmp_path))
    assert answer.exit_code == 3 and not checked(answer)["ledger"]


def test_damaged_files_never_pass_with_less(model, tmp_path):
    """Bits of both forms flipped: a verdict each time, and no smaller epsilon."""
    rng, path = random.Random(3), tmp_path / "model"
    true = xgb_dp.privacy_report(model).epsilon
    for form in ("json", "ubj"):
        raw = bytes(model.save_raw(form))
        for _ in range(150):
            damaged = bytearray(raw)
            bit = rng.randrange(8 * len(raw))
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(bytes(damaged))
            answer = xgb_dp.verify(path)
            assert answer.report is None or answer.report.epsilon >= true
        for size in range(0, len(raw), max(1, len(raw) // 40)):
            path.write_bytes(raw[:size])
            assert xgb_dp.verify(path).exit_code == 3


def test_the_command(model, tmp_path, capsys):
    path = saved(model, tmp_path)
    out = tmp_path / "answer.json"
    assert verify_command([str(path), "--out", str(out), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(out.read_text()) == json.loads(xgb_dp.verify(path).to_json())
    assert verify_command([str(path)]) == 0
    shown = capsys.readouterr().out
    assert "PASSED" in shown and "differentially private" in shown
    assert verify_command([str(path), "--max-epsilon", "0.1"]) == 1
    assert "NO  max_epsilon" in capsys.readouterr().out
    assert verify_command([str(path), "--max-epsilon", "-1"]) == 2
    with pytest.raises(SystemExit) as wrong:
        verify_command([str(path), "--nothing"])
    assert wrong.value.code == 2
