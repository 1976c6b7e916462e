"""What the scikit-learn interface of XGBoost asks for when its tree method is private.

The patched ``xgboost/sklearn.py`` calls these through :mod:`xgb_dp.training.hook`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data.arrays import cells_of
from ..data.frames import has_column, without_column
from ..data.ids import persons_of
from ..data.matrices import private_matrix
from ..data.persons import id_column
from ..data.row_checks import check_class_labels
from ..data.split_rows import split_matrix
from ..errors import PrivacyParameterError, named, spelt
from ..request.names import read_one
from ..request.params import DEFAULT_ROUNDS


def default_rounds() -> int:
    """Boosting rounds of a private training where neither caller nor estimator says."""
    return DEFAULT_ROUNDS


def declared_classes(estimator: Any, y: Any = None) -> np.ndarray:
    """Classes of a private classifier: those declared, never those seen in `y`."""
    params = estimator if isinstance(estimator, dict) else estimator.get_xgb_params()
    refuse_margins(params)
    k = read_one(params, "dp_classes")
    if k is None:
        raise PrivacyParameterError(
            f"{named.dp_classes} is missing: a private classifier takes its classes from you and "
            "never from the training labels, which would tell which classes occur. Declare them, "
            f"e.g. XGBClassifier(..., {spelt('dp_classes')}=[0, 1])."
        )
    if y is not None:
        check_class_labels(cells_of(y, "label"), k)
    return np.arange(k)


def estimator_matrix(estimator: Any, ref: Any, *, data: Any, **kwargs: Any) -> Any:
    """A matrix of an estimator, under the name that XGBoost has for it."""
    params = estimator.get_xgb_params()  # once: it draws a seed from a `random_state`
    column, persons = id_column(params), None
    if column is not None and (ref is None or has_column(data, column)):
        data, ids = without_column(data, column)
        persons = persons_of(ids, column=column) if ref is None else None
    categories = read_one(params, "dp_categories")
    matrix = private_matrix(data, categories=categories, persons=persons, **kwargs)
    return split_matrix(matrix, getattr(estimator, "_part", None) if ref is None else None)


def refuse_margins(params: Mapping[str, Any]) -> None:
    """Refuse an objective whose predictions a classifier would take for probabilities."""
    if read_one(params, "objective") == "binary:logitraw":
        raise PrivacyParameterError(
            "`objective`='binary:logitraw' predicts margins, which a classifier would take for "
            "probabilities. Use 'binary:logistic', whose margins are the same: "
            "predict(X, output_margin=True)."
        )
