"""The low-level plan: everything that the C++ trainer needs to know, as one JSON parameter.

Integers are JSON integers; real numbers are JSON strings, because XGBoost reads JSON numbers as
32-bit floats. Cuts are 32-bit floats and travel as numbers.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, Protocol

import numpy as np

from .settings import Settings

__all__ = [
    "NoiseLevels",
    "base_score_from_sums",
    "build_plan",
    "digest",
    "dump_plan",
    "intercept_request",
    "neutral_base_score",
    "public_inputs",
]


class NoiseLevels(Protocol):
    """Calibrated noise of one training, as whole numbers; 0 where nothing is released.

    Attributes:
        grid_bits: B = 2**grid_bits grid units are one gradient bound C.
        eps_num: eps0 of one selection is eps_num / 2**40.
        leaf_sigma2: Variance of Gaussian noise on a leaf's sums, in grid units.
        leaf_scale: Scale of Laplace noise on a leaf.
        histogram_sigma2: The same for each cell of noisy histograms.
        candidates_sigma2: Variance of Gaussian noise on counts times 2**candidates_shift.
        candidates_scale: Scale of Laplace noise on them.
        candidates_shift: See above.
        intercept_sigma2: Variance of the noise on label sums times 2**intercept_shift.
        intercept_shift: See above.
    """

    @property
    def grid_bits(self) -> int:
        """Bits of the integer grid."""

    @property
    def eps_num(self) -> int:
        """Numerator of eps0."""

    @property
    def leaf_sigma2(self) -> int:
        """Variance at a leaf."""

    @property
    def leaf_scale(self) -> int:
        """Laplace scale at a leaf."""

    @property
    def candidates_scale(self) -> int:
        """Laplace scale of the counts."""

    @property
    def histogram_sigma2(self) -> int:
        """Variance at a cell of a noisy histogram."""

    @property
    def candidates_sigma2(self) -> int:
        """Variance of the counts."""

    @property
    def candidates_shift(self) -> int:
        """Bits of the counts' grid."""

    @property
    def intercept_sigma2(self) -> int:
        """Variance of the label sums."""

    @property
    def intercept_shift(self) -> int:
        """Bits of the label sums' grid."""


def _real(value: float) -> str:
    return repr(float(value))


def _feature(feature: Any) -> dict[str, Any]:
    if feature.kind == "cuts":
        # The shortest decimal that reads back as the same 32-bit float.
        return {"kind": "cuts", "cuts": [float(str(np.float32(c))) for c in feature.cuts]}
    if feature.kind == "categorical":
        return {"kind": "categorical", "size": feature.size}
    return {"kind": "private", "grid": [float(str(np.float32(c))) for c in feature.grid]}


