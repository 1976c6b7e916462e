"""Saved models, opened with errors that name the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .errors import PrivacyParameterError

__all__ = ["load_booster"]


def load_booster(model: str | os.PathLike[str] | bytes | bytearray) -> Any:
    """The xgboost.Booster of a saved model.

    Args:
        model: Path of the file, or what ``Booster.save_raw`` returned.

    Raises:
        PrivacyParameterError: There is no such file, it cannot be read, or it is no model.
    """
    from xgboost import Booster
    from xgboost.core import XGBoostError

    name = "`model`"
    if not isinstance(model, (bytes, bytearray)):
        name = repr(os.fspath(model))
        try:
            model = Path(model).read_bytes()
        except FileNotFoundError:
            raise PrivacyParameterError(f"There is no model file {name}.") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "this is no path"
            raise PrivacyParameterError(f"{name} cannot be read: {reason}.") from None
    try:
        if len(model) < 2:  # XGBoost reads beyond the end of an empty buffer
            raise ValueError
        return Booster(model_file=bytearray(model))
    except (XGBoostError, ValueError, TypeError, KeyError):
        raise PrivacyParameterError(
            f"{name} is no model that XGBoost can read: it is damaged, incomplete, or another kind "
            "of file. Models are saved as .json or .ubj."
        ) from None
