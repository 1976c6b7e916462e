"""What a caller has told ``numpy.seterr`` changes no figure and raises nothing."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.accounting import ACCOUNTANTS, make_accountant
from xgb_dp.accounting.filter import charge_of

from .events import gaussian, laplace, sampled, selections

FLAT = [laplace(0.3, 3), selections(0.05, 300), gaussian(5.0, 20)]
SAMPLED = [sampled(0.1, 20, selections(0.3, 4), gaussian(2.0)), gaussian(5.0)]


@pytest.mark.parametrize("events", [FLAT, SAMPLED], ids=["flat", "sampled"])
def test_costs_are_the_same(events):
    def costs() -> Any:
        budgets = [make_accountant(name, events) for name in ACCOUNTANTS]
        figures = [(b.get_epsilon(1e-6), b.get_epsilon(1e-9, 3), b.get_delta(0.5)) for b in budgets]
        return figures, charge_of(events, 1e-6)

    usual = costs()
    with np.errstate(all="raise"):
        assert costs() == usual


def test_trainings_and_books(tmp_path, params, matrix):
    with np.errstate(all="raise"):
        xgb.train(params("multiclass"), matrix("multiclass"), 3)
        budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=5.0, delta=1e-5)
        model = budget.train(params(), matrix(), 3)
        assert xgb_dp.privacy_report(model).epsilon <= 1.0
        assert xgb_dp.evaluate(model, matrix(), epsilon=1.0, delta=1e-6).statement()
