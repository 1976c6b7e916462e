"""The low-level plan: everything that the C++ trainer needs to know, as one JSON parameter.

Integers are JSON integers; real numbers are JSON strings, because XGBoost reads JSON numbers as
32-bit floats. Cuts are 32-bit floats and travel as numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..accounting.enforced import range_of_plan
from ..accounting.units import PERSON
from ..calibrate.mechanisms import NoisePlan
from ..releases.release import OfRounds
from ..request.params import PARAMETERS
from ..request.registry import RELEASES
from ..request.schema import whole_weights
from ..request.settings import Settings


def without_reals(value: Any) -> Any:
    """Reals as texts, and tuples as lists."""
    if isinstance(value, dict):
        return {k: v if k == "features" else without_reals(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [without_reals(v) for v in value]
    return repr(value) if isinstance(value, float) else value


def target_of(s: Settings) -> dict[str, float]:
    """The range of the target, as plans and requests name it; 0 and 0 for classes."""
    low, high = s.target if s.target is not None else (0.0, 0.0)
    return {"target_lower": low, "target_upper": high}


def _positive(s: Settings) -> dict[str, float]:
    return {"positive_weight": s["scale_pos_weight"]} if s.row_bound.mode == "prediction" else {}


def build_plan(
    s: Settings,
    noise: NoisePlan,
    test_key: str | None = None,
    earlier: int = 0,
) -> dict[str, Any]:
    """The plan of one training."""
    bound = asdict(s.row_bound)
    del bound["of_person"]
    plan: dict[str, Any] = {
        "version": 1,
        "unit": s.unit,
        "noise_free": s.noise_free,
        "n_features": s.schema.width,
        "num_class": s.trees_per_round,
        "rounds": s.rounds,
        "cyclic_features": s["dp_feature_order"] == "cyclic",
        "feature_weights": whole_weights(s.schema.weights),
        "sampling_num": s.sampling_num,
        "masking": s.masking.to_json(),
        "grid_bits": noise.grid_bits,
        "row_bound": {**bound, "scale": s.scale, **target_of(s), **_positive(s)},
    }
    # Those of rounds first: the order of the text, of which a plan has its name.
    for kind in sorted(RELEASES, key=lambda kind: not issubclass(kind, OfRounds)):
        plan |= kind.section(s, noise[kind.name])
    plan["intercept"] = {"kind": s.intercept}
    for parameter in PARAMETERS.values():
        if parameter.plan and s[parameter.name] is not None:
            *folder, key = parameter.plan.split(".")
            (plan[folder[0]] if folder else plan)[key] = s[parameter.name]
    if s.loss is not None:
        plan["loss"] = {"name": s.loss.name, **s.loss.plan(s)}
    if test_key is not None and not s.noise_free:
        plan["test_key"] = test_key
    # Two trainings of one model never have the same plan, however alike their settings are.
    plan["earlier"] = earlier
    plan = without_reals(plan)
    plan["selection"]["range"] = range_of_plan(plan)
    plan["id"] = _name(dump(plan))
    return plan


def name_together(plans: Sequence[dict[str, Any]]) -> None:
    """Give plans of which one is taken a common name."""
    if len(plans) > 1:
        name = _name("\n".join(map(dump, plans)))
        for plan in plans:
            plan["id"] = name


def dump(plan: Mapping[str, Any]) -> str:
    """A plan or a state as compact JSON."""
    return json.dumps(plan, separators=(",", ":"), allow_nan=False)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def low_level(s: Settings) -> dict[str, Any]:
    """Ordinary XGBoost parameters with the private defaults; no intercept.

    XGBoost keeps 32-bit floats, and refuses texts of smaller numbers: these are 0 for it. The plan
    has them as they are.
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


def public_inputs(s: Settings) -> dict[str, Any]:
    """Everything that the training took as public, for the ledger and the statement."""
    named = list(zip(s.schema.names, s.features, strict=True))
    out: dict[str, Any] = {
        "objective": s["objective"],
        **s.privacy_unit.to_record(),
        "rows_per_person": s["dp_rows_per_person"] if s.unit == PERSON else None,
        "columns": s.schema.width,
        "private_candidates": s.private_features,
        "public_cuts": [n for n, f in named if f.kind == "cuts"],
        "public_grids": [n for n, f in named if f.grid],
        "categories": {n: f.size for n, f in named if f.kind == "categorical"},
        "feature_weights": _recorded(s.schema.weights) if s.schema.weights else None,
        "classes": s.classes or None,
        "target_bounds": _bounds(s),
        "exposure_bounds": list(s.exposures) if s.exposures is not None else None,
        "n_public": s["dp_n_public"],
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


def _bounds(s: Settings) -> list[Any] | None:
    """The range of the target, or a list of those of several; None for classes."""
    if s.target is not None:
        return list(s.target)
    return [list(bounds) for bounds in s.targets] or None


def choice(plans: Sequence[Settings], position: int, count: float | None) -> dict[str, Any]:
    """Which of several plans was taken, for the ledger: what they differ in, and by what number."""
    shown = [public_inputs(s)["hyperparameters"] for s in plans]
    differ = [name for name in shown[0] if any(s.get(name) != shown[0][name] for s in shown)]
    return {
        "plans": [{name: s[name] for name in differ} for s in shown],
        "taken": position,
        "rows": None if count is None else max(0, round(count)),
    }


def _recorded(value: Any) -> Any:
    """A value as JSON has it; None for constraints that bind nothing."""
    if isinstance(value, tuple):
        return without_reals(value) if any(value) else None
    return value
