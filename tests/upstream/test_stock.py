"""Saved models in stock XGBoost, of each release that we build on, in processes of their own."""

import json

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from tests.training.test_training import PARAMS, REGRESSION, rows
from tests.upstream.stock import STOCK_VERSIONS, run_stock

CODE = """
import json, sys
import numpy as np
import xgboost as xgb
assert xgb.__version__ == sys.argv[2] and not hasattr(xgb.core._LIB, "XGDPBuildInfo")
for model, types in json.loads(sys.argv[1]):
    booster = xgb.Booster(model_file=model)
    x = np.load(model + ".npy")
    matrix = xgb.DMatrix(x, feature_types=types, enable_categorical=types is not None)
    assert booster.attr("dp_ledger") is not None, model
    ways = {"p": {}, "m": {"output_margin": True}, "shap": {"pred_contribs": True}}
    np.savez(model + ".npz", **{k: booster.predict(matrix, **how) for k, how in ways.items()})
    stem, suffix = model.rsplit(".", 1)
    booster.save_model(stem + "_again." + suffix)
"""


def trained(kind: str) -> tuple[xgb.Booster, np.ndarray, list[str] | None]:
    x, y = rows(400)
    params, types = PARAMS, None
    if kind == "regression":
        params = REGRESSION
    elif kind == "multiclass":
        y = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
        params = {**PARAMS, "objective": "multi:softprob", "num_class": 3}
    elif kind == "categorical":
        x[:, 4] = np.random.default_rng(0).integers(0, 3, len(y))
        types = ["q"] * 4 + ["c"]
        params = {**PARAMS, "dp_categories": {4: 3}}
    matrix = xgb.DMatrix(x, y, feature_types=types, enable_categorical=types is not None)
    return xgb.train(params, matrix, 5), x, types


@pytest.mark.parametrize("version", STOCK_VERSIONS)
def test_stock_predicts_the_same(tmp_path, version):
    """One process for all models: to start it costs far more than to predict.

    What stock saves is what a private build of its release saves. We read it back, with the ledger.
    """
    expected, asked = {}, []
    for kind in ("binary", "regression", "multiclass", "categorical"):
        booster, x, types = trained(kind)
        for suffix in ("json", "ubj"):
            model = str(tmp_path / f"{kind}.{suffix}")
            booster.save_model(model)
            np.save(f"{model}.npy", x)
            matrix = xgb.DMatrix(x, feature_types=types, enable_categorical=types is not None)
            expected[model] = booster.predict(matrix), matrix, booster.attr("dp_ledger")
            asked.append((model, types))
    run_stock(CODE, json.dumps(asked), version, version=version)
    for model, (ours, matrix, ledger) in expected.items():
        stock = np.load(f"{model}.npz")
        np.testing.assert_array_equal(stock["p"], ours, err_msg=model)
        assert np.isfinite(stock["shap"]).all(), model
        np.testing.assert_allclose(
            stock["shap"].sum(axis=-1), stock["m"], rtol=1e-4, atol=1e-4, err_msg=model
        )
        stem, suffix = model.rsplit(".", 1)
        again = xgb.Booster(model_file=f"{stem}_again.{suffix}")
        np.testing.assert_array_equal(again.predict(matrix), ours, err_msg=model)
        assert again.attr("dp_ledger") == ledger


def test_named_categories_survive(tmp_path):
    """Declared names travel in the model, undeclared ones never reach it."""
    x, y = rows(300, 3)
    names = ["blue", "green", "red"]
    frame = pd.DataFrame(x, columns=["a", "b", "d"])
    frame["c"] = pd.Categorical(np.take(names, np.arange(300) % 2), categories=names)
    params = {**PARAMS, "dp_categories": {"c": names}}
    booster = xgb.train(params, xgb.DMatrix(frame, y, enable_categorical=True), 3)
    assert booster.get_categories(export_to_arrow=True).to_arrow()
    frame["c"] = pd.Categorical(np.take(names, np.arange(300) % 2))
    with pytest.raises(ValueError, match="categor") as caught:
        xgb.train(params, xgb.DMatrix(frame, y, enable_categorical=True), 3)
    assert not any(name in str(caught.value) for name in ("blue", "green"))