def build_plan(
    s: Settings, noise: NoiseLevels, test_key: str | None = None, earlier: int = 0
) -> dict[str, Any]:
    """The plan of one training.

    Args:
        s: Checked settings.
        noise: Calibrated noise of every mechanism.
        test_key: Key of a fixed noise tape (tests only); the model is then marked non-private.
        earlier: Trainings that the continued model has behind it.

    Returns:
        dict: The plan with its ``id``, which names it in the ledger; see ``plugin_cpp/plan/plan.h``
        for its fields.
    """
    low, high = s.target if s.target is not None else (0.0, 0.0)
    plan: dict[str, Any] = {
        "version": 1,
        "private": not s.noise_free and test_key is None,
        "noise_free": s.noise_free,
        "objective": s.objective,
        "n_features": len(s.features),
        "num_class": s.trees_per_round,
        "rounds": s.rounds,
        "depth": s.depth,
        "parallel_trees": s.parallel_trees,
        "features_per_tree": s.features_per_tree,
        "cyclic_features": s.cyclic_features,
        "split": s.split,
        "shape": s.tree_shape,
        "score": s.score,
        "tau": _real(s.score_clip),
        "split_levels": s.split_levels,
        "split_candidates": s.split_candidates,
        "split_prior": _real(s.split_prior),
        "no_split": s.no_split,
        "gamma": _real(s.gamma),
        "sampling_num": s.sampling_num,
        "parts": s.ensemble,
        "halving": s.ensemble_halving,
        "base_margin": s.base_margin,
        "masking": s.masking.to_json(),
        "monotone": list(s.monotone),
        "interactions": [list(group) for group in s.interactions],
        "grid_bits": noise.grid_bits,
        "row_bound": {
            "mode": s.mode,
            "unit_hessian": s.leaf == "gradient",
            "gradient_bound": _real(s.gradient_bound),
            "hessian_weight": _real(s.hessian_weight),
            "hessian_bound": _real(s.hessian_bound),
            "max_weight": _real(s.max_weight),
            "scale": _real(s.scale),
            "target_lower": _real(low),
            "target_upper": _real(high),
        },
        "selection": {"eps_num": noise.eps_num},
        "histogram": {"sigma2": noise.histogram_sigma2},
        "leaf": {
            "release": s.leaf_noise,
            "sigma2": noise.leaf_sigma2,
            "scale": noise.leaf_scale,
            "geometric_clip": s.geometric_clip,
            "eta": _real(s.eta),
            "lambda": _real(s.reg_lambda),
            "alpha": _real(s.reg_alpha / s.scale),
            "max_delta_step": _real(s.max_delta_step),
            "min_child_weight": _real(s.min_child_weight),
            "shrinkage": s.shrinkage,
            "strata": s.strata,
            "prior_max": _real(s.prior_max),
        },
        "features": [_feature(f) for f in s.features],
        "candidates": {
            "kind": "tree" if s.candidates == "quantile_tree" else s.candidates,
            "rounds": s.candidate_rounds,
            "hessian": s.candidate_weight == "hessian",
            "laplace": s.candidate_noise == "laplace",
            "levels": s.candidate_levels,
            "shift": noise.candidates_shift,
            "sigma2": noise.candidates_sigma2,
            "scale": noise.candidates_scale,
            "max_bin": s.max_bin,
        },
        "intercept": {"kind": s.intercept},
    }
    if s.n_public is not None:
        plan["n_public"] = s.n_public
    if test_key is not None and not s.noise_free:
        plan["test_key"] = test_key
    # Two trainings of one model never have the same plan, however alike their settings are.
    plan["earlier"] = earlier
    plan["id"] = digest(dump_plan(plan))
    return plan


