"""Saved models in stock XGBoost 3.2.0, in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from tests.training.test_training import PARAMS, REGRESSION, rows
from tests.upstream.stock import run_stock

CODE = """
import json, sys
import numpy as np
import xgboost as xgb
assert xgb.__version__ == "3.2.0" and not hasattr(xgb.core._LIB, "XGDPBuildInfo")
model, data, out = sys.argv[1:]
x = np.load(data)
types = json.loads(open(out).read())
booster = xgb.Booster(model_file=model)
matrix = xgb.DMatrix(x, feature_types=types, enable_categorical=types is not None)
np.savez(out + ".npz", p=booster.predict(matrix), m=booster.predict(matrix, output_margin=True),
         shap=booster.predict(matrix, pred_contribs=True))
print(booster.attr("dp_ledger") is not None)
"""


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("kind", ["binary", "regression", "multiclass", "categorical"])
def test_stock_predicts_the_same(kind: str, suffix: str, tmp_path: Path) -> None:
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
    booster = xgb.train(params, matrix, 5)
    model, data, out = (tmp_path / n for n in (f"m.{suffix}", "x.npy", "out"))
    booster.save_model(model)
    np.save(data, x)
    out.write_text(json.dumps(types))
    assert run_stock(CODE, str(model), str(data), str(out)).strip() == "True"
    stock = np.load(f"{out}.npz")
    np.testing.assert_array_equal(stock["p"], booster.predict(matrix))
    assert np.isfinite(stock["shap"]).all()
    np.testing.assert_allclose(stock["shap"].sum(axis=-1), stock["m"], rtol=1e-4, atol=1e-4)


def test_named_categories_survive(tmp_path: Path) -> None:
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
