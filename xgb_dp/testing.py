"""Helpers for tests: fixed noise and training from a hand-made plan.

Models made with them are marked non-private, in the plan, in the ledger and in the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .errors import PrivacyParameterError

__all__ = ["fix_noise_of_process", "fixed_noise", "noise_key", "train_with_plan"]

_KEY: ContextVar[str | None] = ContextVar("xgb_dp_test_key", default=None)
_process_key: str | None = None


def noise_key() -> str | None:
    """Key of the fixed noise tape in force, as 64 hexadecimal digits; None outside of tests."""
    return _KEY.get() or _process_key


@contextmanager
def fixed_noise(key: int | bytes | str) -> Iterator[str]:
    """Draw all noise from a known key inside the block, so that trainings repeat exactly.

    Privacy: none. Whoever knows the key can subtract the noise, so the models are marked
    non-private.

    Args:
        key: Whole number, 32 bytes, or 64 hexadecimal digits.

    Yields:
        str: The key as 64 hexadecimal digits.

    Raises:
        PrivacyParameterError: Another form of key.
    """
    token = _KEY.set(_hex(key))
    try:
        yield _hex(key)
    finally:
        _KEY.reset(token)


def fix_noise_of_process(key: int | bytes | str | None) -> None:
    """Draw all noise of this process from a known key, from now on; for workers of a cluster.

    Privacy: none, as for :func:`fixed_noise`.

    Args:
        key: As for :func:`fixed_noise`; None for noise from the operating system again.

    Raises:
        PrivacyParameterError: Another form of key.
    """
    global _process_key
    _process_key = None if key is None else _hex(key)


def _hex(key: int | bytes | str) -> str:
    try:
        raw = key.to_bytes(32, "little") if isinstance(key, int) else key
        raw = bytes.fromhex(raw) if isinstance(raw, str) else bytes(raw)
    except (ValueError, TypeError, OverflowError):
        raw = b""
    if len(raw) != 32:
        raise PrivacyParameterError("`key` must be a whole number >= 0, 32 bytes or 64 hex digits.")
    return raw.hex()


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
    """
    from xgboost import Booster

    from . import ledger
    from .plan import dump_plan
    from .record import Ledger, TrainingRecord

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
    if plan["num_class"] > 1:
        params["num_class"] = plan["num_class"]
    booster = Booster({**params, **extra}, [dtrain])
    rounds = plan["rounds"] if num_boost_round is None else num_boost_round
    for iteration in range(rounds):
        booster.update(dtrain, iteration)
    drawn = ledger.drawn(booster)
    training = TrainingRecord(
        plan_digest="hand-made",
        complete=True,
        events=drawn.events,
        rounds=rounds,
        target=(float("inf"), 0.0),
        public={"plan": "hand-made"},
    )
    ledger.store(booster, Ledger(drawn.private, drawn.noise, (training,)))
    return booster
