"""What a plan releases at most: the events that a training claims before it draws anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ..errors import LedgerError
from .enforced import NOISY_SUMS, Enforced
from .events import Event
from .nested import ChoiceEvent
from .sensitivity import release_of
from .units import ROW

_EPS_BITS, _SAMPLE_BITS = 40, 32
_CORRECTIONS = 2


def planned_events(
    plan: Mapping[str, Any],
    enforced: Enforced,
    requests: Sequence[Mapping[str, Any]] = (),
) -> tuple[Event, ...]:
    """Everything that a training of a plan releases at most, in the order of the ledger."""
    if plan["noise_free"]:
        return ()
    asked = [(release_of(request), request["sigma2"]) for request in requests]
    once = [_gaussian(*kind, len(list(same))) for kind, same in groupby(asked)]
    rounds, in_round = plan["rounds"], _draws_of_round(plan, enforced)
    sampled, parts = plan["sampling_num"] < 1 << _SAMPLE_BITS, plan["ensemble"]
    counts = plan["candidates"]
    if enforced.candidates is not None and "candidates" not in dict(asked):
        draw = _noisy("candidates", counts, laplace=counts["laplace"])
        if counts["hessian"] and counts["rounds"] == rounds:
            in_round.insert(0, draw | {"count": 1})
        else:
            once.append(draw | {"count": counts["rounds"]})
    if plan["correction"]["on"]:
        once.append(_gaussian("correction", plan["correction"]["sigma2"], _CORRECTIONS))
    unit = {} if plan["unit"] == ROW else {"unit": plan["unit"]}
    in_round = [draw | unit for draw in in_round]
    if sampled:
        rate = {"rate_num": plan["sampling_num"], "rate_bits": _SAMPLE_BITS, "count": rounds}
        rest = [{"mechanism": "poisson", **rate, "events": in_round}]
    elif parts > 1:
        many = {"parts": parts, "count": -(-rounds // parts)}
        rest = [{"mechanism": "parallel", **many, "events": in_round}]
    else:
        rest = [draw | {"count": draw["count"] * rounds} for draw in in_round]
    return tuple(enforced.event(draw | unit) for draw in (*once, *rest))


def _draws_of_round(plan: Mapping[str, Any], enforced: Enforced) -> list[dict[str, Any]]:
    trees = plan["parallel_trees"]
    out: list[dict[str, Any]] = []
    if plan["split"] == "exponential":
        levels = -(-plan["depth"] // plan["split_levels"])
        chosen = trees * (1 if enforced.joint else plan["num_class"])
        splits = {"mechanism": "exponential", "release": "splits", "eps_bits": _EPS_BITS}
        splits |= {"eps_num": plan["selection"]["eps_num"], "range": plan["selection"]["range"]}
        out.append(splits | {"count": levels * chosen})
    if plan["split"] in NOISY_SUMS:
        out.append(_gaussian("histograms", plan["histogram"]["sigma2"], trees * plan["depth"]))
        return out
    draw = _noisy("leaves", plan["leaf"], laplace=enforced.leaf_noise != "gaussian")
    out.append(draw | {"count": trees})
    return out


def _gaussian(name: str, sigma2: int, count: int) -> dict[str, Any]:
    return {"mechanism": "gaussian", "release": name, "sigma2": sigma2, "count": count}


def _noisy(name: str, noise: Mapping[str, Any], *, laplace: bool) -> dict[str, Any]:
    """A draw without its count."""
    parameter = "scale" if laplace else "sigma2"
    mechanism = "laplace" if laplace else "gaussian"
    return {"mechanism": mechanism, "release": name, parameter: noise[parameter]}


def claimed_events(ways: Sequence[Sequence[Event]], before: int = 1) -> tuple[Event, ...]:
    """What a training is charged with that follows one of several plans."""
    if len(ways) == 1:
        return tuple(ways[0])
    firsts = {tuple(way[:before]) for way in ways}
    if len(firsts) != 1:
        raise LedgerError("Plans of which one is taken must begin with the same release.")
    return (ChoiceEvent(firsts.pop(), tuple(tuple(way[before:]) for way in ways)),)
