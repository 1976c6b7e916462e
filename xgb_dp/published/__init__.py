"""Presets of published systems, one module per system.

``presets.py`` lists the systems. Their releases are planned in ``mechanisms/plan.py`` like all
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


def _nothing(rounds: int, columns: int, trees: int) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Preset:
    """Parameters that reproduce a published system.

    Attributes:
        name: Value of ``dp_preset``.
        system: Name of the system in its paper.
        source: Paper and sections.
        params: Parameters set by the preset.
        follows: Properties that match the paper.
        differs: Differences from the paper, needed for privacy or due to the implementation.
        needs: Public inputs that the user must provide, other than `num_boost_round`.
        computed: Function of the numbers of rounds, columns and parallel trees that returns
            further parameters.
        rounds: `num_boost_round`, in words, if the user must pass it.

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
    rounds: str = ""

    @property
    def required(self) -> tuple[str, ...]:
        """All inputs that the user must provide."""
        return (*self.needs, self.rounds) if self.rounds else self.needs


@dataclass(frozen=True)
class System:
    """A published system, or a family of systems, with its presets and parameters."""

    title: str  # title of its table of parameters
    about: str  # introduction of the table, in Markdown
    presets: tuple[Preset, ...]  # including baselines
    parameters: tuple[str, ...]  # names of parameters specific to the system


NO_DATA = "the intercept is public and does not depend on labels (set `base_score` to change it)"
BOUNDS = "`dp_feature_bounds` for every numeric column"
MISSING = "both directions of missing values are candidates at every cut, at no extra cost"
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
