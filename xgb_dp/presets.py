"""Presets that reproduce published systems, such as ``dp_preset="sarus"``.

A preset sets parameters; parameters that you set explicitly override it. If a paper's algorithm is
not private, or its bound is false, the preset uses the closest private variant and documents it in
``differs``. :func:`describe` prints a preset.

    >>> import xgb_dp
    >>> sorted(xgb_dp.presets.PRESETS)[:3]
    ['default', 'dp_ebm', 'dp_ebm_newton']
"""

from __future__ import annotations

from .errors import PrivacyParameterError
from .published import Preset, System, dp_xgb, dpboost, maddock, sarus

SYSTEMS: tuple[System, ...] = (sarus.SYSTEM, dpboost.SYSTEM, dp_xgb.SYSTEM, maddock.SYSTEM)
"""All published systems, in the order of the documentation."""

_DEFAULT = Preset(
    "default",
    "xgb-dp",
    "docs/guarantee.md",
    {},
    (
        "quantile trees for candidates, L1 score, alternating oblivious and per-node trees, Newton "
        "leaves with a clip by prediction, empirical-Bayes shrinkage, exact accounting; all "
        "classes share splits",
        "classification with dp_epsilon / dp_group_size >= 1: 256 bins and oblivious trees of "
        "depth 6, unless max_depth or another tree parameter is set",
    ),
    (),
)
PRESETS: dict[str, Preset] = {
    preset.name: preset for preset in (_DEFAULT, *(p for s in SYSTEMS for p in s.presets))
}
"""All presets by name."""


def describe(name: str) -> str:
    """Describe a preset: its parameters, and where it follows and differs from its paper.

    Args:
        name: A key of :data:`PRESETS`.

    Raises:
        PrivacyParameterError: The name is not a preset.

    Examples:
        >>> print(xgb_dp.presets.describe("sarus").splitlines()[0])
        sarus: DP-XGBoost. Source: Grislain and Gonzalvez (2021), sections 4 and 5.
    """
    if name not in PRESETS:
        raise PrivacyParameterError(f"Unknown preset {name!r}. Use one of {', '.join(PRESETS)}.")
    preset = PRESETS[name]
    shown = {**preset.params, **preset.computed(100, 10, 1)}
    lines = [f"{preset.name}: {preset.system}. Source: {preset.source}."]
    lines += ["Parameters (computed ones for 100 rounds and 10 columns):"]
    lines += [f"  {key} = {value!r}" for key, value in shown.items()]
    for title, strings in (
        ("Required inputs", preset.required),
        ("As published", preset.follows),
        ("Differences", preset.differs),
    ):
        lines += [f"{title}:", *(f"  - {text}" for text in strings)] if strings else []
    return "\n".join(lines)
