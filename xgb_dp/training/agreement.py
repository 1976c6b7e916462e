"""The calibration and the trainer agree on everything that is released, or nothing is released."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..accounting.sensitivity import range_int
from ..calibrate.mechanisms import NoisePlan
from ..engine import native
from ..errors import BudgetError
from ..request.settings import Settings

__all__ = ["check"]

_SHARED = (
    ("private", "private"),
    ("test_key", "test_key"),
    ("noise_free", "noise_free"),
    ("masking", "masking"),
    ("plan_id", "id"),
)
"""Where the noise and the pads come from: fields of the request, and the same of the plan."""


def check(
    text: str,
    request: Mapping[str, Any] | None,
    noise: NoisePlan,
    s: Settings,
    by_column: Mapping[str, Any] | None = None,
) -> None:
    """Two independent derivations of everything that is released must agree before any release.

    The calibration says what the training releases, with which sensitivity, range and noise, and
    how often; the trainer derives the same from the plan and from the request for the intercept.
    """
    described = native.describe_plan(text)
    derived = list(described["events"])
    if request is not None:
        event = native.describe_intercept(request)
        derived.append({**event, "count": 2 * event["count"]} if s.measured else event)
    if by_column is not None:
        derived.append(native.describe_intercept(by_column))
    agree = described["score_range"] == range_int(
        s["dp_score"],
        s.row_bound,
        noise.grid_bits,
        s["dp_score_clip"],
        joint=s["dp_class_trees"] == "joint",
        depth=s["max_depth"],
    )
    told = json.loads(text)
    for asked in (request, by_column):
        agree = agree and (
            asked is None or all(asked.get(mine) == told.get(its) for mine, its in _SHARED)
        )
    if not s.noise_free:
        planned = [event.to_json() for event in noise.events]
        agree = agree and _in_order(planned) == _in_order(derived)
    if not agree:
        raise BudgetError(
            "The calibrated noise does not fit the sensitivity that the trainer derives from "
            "the plan. Nothing was released. This is a defect of xgb_dp: please report it."
        )


def _in_order(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Events as texts in an order of their own; those of a round too, and none that never occur."""
    texts = []
    for event in events:
        inner = {"events": _in_order(event["events"])} if "events" in event else {}
        if event["count"]:
            texts.append(json.dumps({**event, **inner}, sort_keys=True))
    return sorted(texts)
