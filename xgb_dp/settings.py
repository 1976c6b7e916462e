"""From the user's parameters to checked settings with every private default filled in.

Only the public schema of the data is looked at here: number, names and types of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from . import params, parse
from .accounting import ACCOUNTANTS
from .components import Components, RowClip, resolve_clip, resolve_components
from .constraints import interaction_sets, monotone_directions
from .errors import PrivacyParameterError, PrivacyRefusal
from .features import Feature, Schema, resolve_features
from .masking import Masking, resolve_masking
from .parse import choice
from .shares import resolve_shares

__all__ = ["Settings", "resolve"]


@dataclass(frozen=True)
class Settings(Components, RowClip):
    """Checked settings of one training; every value is public. Adds to its bases:

    Attributes:
        epsilon: Target, in nats; infinite for a training without noise.
        delta: Target failure probability.
        objective: XGBoost's name of the loss.
        kind: "binary", "regression" or "multiclass".
        classes: Number of classes K; 2 for binary, 0 for regression.
        rounds: Boosting rounds.
        depth: Depth of each tree, in levels.
        features: One entry per column.
        feature_names: Names for messages; "0", "1", ... without names.
        shares: Division of mu^2 over candidates, base_score, splits and leaves; sums to 1.
        scale: Half the width of the target's range; 1 for classification.
        target: Range of the target, or None.
        n_public: Number of rows if public.
        base_score: Public intercept, or None to release one.
        continues: Whether trees are added to an earlier model, which brings its intercept.
        base_margin: Whether rows bring margins of their own, which stand in for the intercept.
        parallel_trees: Trees of each class in one round, on the same gradients.
        split_levels: Levels of a tree that one selection fills.
        split_candidates: Partitions of each feature that are drawn for one of them.
        features_per_tree: Features that a tree may use.
        cyclic_features: Whether trees take features in turn instead of at random.
        sampling_num: A round reads each row with probability ``sampling_num / 2**32``.
        monotone: -1, 0 or 1 for each column.
        interactions: Sets of columns that may share a path; empty for no constraint.
        accountant: Name of the accountant that certifies the noise.
        weight_declared: Whether ``dp_max_weight`` was given.
        preset: Name of the preset, "default" for none.
        masking: Whether workers mask their sums, and how they divide the noise.
        passed_on: Parameters that XGBoost reads itself: threads, messages, metrics of public sets.
    """

    epsilon: float
    delta: float
    objective: str
    kind: str
    classes: int
    rounds: int
    depth: int
    eta: float
    reg_lambda: float
    reg_alpha: float
    max_delta_step: float
    min_child_weight: float
    max_bin: int
    scale_pos_weight: float
    score_clip: float
    tree_shape: str
    no_split: bool
    split_levels: int
    split_candidates: int
    split_prior: float
    strata: bool
    gamma: float
    shrinkage: bool
    candidate_levels: int
    features: tuple[Feature, ...]
    feature_names: tuple[str, ...]
    shares: dict[str, float]
    scale: float
    target: tuple[float, float] | None
    n_public: int | None
    base_score: float | list[float] | None
    continues: bool
    base_margin: bool
    parallel_trees: int
    features_per_tree: int
    cyclic_features: bool
    sampling_num: int
    monotone: tuple[int, ...]
    interactions: tuple[tuple[int, ...], ...]
    accountant: str
    weight_declared: bool
    public_evals: bool
    preset: str
    masking: Masking
    passed_on: dict[str, Any]

    @property
    def trees_per_round(self) -> int:
        """Trees of one round: K for multi-class, else 1."""
        return self.classes if self.kind == "multiclass" else 1

    @property
    def private_features(self) -> int:
        """Number of features whose candidates are released privately."""
        return sum(f.kind == "private" for f in self.features)

    @property
    def intercept(self) -> str:
        """Where the intercept comes from: "public", "released", "model" or "base_margin"."""
        if self.continues:
            return "model"
        if self.base_margin and self.base_score is None:
            return "base_margin"
        return "released" if self.base_score is None else "public"

    @property
    def noise_free(self) -> bool:
        """Whether the training draws no noise (epsilon is infinite)."""
        return math.isinf(self.epsilon)


def _budget(p: Mapping[str, Any]) -> tuple[float, float]:
    if "dp_epsilon" not in p:
        raise PrivacyParameterError(
            "`dp_epsilon` is missing: private training has no default budget. Give the largest "
            "privacy loss you accept, e.g. dp_epsilon=1.0 with dp_delta=1e-6."
        )
    epsilon = parse.parse_number("dp_epsilon", p["dp_epsilon"], low=0, open_low=True, finite=False)
    if "dp_delta" not in p:
        if math.isinf(epsilon) or p.get("dp_accountant") == "pure":
            return epsilon, 0.0
        raise PrivacyParameterError(
            "`dp_delta` is missing: give a constant well below one over the number of people, "
            "e.g. dp_delta=1e-6. It must not be computed from the data."
        )
    try:
        delta = parse.parse_number("dp_delta", p["dp_delta"], low=0, high=1)
    except PrivacyParameterError:
        delta = -1.0
    pure = p.get("dp_accountant") == "pure"
    if not 0 <= delta < 1 or (delta == 0 and not pure):
        raise PrivacyParameterError(
            "`dp_delta` must lie strictly between 0 and 1 (0 is for dp_accountant='pure'): "
            "Gaussian noise has no finite epsilon at delta = 0. A usual choice is 1e-6."
        )
    return epsilon, delta


def _classes(p: Mapping[str, Any], kind: str) -> int:
    declared = parse.parse_classes(p["dp_classes"]) if "dp_classes" in p else None
    num_class = (
        parse.parse_int("num_class", p["num_class"], 0, 1 << 16) if "num_class" in p else None
    )
    if kind == "regression":
        if declared is not None or num_class not in (None, 0, 1):
            raise PrivacyParameterError("`dp_classes` and `num_class` are for classification only.")
        return 0
    if kind == "binary":
        if declared not in (None, 2):
            raise PrivacyParameterError(
                "`dp_classes` declares more than two classes, but the objective is for two. Use "
                "objective='multi:softprob'."
            )
        if num_class not in (None, 0, 1):
            raise PrivacyParameterError("`num_class` does not go with objectives for two classes.")
        return 2
    k = num_class or declared
    if k is None:
        raise PrivacyParameterError(
            "`num_class` (or `dp_classes`) is missing: classes are declared, never read off the "
            "labels. Give num_class=K; labels are 0..K-1."
        )
    if declared is not None and num_class and declared != num_class:
        raise PrivacyParameterError(
            "`dp_classes` and `num_class` declare different numbers of classes."
        )
    return parse.parse_int("num_class", k, 2, 1 << 16)


def _target(p: Mapping[str, Any], kind: str) -> tuple[float, float] | None:
    if kind != "regression":
        if "dp_target_bounds" in p:
            raise PrivacyParameterError("`dp_target_bounds` is for regression only.")
        return None
    if "dp_target_bounds" not in p:
        raise PrivacyParameterError(
            "`dp_target_bounds` is missing: regression needs a public range of the target, e.g. "
            "dp_target_bounds=(0, 100). Choose it from knowledge of the domain, not from the "
            "training labels; labels beyond it are clamped."
        )
    return parse.parse_range("dp_target_bounds", p["dp_target_bounds"])


def _base_score(p: Mapping[str, Any], kind: str, classes: int) -> float | list[float] | None:
    value = p.get("base_score")
    if value is None:
        return None
    if isinstance(value, (list, tuple, np.ndarray)):
        scores = [parse.parse_number("base_score", v) for v in value]
        if kind == "multiclass" and len(scores) == classes:
            return scores
        if len(scores) != 1:
            raise PrivacyParameterError(
                "`base_score` must be one number (several classes: or one for each class)."
            )
        value = scores[0]
    if p["objective"] == "binary:logistic":  # binary:logitraw takes a margin
        return parse.parse_number("base_score", value, low=0, high=1, open_low=True, open_high=True)
    return parse.parse_number("base_score", value)


def _features_per_tree(p: Mapping[str, Any], n_features: int) -> int:
    """Features of one tree, from a number or from XGBoost's fraction."""
    rate = parse.parse_number(
        "colsample_bytree", p.get("colsample_bytree", 1.0), low=0, high=1, open_low=True
    )
    if "dp_features_per_tree" not in p:
        return max(1, int(rate * n_features))
    if rate != 1.0:
        raise PrivacyParameterError(
            "Give `colsample_bytree` or `dp_features_per_tree`, not both: either is the number of "
            "features of a tree."
        )
    return parse.parse_int("dp_features_per_tree", p["dp_features_per_tree"], 1, n_features)


