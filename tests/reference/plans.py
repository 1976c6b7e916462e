"""A whole plan to start from, for tests that write plans by hand."""

from typing import Any

Plan = dict[str, Any]


def merge(plan: Plan, changes: Plan) -> Plan:
    """`plan` with `changes` laid over it, dictionaries merged key by key."""
    out = dict(plan)
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(out.get(name), dict)
        out[name] = merge(out[name], value) if both else value
    return out


def base_plan(features: list[Plan], **changes: Any) -> Plan:
    """A noise-free plan of two rounds for binary labels, with `changes` laid over it."""
    n = len(features)
    plan: Plan = {
        "version": 1, "unit": "row", "noise_free": True, "objective": "binary:logistic",
        "n_features": n, "num_class": 1, "rounds": 2, "depth": 2, "parallel_trees": 1,
        "features_per_tree": n,
        "before": {},
        "cyclic_features": False,
        "feature_weights": [],
        "split": "exponential", "shape": "alternate", "score": "l1", "class_trees": "per_class",
        "score_clip": "0.5", "split_levels": 1, "split_candidates": 16, "split_prior": "0.0",
        "no_split": False, "gamma": "0.0", "sampling_num": 1 << 32, "ensemble": 1,
        "base_margin": False,
        "masking": {"workers": 0, "colluders": 0},
        "monotone": [0] * n,
        "interactions": [],
        "grid_bits": 18,
        "row_bound": {"mode": "row_weight", "unit_hessian": False, "gradient_bound": "0.5",
            "hessian_weight": "1.0", "hessian_bound": "1.0", "max_weight": "0",
            "output_gradient": "1.0", "output_hessian": "1.0", "max_rows_per_person": "1.0",
            "scale": "1.0", "target_lower": "0.0", "target_upper": "0.0", "positive_weight": "1.0"},
        "histogram": {"sigma2": 0},
        "selection": {"eps_num": 0},
        "leaf": {"noise": "gaussian", "sigma2": 0, "scale": 0, "geometric_clip": False,
            "eta": "0.5", "eta_warmup": "1.0", "lambda": "1.0", "alpha": "0.0",
            "max_delta_step": "2.0", "min_child_weight": "0.0", "spread": False, "shrinkage": True,
            "strata": False, "noise_share": "1.0", "prior_max": "1.0"},
        "correction": {"on": False, "sigma2": 0, "rows": "0.0"},
        "features": features,
        "candidates": {"kind": "quantile_tree", "rounds": 1, "hessian": False, "laplace": False,
            "levels": 17, "shift": 10, "sigma2": 0, "scale": 0, "max_bin": 32},
        "intercept": {"kind": "public"},
    }  # fmt: skip
    return merge(plan, changes)
