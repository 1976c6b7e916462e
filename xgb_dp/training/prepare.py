"""The one road from a user's parameters to a calibrated plan.

Training, tuning, the command line and the audit all come this way, so that what one of them says
about a training holds for the others. Nothing here looks at a row: only at parameters and at the
public schema of the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..accounting import Event
from ..calibrate.mechanisms import MechanismSpec, NoisePlan
from ..calibrate.search import calibrate
from ..request.features import Schema
from ..request.names import check_names, flatten
from ..request.params import ARGUMENTS
from ..request.settings import Settings, resolve, with_preset

__all__ = ["Prepared", "calibrated", "check", "prepare"]


@dataclass(frozen=True)
class Prepared:
    """A training that has been checked and calibrated, and has read nothing yet.

    Attributes:
        settings: What the user asked for, checked, with every default filled in.
        spec: What the training releases.
        noise: How much noise each release gets.
    """

    settings: Settings
    spec: MechanismSpec
    noise: NoisePlan

    @property
    def events(self) -> tuple[Event, ...]:
        """What the ledger will hold when the training is complete."""
        return self.noise.events


def prepare(
    user: Mapping[str, Any] | Iterable[tuple[str, Any]],
    schema: Schema,
    rounds: Any,
    *,
    continues: bool = False,
) -> Prepared:
    """Check the parameters of one training and calibrate its noise.

    Privacy: reads no rows and spends nothing.

    Args:
        user: Parameters as for ``xgboost.train``.
        schema: Public schema of the training data.
        rounds: Boosting rounds; the noise is calibrated for exactly that many.
        continues: Whether an earlier private model is continued.

    Raises:
        PrivacyParameterError: A parameter is missing, unknown or out of range.
        PrivacyRefusal: A combination that would not be private.
        BudgetError: No noise meets the target.
    """
    return calibrated(check(user, schema, rounds, continues=continues))


def check(
    user: Mapping[str, Any] | Iterable[tuple[str, Any]],
    schema: Schema,
    rounds: Any,
    *,
    continues: bool = False,
) -> Settings:
    """The first half of :func:`prepare`: the checked settings, without any noise."""
    flat = flatten(user)
    check_names(flat)
    flat = {name: value for name, value in flat.items() if value is not None}
    count = ARGUMENTS["num_boost_round"].read("num_boost_round", rounds, None)
    return resolve(with_preset(flat, schema, count, continues), schema, count, continues)


def calibrated(settings: Settings) -> Prepared:
    """The second half of :func:`prepare`: the noise that checked settings call for.

    Raises:
        BudgetError: No noise meets the target.
    """
    spec = MechanismSpec.from_settings(settings)
    noise = calibrate(spec, settings.epsilon, settings.delta, settings["dp_accountant"])
    return Prepared(settings, spec, noise)
