"""Records for registries and reviews hold the figures of the report; the rest is marked."""

import json
import math
from pathlib import Path

import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal
from xgb_dp.record.deployment import KINDS, deployment_record, page_of


@pytest.fixture
def model(params, matrix):
    return xgb.train(params(), matrix(), 3)


@pytest.mark.parametrize("kind", KINDS)
def test_records_hold_the_report(model, kind):
    record = deployment_record(model, kind, name="a model", contact="nobody")
    report = xgb_dp.privacy_report(model)
    assert (record["epsilon"], record["delta"]) == (report.epsilon, report.delta)
    assert record["name"] == "a model" and record["data"] == "not stated"
    json.dumps(record, allow_nan=False)
    if kind != "json":
        assert record["privacy_unit"] == "one row"
        assert record["epsilon_if_one_is_replaced"] > record["epsilon"]
        assert record["format_version"] == 1


def test_a_page(model):
    page = page_of(model, name="a <model>", data="", intended_use="x", contact="")
    assert "<h1>a &lt;model&gt;</h1>" in page and page.count("<body>") == 1


def test_wrong_calls(model, params, matrix):
    with pytest.raises(PrivacyParameterError, match="kind"):
        deployment_record(model, "label")
    with pytest.warns(xgb_dp.PrivacyWarning):
        bare = xgb.train(params(dp_epsilon=math.inf), matrix(), 1)
    for call in (deployment_record, lambda m: page_of(m, name="", data="", intended_use="",
                                                      contact="")):  # fmt: skip
        with pytest.raises(PrivacyRefusal):
            call(bare)


@pytest.mark.parametrize("kind", ["markdown", "html", *KINDS])
def test_on_the_command_line(model, tmp_path, kind):
    pytest.importorskip("click")
    from click.testing import CliRunner

    from xgb_dp.cli.commands import cli

    path = tmp_path / "model.json"
    model.save_model(path)
    out = tmp_path / "card"
    done = CliRunner().invoke(cli, ["card", str(path), "--format", kind, "--out", str(out)])
    assert done.exit_code == 0, done.output
    text = Path(out).read_text()
    assert ("epsilon" in text) and (kind not in KINDS or json.loads(text))
