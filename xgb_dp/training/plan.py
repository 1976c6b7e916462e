"""The low-level plan: everything that the C++ trainer needs to know, as one JSON parameter.

Integers are JSON integers; real numbers are JSON strings, because XGBoost reads JSON numbers as
32-bit floats. Cuts are 32-bit floats and travel as numbers.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..accounting.sensitivity import LABEL_CELLS
from ..accounting.units import PERSON
from ..calibrate.mechanisms import NoisePlan
from ..request.candidates import Feature
from ..request.features import whole_weights
from ..request.params import PARAMETERS
from ..request.quantiles import QUANTILES
from ..request.settings import Settings
from . import cells, means
from .columns import ColumnEffects
from .start import PRESENT

__all__ = [
    "after_release",
    "base_score_from_sums",
    "base_score_of_columns",
    "build_plan",
    "choice",
    "columns_request",
    "digest",
    "dump_plan",
    "intercept_request",
    "low_level",
    "name_together",
    "offering",
    "present_from_sums",
    "public_inputs",
    "rows_from_sums",
    "second_request",
]

# Deviations of the noise of a cell, of which all of them together must have as many rows: two of
# the sum of all cells.
_KNOWN = 2.0 * math.sqrt(LABEL_CELLS)
_MOST_ODDS = 12.0  # of a base score, in log-odds: further out a 32-bit probability is 0 or 1


def _without_reals(value: Any) -> Any:
    """Reals as texts, and tuples as lists."""
    if isinstance(value, dict):
        return {k: v if k == "features" else _without_reals(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_without_reals(v) for v in value]
    return repr(value) if isinstance(value, float) else value


def _cuts(cuts: tuple[float, ...]) -> list[float]:
    """The shortest decimals that read back as the same 32-bit floats."""
    return [float(str(np.float32(c))) for c in cuts]


def _feature(feature: Feature) -> dict[str, Any]:
    if feature.kind == "cuts":
        return {"kind": "cuts", "cuts": _cuts(feature.cuts)}
    if feature.kind == "categorical":
        return {"kind": "categorical", "size": feature.size}
    return {"kind": "private", "grid": _cuts(feature.grid)}


def _offered(s: Settings, columns: Sequence[int] | None) -> dict[str, Any]:
    """The features of a plan, and which of them trees are offered.

    Candidates are released for as many columns as :attr:`Settings.private_features` says, those
    that are offered among them. The others have one public candidate.

    Args:
        s: Checked settings.
        columns: Those that are offered, ascending; None for all, or those that are drawn.
    """
    features = [_feature(f) for f in s.features]
    if columns is None:
        return {"features": features}
    offered = set(columns)
    private = [i for i, f in enumerate(features) if f["kind"] == "private"]
    private.sort(key=lambda i: i not in offered)
    for i in private[s.private_features :]:
        features[i] = {"kind": "cuts", "cuts": [PRESENT]}
    return {"features": features, "offered": list(columns)}


def _target(s: Settings) -> dict[str, float]:
    low, high = s.target if s.target is not None else (0.0, 0.0)
    return {"target_lower": low, "target_upper": high}


def _positive(s: Settings) -> dict[str, float]:
    return {"positive_weight": s["scale_pos_weight"]} if s.row_bound.mode == "prediction" else {}


def build_plan(
    s: Settings,
    noise: NoisePlan,
    test_key: str | None = None,
    earlier: int = 0,
    structures: list[list[int]] | None = None,
) -> dict[str, Any]:
    """The plan of one training.

    Args:
        s: Checked settings.
        noise: Calibrated noise of every mechanism.
        test_key: Key of a fixed noise tape (tests only); the model is then marked non-private.
        earlier: Trainings that the continued model has behind it.
        structures: Public trees, see :func:`xgb_dp.training.public_data.declared`; None without.

    Returns:
        dict: The plan with its ``id``, which names it in the ledger; see ``plugin_cpp/plan/plan.h``
        for its fields.
    """
    bound = asdict(s.row_bound)
    del bound["of_person"]
    plan: dict[str, Any] = {
        "version": 1,
        "unit": s.unit,
        "private": not s.noise_free and test_key is None,
        "noise_free": s.noise_free,
        "n_features": s.schema.width,
        "num_class": s.trees_per_round,
        "rounds": s.rounds,
        "cyclic_features": s["dp_feature_order"] == "cyclic",
        "feature_weights": whole_weights(s.schema.weights),
        "sampling_num": s.sampling_num,
        "masking": s.masking.to_json(),
        "grid_bits": noise.grid_bits,
        "row_bound": {**bound, "scale": s.scale, **_target(s), **_positive(s)},
        "selection": {"eps_num": noise.eps_num},
        "histogram": {"sigma2": noise.histogram_sigma2},
        "leaf": {
            "sigma2": noise.leaf_sigma2,
            "scale": noise.leaf_scale,
            "alpha": s["alpha"] / s.scale,
            "prior_max": s.prior_max,
            "spread": s.spread_leaves,
        },
        **_offered(s, range(s["dp_features_per_tree"]) if s.starts_from_columns else None),
        "candidates": {
            "hessian": s["dp_candidate_weight"] == "hessian",
            "laplace": s["dp_candidate_noise"] == "laplace",
            "shift": noise.candidates_shift,
            "sigma2": noise.candidates_sigma2,
            "scale": noise.candidates_scale,
        },
        "correction": {"sigma2": noise.correction_sigma2},
        "intercept": {"kind": s.intercept},
    }
    for parameter in PARAMETERS.values():
        if parameter.plan and s[parameter.name] is not None:
            *folder, key = parameter.plan.split(".")
            (plan[folder[0]] if folder else plan)[key] = s[parameter.name]
    if s.loss is not None:
        plan["loss"] = {"name": s.loss.name, **s.loss.plan(s)}
    if test_key is not None and not s.noise_free:
        plan["test_key"] = test_key
    if structures is not None:
        plan["structures"] = structures
    # Two trainings of one model never have the same plan, however alike their settings are.
    plan["earlier"] = earlier
    plan = _without_reals(plan)
    plan["id"] = digest(dump_plan(plan))
    return plan


def name_together(plans: Sequence[dict[str, Any]]) -> None:
    """Give plans of which one is taken a name for all of them, by which the ledger claims them.

    Args:
        plans: Results of :func:`build_plan`, which are changed.
    """
    if len(plans) > 1:
        name = digest("\n".join(map(dump_plan, plans)))
        for plan in plans:
            plan["id"] = name


def dump_plan(plan: dict[str, Any]) -> str:
    """The plan as compact JSON text."""
    return json.dumps(plan, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """Short name of a plan's text, for the ledger."""
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