def _sampling(p: Mapping[str, Any]) -> int:
    """`subsample` as a whole number out of 2^32, which is what is drawn and accounted."""
    rate = parse.parse_number("subsample", p.get("subsample", 1.0), low=0, high=1, open_low=True)
    return max(1, round(rate * 2**32))


def resolve(p: Mapping[str, Any], schema: Schema, rounds: int, *, continues: bool) -> Settings:
    """Check the user's parameters and fill in the private defaults.

    Args:
        p: Flat parameters (:func:`xgb_dp.params.flatten`).
        schema: Public schema of the training data.
        rounds: Number of boosting rounds of this training.
        continues: Whether an earlier private model is continued.

    Returns:
        Settings: All of them public.

    Raises:
        PrivacyParameterError: Missing, unknown or ill-formed parameter; it is named.
        PrivacyRefusal: A combination that would not be private.
    """
    params.check_names(p)
    tree_method = p.get("tree_method")
    if tree_method not in ("dp_hist", "dp_approx"):
        got = "is missing" if tree_method is None else f"is {tree_method!r}"
        raise PrivacyRefusal(
            f"`tree_method` {got}, but dp_* parameters were given: only tree_method='dp_hist' "
            "(or 'dp_approx') trains privately. Set it, or remove the dp_* parameters to train "
            "without privacy."
        )
    epsilon, delta = _budget(p)
    if "objective" not in p:
        if "dp_target_bounds" not in p:
            raise PrivacyParameterError(
                f"`objective` is missing. Private training supports {', '.join(params.OBJECTIVES)}."
            )
        p = {**p, "objective": "reg:squarederror"}  # as in XGBoost
    kind = params.kind_of(p)
    if kind is None:
        raise PrivacyRefusal(
            f"`objective` {p['objective']!r} is refused: its gradients have no proved bound per "
            f"row. Private training supports {', '.join(params.OBJECTIVES)}."
        )
    classes = _classes(p, kind)
    n_rounds = parse.parse_int("num_boost_round", rounds, 1, 1 << 20)
    components = resolve_components(p, kind, n_rounds, approx=tree_method == "dp_approx")
    no_split = parse.parse_flag("dp_no_split", p.get("dp_no_split", False))
    exponential = components.split == "exponential"
    several = exponential and not no_split
    split_levels = parse.parse_int(
        "dp_split_levels", p.get("dp_split_levels", 2 if several else 1), 1, 4
    )
    if split_levels > 1 and not several:
        raise PrivacyParameterError(
            "`dp_split_levels` above 1 needs dp_split='exponential' without dp_no_split: one "
            "selection then fills several levels."
        )
    gamma = parse.parse_number("gamma", p.get("gamma", 0.0), low=0, high=1e12)
    if gamma and not no_split:
        raise PrivacyRefusal(
            "`gamma` is refused without dp_no_split=True: a threshold on the exact gain is not "
            "private. With dp_no_split it is the bonus of not splitting."
        )
    weight = parse.parse_number(
        "scale_pos_weight", p.get("scale_pos_weight", 1.0), low=0, high=1e6, open_low=True
    )
    if weight != 1.0 and kind != "binary":
        raise PrivacyParameterError("`scale_pos_weight` is for two classes only.")
    if continues and "base_score" in p:
        raise PrivacyParameterError(
            "`base_score` cannot be given with xgb_model, which brings its own."
        )
    base_score = _base_score(p, kind, classes)
    margins = parse.parse_flag("dp_base_margin", p.get("dp_base_margin", False))
    released = base_score is None and not continues and not margins
    target = _target(p, kind)
    features = resolve_features(
        p,
        schema,
        cells=components.candidate_cells if components.candidates != "quantile_tree" else 0,
    )
    n_public = p.get("dp_n_public")
    return Settings(
        epsilon=epsilon,
        delta=delta,
        objective=p["objective"],
        kind=kind,
        classes=classes,
        rounds=n_rounds,
        depth=parse.parse_int("max_depth", p.get("max_depth", 4), 1, 10),
        eta=parse.parse_number("eta", p.get("eta", 0.5), low=0, high=1, open_low=True),
        reg_lambda=parse.parse_number("lambda", p.get("lambda", 1.0), low=0, high=1e12),
        reg_alpha=parse.parse_number("alpha", p.get("alpha", 0.0), low=0, high=1e12),
        max_delta_step=parse.parse_number(
            "max_delta_step", p.get("max_delta_step", 2.0), low=0, high=1e12
        ),
        min_child_weight=parse.parse_number(
            "min_child_weight", p.get("min_child_weight", 0.0), low=0, high=1e12
        ),
        max_bin=parse.parse_int("max_bin", p.get("max_bin", 64), 2, 4096),
        scale_pos_weight=weight,
        score_clip=parse.parse_number(
            "dp_score_clip", p.get("dp_score_clip", 0.5), low=0, high=1e6, open_low=True
        ),
        tree_shape=choice(
            "dp_tree_shape",
            p.get("dp_tree_shape", "alternate"),
            ("alternate", "per_node", "oblivious"),
        ),
        no_split=no_split,
        split_levels=split_levels,
        split_candidates=parse.parse_int(
            "dp_split_candidates", p.get("dp_split_candidates", 16), 1, 4096
        ),
        split_prior=parse.parse_number(
            "dp_split_prior",
            p.get("dp_split_prior", 0.5 if exponential else 0.0),
            low=0,
            high=0.999,
        ),
        strata=parse.parse_flag("dp_shrinkage_strata", p.get("dp_shrinkage_strata", True)),
        gamma=gamma,
        # No sums are released under output perturbation from which to tell signal from noise.
        shrinkage=parse.parse_flag("dp_shrinkage", p.get("dp_shrinkage", True))
        and components.leaf_noise != "output",
        candidate_levels=parse.parse_int(
            "dp_candidate_levels", p.get("dp_candidate_levels", 17), 2, 17
        ),
        features=features,
        feature_names=tuple(schema.names),
        shares=resolve_shares(
            p.get("dp_budget_shares"),
            candidates=any(f.kind == "private" for f in features),
            intercept=released,
            splits=components.split == "exponential",
            kind=kind,
        ),
        scale=1.0 if target is None else (target[1] - target[0]) / 2,
        target=target,
        n_public=None if n_public is None else parse.parse_int("dp_n_public", n_public, 1, 1 << 40),
        base_score=base_score,
        continues=continues,
        base_margin=margins,
        sampling_num=_sampling(p),
        parallel_trees=parse.parse_int(
            "num_parallel_tree", p.get("num_parallel_tree", 1), 1, 1 << 20
        ),
        features_per_tree=_features_per_tree(p, len(features)),
        cyclic_features=choice(
            "dp_feature_order", p.get("dp_feature_order", "random"), ("random", "cyclic")
        )
        == "cyclic",
        monotone=monotone_directions(p.get("monotone_constraints"), schema, features),
        interactions=interaction_sets(p.get("interaction_constraints"), schema),
        accountant=choice("dp_accountant", p.get("dp_accountant", "exact"), [*ACCOUNTANTS]),
        weight_declared="dp_max_weight" in p,
        public_evals=parse.parse_flag("dp_public_evals", p.get("dp_public_evals", False)),
        preset=str(p.get("dp_preset", "default")),
        masking=resolve_masking(p, components),
        passed_on={name: p[name] for name in params.PASSED_ON if name in p},
        **asdict(components),
        **asdict(resolve_clip(p, kind, components.leaf)),
    )
