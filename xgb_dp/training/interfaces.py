"""What the scikit-learn interface of XGBoost asks for when its tree method is private.

The patched ``xgboost/sklearn.py`` calls these through :mod:`xgb_dp.training.hook`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from ..budget.gate import in_force
from ..data.arrays import cells_of
from ..data.frames import has_column, without_column
from ..data.ids import persons_of
from ..data.matrices import private_matrix
from ..data.persons import id_column
from ..data.row_checks import check_class_labels
from ..data.split_rows import split_matrix
from ..errors import PrivacyParameterError, PrivacyRefusal, named, spelt
from ..record.pipelines import callers
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


_SEARCH = (
    "Use xgb_dp.select, which chooses among settings privately and accounts for it. "
    "Public `evals` do not change this: the training rows are private. To search on public rows, "
    "train without privacy."
)
_ALONE = (
    "Train the private model on the rows as they are, by its own `fit`; what is to be chosen is "
    "chosen by xgb_dp.select."
)
_REFUSED_CALLERS = {
    "sklearn.model_selection": (
        "it scores settings exactly on the rows that were held out, and trains several models on "
        "the same rows",
        _SEARCH,
    ),
    "sklearn.calibration": ("it fits exact calibrations on the rows that were held out", _SEARCH),
    "sklearn.feature_selection._rfe._rfe_single_fit": (
        "it scores columns exactly on the rows that were held out",
        _SEARCH,
    ),
    "sklearn.ensemble._weight_boosting": ("it weights the rows by exact errors", _SEARCH),
    "sklearn.ensemble._bagging": (
        "it repeats rows, so that one row counts several times",
        _SEARCH,
    ),
    # One row changes what the others bring to the training.
    "sklearn.ensemble._stacking": (
        "it trains on predictions of other models, which one row changes for all rows",
        _ALONE,
    ),
    "sklearn.impute._iterative": (
        "it fills the cells of a row by models of all rows, and trains several",
        _ALONE,
    ),
    "sklearn.linear_model._ransac": (
        "it chooses the rows of the training by exact errors of earlier models",
        _ALONE,
    ),
    "sklearn.semi_supervised._self_training": (
        "it labels rows by earlier models of the same rows, and trains several",
        _ALONE,
    ),
}
"""Callers of ``fit`` by module or function: why they are refused, and what to do instead."""
_MEMBER = "sklearn.ensemble._base._fit_single_estimator"  # of VotingClassifier
_CODES = (
    "it codes the labels by the classes that occur, so that one row can change the labels of all "
    "others, which no epsilon covers"
)
_APART = "Train each model by its own `fit`, and take the mean of their `predict_proba`."


def refuse_search() -> None:
    """Refuse a training that scikit-learn has called with rows or for a use that nothing bounds.

    The callers are recognised by their frames on the call stack: an estimator is not told who fits
    it.
    """
    for caller, frame in callers():
        for name, (reason, instead) in _REFUSED_CALLERS.items():
            if caller == name or caller.startswith(name + "."):
                _refuse(caller, f"{reason}, which no epsilon covers", instead)
        if caller == "sklearn.feature_selection._rfe._fit" and not in_force():
            _refuse(
                caller,
                "it trains several models on the same rows, of which the ledger that remains shows "
                "one",
                "Give the model a budget, on which each of them draws: set_params(budget=...), or "
                "`with xgb_dp.Budget(...).drawing(): ...` around it. To choose among sets of "
                "columns with one epsilon, use xgb_dp.select.",
            )
        if caller == "sklearn.multiclass._fit_binary" and frame.f_locals.get("classes") is None:
            _refuse(caller, _CODES, _APART)  # OutputCodeClassifier, also in a process of a member
        target = frame.f_locals.get("self") if caller == "sklearn.compose._target.fit" else None
        if getattr(target, "transformer", None) is not None:
            _refuse(
                caller,
                "it trains on labels that its `transformer` makes, which may depend on all rows",
                "Give it `func` and `inverse_func`, which see each label by itself.",
            )
    for caller, frame in callers():
        if caller == _MEMBER:
            from sklearn.base import is_classifier

            if is_classifier(frame.f_locals["estimator"]):
                _refuse(caller, _CODES, _APART)


def _refuse(caller: str, reason: str, instead: str) -> NoReturn:
    raise PrivacyRefusal(f"Private training is refused inside {caller}: {reason}. {instead}")
