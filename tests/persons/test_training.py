"""Training of persons from end to end: calibration and trainer agree, or it is refused."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.batches import Batches
from tests.conftest import arrays
from tests.models import events, training
from tests.reference.comparison import trees_of
from xgb_dp.testing import fixed_noise

from .conftest import people

BOUNDS = dict.fromkeys(range(arrays("binary")[0].shape[1]), (-3.0, 3.0))
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("binary", {}),
    ("binary", {"dp_max_rows_per_person": 2.5}),
    ("binary", {"dp_score": "newton", "dp_gradient_clip": "row_weight"}),
    ("binary", {"dp_split": "histogram", "max_bin": 8}),
    ("binary", {"dp_split": "partial", "subsample": 0.5}),
    ("binary", {"dp_split": "random", "dp_leaf_noise": "laplace"}),
    ("binary", {"tree_method": "dp_approx", "dp_gradient_clip": "clip"}),
    ("binary", {"dp_candidates": "histogram", "dp_feature_bounds": BOUNDS}),
    ("binary", {"dp_candidates": "histogram", "dp_feature_bounds": BOUNDS,
        "dp_candidate_noise": "laplace"}),
    ("binary", {"dp_candidates": "adaptive", "dp_feature_bounds": BOUNDS,
        "dp_max_rows_per_person": 3.0}),
    ("binary", {"dp_public_num_rows": 500}),
    ("regression", {}),
    ("regression", {"dp_ensemble": 2}),
    ("regression", {"dp_mean_correction": True, "dp_max_weight": 2.0}),
    ("multiclass", {}),
    ("multiclass", {"dp_class_trees": "per_class", "dp_gradient_clip": "row_weight"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "changes"), KINDS, ids=str)
def test_every_event_is_of_persons(params, kind, changes):
    """And what was drawn is what was calibrated, or the training would have been refused."""
    X, y = arrays(kind)
    given = params(kind, dp_privacy_id=people(len(y)), **changes)
    model = xgb.train(given, xgb.DMatrix(X, y), 3)
    report = xgb_dp.privacy_report(model)
    assert report.private
    assert {event["unit"] for event in events(model)} == {"person"}
    assert 0.9 < report.get_epsilon(1e-6) <= 1.0


@pytest.mark.parametrize("intercept", [{}, {"base_score": 0.5}], ids=str)
def test_open_rounds_follow_the_number_of_persons(params, intercept):
    """Copies of rows are no more persons: the plan that is taken stays the same."""
    X, y = arrays("binary")
    who, choices = people(len(y)), []
    for copies in (1, 50):
        d = xgb.DMatrix(np.repeat(X, copies, axis=0), np.repeat(y, copies))
        given = params("binary", dp_privacy_id=np.repeat(who, copies), **intercept)
        with xgb_dp.testing.fixed_noise(bytes(32).hex()):
            model = xgb.train(given, d)
        choice = training(model)["public"]["plan_choice"]
        choices.append((choice["taken"], choice["rows"]))
    assert choices[0] == choices[1]
    assert abs(choices[0][1] - len(set(who))) < 60


def test_rows_on_disk(params, tmp_path):
    """Rows of a person may be in several batches: the trees are those of the rows in memory."""
    X, y = arrays()
    given = params(dp_privacy_id=people(len(y)))
    parts = [(X[at], y[at]) for at in np.array_split(np.arange(len(y)), 4)]
    models = []
    for d in (xgb.DMatrix(X, y), xgb.DMatrix(Batches(parts, tmp_path))):
        with fixed_noise(3):
            models.append(str(trees_of(xgb.train(given, d, 3))))
    assert models[0] == models[1]
