"""DPBoost (Li, Wu, Wen and He 2020) and its baseline SEQ."""

from __future__ import annotations

from typing import Any

from . import BOUNDS, MISSING, NO_DATA, PURE, Preset, System

_DPBOOST = {
    **PURE,
    "dp_budget_shares": {"splits": 0.5, "leaves": 0.5},
    "eta": 0.1,
}
_DPBOOST_FOLLOWS = (
    "splits by the exponential mechanism over the published gain, with half of a tree's budget "
    "divided equally among its levels (section 3.2)",
    "Laplace noise on leaf values, with the other half",
    "rows with |g| > 1 are left out of a tree (gradient filtering, section 3.1)",
    "pure epsilon-differential privacy",
)
_DPBOOST_DIFFERS = (
    "candidates are an even grid; the paper's code uses exact quantiles",
    "lemma 1 is false: the change of the gain lies in (-3, 1] for every lambda, so the range is 4",
    "the sensitivity of a leaf value is 1 / (1 + lambda) as published, because the floor N of its "
    "denominator is 1",
    MISSING,
    NO_DATA,
)


def _one_ensemble(rounds: int, columns: int, trees: int) -> dict[str, Any]:
    return {"dp_ensemble": rounds}


_PRESETS = (
    Preset(
        "dpboost", "DPBoost", "Li, Wu, Wen and He (2020), section 3",
        {**_DPBOOST, "dp_geometric_clip": True}, (
            *_DPBOOST_FOLLOWS,
            "leaf values of tree t clipped to (1 - eta)^(t-1), which reduces their sensitivity",
            "the trees of an ensemble train on disjoint parts of the rows, so an ensemble costs as "
            "much as one tree (`dp_ensemble`; all rounds are one ensemble by default)",
        ),
        (*_DPBOOST_DIFFERS, "each row is assigned to a part independently at random: parts of "
         "fixed sizes would reveal the number of rows"),
        (BOUNDS,), _one_ensemble,
    ),
    Preset(
        "seq", "SEQ", "Li, Wu, Wen and He (2020), section 4, after Liu et al. (2018)", _DPBOOST,
        (*_DPBOOST_FOLLOWS, "every tree reads all rows, and the costs of trees add up"),
        _DPBOOST_DIFFERS,
        (BOUNDS,),
    ),
)  # fmt: skip

SYSTEM = System(
    "DPBoost",
    "Parameters set by the preset [`dpboost`](presets.md#dpboost) and its baseline `seq`.",
    _PRESETS,
    ("dp_ensemble", "dp_geometric_clip"),
)
