"""Train small models with known noise, for tests that read them with another upstream release.

Usage: ``python -m tests.upstream.train_models``, once with each release that we build on. It writes
``tests/upstream/models/<release>/``: a model of each kind, and what this release predicts with it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from tests.conftest import OBJECTIVE, arrays
from xgb_dp.testing import fixed_noise

MODELS = Path(__file__).with_name("models")
CATEGORIES = 4
COMMON = {"tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": 1e-6, "max_depth": 2}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "binary": ("binary", {}),
    "approx": ("binary", {"tree_method": "dp_approx"}),
    "histogram": ("binary", {"dp_split": "histogram"}),
    "persons": ("binary", {"dp_privacy_id": np.arange(300) // 2}),
    "categories": ("binary", {"dp_categories": {3: CATEGORIES}}),
    "regression": ("regression", {}),
    "multiclass": ("multiclass", {}),
}


def table(kind: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Rows, labels, and more arguments of the matrix."""
    X, y = arrays(KINDS[kind][0])
    if kind != "categories":
        return X, y, {}
    X[:, 3] = np.digitize(X[:, 3], [-0.7, 0.0, 0.7])
    return X, y, {"feature_types": ["q", "q", "q", "c"], "enable_categorical": True}


def train(kind: str) -> xgb.Booster:
    """A model that is the same each time."""
    X, y, extra = table(kind)
    labels, changes = KINDS[kind]
    params = COMMON | OBJECTIVE[labels] | {"nthread": 1, "verbosity": 0} | changes
    with fixed_noise(11):
        return xgb.train(params, xgb.DMatrix(X, y, **extra), 3)


def predict(model: xgb.Booster, kind: str) -> dict[str, np.ndarray]:
    """What a model says of the first rows: predictions, margins, leaves and contributions."""
    X, _, extra = table(kind)
    rows = xgb.DMatrix(X[:25], **extra)
    ways = {"value": {}, "margin": {"output_margin": True}, "leaf": {"pred_leaf": True}}
    ways["shap"] = {"pred_contribs": True}
    return {name: model.predict(rows, **how) for name, how in ways.items()}


def main() -> None:
    folder = MODELS / xgb.__version__
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        model = train(kind)
        model.save_model(folder / f"{kind}.ubj")
        predictions = {name: values.tolist() for name, values in predict(model, kind).items()}
        (folder / f"{kind}.json").write_text(json.dumps(predictions) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