def intercept_request(
    s: Settings,
    kind: str,
    noise: NoisePlan,
    test_key: str | None,
    plan_id: str,
    *,
    presence: bool = False,
) -> dict[str, Any]:
    """What ``XGDPReleaseIntercept`` is asked to release.

    Args:
        s: Checked settings.
        kind: Kind of the labels, or "rows" where only their number is released.
        noise: Calibrated noise.
        test_key: Key of a fixed noise tape (tests only).
        plan_id: Names the plan, and with it the pads of masked sums.
        presence: Whether the cells that are present are released as well.

    Returns:
        dict: The request; see ``plugin_cpp/intercept.cc``.
    """
    request: dict[str, Any] = {
        "objective": s["objective"],
        "plan_id": plan_id,
        "masking": s.masking.to_json(),
        "unit": s.unit,
        "kind": kind,
        "num_class": LABEL_CELLS if kind == "cells" else s.trees_per_round,
        "sigma2": noise.intercept_sigma2,
        "shift": noise.intercept_shift,
        **_target(s),
        "private": not s.noise_free and test_key is None,
        "noise_free": s.noise_free,
    }
    if s.objective.intervals and kind == "regression":
        assert s.target is not None
        low, high = map(math.log, s.target)
        request |= {"times": True, "target_lower": low, "target_upper": high}
    if kind == "targets":
        lower, upper = zip(*s.targets, strict=True)
        request |= {"lower": lower, "upper": upper}
    if s.exposures is not None:
        request["exposure_lower"], request["exposure_upper"] = s.exposures
    if s["dp_n_public"] is not None and kind not in ("multiclass", "cells"):
        request["n_public"] = s["dp_n_public"]
    if presence:
        request["columns"] = s.schema.width
    if test_key is not None and not s.noise_free:
        request["test_key"] = test_key
    return dict(_without_reals(request))


