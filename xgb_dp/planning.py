"""Plans of a training: the releases of its checked settings, with calibrated noise.

A plan contains all inputs of the C++ trainer as one JSON parameter. Integers are JSON integers;
real numbers are JSON strings, because XGBoost reads JSON numbers as 32-bit floats. Cuts are 32-bit
floats and therefore JSON numbers. This module reads no rows.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .accounting import ChoiceEvent, Event
from .accounting.sensitivity import RowBound
from .accounting.units import PERSON
from .calibrate import Calibration, calibrate, calibrate_family
from .errors import BudgetError
from .mechanisms.label_sums import LabelSums
from .mechanisms.plan import MECHANISMS, Mechanisms
from .mechanisms.splits import finest_grid, plan_range
from .parameters.config import Config
from .request.default_plans import is_sparse, position, settings_of_sizes
from .request.guarantee import shares_of
from .request.params import PARAMETERS
from .request.schema import integer_weights


def without_reals(value: Any) -> Any:
    """Convert floats to strings and tuples to lists, except in ``features``."""
    if isinstance(value, dict):
        return {k: v if k == "features" else without_reals(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [without_reals(v) for v in value]
    return repr(value) if isinstance(value, float) else value


def draft(s: Config, *, counts: bool = False, presence: bool = False) -> dict[str, Any]:
    """The plan of one training without its noise.

    Args:
        s: Checked settings.
        counts: Whether to release the number of rows if no intercept is released.
        presence: Whether to release the number of present cells with the label sums.
    """
    bound = asdict(s.row_bound)
    del bound["of_person"]
    low, high = s.target if s.target is not None else (0.0, 0.0)
    bound |= {"scale": s.scale, "target_lower": low, "target_upper": high}
    if s.row_bound.mode == "prediction":
        bound["positive_weight"] = s["scale_pos_weight"]
    places = {"joint": s["dp_class_trees"] == "joint", "depth": s["max_depth"]}
    plan: dict[str, Any] = {
        "version": 1,
        "unit": s.unit,
        "noise_free": s.noise_free,
        "n_features": s.schema.width,
        "num_class": s.trees_per_round,
        "rounds": s.rounds,
        "cyclic_features": s["dp_feature_order"] == "cyclic",
        "feature_weights": integer_weights(s.schema.weights),
        "sampling_num": s.sampling_num,
        "masking": s.masking.to_json(),
        "grid_bits": finest_grid(s["dp_score"], s.row_bound, s["dp_score_clip"], **places),
        "row_bound": bound,
        "intercept": {"kind": s.intercept},
        "before": {},
    }
    for kind in MECHANISMS:
        if kind is LabelSums:
            section = LabelSums.plan_section(s, counts=counts, presence=presence)
        else:
            section = kind.plan_section(s)
        plan["before"] |= section.pop("before", {})
        plan |= section
    for parameter in PARAMETERS.values():
        if parameter.plan and s[parameter.name] is not None:
            *folder, key = parameter.plan.split(".")
            (plan[folder[0]] if folder else plan)[key] = s[parameter.name]
    if s.loss is not None:
        plan["loss"] = {"name": s.loss.name, **s.loss.plan(s)}
    return dict(without_reals(plan))


def with_noise(
    plan: Mapping[str, Any],
    noise: Calibration,
    test_key: str | None = None,
    earlier: int = 0,
) -> dict[str, Any]:
    """Complete a plan with its noise and an id.

    Args:
        plan: A plan without noise; see :func:`draft`.
        noise: The calibrated noise.
        test_key: Key of fixed noise in tests; None for noise from the operating system.
        earlier: Number of earlier trainings of the model. It makes the plans of one model distinct
            even if their settings are equal.
    """
    out = {key: _sections(value) for key, value in plan.items()}
    out |= {"grid_bits": noise.grid_bits, "earlier": earlier}
    for kind in MECHANISMS:
        place = out
        for key in kind.section:
            place = place.get(key, {})
        place |= {name: getattr(noise[kind.name], name) for name in kind.integers}
    selection = out["selection"]
    selection["range"] = plan_range(out, RowBound.from_plan(out))
    selection["eps_num"] = selection["eps_num"] or int(not out["noise_free"])
    if test_key is not None and not out["noise_free"]:
        out["test_key"] = test_key
    out["id"] = _name(dump(out))
    return out


def _sections(value: Any) -> Any:
    """A recursive copy of the sections of a plan; lists are shared."""
    return {k: _sections(v) for k, v in value.items()} if isinstance(value, dict) else value


def name_together(plans: Sequence[dict[str, Any]]) -> None:
    """Give alternative plans a common id."""
    if len(plans) > 1:
        name = _name("\n".join(map(dump, plans)))
        for plan in plans:
            plan["id"] = name


def dump(plan: Mapping[str, Any]) -> str:
    """Serialise a plan or a state as compact JSON."""
    return json.dumps(plan, separators=(",", ":"), allow_nan=False)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def low_level(s: Config) -> dict[str, Any]:
    """Ordinary XGBoost parameters with the private defaults, without an intercept.

    XGBoost stores 32-bit floats and refuses numbers below their range, which therefore become 0
    here. The plan contains the original numbers.
    """
    low = {p.name: s[p.name] for p in PARAMETERS.values() if p.xgboost and s[p.name] is not None}
    tiny = float(np.finfo(np.float32).tiny)
    low |= {k: 0.0 for k, v in low.items() if isinstance(v, float) and abs(v) < tiny}
    low |= {"tree_method": "dp_hist", "booster": "gbtree"}
    if s.kind == "binary":
        low["scale_pos_weight"] = s["scale_pos_weight"]
    if s.kind == "multiclass":
        low["num_class"] = s.classes
    return low


def public_inputs(s: Config) -> dict[str, Any]:
    """All inputs that the training treats as public, for the ledger and the statement."""
    named = list(zip(s.schema.names, s.features, strict=True))
    out: dict[str, Any] = {
        "objective": s["objective"],
        **s.privacy_unit.to_record(),
        "max_rows_per_person": s["dp_max_rows_per_person"] if s.unit == PERSON else None,
        "columns": s.schema.width,
        "private_candidates": s.private_features,
        "public_cuts": [n for n, f in named if f.kind == "cuts"],
        "public_grids": [n for n, f in named if f.grid],
        "categories": {n: f.size for n, f in named if f.kind == "categorical"},
        "feature_weights": _recorded(s.schema.weights) if s.schema.weights else None,
        "classes": s.classes or None,
        "target_bounds": _bounds(s),
        "exposure_bounds": list(s.exposures) if s.exposures is not None else None,
        "public_num_rows": s["dp_public_num_rows"],
        "max_weight": s["dp_max_weight"] or s.row_bound.max_weight or None,
        **{name: without_reals(s[name]) for name in s.objective.parameters},
        "own_objective": None if s["dp_objective"] is None else s["dp_objective"].to_record(),
        "base_score": s["base_score"] if s.intercept == "public" else s.intercept,
        "evals": s["dp_public_evals"],
        "public_data": s["dp_public_data"] or None,
        "masked_sums": s.masking.to_json() if s.masking.workers else None,
        "hyperparameters": {
            "rounds": s.rounds,
            **{
                p.name.removeprefix("dp_"): _recorded(s[p.name])
                for p in PARAMETERS.values()
                if p.recorded
            },
            **({"weight_unit": "released"} if s.counts_weights else {}),
        },
    }
    return {k: v for k, v in out.items() if v is not None}


def _bounds(s: Config) -> list[Any] | None:
    """The range of the target, or a list of ranges for several targets; None for classes."""
    if s.target is not None:
        return list(s.target)
    return [list(bounds) for bounds in s.targets] or None


def choice(plans: Sequence[Config], position: int, count: float | None) -> dict[str, Any]:
    """Record of a choice between plans: where they differ, the one taken, and the row count."""
    shown = [public_inputs(s)["hyperparameters"] for s in plans]
    differ = [name for name in shown[0] if any(s.get(name) != shown[0][name] for s in shown)]
    return {
        "plans": [{name: s[name] for name in differ} for s in shown],
        "taken": position,
        "rows": None if count is None else max(0, round(count)),
    }


def _recorded(value: Any) -> Any:
    """The JSON form of a value; None for constraints without effect."""
    if isinstance(value, tuple):
        return without_reals(value) if any(value) else None
    return value


@dataclass(frozen=True)
class Prepared:
    """A checked and calibrated training that has not read any rows."""

    settings: Config  # the user's checked settings with all defaults
    draft: Mapping[str, Any]  # the plan without noise
    mechanisms: Mechanisms  # the mechanisms of the plan
    noise: Calibration  # the noise of each mechanism
    # the alternative plans and their joint event, if the plan depends on the number of rows; the
    # other fields then describe the first plan. None if there is only one plan
    family: Family | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """The events charged for the training, the same before it starts and after it ends."""
        return self.noise.events if self.family is None else (self.family.event,)

    @property
    def plans(self) -> tuple[Prepared, ...]:
        """Each possible plan, as the training would be with this plan alone."""
        return (self,) if self.family is None else self.family.plans


@dataclass(frozen=True)
class Family:
    """Alternative plans. The first release, the noisy number of rows, selects the plan.

    If tables may be sparse, the first release also contains the noisy number of present cells.
    """

    # the plans, each complete. A last plan that starts from columns is for sparse tables
    plans: tuple[Prepared, ...]
    # ascending upper limits on the number of rows of each plan; the last limit is infinite. The
    # limit of the plan for sparse tables applies to the number of rows that two columns share
    limits: tuple[float, ...]
    event: ChoiceEvent  # the event charged for the choice

    @property
    def presence(self) -> bool:
        """Whether the number of present cells also affects the choice."""
        return self.plans[-1].settings.starts_from_columns

    def choose(self, rows: float, present: float = math.inf) -> int:
        """Position of the selected plan. This is post-processing of released numbers."""
        last = len(self.plans) - 1
        if not self.presence:
            return position(self.limits, rows)
        if is_sparse(rows, present, self.limits[last]):
            return last
        return position(self.limits[:last], rows)


def calibrated(settings: Config) -> Prepared:
    """Plan and calibrate a training with checked settings. Reads no rows."""
    target = settings.epsilon, settings.delta, settings["dp_accountant"], settings["dp_group_size"]
    limits, variants = settings_of_sizes(settings)
    several = len(variants) > 1
    presence = several and variants[-1].starts_from_columns
    drafts = [draft(s, counts=several, presence=presence) for s in variants]
    choices = [Mechanisms.from_plan(plan) for plan in drafts]
    if not several:
        noise = calibrate(choices[0], shares_of(variants[0]), *target)
        return Prepared(variants[0], drafts[0], choices[0], noise)
    shares = [shares_of(s, counts=True) for s in variants]
    for number in range(len(choices), 0, -1):
        try:
            family = calibrate_family(choices[:number], shares[:number], *target)
        except BudgetError:
            if number == 1:
                raise
            continue  # the largest plan has no noise on the supported grids
        plans = tuple(map(Prepared, variants, drafts, choices, family.plans))
        return replace(plans[0], family=Family(plans, tuple(limits[:number]), family.event))
    raise AssertionError
