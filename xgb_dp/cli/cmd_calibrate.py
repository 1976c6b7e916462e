"""The command that shows how much noise a training would draw."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ..domain.declared import Column
from ..errors import PrivacyParameterError
from ..record.report_views import json_number, round_up, spending_rows
from ..record.spending import Spending, spending
from . import options
from .group import Given, command
from .output import say

if TYPE_CHECKING:
    from ..training.prepare import Prepared


@command("calibrate")
@click.option("--epsilon", type=float, multiple=True, required=True, help="Epsilon, in nats.")
@options.delta
@click.option("--columns", type=int, help="Number of numeric columns, if none are declared.")
@options.training
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.domain
def calibrate(given: Given) -> None:
    """Show how much noise an epsilon needs. Reads no rows and spends nothing.

    The noise multiplier is the standard deviation of the noise divided by the most that one row can
    change: noise of 40 in the leaves drowns leaves of fewer than some 40 rows.
    """
    import xgboost  # noqa: F401 - the accountant takes a tenth of its time in the library

    from ..request.schema import Schema
    from ..training.prepare import prepare

    domain, delta = options.domain_from(given), given.delta
    named = dict(domain.columns or domain.declared)
    for i in range(given.columns or 0):
        named.setdefault(f"column {i}", Column())
    if not named:
        raise PrivacyParameterError(
            "The number of columns is missing. Declare the columns in a schema file, or give "
            "--columns."
        )
    domain = replace(domain, columns=named, declared={})
    features = domain.features
    shape = Schema(
        names=list(features),
        named=True,
        categorical=frozenset(i for i, c in enumerate(features.values()) if c.categories),
        dictionaries={},
    )
    params = {"tree_method": "dp_hist", **domain.parameters(), **options.params_from(domain, given)}
    results = [
        (target, prepare({**params, "dp_epsilon": target, "dp_delta": delta}, shape, given.rounds))
        for target in given.epsilon
    ]
    if given.as_json:
        shown = [_json(target, prepared, delta) for target, prepared in results]
        say(json.dumps(shown, indent=2, allow_nan=False))
        return
    for target, prepared in results:
        certified = round_up(prepared.noise.epsilon)
        unit = prepared.settings.privacy_unit.phrase
        say(f"epsilon {target:g}: certified {certified} at delta {delta:g} for {unit}")
        for limit, plan in _plans(prepared):
            if limit is not None:
                say(f" {_words(limit, plan)}")
            for s in _spending(plan, delta):
                say(f"  {s.release:<11} {s.count:>5}x  {100 * s.share:5.1f}%  {s.noise}")


def _plans(prepared: Prepared) -> list[tuple[float | None, Prepared]]:
    """Each plan with the number of rows below which it is taken; None where there is only one."""
    if prepared.family is None:
        return [(None, prepared)]
    return list(zip(prepared.family.limits, prepared.plans, strict=True))


def _spending(plan: Prepared, delta: float) -> list[Spending]:
    return spending(plan.noise.events, delta, plan.settings.privacy_unit.group)


def _words(limit: float, plan: Prepared) -> str:
    s = plan.settings
    where = "for more" if math.isinf(limit) else f"below about {limit:,.0f} rows"
    return f"{where}: {s.rounds} rounds, depth {s['max_depth']}, eta {s['eta']:g}"


def _json(target: float, prepared: Prepared, delta: float) -> dict[str, Any]:
    content = {
        "target": json_number(target),
        "epsilon": json_number(prepared.noise.epsilon),
        "delta": delta,
        "unit": prepared.settings.unit,
        "group": prepared.settings.privacy_unit.group,
    }
    plans = [
        {
            "rows_below": None if limit is None else json_number(limit),
            "rounds": plan.settings.rounds,
            "max_depth": plan.settings["max_depth"],
            "eta": plan.settings["eta"],
            "budget": spending_rows(_spending(plan, delta)),
        }
        for limit, plan in _plans(prepared)
    ]
    if prepared.family is None:
        return {**content, "budget": plans[0]["budget"]}
    return {**content, "plans": plans}
