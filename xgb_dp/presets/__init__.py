"""Settings of published systems; see ``xgb_dp.published.systems``."""

from ..published.system import Preset
from ..published.systems import PRESETS, describe

__all__ = ["PRESETS", "Preset", "describe"]
