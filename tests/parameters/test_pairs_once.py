"""Parameters that can be read only once lose none of their pairs on the way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp import Budget, PrivacyRefusal

from ..conftest import OBJECTIVE, arrays

PAIRS: list[tuple[str, Any]] = [
    ("dp_accountant", "pure"), ("max_depth", 2), ("dp_epsilon", 2.0), ("nthread", 1),
    ("dp_leaf_noise", "laplace"), ("base_score", 0.5),
    ("dp_feature_bounds", dict.fromkeys(range(4), (-4, 4))),
    ("tree_method", "dp_hist"), *OBJECTIVE["binary"].items(),
]  # fmt: skip
ONCE: list[Callable[[Any], Any]] = [iter, lambda pairs: map(tuple, pairs)]


@pytest.mark.parametrize("once", ONCE, ids=["iterator", "map"])
@pytest.mark.parametrize("turn", range(len(PAIRS)))
def test_train_reads_every_pair(once, turn):
    pairs = PAIRS[turn:] + PAIRS[:turn]  # in whatever place the first private one is
    model = xgb.train(once(pairs), xgb.DMatrix(*arrays()), 2)
    report = xgb_dp.privacy_report(model)
    assert (report.delta, report.get_epsilon(0.0)) == (0.0, pytest.approx(2.0, rel=0.01))


def test_stock_training_reads_every_pair():
    data = xgb.DMatrix(*arrays())
    params = {"max_depth": 1, "eta": 0.7, "objective": "binary:logistic", "nthread": 1}
    one = xgb.train(iter(params.items()), data, 2)
    assert one.save_raw() == xgb.train(params, data, 2).save_raw()


def test_cv_reads_every_pair():
    data = xgb.DMatrix(*arrays())
    with pytest.raises(PrivacyRefusal, match=r"xgboost\.cv"):
        xgb.cv(iter(PAIRS), data, 2)
    params = {"max_depth": 1, "objective": "binary:logistic", "nthread": 1}
    one = xgb.cv(iter(params.items()), data, 2, as_pandas=False)
    assert one == xgb.cv(params, data, 2, as_pandas=False)


def test_budgets_and_selections_read_every_pair(tmp_path):
    data = xgb.DMatrix(*arrays(n=500))
    budget = Budget(tmp_path / "b.json", epsilon=9.0, delta=1e-5)
    model = budget.train(iter(PAIRS), data, 2)
    assert xgb_dp.privacy_report(model).delta == 0.0
    common = [p for p in PAIRS if p[0] not in ("dp_accountant", "dp_epsilon")]
    given = {"epsilon": 8.0, "delta": 1e-6, "num_boost_round": 2}
    chosen = xgb_dp.select(iter(common), data, [{"eta": 0.1}, {"eta": 0.2}], **given)
    assert chosen.params["dp_leaf_noise"] == "laplace"
    assert np.isfinite(chosen.score)
