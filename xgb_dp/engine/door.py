"""Which package the name ``xgboost`` stands for in this process; see ``cmake/door``."""

from __future__ import annotations

from typing import Any

VARIABLE = "XGB_DP_XGBOOST"
"""Environment variable that, as ``private``, gives the private build the name from the start."""


def _door() -> Any:
    """The installed module, or None where xgb_dp was copied and not installed."""
    try:
        import _xgb_dp_door
    except ImportError:
        return None
    return _xgb_dp_door


def take_door() -> None:
    """Let ``import xgboost`` give the private build from now on, also beside a stock package."""
    door = _door()
    if door is not None:
        door.take()


def stock_origin() -> str | None:
    """Where a stock package of the name lies that this process would see without us; or None."""
    door = _door()
    return None if door is None else door.stock_origin()
