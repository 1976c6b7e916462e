"""Convert user parameters into a calibrated plan.

Training, selection, the command line and the audit all use this module, so that they agree on the
plan. It reads only parameters and the public schema of the columns, never a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import alias
from ..parameters.config import Config
from ..planning import Prepared, calibrated
from ..record.authorization import PolicyRules, policy_in_force
from ..request.names import Request, check_names
from ..request.params import ARGUMENTS, DEFAULT_ROUNDS
from ..request.resolution import resolve
from ..request.schema import Schema


def prepare(
    user: Mapping[str, Any] | Iterable[tuple[str, Any]], schema: Schema, rounds: Any
) -> Prepared:
    """Check the parameters of one training and calibrate its noise.

    Privacy: reads no rows and spends nothing.
    """
    return calibrated(checked(Request.parse(user, rounds), schema, policy_in_force()))


def checked(request: Request, schema: Schema, policy: PolicyRules | None) -> Config:
    """Check the parameters of one training, and return its settings."""
    check_names(request.params)
    given = {name: value for name, value in request.params.items() if value is not None}
    if policy is not None:
        policy.check_params(given, schema.names if schema.width else [])
    rounds = DEFAULT_ROUNDS if request.rounds is None else request.rounds
    count = ARGUMENTS["num_boost_round"].read(alias("num_boost_round"), rounds, None)
    settings = resolve(given, schema, count, request.continues)
    if policy is not None:
        policy.check_weights(settings.unit_weights)
    return settings
