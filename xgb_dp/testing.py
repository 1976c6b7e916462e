"""Helpers for tests: fixed noise and training from a hand-made plan.

Models made with them are marked non-private, in the plan, in the ledger and in the report.
"""

from __future__ import annotations

from typing import Any

from .engine.tape import fix_noise_of_process, fixed_noise, noise_key
from .errors import PrivacyParameterError

__all__ = ["fix_noise_of_process", "fixed_noise", "noise_key", "train_with_plan"]


def train_with_plan(
    plan: dict[str, Any],
    dtrain: Any,
    num_boost_round: int | None = None,
    base_score: float | list[float] = 0.5,
    **extra: Any,
) -> Any:
    """Train from a low-level plan, without parameters, checks and calibration.

    Privacy: none; only plans marked non-private are taken.

    Args:
        plan: Fields of ``plugin_cpp/plan/plan.h``; ``private`` must be false.
        dtrain: xgboost.DMatrix.
        num_boost_round: Rounds to train; the plan's by default.
        base_score: Intercept.
        extra: More XGBoost parameters, e.g. ``nthread``.

    Returns:
        xgboost.Booster: With the ledger of what was drawn.

    Raises:
        PrivacyParameterError: The plan claims to be private.

    Examples:
        >>> from xgb_dp.audit import PreparedTraining
        >>> plan = PreparedTraining(params, data, rounds=2).plan(test_key="07" * 32)
        >>> trained = xgb_dp.testing.train_with_plan(plan, data)
        >>> xgb_dp.privacy_report(trained).private
        False
    """
    from xgboost import Booster

    from .accounting.enforced import range_of_plan
    from .training.plan import dump_plan

    plan = {**plan, "selection": {**plan["selection"], "range": range_of_plan(plan)}}
    if plan["private"]:
        raise PrivacyParameterError("`plan` of a test must have private=False.")
    params = {
        "tree_method": "dp_hist",
        "objective": plan["objective"],
        "base_score": base_score,
        "disable_default_eval_metric": True,
        "num_parallel_tree": plan["parallel_trees"],
        "dp_plan": dump_plan({"id": "hand-made", **plan}),
    }
    if plan["num_class"] > 1 and "loss" not in plan:  # outputs of a loss are no classes
        params["num_class"] = plan["num_class"]
    booster = Booster({**params, **extra}, [dtrain])
    rounds = plan["rounds"] if num_boost_round is None else num_boost_round
    for iteration in range(rounds):
        booster.update(dtrain, iteration)
    _store_ledger(booster, rounds, plan["parallel_trees"])
    return booster


def _store_ledger(booster: Any, rounds: int, parallel_trees: int) -> None:
    from .record import ledger
    from .record.claim import drawn
    from .record.form import Ledger, TrainingRecord

    private, noise, events = drawn(booster)
    public = {"rounds": rounds, "group": 1, "num_parallel_tree": parallel_trees}
    training = TrainingRecord(
        plan_digest="hand-made",
        complete=True,
        events=events,
        rounds=rounds,
        target=(float("inf"), 0.0),
        public={"hyperparameters": {**public, "budget_shares": {}}},
    )
    ledger.store(booster, Ledger(private, noise, (training,)))
