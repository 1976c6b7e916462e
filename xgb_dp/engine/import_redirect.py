"""The package that the name ``xgboost`` means in this process; see ``cmake/import_redirect``."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .native import is_dp_build, is_seen, stock_hint


def _redirect() -> Any:
    """The installed module, or None where xgb_dp was copied and not installed."""
    try:
        import _xgb_dp_import_redirect
    except ImportError:
        return None
    return _xgb_dp_import_redirect


def use_private_build() -> None:
    """Let ``import xgboost`` give the private build from now on, also beside a stock package."""
    redirect = _redirect()
    if redirect is not None:
        redirect.take()


def stock_origin() -> str | None:
    """Where a stock package of the name lies that this process would see without us; or None."""
    redirect = _redirect()
    return None if redirect is None else redirect.stock_origin()


def warn_if_stock() -> None:
    """Warn, at import time, when private training cannot work with the installed `xgboost`.

    A library that is not loaded yet stays so, since reading a model needs none: whether it is the
    private build is then told by the Python files that came with it.
    """
    if not (is_dp_build() if is_seen() else files_are_private()):
        warnings.warn(stock_hint(), RuntimeWarning, stacklevel=3)


def files_are_private() -> bool:
    """Whether the installed `xgboost`, if there is one, hands private parameters to us."""
    try:
        spec = find_spec("xgboost")
        if spec is None or spec.origin is None:
            return True
        return b"xgb_dp" in Path(spec.origin).with_name("training.py").read_bytes()
    except (OSError, ImportError, ValueError):
        return True  # what it is will show once it is loaded
