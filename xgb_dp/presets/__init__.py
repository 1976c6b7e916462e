"""Settings of published systems; see ``xgb_dp.published.systems``."""

from ..published.systems import PRESETS, Preset, describe

__all__ = ["PRESETS", "Preset", "describe"]
