"""Saved models, opened with errors that name the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import LedgerError, PrivacyParameterError
from . import ubjson
from .json_texts import check_depth


def load_booster(model: Any) -> Any:
    """The xgboost.Booster of a model, saved or not."""
    from xgboost import Booster
    from xgboost.core import XGBoostError

    if isinstance(model, Booster):
        return model
    if not isinstance(model, (bytes, bytearray)):
        if not isinstance(model, (str, os.PathLike)):
            raise PrivacyParameterError(
                "A model must be an xgboost.Booster, the path of a saved one, or its bytes; got a "
                f"{type(model).__name__}."
            )
        model = ModelFile(model)
    name = repr(model.path) if isinstance(model, ModelFile) else "`model`"
    try:
        check_form(model)
        return Booster(model_file=bytearray(model))
    except (XGBoostError, ValueError, TypeError, KeyError):
        raise LedgerError(
            f"{name} is not a model that XGBoost can read: it is damaged, incomplete, or another "
            "kind of file. Models are saved as .json or .ubj."
        ) from None


def check_form(model: bytes | bytearray) -> None:
    """Raise ValueError for what would end the process while XGBoost reads it.

    It follows JSON to any depth, and reads UBJSON beyond the end of what was cut off.
    """
    if is_json(model):
        check_depth(model)
    else:
        ubjson.check(bytes(model))


class ModelFile(bytearray):
    """The content of a model file, read once, with its path for errors."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(file_bytes(path))
        self.path = os.fspath(path)


def file_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a model file."""
    name = repr(os.fspath(path))
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise PrivacyParameterError(f"There is no model file {name}. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a path"
        raise PrivacyParameterError(
            f"{name} cannot be read: {reason}. Give the path of a saved model that you may read."
        ) from None


def is_json(model: bytes | bytearray) -> bool:
    """Whether a saved model is JSON; otherwise it should be UBJSON."""
    return model[1:2] == b'"' or model[1:2].isspace()
