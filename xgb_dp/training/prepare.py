"""The one road from a user's parameters to a calibrated plan.

Training, tuning, the command line and the audit all come this way, so that what one of them says
about a training holds for the others. Nothing here looks at a row: only at parameters and at the
public schema of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..accounting import ChoiceEvent, Event
from ..calibrate.mechanisms import NoisePlan, Releases
from ..calibrate.search import calibrate, calibrate_family
from ..errors import BudgetError, spelt
from ..record import policy
from ..request.names import check_names, flatten
from ..request.params import ARGUMENTS, DEFAULT_ROUNDS
from ..request.schema import Schema
from ..request.settings import Settings, resolve, with_preset
from ..request.sizes import is_sparse, position, settings_of_sizes


@dataclass(frozen=True)
class Prepared:
    """A training that has been checked and calibrated, and has read nothing yet."""

    settings: Settings  # what the user asked for, checked, with every default filled in
    asked: Releases  # what the training releases
    noise: NoisePlan  # how much noise each release gets
    # where the plan follows the number of rows: the plans of which one is taken, and what they are
    # charged with together. None where this plan is the only one. All but the plan itself is then
    # the first of them
    family: Family | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """What the training is charged with, before it starts as after it is complete."""
        return self.noise.events if self.family is None else (self.family.event,)

    @property
    def plans(self) -> tuple[Prepared, ...]:
        """Every plan that may be taken, each as if it were the only one."""
        return (self,) if self.family is None else self.family.plans


@dataclass(frozen=True)
class Family:
    """Plans of which one is taken by what is released first: the noisy number of rows, and that of
    cells where they may be few.
    """

    # each plan by itself. If the last one starts from columns, it is that of sparse tables
    plans: tuple[Prepared, ...]
    # below which number of rows each is taken, rising; the last one from there on. Of the plan of
    # sparse tables: that of rows in which two columns may meet
    limits: tuple[float, ...]
    event: ChoiceEvent  # what the choice among them is charged with

    @property
    def presence(self) -> bool:
        """Whether the cells that are present decide too."""
        return self.plans[-1].settings.starts_from_columns

    def taken(self, rows: float, present: float = math.inf) -> int:
        """Position of the plan that is taken. Free post-processing of released numbers."""
        last = len(self.plans) - 1
        if not self.presence:
            return position(self.limits, rows)
        if is_sparse(rows, present, self.limits[last]):
            return last
        return position(self.limits[:last], rows)


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
    return calibrated(checked(user, schema, rounds, continues=continues))


def checked(
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
    if (rules := policy.in_force()) is not None:
        rules.check_params(flat, schema.names if schema.width else [])
    given = DEFAULT_ROUNDS if rounds is None else rounds
    count = ARGUMENTS["num_boost_round"].read(spelt("num_boost_round"), given, None)
    settings = resolve(with_preset(flat, schema, count, continues), schema, count, continues)
    if rules is not None:
        rules.check_weights(settings.unit_weights)
    return settings


def calibrated(settings: Settings) -> Prepared:
    """The second half of :func:`prepare`: the noise that checked settings call for."""
    target = settings.epsilon, settings.delta, settings["dp_accountant"], settings["dp_group"]
    limits, variants = settings_of_sizes(settings)
    if len(variants) == 1:
        [settings] = variants
        asked = Releases.of(settings)
        return Prepared(settings, asked, calibrate(asked, *target))
    presence = variants[-1].starts_from_columns
    choices = tuple(Releases.of(s, counts=True, presence=presence) for s in variants)
    for number in range(len(choices), 0, -1):
        try:
            noise = calibrate_family(choices[:number], *target)
        except BudgetError:
            if number == 1:
                raise
            continue  # the largest plan has no noise on the supported grids
        plans = tuple(map(Prepared, variants, choices, noise.plans))
        return replace(plans[0], family=Family(plans, tuple(limits[:number]), noise.event))
    raise AssertionError
