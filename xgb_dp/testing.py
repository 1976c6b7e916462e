"""Helpers for tests: fixed noise, and training from a low-level plan.

The resulting models are marked as non-private in the plan, the ledger and the report.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .errors import PrivacyParameterError
from .record.authorization import fix_noise_of_process, fixed_noise, noise_key

if TYPE_CHECKING:
    from .record.ledger_model import Ledger

__all__ = ["claim_plan", "fix_noise_of_process", "fixed_noise", "noise_key", "train_with_plan"]


def train_with_plan(
    plan: dict[str, Any],
    dtrain: Any,
    num_boost_round: int | None = None,
    base_score: float | list[float] = 0.5,
    **extra: Any,
) -> Any:
    """Train from a low-level plan, without parameters, checks or calibration.

    Privacy: none; only plans marked non-private are accepted.

    Args:
        plan: Fields of ``plugin_cpp/plan/plan.h``, with a test key or without noise.
        dtrain: Training data, an xgboost.DMatrix.
        num_boost_round: Number of rounds; by default as in the plan.
        base_score: Intercept.
        extra: Other XGBoost parameters, e.g. ``nthread``.

    Returns:
        xgboost.Booster: The model, with a ledger of the draws.

    Raises:
        PrivacyParameterError: The plan has noise but no test key.

    Examples:
        >>> from xgb_dp.audit import PreparedTraining
        >>> plan = PreparedTraining(params, data, rounds=2).plan(test_key="07" * 32)
        >>> trained = xgb_dp.testing.train_with_plan(plan, data)
        >>> xgb_dp.privacy_report(trained).private
        False
    """
    from xgboost import Booster

    from .accounting.sensitivity import RowBound
    from .mechanisms.splits import plan_range
    from .planning import dump
    from .record.claim import read_draws
    from .record.content import store_bound

    plan = {
        "id": "hand-made",
        **plan,
        "selection": {**plan["selection"], "range": plan_range(plan, RowBound.from_plan(plan))},
    }
    if not plan["noise_free"] and not plan.get("test_key"):
        raise PrivacyParameterError("`plan` must have a `test_key` or no noise.")
    params = {
        "tree_method": "dp_hist",
        "objective": plan["objective"],
        "base_score": base_score,
        "disable_default_eval_metric": True,
        "num_parallel_tree": plan["parallel_trees"],
        "dp_plan": (text := dump(plan)),
    }
    if plan["num_class"] > 1 and "loss" not in plan:  # outputs of a loss are not classes
        params["num_class"] = plan["num_class"]
    booster = Booster({**params, **extra}, [dtrain])
    claim = claim_plan(booster, text, dtrain)
    rounds = plan["rounds"] if num_boost_round is None else num_boost_round
    for iteration in range(rounds):
        booster.update(dtrain, iteration)
    grown = read_draws(booster)
    training = replace(
        claim.trainings[0], complete=True, events=grown.events, rounds=rounds, trees=grown.trees
    )
    store_bound(booster, replace(claim, trainings=(training,)))
    return booster


def claim_plan(booster: Any, text: str, dtrain: Any) -> Ledger:
    """Authorize a booster to train a low-level plan, with a ledger marked as non-private.

    Args:
        booster: xgboost.Booster with the parameter ``dp_plan`` for this plan.
        text: The plan as JSON.
        dtrain: xgboost.DMatrix of the training.

    Returns:
        Ledger: The claim of the training, also stored in the booster.
    """
    from .engine import native
    from .mechanisms.plan import Plan
    from .record import ledger
    from .record.ledger_model import Ledger, TrainingRecord

    claimed = Plan(text)
    plan = claimed.body
    rounds = plan["rounds"]
    public = {"rounds": rounds, "group_size": 1, "num_parallel_tree": plan["parallel_trees"]}
    training = TrainingRecord(
        id="0" * 32,
        plans=(claimed.digest,),
        complete=False,
        events=(),
        rounds=rounds,
        target=(float("inf"), 0.0),
        public={"hyperparameters": {**public, "budget_shares": {}}},
    )
    claim = Ledger(False, "none" if plan["noise_free"] else "fixed", (training,))
    ledger.store(booster, claim)
    native.open_claim(dtrain, ledger.dump_checksummed(claim.to_json()))
    return claim