def columns_request(s: Settings, noise: NoisePlan, request: dict[str, Any]) -> dict[str, Any]:
    """What is released after the intercept: the cells above 0 by class and column.

    Args:
        s: Checked settings, of a start from columns.
        noise: Calibrated noise.
        request: Result of :func:`intercept_request`.
    """
    kept = {key: value for key, value in request.items() if key != "n_public"}
    return kept | {
        "kind": "columns",
        "columns": s.schema.width,
        "sigma2": noise.columns_sigma2,
        "shift": noise.columns_shift,
        "again": True,
    }


def offering(s: Settings, plan: dict[str, Any], found: ColumnEffects) -> str:
    """The plan as the trainer is told it, with the columns that say most.

    Post-processing, costs nothing: the plan keeps its noise, its bound and its name.

    Args:
        s: Checked settings, of a start from columns.
        plan: Result of :func:`build_plan`.
        found: What each column says.
    """
    return dump_plan({**plan, **_offered(s, found.offered)})


def base_score_of_columns(s: Settings, found: ColumnEffects) -> float:
    """The intercept below the first trees of a start from columns.

    Args:
        s: Checked settings.
        found: What each column says.

    Returns:
        ``base_score``, of a row without any cell above 0.
    """
    odds = min(max(found.centre, -_MOST_ODDS), _MOST_ODDS)
    return 1.0 / (1.0 + math.exp(-odds)) if s["objective"] == "binary:logistic" else odds


def base_score_from_sums(s: Settings, noise: NoisePlan, sums: list[int]) -> float | list[float]:
    """Intercept from the released label sums; post-processing, costs nothing.

    Args:
        s: Checked settings.
        noise: Calibrated noise, which says how far the count can be trusted.
        sums: Noisy integers in units of ``2**-shift``.

    Returns:
        float or list of float: ``base_score``: a probability for binary:logistic, its margin for
        binary:logitraw, a value of the target for regression, one of each of several targets, one
        margin per class for multi-class.
    """
    unit = float(2**noise.intercept_shift)
    floor = max(math.sqrt(noise.intercept_sigma2) / unit, 1.0)
    if s.intercept_kind == "cells":
        assert s.target is not None
        values = cells.quantiles(sums, QUANTILES.starts(s), *s.target, floor * unit * _KNOWN)
        return values if len(values) > 1 else values[0]
    if s.kind == "multiclass":
        counts = [max(v / unit, floor) for v in sums]
        return [math.log(c / sum(counts)) for c in counts]
    if s.intercept_kind == "targets":
        told_of = [means.Sums.of(s, noise, sums, k).label for k in range(s.labels)]
        if s.kind == "binary":
            return [_of_classes(s, label) for label in told_of]
        return [
            (low + high) / 2 + (high - low) / 2 * label
            for label, (low, high) in zip(told_of, s.targets, strict=True)
        ]
    told = means.Sums.of(s, noise, sums)
    if s.kind == "binary":
        return _of_classes(s, told.label)
    assert s.target is not None
    if s.objective.intervals:
        return math.exp(told.mean(*map(math.log, s.target)))
    if s.objective.link == "log":  # a mean that is told from 0, at least by its noise
        return told.mean(*s.target)
    found = (s.target[0] + s.target[1]) / 2 + s.half_width * told.label
    return min(max(found, 0.001), 0.999) if s.objective.link == "logit" else found


