"""A published system: its settings, and what they do otherwise than its paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


def _nothing(rounds: int, columns: int, trees: int) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Preset:
    """A published system.

    Attributes:
        name: Value of ``dp_preset``.
        system: What it is called in its paper.
        source: Paper and sections.
        params: Parameters that it sets.
        follows: Where it does what the paper does.
        differs: Where it must differ to be private, or does for the sake of the engine.
        needs: Public inputs that the user must give.
        computed: Parameters that depend on the numbers of rounds, columns and parallel trees.

    Examples:
        >>> preset = xgb_dp.presets.PRESETS["sarus"]
        >>> preset.name, preset.params["max_depth"]
        ('sarus', 6)
    """

    name: str
    system: str
    source: str
    params: Mapping[str, Any]
    follows: tuple[str, ...]
    differs: tuple[str, ...]
    needs: tuple[str, ...] = ()
    computed: Callable[[int, int, int], Mapping[str, Any]] = _nothing


@dataclass(frozen=True)
class System:
    """What one paper, or one author's papers, brought."""

    title: str  # of its table of parameters
    about: str  # what the table says of them, in Markdown
    presets: tuple[Preset, ...]  # its settings, and those of its baselines
    # names of the parameters that it brought, which no other release needs
    parameters: tuple[str, ...]


NO_DATA = "the intercept is public: no label is read for it (`base_score` overrides)"
BOUNDS = "`dp_feature_bounds` of every numeric column"
MISSING = "both directions are candidates for missing values at every cut, and cost no more"
PLAIN = {
    "dp_shrinkage": False,
    "dp_tree_shape": "per_node",
    "dp_split_levels": 1,
    "dp_split_prior": 0.0,
}

# Pure epsilon, unit Hessians.
PURE = {
    **PLAIN,
    "dp_accountant": "pure",
    "dp_leaf": "gradient",
    "dp_gradient_clip": "filter",
    "dp_gradient_bound": 1.0,
    "dp_score": "gain",
    "dp_leaf_noise": "output",
    "max_delta_step": 0.0,
    "lambda": 0.1,
    "max_depth": 6,
}
# Gaussian sums, Renyi accounting.
RENYI = {
    **PLAIN,
    "dp_accountant": "rdp",
    "dp_gradient_clip": "clip",
    "dp_gradient_bound": 1.0,
    "dp_hessian_weight": 1.0,
    "max_delta_step": 2.0,
    "eta": 0.3,
    "max_bin": 32,
}
