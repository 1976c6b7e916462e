"""The published systems, each a file, and their settings: ``dp_preset="sarus"`` and so on.

A preset sets components; keys that are given explicitly override it. Where a paper's algorithm is
not private, or its bound is false, the preset does the nearest private thing and says so in
``differs``. :func:`describe` shows all of that.

    >>> import xgb_dp
    >>> sorted(xgb_dp.presets.PRESETS)[:3]
    ['default', 'dp_ebm', 'dp_ebm_newton']
"""

from __future__ import annotations

from .errors import PrivacyParameterError
from .published import dp_xgb, dpboost, maddock, sarus
from .published.system import Preset, System

SYSTEMS: tuple[System, ...] = (sarus.SYSTEM, dpboost.SYSTEM, dp_xgb.SYSTEM, maddock.SYSTEM)
"""All published systems, in the order of the pages."""

_DEFAULT = Preset(
    "default",
    "xgb-dp",
    "docs/guarantee.md",
    {},
    (
        "private quantile trees, L1 score, oblivious and per-node trees in turn, Newton leaves "
        "with the clip by prediction and empirical-Bayes shrinkage, exact accounting; one choice "
        "of splits for the trees of all classes",
        "classification with dp_epsilon / dp_group_size >= 1: 256 bins and oblivious trees of "
        "depth 6, unless max_depth or another parameter of the trees is given",
    ),
    (),
)
PRESETS: dict[str, Preset] = {
    preset.name: preset for preset in (_DEFAULT, *(p for s in SYSTEMS for p in s.presets))
}
"""All presets by name."""


def describe(name: str) -> str:
    """A preset in words: its parameters, where it follows its paper and where it differs.

    Args:
        name: A key of :data:`PRESETS`.

    Raises:
        PrivacyParameterError: There is no such preset.

    Examples:
        >>> print(xgb_dp.presets.describe("sarus").splitlines()[0])
        sarus: DP-XGBoost. Source: Grislain and Gonzalvez (2021), sections 4 and 5.
    """
    if name not in PRESETS:
        raise PrivacyParameterError(f"Presets are {', '.join(PRESETS)}; got {name!r}.")
    preset = PRESETS[name]
    shown = {**preset.params, **preset.computed(100, 10, 1)}
    lines = [f"{preset.name}: {preset.system}. Source: {preset.source}."]
    lines += ["Parameters (for 100 rounds and 10 columns where they depend on that):"]
    lines += [f"  {key} = {value!r}" for key, value in shown.items()]
    for title, strings in (
        ("Needs", preset.needs),
        ("As published", preset.follows),
        ("Different", preset.differs),
    ):
        lines += [f"{title}:", *(f"  - {text}" for text in strings)] if strings else []
    return "\n".join(lines)
