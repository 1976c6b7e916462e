"""Models of each upstream release that we build on, read with the release that is here.

`train_models.py` wrote them with known noise. The stock wheels read them too, and models of today.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import arrays, private
from tests.upstream.stock import STOCK_VERSIONS, run_stock
from tests.upstream.train_models import KINDS, MODELS, predict, table, train

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
    assert booster.attr("dp_ledger") is not None, model
    if sys.argv[3:]:
        booster.save_model(sys.argv[3] + model.rpartition("/")[2])
print(json.dumps(out))
"""


def read(version: str, kind: str) -> xgb.Booster:
    return xgb.Booster(model_file=MODELS / version / f"{kind}.ubj")


def expected(version: str, kind: str) -> dict[str, Any]:
    """What the release that trained a model predicted with it."""
    text = (MODELS / version / f"{kind}.json").read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def check_equal(predicted: Mapping[str, Any], reference: Mapping[str, Any]) -> None:
    """Predictions, margins and leaves to the last bit; contributions up to rounding."""
    assert predicted.keys() == reference.keys()
    for name in predicted:
        one, other = (
            np.asarray(values[name], dtype=np.float32) for values in (predicted, reference)
        )
        if name == "shap":  # 3.2.0 and 3.4.1 sum in other ways
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(one, other)
    assert len(np.unique(predicted["margin"])) > 1


def by_stock(stock: str, models: dict[str, str], *folder: str) -> dict[str, Any]:
    """What a stock wheel predicts with models, by their paths; each has a kind."""
    calls = []
    with tempfile.TemporaryDirectory() as scratch:
        for model, kind in models.items():
            X, _, extra = table(kind)
            np.save(f"{scratch}/{kind}.npy", X[:25])
            calls.append((model, f"{scratch}/{kind}.npy", extra))
        values = run_stock(STOCK, json.dumps(calls), stock, *folder, version=stock)
    predicted: dict[str, Any] = json.loads(values)
    return predicted


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
def test_stock_predicts_the_same(version, stock):
    models = {str(MODELS / version / f"{kind}.ubj"): kind for kind in KINDS}
    for model, predicted in by_stock(stock, models).items():
        check_equal(predicted, expected(version, models[model]))


@pytest.mark.parametrize("stock", STOCK_VERSIONS)
def test_stock_reads_and_saves_what_we_train(stock, tmp_path):
    """What stock saves is what a private build of its release saves; we read it with the ledger."""
    (tmp_path / "again").mkdir()
    models, private = {}, {}
    for kind in KINDS:
        for suffix in ("json", "ubj"):
            path = f"{tmp_path}/{kind}.{suffix}"
            models[path], private[path] = kind, train(kind)
            private[path].save_model(path)
    for path, predicted in by_stock(stock, models, f"{tmp_path}/again/").items():
        values = predict(private[path], models[path])
        check_equal(predicted, values)
        total = np.sum(predicted["shap"], axis=-1)
        np.testing.assert_allclose(total, predicted["margin"], rtol=1e-4, atol=1e-4)
        again = xgb.Booster(model_file=tmp_path / "again" / Path(path).name)
        np.testing.assert_array_equal(predict(again, models[path])["value"], values["value"])
        assert again.attr("dp_ledger") == private[path].attr("dp_ledger")


def test_named_categories_survive():
    """Declared names travel in the model, undeclared ones never reach it."""
    x, y = arrays()
    names = ["blue", "green", "red"]
    frame = pd.DataFrame(x[:, :3], columns=["a", "b", "d"])
    frame["c"] = pd.Categorical(np.take(names, np.arange(300) % 2), categories=names)
    params = private(objective="binary:logistic", dp_categories={"c": names})
    booster = xgb.train(params, xgb.DMatrix(frame, y, enable_categorical=True), 3)
    assert booster.get_categories(export_to_arrow=True).to_arrow()
    frame["c"] = pd.Categorical(np.take(names, np.arange(300) % 2))
    with pytest.raises(ValueError, match="categor") as caught:
        xgb.train(params, xgb.DMatrix(frame, y, enable_categorical=True), 3)
    assert not any(name in str(caught.value) for name in ("blue", "green"))


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
