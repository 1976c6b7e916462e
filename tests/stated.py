"""What is stated of a plan before it is trained: its events, sensitivities and range.

A plan that was changed by hand gets the range of its utility anew, as `train_with_plan` does.
"""

import json
from collections.abc import Mapping
from typing import Any

from xgb_dp.accounting import sensitivity
from xgb_dp.accounting.sensitivity import LabelSumSizes, RowBound
from xgb_dp.accounting.units import PERSON
from xgb_dp.engine import native
from xgb_dp.mechanisms.plan import Mechanisms, Plan, planned_noise
from xgb_dp.mechanisms.splits import plan_range
from xgb_dp.planning import dump


def ranged(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with the range that its bound leads to."""
    return {**plan, "selection": {**plan["selection"], "range": range_of_plan(plan)}}


def range_of_plan(plan: Mapping[str, Any]) -> int:
    """The range of the utility of splits that a plan needs."""
    return plan_range(plan, RowBound.from_plan(plan))


def check_plan(text: str) -> None:
    """Refuse a plan that no proof covers, or whose numbers do not fit."""
    native.call("XGDPCheckPlan", text.encode())


def describe_plan(text: str) -> dict[str, Any]:
    """Events, sensitivities and range of a plan that the library takes."""
    plan = ranged(json.loads(text))
    check_plan(dump(plan))
    plan["before"] = {}
    mechanisms, bound = Mechanisms.from_plan(plan), RowBound.from_plan(plan)
    noise = {m.name: planned_noise(m, plan) for m in mechanisms.each}
    events = mechanisms.events(noise)
    each = {e["release"]: e for event in events for e in _plain(event.to_json())}
    return {
        "leaf_sensitivity2": bound.round_sens2(plan["grid_bits"], plan["num_class"]),
        "leaves": each.get("histograms", each.get("leaves")),
        "candidates": each.get("candidates"),
        "events": [event.to_json() for event in events],
        "score_range": plan["selection"]["range"],
    }


def claim_of(text: str) -> dict[str, Any]:
    """The claim of a training of a plan, as far as the library reads it."""
    plan = json.loads(text)
    noise = "none" if plan["noise_free"] else "fixed" if plan.get("test_key") else "os"
    return {
        "private": noise == "os",
        "noise": noise,
        "trainings": [{"plans": [Plan(text).digest], "complete": False}],
    }


def describe_intercept(request: Mapping[str, Any]) -> dict[str, Any]:
    """The measure of a request for the sums before the first tree."""
    if request["kind"] == "columns":
        measure = sensitivity.columns_sens2(request["shift"]), request["columns"]
    else:
        measure = LabelSumSizes.from_request(request).measure(person=request["unit"] == PERSON)
    kinds = {"rows", "columns", "range"}
    name = request["kind"] if request["kind"] in kinds else "intercept"
    sens2, coordinates = measure
    event = {"release": name, "sensitivity2": sens2, "coordinates": coordinates}
    return event | ({"unit": PERSON} if request["unit"] == PERSON else {})


def _plain(event: dict[str, Any]) -> list[dict[str, Any]]:
    return event.get("events", [event])
