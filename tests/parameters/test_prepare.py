"""Training, the command line and the audit calibrate the same noise for the same request."""

import json

import pytest
import xgboost as xgb
from click.testing import CliRunner

import xgb_dp
from xgb_dp.audit import PreparedTraining
from xgb_dp.cli.commands import cli
from xgb_dp.request.schema import read_schema
from xgb_dp.training.hook import prepare

from ..conftest import arrays

BOUNDS = {f"x{i}": (-3.0, 3.0) for i in range(4)}


def _matrix() -> xgb.DMatrix:
    X, y = arrays()
    return xgb.DMatrix(X, y, feature_names=list(BOUNDS))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("preset", ["default", "dp_tr", "sarus", "dp_rf"])
def test_one_road(preset, epsilon, tmp_path):
    """Of each preset, and on both sides of the epsilon from which the default changes."""
    params = {
        "tree_method": "dp_hist", "objective": "binary:logistic", "dp_preset": preset,
        "dp_epsilon": epsilon, "dp_delta": 1e-6, "dp_feature_bounds": BOUNDS, "nthread": 1,
    }  # fmt: skip
    matrix = _matrix()
    prepared = prepare(params, read_schema(matrix), 2)
    events = [e.to_json() for e in prepared.events]

    model = xgb.train(params, matrix, 2)
    key = lambda e: e.get("release", "")  # noqa: E731
    drawn = xgb_dp.privacy_report(model).ledger["trainings"][0]["events"]
    assert sorted(drawn, key=key) == sorted(events, key=key)

    audited = PreparedTraining(params, matrix, 2)
    assert audited.noise == prepared.noise

    given = tmp_path / "schema.json"
    columns = {name: {"bounds": list(b)} for name, b in BOUNDS.items()}
    given.write_text(
        json.dumps({"target": "y", "classes": ["0", "1"], "columns": columns}), encoding="utf-8"
    )
    arguments = ["calibrate", "--epsilon", epsilon, "--delta", 1e-6, "--rounds", 2]
    arguments += ["--preset", preset, "--schema", given, "--json"]
    done = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)[0]["epsilon"] == prepared.noise.epsilon
