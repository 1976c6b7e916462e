"""What is stated of a plan before it is trained: its events, sensitivities and range.

A plan that was changed by hand gets the range of its utility anew, as `train_with_plan` does.
"""

import json
from collections.abc import Mapping
from typing import Any

from xgb_dp.accounting import sensitivity
from xgb_dp.accounting.enforced import Enforced, range_of_plan
from xgb_dp.accounting.planned import planned_events
from xgb_dp.accounting.sensitivity import Labels, release_of
from xgb_dp.accounting.units import PERSON
from xgb_dp.engine import native
from xgb_dp.record.claim import Told
from xgb_dp.training.plan import dump


def ranged(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with the range that its bound leads to."""
    return {**plan, "selection": {**plan["selection"], "range": range_of_plan(plan)}}


def check_plan(text: str) -> None:
    """Refuse a plan that no proof covers, or whose numbers do not fit."""
    native.call("XGDPCheckPlan", text.encode())


def describe_plan(text: str) -> dict[str, Any]:
    """Events, sensitivities and range of a plan that the library takes."""
    plan = ranged(json.loads(text))
    check_plan(dump(plan))
    enforced = Enforced.of_plan(plan)
    events = planned_events({**plan, "noise_free": False}, enforced)
    each = {e["release"]: e for event in events for e in _plain(event.to_json())}
    return {
        "leaf_sensitivity2": enforced.bound.round_sens2(enforced.grid_bits, enforced.trees),
        "leaves": each.get("histograms", each.get("leaves")),
        "candidates": each.get("candidates"),
        "events": [event.to_json() for event in events],
        "score_range": enforced.score_range,
    }


def claim_of(text: str) -> dict[str, Any]:
    """The claim of a training of a plan, as far as the library reads it."""
    plan = json.loads(text)
    noise = "none" if plan["noise_free"] else "fixed" if plan.get("test_key") else "os"
    return {
        "private": noise == "os",
        "noise": noise,
        "trainings": [{"plans": [Told(text).digest], "complete": False}],
    }


def describe_intercept(request: Mapping[str, Any]) -> dict[str, Any]:
    """The measure of a request for the sums before the first tree."""
    if request["kind"] == "columns":
        measure = sensitivity.columns_sens2(request["shift"]), request["columns"]
    else:
        measure = Labels.of(request).measure(person=request["unit"] == PERSON)
    name = release_of(request)
    sens2, coordinates = measure
    event = {"release": name, "sensitivity2": sens2, "coordinates": coordinates}
    return event | ({"unit": PERSON} if request["unit"] == PERSON else {})


def _plain(event: dict[str, Any]) -> list[dict[str, Any]]:
    return event.get("events", [event])
