"""The calibration, the plan and the trainer must agree on everything that is released."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import fields, replace
from typing import Any

import pytest
import xgboost as xgb

from tests.conftest import private
from tests.mutations import at, places
from xgb_dp import BudgetError, LedgerError, planning
from xgb_dp.accounting import event_from_json
from xgb_dp.calibrate import Calibration
from xgb_dp.engine import native
from xgb_dp.mechanisms.mechanism import Noise
from xgb_dp.mechanisms.plan import MECHANISMS

from ..conftest import arrays

BOUNDS = dict.fromkeys(range(4), (-4.0, 4.0))
BASE = private(dp_epsilon=2.0, max_depth=2, nthread=1, verbosity=0)
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "regression": {"objective": "reg:squarederror", "dp_target_bounds": (-3.0, 3.0)},
    "classes": {"objective": "multi:softprob", "num_class": 3},
    "two levels": {"max_depth": 3, "dp_split_levels": 2, "dp_tree_shape": "oblivious"},
    "forest": {"num_parallel_tree": 2},
    "sample": {"subsample": 0.5},
    "ensemble": {"dp_ensemble": 2},
    "histograms": {"dp_split": "histogram", "dp_feature_bounds": BOUNDS},
    "laplace": {"dp_leaf_noise": "laplace"},
    "output": {"dp_leaf": "gradient", "dp_leaf_noise": "output"},
    "laplace candidates": {
        "dp_candidates": "histogram", "dp_candidate_noise": "laplace", "dp_feature_bounds": BOUNDS
    },
    "adaptive": {"dp_candidates": "adaptive", "dp_feature_bounds": BOUNDS},
    "n public": {"dp_public_num_rows": 300},
}  # fmt: skip

Train = Callable[[], Any]


@pytest.fixture(params=list(KINDS))
def train(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Trains, and fails the test if anything was drawn before an error."""
    config = {"objective": "binary:logistic", **BASE, **KINDS[request.param]}
    kind = {"reg:squarederror": "regression", "multi:softprob": "multiclass"}.get(
        config["objective"], "binary"
    )
    dtrain = xgb.DMatrix(*arrays(kind))

    def run() -> Any:
        drawn = []
        with monkeypatch.context() as patch:
            release = native.release_before_trees
            patch.setattr(
                native, "release_before_trees", lambda *a: drawn.append("intercept") or release(*a)
            )
            try:
                return xgb.train(config, dtrain, 4)
            except BudgetError:
                assert not drawn
                raise

    return run


def with_other_numbers(tree: Any) -> Iterator[Any]:
    """Copies of some JSON with one more or one less for one whole number of it."""
    for *inner, last in places(tree):
        if type(at(tree, inner)[last]) is int:
            for change in (-1, 1):
                copied = deepcopy(tree)
                at(copied, inner)[last] += change
                yield copied


def test_every_figure_of_every_event_is_compared(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is claimed follows from the plan; a calibration that counts otherwise is refused."""
    calibrate = planning.calibrate
    plans: list[Calibration] = []
    with monkeypatch.context() as patch:
        patch.setattr(planning, "calibrate", lambda *a: plans.append(calibrate(*a)) or plans[-1])
        train()
    events = [event.to_json() for event in plans[-1].events]
    others = list(with_other_numbers(events))
    assert len(others) > 8
    tried = 0
    for other in [*others, [], events[1:], events * 2]:
        try:
            changed = replace(plans[-1], events=tuple(map(event_from_json, other)))
        except LedgerError:  # no event at all
            continue
        monkeypatch.setattr(planning, "calibrate", lambda *_, plan=changed: plan)
        with pytest.raises(BudgetError, match="differs from the calibrated noise"):
            train()
        tried += 1
    assert tried > 8


def test_a_level_of_noise_that_is_not_that_of_the_events(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any level of the calibrated noise, changed while its events still promise the old one."""
    calibrate = planning.calibrate
    tried = 0
    levels = [(kind.name, field.name) for kind in MECHANISMS for field in fields(Noise)]
    for name, level in [("", "grid_bits"), *levels]:
        changes: list[int] = []

        def other(
            *args: Any, name: str = name, level: str = level, changes: list[int] = changes
        ) -> Any:
            plan = calibrate(*args)
            value = getattr(plan[name] if name else plan, level)
            if not value:  # there is no such noise
                return plan
            changes.append(value + (1 if level in ("grid_bits", "eps_num") else -1))  # louder
            if not name:
                return replace(plan, grid_bits=changes[-1])
            return replace(
                plan, noise={**plan.noise, name: replace(plan[name], **{level: changes[-1]})}
            )

        monkeypatch.setattr(planning, "calibrate", other)
        try:
            model = train()
        except BudgetError:
            assert changes
        else:
            if changes:  # leaf values have a grid of their own
                assert level == "grid_bits"
                assert "leaf_noise" in str(model.attr("dp_ledger"))
                assert '"output"' in str(model.attr("dp_ledger"))
        tried += bool(changes)
    assert tried >= 3


PLAN_CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "rounds": lambda p: {"rounds": p["rounds"] + 1},
    "depth": lambda p: {"depth": p["depth"] + p["split_levels"]},
    "trees": lambda p: {"parallel_trees": p["parallel_trees"] + 1},
    "candidate rounds": lambda p: {
        "candidates": {**p["candidates"], "rounds": p["candidates"]["rounds"] + 1}
    },
    "sample": lambda p: {"sampling_num": p["sampling_num"] // 2},
    "ensemble": lambda p: {"ensemble": p["ensemble"] + 1},
}


@pytest.mark.parametrize("name", list(PLAN_CHANGES))
def test_a_plan_that_releases_more_often(
    name: str, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = planning.with_noise
    changed = []

    def other(*args: Any, **kwargs: Any) -> Any:
        original = build(*args, **kwargs)
        new = {**original, **PLAN_CHANGES[name](original)}
        # No release of these plans depends on it.
        private = any(f["kind"] == "private" for f in original["features"])
        if name == "candidate rounds" and not private:
            return original
        changed.append(new)
        return new

    monkeypatch.setattr(planning, "with_noise", other)
    try:
        train()
    except (BudgetError, xgb.core.XGBoostError):
        assert changed
    else:
        assert not changed