def second_request(
    s: Settings, noise: NoisePlan, request: dict[str, Any], sums: list[int]
) -> dict[str, Any] | None:
    """What is released after the first release: the same sums, of labels cut at a cap; or None.

    Args:
        s: Checked settings.
        noise: Calibrated noise.
        request: Result of :func:`intercept_request`.
        sums: What the first release has said.
    """
    if not s.measured:
        return None
    return {**request, "again": True, "target_upper": repr(means.cap(s, noise, sums))}


def after_release(
    s: Settings,
    noise: NoisePlan,
    plan: dict[str, Any],
    sums: list[int],
    capped: list[int] | None = None,
) -> str:
    """The plan as the trainer is told it, with what a loss takes from the first release.

    Post-processing, costs nothing: the plan keeps its noise, its bound and its name.

    Args:
        s: Checked settings.
        noise: Calibrated noise.
        plan: Result of :func:`build_plan`.
        sums: What the first release has said.
        capped: What the second one has, where there is one.
    """
    if capped is not None:
        own = _without_reals(means.measured(s, noise, sums, capped).to_plan())
        return dump_plan({**plan, "loss": {**plan["loss"], **own}})
    if s.intercept != "released" or s.intercept_kind != "cells":
        return dump_plan(plan)
    assert s.target is not None
    spread = cells.spread(sums, *s.target, math.sqrt(noise.intercept_sigma2) * _KNOWN)
    widths = _without_reals(QUANTILES.widths(s, spread))
    return dump_plan({**plan, "loss": {**plan["loss"], **widths}})


def rows_from_sums(kind: str, noise: NoisePlan, sums: list[int]) -> float:
    """The noisy number of rows in what was released first; post-processing, costs nothing.

    Args:
        kind: Kind of the labels, or "rows".
        noise: Calibrated noise.
        sums: Noisy integers in units of ``2**-shift``.
    """
    if kind in ("multiclass", "cells"):
        counts = sums
    elif kind == "targets":  # the sums of the labels come first
        counts = sums[-1:]
    else:
        counts = sums[:1] if kind == "rows" else sums[1:2]
    return math.ldexp(float(sum(counts)), -noise.intercept_shift)


def present_from_sums(kind: str, noise: NoisePlan, sums: list[int]) -> float:
    """The sum over rows of the share of its cells that a row has; at least that, as a rule.

    One standard deviation of the noise is added: a table is taken for sparse where it is seen to
    be.

    Args:
        kind: Kind of the labels, or "rows".
        noise: Calibrated noise.
        sums: Noisy integers in units of ``2**-shift``.
    """
    present = sums[1 if kind == "rows" else 2]
    return math.ldexp(present + math.sqrt(noise.intercept_sigma2), -noise.intercept_shift)


def _of_classes(s: Settings, label: float) -> float:
    """The intercept of two classes from their mean label, of which one is -1 and one 1."""
    share = min(max(0.5 + 0.5 * label, 0.001), 0.999)
    return share if s["objective"] == "binary:logistic" else _logit(share)


def _logit(share: float) -> float:
    """The margin that XGBoost makes of a probability, in 32-bit floats as there."""
    odds = np.float32(1.0) / np.float32(share) - np.float32(1.0)
    return -float(np.float32(math.log(float(odds))))


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
        "max_weight": s.row_bound.max_weight or None,
        **{name: _without_reals(s[name]) for name in s.objective.parameters},
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
        },
    }
    return {k: v for k, v in out.items() if v is not None}


def _bounds(s: Settings) -> list[Any] | None:
    """The range of the target, or a list of those of several; None for classes."""
    if s.target is not None:
        return list(s.target)
    return [list(bounds) for bounds in s.targets] or None


def choice(plans: Sequence[Settings], position: int, count: float | None) -> dict[str, Any]:
    """Which of several plans was taken, for the ledger: what they differ in, and by what number.

    Args:
        plans: Settings of each of them.
        position: Of the plan that was taken.
        count: The noisy number of rows; None before it is released.
    """
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
        return _without_reals(value) if any(value) else None
    return value
