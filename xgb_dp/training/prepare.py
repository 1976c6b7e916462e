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
from ..record.authorization import policy_in_force
from ..request.names import check_names, flatten
from ..request.params import ARGUMENTS, DEFAULT_ROUNDS
from ..request.resolution import resolve
from ..request.schema import Schema


def prepare(
    user: Mapping[str, Any] | Iterable[tuple[str, Any]],
    schema: Schema,
    rounds: Any,
    *,
    continues: bool = False,
) -> Prepared:
    """Check the parameters of one training and calibrate its noise.

    Privacy: reads no rows and spends nothing.
    """
    return calibrated(checked(flatten(user), schema, rounds, continues=continues))


def checked(
    flat: Mapping[str, Any],
    schema: Schema,
    rounds: Any,
    *,
    continues: bool = False,
) -> Config:
    """Check parameters from :func:`flatten` and return the settings of one training."""
    check_names(flat)
    flat = {name: value for name, value in flat.items() if value is not None}
    if (rules := policy_in_force()) is not None:
        rules.check_params(flat, schema.names if schema.width else [])
    given = DEFAULT_ROUNDS if rounds is None else rounds
    count = ARGUMENTS["num_boost_round"].read(alias("num_boost_round"), given, None)
    settings = resolve(flat, schema, count, continues)
    if rules is not None:
        rules.check_weights(settings.unit_weights)
    return settings
