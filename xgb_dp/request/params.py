"""All parameters of a training: their table, the rules between them, and their resolution.

A row of the table defines the meaning of a parameter, its values and its default. Readers, error
messages, the documentation page, the plan, XGBoost's parameters and the public record of a model
are derived from these rows. No other module reads the user's parameters. A mechanism defines the
rows and rules of its own parameters.

Parameters are resolved once, in the order REQUIRED, constant defaults, LABELS, TREES, SHARES. A
computed default is a function of the values before it; one that reads a later value is a KeyError.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyParameterError, named
from ..mechanisms.plan import MECHANISMS
from ..parameters.config import Config, ReleasedRange
from ..parameters.parameter import SPENDS, Parameter
from ..parameters.parse import Integer, OpenRounds
from ..presets import PRESETS
from . import bound, guarantee, labels, masking, trees
from .objectives import OBJECTIVES, OWN, OWN_PARAMETERS
from .schema import Schema, resolve_features

LABEL_RULES = (*labels.RULES, *guarantee.RULES)
"""Rules of labels and guarantee, checked before the parameters of the trees are read."""
OTHER_RULES = (
    *(rule for mechanism in MECHANISMS for rule in mechanism.rules),
    *trees.RULES,
    *bound.RULES,
    *masking.RULES,
)
RULES = (*LABEL_RULES, *OTHER_RULES)
"""All rules, in the order of their checks."""


DEFAULT_ROUNDS = OpenRounds(50)
"""Default number of boosting rounds in every interface, unless the number of rows decides."""


def _rounds(name: str, value: Any, s: Any = None) -> int:
    """Read the number of boosting rounds, without rounding: the noise is calibrated for it."""
    if isinstance(value, OpenRounds):
        return value
    try:
        # An array of one float also has `__index__`, which fails only when called.
        number = None if isinstance(value, bool) else operator.index(value)
    except Exception:  # an object of the caller may raise anything
        number = None
    if number is None:
        raise PrivacyParameterError(
            f"`{name}` must be an integer, because the noise is calibrated for this number of "
            f"rounds; got {type(value).__name__}."
        )
    return Integer(1, 1 << 20)(name, number)


ARGUMENTS: dict[str, Parameter] = {
    "num_boost_round": Parameter(
        "num_boost_round",
        "Number of boosting rounds.",
        _rounds,
        DEFAULT_ROUNDS,
        SPENDS,
        "accounting",
        unit="rounds",
        values="int >= 1",
        shown=f"depends on the number of rows; otherwise {DEFAULT_ROUNDS}",
        aliases=("n_estimators", "--rounds"),
    )
}
"""Arguments of training functions that are not parameters."""

_ROWS = (
    *guarantee.PARAMETERS,
    *bound.PARAMETERS,
    *labels.PARAMETERS,
    *trees.PARAMETERS,
    *(row for mechanism in MECHANISMS for row in mechanism.parameters),
    *masking.PARAMETERS,
)
PARAMETERS: dict[str, Parameter] = {
    row.name: row for row in sorted(_ROWS, key=lambda row: not row.name.startswith("dp_"))
}
"""All parameters by name; the ``dp_*`` ones first."""


REQUIRED = ("tree_method", "dp_epsilon", "dp_accountant", "dp_delta", "dp_objective", "objective")
"""The parameters without which there is no training, and those that they depend on."""
LABELS = ("dp_target_bounds", *OWN_PARAMETERS, "dp_gradient_clip")
"""Parameters of the loss. Afterwards its rules exclude labels without a bound on their rows."""
TREES = (
    "base_score", "max_depth", "dp_tree_shape", "max_bin", "dp_split_levels", "dp_split_prior",
    "dp_features_per_tree", "dp_shrinkage", "dp_shrinkage_noise", "dp_candidate_rounds",
    "dp_candidate_weight", "dp_candidate_cells", "dp_target_unit", "dp_weight_unit",
    "dp_class_trees", "dp_gradient_bound", "dp_hessian_weight", "dp_mean_correction",
)  # fmt: skip
"""Parameters of the trees and of the bound on a row."""
SHARES = ("dp_budget_shares",)
"""The division of the budget among the mechanisms that the other parameters enable."""


def constant() -> list[str]:
    """All other parameters, whose defaults are constants or follow from the schema."""
    return [name for name in PARAMETERS if name not in {*REQUIRED, *LABELS, *TREES, *SHARES}]


def resolve(
    given: Mapping[str, Any], schema: Schema, rounds: int, continues: bool = False
) -> Config:
    """Read every parameter, in order, and check the rules between them."""
    s = Config(_with_preset(given, schema, rounds), schema, rounds, continues, {})
    s = _with_objective(_read(s, REQUIRED))
    if not schema.width:
        raise PrivacyParameterError("The training data has no columns. Give at least one feature.")
    _read(s, (*constant(), *LABELS))
    for rule in LABEL_RULES:
        rule.check(s)
    _read(s, TREES)
    for rule in OTHER_RULES:
        rule.check(s)
    return _frozen(_read(_with_features(s), SHARES))


def recorded(
    given: Mapping[str, Any], schema: Schema, rounds: int, continues: bool, known: dict[str, Any]
) -> Config:
    """Read the parameters in a ledger; `known` values are taken as they are.

    The ledger lists the values after the preset. The rules between them are not checked.
    """
    s = Config(given, schema, rounds, continues, dict(known))
    s = _with_objective(_read(s, REQUIRED))
    return _frozen(_read(_with_features(_read(s, (*constant(), *LABELS, *TREES))), SHARES))


def changed(s: Config, changes: Mapping[str, Any], rounds: int | None = None) -> Config:
    """Resolve the same training again with other values of some parameters."""
    count = s.rounds if rounds is None else rounds
    return resolve({**s.given, **changes}, s.schema, count, s.continues)


def with_public_cuts(s: Config, sample: Any) -> Config:
    """Declare quantiles of a matrix of public rows, if any, as cuts of all columns without cuts."""
    if sample is None:
        return s
    table, cuts = sample.get_data().tocsc(), dict(s["dp_feature_cuts"])
    for i, feature in enumerate(s.features):
        if feature.kind == "private":
            values = table.data[table.indptr[i] : table.indptr[i + 1]]  # without missing cells
            cuts[i] = _quantiles(values, s["max_bin"] - 1)
    return changed(s, {"dp_feature_cuts": cuts})


def _quantiles(values: npt.NDArray[np.float32], count: int) -> list[float]:
    """At most `count` evenly spaced quantiles; each is a column value, as in XGBoost."""
    cuts = np.unique(values)
    if len(cuts) > count + 1:
        cuts = np.unique(np.quantile(values, np.linspace(0, 1, count + 2)[1:-1], method="nearest"))
    elif len(cuts) > 1:
        cuts = cuts[1:]  # no value lies below the smallest one
    return [float(v) for v in cuts] or [0.0]


def with_released_range(s: Config, released: ReleasedRange | None, weight_unit: float) -> Config:
    """A copy with a released label range and weight unit. The privacy claim is unchanged."""
    values = {name: value for name, value in s.values.items() if name != "huber_slope"}
    s = replace(s, values=values, released_range=released, weight_unit=weight_unit)
    return _frozen(_read(s, ("huber_slope",)))


def _read(s: Config, names: Sequence[str]) -> Config:
    for name in names:
        if name not in s.values:
            s.values[name] = PARAMETERS[name].value(s)  # type: ignore[index]  # not frozen yet
    return s


def _frozen(s: Config) -> Config:
    return replace(s, values=MappingProxyType(s.values))


def _with_objective(s: Config) -> Config:
    return replace(
        s, one_label=OWN if s["dp_objective"] is not None else OBJECTIVES[s["objective"]]
    )


def _with_features(s: Config) -> Config:
    division = masking.Masking()
    if s["dp_secure_aggregation"]:
        division = masking.Masking(s.workers, s["dp_secure_colluders"])
    return replace(s, features=resolve_features(s), row_bound=bound.row_bound(s), masking=division)


def _with_preset(user: Mapping[str, Any], schema: Schema, rounds: int) -> dict[str, Any]:
    """The user's parameters on top of the chosen preset."""
    s = _read(Config(user, schema, rounds, False, {}), ("dp_preset",))
    preset = PRESETS[s["dp_preset"]]
    if preset.rounds and isinstance(rounds, OpenRounds):
        raise PrivacyParameterError(
            f"{named.num_boost_round} is missing: dp_preset={preset.name!r} needs {preset.rounds}."
        )
    params = dict(preset.params)
    s = replace(s, given={**params, **user})
    _read(s, ("tree_method", "num_parallel_tree"))
    params |= preset.computed(rounds, schema.width, s["num_parallel_tree"])
    if "tree_method" in params and s["tree_method"] == "dp_hist":
        # dp_hist only selects private training; the preset chooses between the two methods.
        user = {name: value for name, value in user.items() if name != "tree_method"}
    if "colsample_bytree" in user:
        params.pop("dp_features_per_tree", None)
    return {**params, **user}
