"""Models of each upstream release that we build on, read with the release that is here.

`train_models.py` wrote them with known noise. The stock wheels read them too.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.upstream.stock import STOCK_VERSIONS, run_stock
from tests.upstream.train_models import KINDS, MODELS, predict, table

RELEASES = sorted(folder.name for folder in MODELS.iterdir())
STOCK = """
import json, sys
import numpy as np
import xgboost as xgb
assert xgb.__version__ == sys.argv[2] and not hasattr(xgb.core._LIB, "XGDPBuildInfo")
out = {}
for model, rows, extra in json.loads(sys.argv[1]):
    booster = xgb.Booster(model_file=model)
    matrix = xgb.DMatrix(np.load(rows), **extra)
    ways = {"value": {}, "margin": {"output_margin": True}, "leaf": {"pred_leaf": True},
            "shap": {"pred_contribs": True}}
    out[model] = {k: booster.predict(matrix, **how).tolist() for k, how in ways.items()}
print(json.dumps(out))
"""


def read(version: str, kind: str) -> xgb.Booster:
    return xgb.Booster(model_file=MODELS / version / f"{kind}.ubj")


def expected(version: str, kind: str) -> dict[str, Any]:
    """What the release that trained a model predicted with it."""
    text = (MODELS / version / f"{kind}.json").read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def check_equal(predicted: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Predictions, margins and leaves to the last bit; contributions up to rounding."""
    assert predicted.keys() == wanted.keys()
    for name in predicted:
        one, other = (np.asarray(said[name], dtype=np.float32) for said in (predicted, wanted))
        if name == "shap":  # 3.2.0 and 3.4.1 sum in other ways
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(one, other)
    assert len(np.unique(predicted["margin"])) > 1


def test_models_of_a_release_are_there():
    assert RELEASES
    for version in RELEASES:
        assert {path.stem for path in (MODELS / version).glob("*.ubj")} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", RELEASES)
def test_predictions_are_those_of_the_release_that_trained(version, kind):
    check_equal(predict(read(version, kind), kind), expected(version, kind))


@pytest.mark.parametrize("stock", STOCK_VERSIONS)
@pytest.mark.parametrize("version", RELEASES)
def test_stock_predicts_the_same(version, stock, tmp_path):
    asked = []
    for kind in KINDS:
        X, _, extra = table(kind)
        np.save(tmp_path / f"{kind}.npy", X[:25])
        asked.append((str(MODELS / version / f"{kind}.ubj"), str(tmp_path / f"{kind}.npy"), extra))
    predicted = json.loads(run_stock(STOCK, json.dumps(asked), stock, version=stock))
    for kind, (model, _, _) in zip(KINDS, asked, strict=True):
        check_equal(predicted[model], expected(version, kind))


@pytest.mark.skipif(
    len(RELEASES) < 2,
    reason="models of one release: run `python -m tests.upstream.train_models` with the other too",
)
@pytest.mark.parametrize("kind", KINDS)
def test_both_releases_train_the_same_trees_from_the_same_noise(kind):
    first, *others = (read(version, kind) for version in RELEASES)
    for other in others:
        assert first.get_dump(with_stats=True) == other.get_dump(with_stats=True)
        drawn = [json.loads(model.attr("dp_ledger")) for model in (first, other)]
        assert drawn[0] == drawn[1]


@pytest.mark.parametrize("version", RELEASES)
def test_ledgers_of_both_are_read(version):
    for kind in KINDS:
        report = xgb_dp.privacy_report(read(version, kind))
        assert not report.private  # known noise
        assert report.ledger["trainings"][0]["events"]


@pytest.mark.parametrize("version", RELEASES)
def test_models_of_both_are_saved_again_without_a_loss(version):
    for kind in KINDS:
        model = read(version, kind)
        again = xgb.Booster(model_file=bytearray(model.save_raw("ubj")))
        assert again.get_dump(with_stats=True) == model.get_dump(with_stats=True)
        assert again.attr("dp_ledger") == model.attr("dp_ledger")
