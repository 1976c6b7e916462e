"""DP-XGB: "Revisiting Differentially Private XGBoost"."""

from __future__ import annotations

from . import BOUNDS, MISSING, NO_DATA, RENYI, Preset, System

_XGB = {**RENYI, "lambda": 1.0, "dp_score": "newton", "dp_score_clip": 0.5}
_XGB_FOLLOWS = (
    "splits by the exponential mechanism over all candidates, leaves by separate noisy sums of G "
    "and H",
    "Renyi accounting with the curve of bounded range (theorem 1)",
    "eta 0.3, lambda 1",
)
_XGB_DIFFERS = (
    "the score is the Newton gain with the leaf weight clipped to 0.5, which has range 2; without "
    "the clip, its sensitivity is unbounded under logistic loss",
    "the denominator of a leaf is max(noisy H + lambda, ...), as in algorithm 3; the paper's text "
    "has a minimum",
    MISSING,
    NO_DATA,
)

_PRESETS = (
    Preset(
        "dp_xgb", "DP-XGB", "Revisiting Differentially Private XGBoost, sections 4 and 5",
        {**_XGB, "dp_budget_shares": {"splits": 0.7, "leaves": 0.3}},
        (*_XGB_FOLLOWS, "candidates on an even grid; shares 0.7 and 0.3"), _XGB_DIFFERS, (BOUNDS,),
    ),
    Preset(
        "dp_xgb_cyc", "DP-XGB_cyc", "Revisiting Differentially Private XGBoost, section 6",
        {**_XGB, "dp_budget_shares": {"splits": 0.7, "leaves": 0.3}, "dp_features_per_tree": 1,
         "dp_feature_order": "cyclic"},
        (*_XGB_FOLLOWS, "one feature per tree, in cyclic order; candidates on an even grid; "
         "shares 0.7 and 0.3"),
        _XGB_DIFFERS, (BOUNDS,),
    ),
    Preset(
        "dp_xgb_ada", "DP-XGB_ada", "Revisiting Differentially Private XGBoost, section 6",
        {**_XGB, "dp_candidates": "adaptive",
         "dp_budget_shares": {"candidates": 0.1, "splits": 0.6, "leaves": 0.3}},
        (*_XGB_FOLLOWS, "candidates refined by noisy Hessian histograms in the first five rounds; "
         "shares 0.1, 0.6 and 0.3"),
        _XGB_DIFFERS, (BOUNDS,),
    ),
)  # fmt: skip

SYSTEM = System(
    "DP-XGB",
    "Parameters set by the preset `dp_xgb` and its variants.",
    _PRESETS,
    ("dp_score", "dp_score_clip"),
)