def dump_plan(plan: dict[str, Any]) -> str:
    """The plan as compact JSON text."""
    return json.dumps(plan, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """Short name of a plan's text, for the ledger."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def intercept_request(
    s: Settings, noise: NoiseLevels, test_key: str | None, plan_id: str
) -> dict[str, Any]:
    """What ``XGDPReleaseIntercept`` is asked to release.

    Args:
        s: Checked settings.
        noise: Calibrated noise.
        test_key: Key of a fixed noise tape (tests only).
        plan_id: Names the plan, and with it the pads of masked sums.

    Returns:
        dict: The request; see ``plugin_cpp/intercept.cc``.
    """
    low, high = s.target if s.target is not None else (0.0, 0.0)
    request: dict[str, Any] = {
        "objective": s.objective,
        "plan_id": plan_id,
        "masking": s.masking.to_json(),
        "kind": s.kind,
        "num_class": s.trees_per_round,
        "sigma2": noise.intercept_sigma2,
        "shift": noise.intercept_shift,
        "target_lower": _real(low),
        "target_upper": _real(high),
        "noise_free": s.noise_free,
    }
    if s.n_public is not None and s.kind != "multiclass":
        request["n_public"] = s.n_public
    if test_key is not None and not s.noise_free:
        request["test_key"] = test_key
    return request


def base_score_from_sums(s: Settings, noise: NoiseLevels, sums: list[int]) -> float | list[float]:
    """Intercept from the released label sums; post-processing, costs nothing.

    Args:
        s: Checked settings.
        noise: Calibrated noise, which says how far the count can be trusted.
        sums: Noisy integers in units of ``2**-shift``.

    Returns:
        float or list of float: ``base_score``: a probability for binary:logistic, its margin for
        binary:logitraw, a value of the target for regression, one margin per class for multi-class.
    """
    unit = float(2**noise.intercept_shift)
    floor = max(math.sqrt(noise.intercept_sigma2) / unit, 1.0)
    if s.kind == "multiclass":
        counts = [max(v / unit, floor) for v in sums]
        return [math.log(c / sum(counts)) for c in counts]
    total = float(s.n_public) if s.n_public is not None else sums[1] / unit
    mean = sums[0] / unit / max(total, floor)
    if s.kind == "binary":
        share = min(max(0.5 + 0.5 * mean, 0.001), 0.999)
        return share if s.objective == "binary:logistic" else _logit(share)
    assert s.target is not None
    return (s.target[0] + s.target[1]) / 2 + s.scale * min(max(mean, -1.0), 1.0)


def _logit(share: float) -> float:
    """The margin that XGBoost makes of a probability, in 32-bit floats as there."""
    odds = np.float32(1.0) / np.float32(share) - np.float32(1.0)
    return -float(np.float32(math.log(float(odds))))


def neutral_base_score(s: Settings) -> float | list[float]:
    """Public intercept of a model whose training rows bring their own margins.

    Args:
        s: Checked settings.

    Returns:
        float or list of float: What a row without a margin starts from: even odds, the middle of
        the target's range, or equal margins.
    """
    if s.kind == "multiclass":
        return [0.0] * s.classes
    if s.target is not None:
        return (s.target[0] + s.target[1]) / 2
    return 0.5 if s.objective == "binary:logistic" else 0.0


def public_inputs(s: Settings) -> dict[str, Any]:
    """Everything that the training took as public, for the ledger and the statement."""
    named = list(zip(s.feature_names, s.features, strict=True))
    out: dict[str, Any] = {
        "objective": s.objective,
        "columns": len(s.features),
        "private_candidates": s.private_features,
        "public_cuts": [n for n, f in named if f.kind == "cuts"],
        "public_grids": [n for n, f in named if f.grid],
        "categories": {n: f.size for n, f in named if f.kind == "categorical"},
        "classes": s.classes or None,
        "target_bounds": list(s.target) if s.target is not None else None,
        "n_public": s.n_public,
        "max_weight": s.max_weight or None,
        "base_score": s.base_score if s.intercept == "public" else s.intercept,
        "evals": s.public_evals,
        "masked_sums": s.masking.to_json() if s.masking.workers else None,
        "hyperparameters": {
            "rounds": s.rounds,
            "max_depth": s.depth,
            "eta": s.eta,
            "lambda": s.reg_lambda,
            "alpha": s.reg_alpha,
            "preset": s.preset,
            "split": s.split,
            "leaf": s.leaf,
            "leaf_noise": s.leaf_noise,
            "geometric_clip": s.geometric_clip,
            "gradient_clip": s.mode,
            "candidates": s.candidates,
            "candidate_rounds": s.candidate_rounds,
            "candidate_weight": s.candidate_weight,
            "candidate_noise": s.candidate_noise,
            "ensemble": s.ensemble,
            "num_parallel_tree": s.parallel_trees,
            "features_per_tree": s.features_per_tree,
            "feature_order": "cyclic" if s.cyclic_features else "random",
            "subsample": s.sampling_num / 2**32,
            "monotone_constraints": list(s.monotone) if any(s.monotone) else None,
            "interaction_constraints": [list(g) for g in s.interactions] or None,
            "max_delta_step": s.max_delta_step,
            "min_child_weight": s.min_child_weight,
            "max_bin": s.max_bin,
            "scale_pos_weight": s.scale_pos_weight,
            "gradient_bound": s.gradient_bound,
            "hessian_weight": s.hessian_weight,
            "score": s.score,
            "tree_shape": s.tree_shape,
            "split_levels": s.split_levels,
            "split_candidates": s.split_candidates,
            "no_split": s.no_split,
            "split_prior": s.split_prior,
            "shrinkage": s.shrinkage,
            "strata": s.strata,
            "budget_shares": s.shares,
        },
    }
    return {k: v for k, v in out.items() if v is not None}
