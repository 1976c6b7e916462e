"""Saved models, opened with errors that name the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from . import ubjson
from .errors import LedgerError, PrivacyParameterError

__all__ = ["load_booster"]


def load_booster(model: str | os.PathLike[str] | bytes | bytearray) -> Any:
    """The xgboost.Booster of a saved model.

    Args:
        model: Path of the file, or what ``Booster.save_raw`` returned.

    Raises:
        PrivacyParameterError: There is no such file, or it cannot be opened.
        LedgerError: It is damaged or no model, so that nothing can be said about its privacy.
    """
    from xgboost import Booster
    from xgboost.core import XGBoostError

    name = "`model`"
    if not isinstance(model, (bytes, bytearray)):
        if not isinstance(model, (str, os.PathLike)):
            raise PrivacyParameterError(
                "A model must be an xgboost.Booster, the path of a saved one, or its bytes; got a "
                f"{type(model).__name__}."
            )
        name = repr(os.fspath(model))
        try:
            model = Path(model).read_bytes()
        except FileNotFoundError:
            raise PrivacyParameterError(f"There is no model file {name}.") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "this is no path"
            raise PrivacyParameterError(f"{name} cannot be read: {reason}.") from None
    try:
        if model[1:2] != b'"' and not model[1:2].isspace():  # no JSON
            ubjson.check(bytes(model))  # XGBoost reads beyond the end of what was cut off
        return Booster(model_file=bytearray(model))
    except (XGBoostError, ValueError, TypeError, KeyError):
        raise LedgerError(
            f"{name} is no model that XGBoost can read: it is damaged, incomplete, or another kind "
            "of file. Models are saved as .json or .ubj."
        ) from None
