"""Trees with a vector per leaf, which the updater does not grow, lack parts of XGBoost 3.2.

Later releases have some of them. Reconsider docs/performance.md#vector-leaves when 3.2 goes.
"""

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

VECTORS = {"objective": "multi:softprob", "num_class": 3, "multi_strategy": "multi_output_tree"}
X = np.random.default_rng(0).normal(size=(60, 2))
DATA = xgb.DMatrix(X, np.arange(60) % 3, feature_names=["a", "b"])
pytestmark = pytest.mark.skipif(
    not xgb.__version__.startswith("3.2."), reason="about the oldest release that is served"
)


@pytest.fixture(scope="module")
def model() -> xgb.Booster:
    return xgb.train(VECTORS | {"tree_method": "hist"}, DATA, 1)


def test_the_file_is_half_as_large():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 10))
    labels = np.argmax(np.tile(x, 3) + rng.normal(size=(2000, 30)), axis=1)
    params = {"objective": "multi:softprob", "num_class": 30, "tree_method": "hist"}
    one, several = (
        len(xgb.train(params | {"multi_strategy": how}, xgb.DMatrix(x, labels), 20).save_raw())
        for how in ("multi_output_tree", "one_output_per_tree")
    )
    assert 0.4 < one / several < 0.6


GROUPS = xgb.DMatrix(
    pd.DataFrame({"group": pd.Categorical(np.arange(60) % 4)}),
    DATA.get_label(), enable_categorical=True,
)  # fmt: skip
HIST = VECTORS | {"tree_method": "hist"}
MISSING = {
    "shap values": lambda model: model.predict(DATA, pred_contribs=True),
    "interactions": lambda model: model.predict(DATA, pred_interactions=True),
    "gains and covers in a dump": lambda model: model.get_dump(with_stats=True),
    "categories": lambda _: xgb.train(HIST, GROUPS, 1),
    "monotone": lambda _: xgb.train(HIST | {"monotone_constraints": (1, 0)}, DATA, 1),
    "sets": lambda _: xgb.train(HIST | {"interaction_constraints": [["a"], ["b"]]}, DATA, 1),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing(what, model):
    with pytest.raises(xgb.core.XGBoostError, match="multi-target tree is not yet implemented"):
        MISSING[what](model)
