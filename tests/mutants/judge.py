"""What draws cost at least, computed with Google's library and with formulas written down again.

A lower bound: of each selection the loss of randomised response of the same range, optimistic
discretisation, no slack for noise on integers. A claim below it is false.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as pld

__all__ = ["least_epsilon", "verdict"]

_STEP = 2e-3
_LOW = {"pessimistic_estimate": False, "value_discretization_interval": _STEP}
_NOISE = {**_LOW, "use_connect_dots": False}


def _unit(plan: Mapping[str, Any]) -> int:
    """The largest sum of gradients of one row, or of one person."""
    return math.ceil(float(plan["row_bound"]["max_rows_per_person"]) * (1 << plan["grid_bits"]))


def _round2(plan: Mapping[str, Any]) -> float:
    """Squared norm of what one unit adds to the leaf sums of a round, at least."""
    bound, b = plan["row_bound"], _unit(plan)
    if bound["mode"] in ("prediction", "row_weight"):
        return float(b**2)
    h = math.sqrt(float(bound["hessian_weight"])) * float(bound["hessian_bound"])
    return b**2 * (1.0 + (h / float(bound["gradient_bound"])) ** 2)


def _spread2(plan: Mapping[str, Any]) -> float:
    """The same where persons have bounds of gradients and of Hessians, and a third of all rows."""
    ball = plan["row_bound"]["mode"] in ("prediction", "row_weight")
    return _round2(plan) * 10 / 9 + (_unit(plan) ** 2 / 16 if ball else 0.0)


def _squared(draw: Mapping[str, Any], plan: Mapping[str, Any]) -> float:
    """Squared sensitivity of a Gaussian draw."""
    name = draw["release"]
    if name == "leaves":
        return _spread2(plan) if plan["leaf"]["spread"] else _round2(plan)
    if name == "histograms":
        return float(plan["features_per_tree"]) * _round2(plan)
    if name == "correction":
        return 2.0**36 + 2.0**32
    assert name == "candidates"
    counts = plan["candidates"]
    features = sum(f["kind"] == "private" for f in plan["features"])
    levels = counts["levels"] if counts["kind"] == "quantile_tree" else 1
    return features * levels * 4.0 ** counts["shift"]


def _absolute(draw: Mapping[str, Any], plan: Mapping[str, Any]) -> float:
    """L1 sensitivity of a draw with Laplace noise, at least."""
    if draw["release"] == "candidates":
        return float(sum(f["kind"] == "private" for f in plan["features"])) * (
            2.0 ** plan["candidates"]["shift"]
        )
    # The value of a leaf in units of its sensitivity, or the sums of one leaf.
    return 2.0**20 if plan["leaf"]["noise"] == "output" else _round2(plan) ** 0.5


def _labels2(request: Mapping[str, Any]) -> float:
    """Squared sensitivity of the sums of labels: 4^shift for each that one row moves fully."""
    moved = 1 + (request["kind"] in ("binary", "regression") and "public_num_rows" not in request)
    return (moved + ("columns" in request)) * 4.0 ** request["shift"]


def _round(event: Mapping[str, Any], plan: Mapping[str, Any]) -> Any:
    """One round that reads a Poisson sample of the rows: the noise on its leaves alone."""
    [draw] = [one for one in event["events"] if one["release"] in ("leaves", "histograms")]
    rate = event["rate_num"] / 2.0 ** event["rate_bits"]
    if draw["mechanism"] == "laplace":
        noise = draw["scale"] / _absolute(draw, plan)
        return pld.from_laplace_mechanism(noise, sampling_prob=rate, **_NOISE)
    noise = math.sqrt(draw["sigma2"] / (_squared(draw, plan) * draw["count"]))
    return pld.from_gaussian_mechanism(noise, sampling_prob=rate, **_NOISE)


def least_epsilon(content: Mapping[str, Any], delta: float) -> float:
    """What the draws of a training cost at least."""
    plan, mu2 = content["plan"], 0.0
    parts: list[Any] = []
    for entry in content["before"]:
        if entry["draw"] is not None:
            mu2 += _labels2(entry["request"]) / entry["draw"]["sigma2"] * entry["draw"]["count"]
    for draw in content["draws"]:
        if draw["mechanism"] == "poisson":
            part = _round(draw, plan)
        elif draw["mechanism"] == "gaussian":
            mu2 += draw["count"] * _squared(draw, plan) / draw["sigma2"]
            continue
        elif draw["mechanism"] == "exponential":
            needed = 2 * _unit(plan) if plan["score"] == "l1" else draw["range"]
            eps0 = draw["eps_num"] / 2.0**40 * needed / draw["range"]
            flip = 1.0 / (1.0 + math.exp(eps0 / 2.0))
            one, other = math.log1p(-flip), math.log(flip)
            part = pld.from_two_probability_mass_functions(
                {0: one, 1: other}, {0: other, 1: one}, **_LOW
            )
        else:
            part = pld.from_laplace_mechanism(draw["scale"] / _absolute(draw, plan), **_NOISE)
        parts.append(part.self_compose(draw["count"]))
    if mu2 > 0.0:
        parts.append(pld.from_gaussian_mechanism(1.0 / math.sqrt(mu2), **_NOISE))
    if not parts:
        return 0.0
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return float(total.get_epsilon_for_delta(delta))


def verdict(path: Path, delta: float) -> tuple[str, float, float]:
    """Whether a training ended in an error, in a claim that holds, or in one that is false."""
    from xgb_dp.accounting import event_from_json, make_accountant
    from xgb_dp.errors import LedgerError
    from xgb_dp.record.ledger_model import Ledger

    content = json.loads(path.read_text())
    if "error" in content:
        return "error", math.nan, math.nan
    record = {k: v for k, v in content["ledger"].items() if k != "digest"}
    if not record["private"]:
        return "no claim", math.nan, math.nan
    try:
        Ledger.from_json(record)
    except LedgerError:
        return "no claim", math.nan, math.nan
    events = [event_from_json(e) for t in record["trainings"] for e in t["events"]]
    claimed = make_accountant("exact", events).get_epsilon(delta)
    least = least_epsilon(content, delta)
    return "holds" if claimed >= least - 3 * _STEP else "FALSE", claimed, least
