"""Detects scikit-learn's meta-estimators and pipelines from the call stack.

scikit-learn does not tell an estimator who fits it, so this module inspects the callers' frames.
The privacy bound requires that one row changes only its own contribution to one training. Callers
are therefore refused if they train on rows, labels or weights made from other rows, let the rows
decide the number of models, or release exact results. The ledger names pipeline steps that were
fitted on the rows.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

from ..errors import PrivacyRefusal, PrivacyWarning
from ..record.authorization import in_force
from ..record.pipelines import is_sparse_table, rows_read_by

_SELECT = (
    "Use xgb_dp.select, which chooses among settings privately and accounts for it. "
    "Public `evals` do not change this: the training rows are private. To search on public rows, "
    "train without privacy."
)
_EVALUATE = (
    "Train one model on one part of xgb_dp.split, and judge it on the other part by "
    "xgb_dp.evaluate. To choose among settings, use xgb_dp.select."
)
_CALIBRATE = (
    "Train the model by its own `fit`, and calibrate it with noise: "
    "xgb_dp.evaluate(model, rows, ...).calibrated(model)."
)
_THRESHOLD = (
    "Train the model by its own `fit`, and take the threshold from noisy counts: "
    "xgb_dp.evaluate(model, rows, ...).threshold(cost=...)."
)
_ALONE = "Train the private model on the rows as they are, by its own `fit`."
_ROUNDS = "Train one model by its own `fit`; `n_estimators` says how many trees it has."
_APART = "Train each model by its own `fit`, and take the mean of their `predict_proba`."
_EACH_CLASS = (
    "Declare all classes and train one model: DPXGBClassifier(classes=[...]) predicts several."
)
_CODES = (
    "it codes the labels by the classes that occur, so that one row can change the labels of all "
    "others"
)
_SEVERAL = "it trains several models on the same rows, and scores them exactly on held-out rows"

_REFUSED = {
    "sklearn.calibration": (
        "it fits exact calibrations on held-out rows, and trains several models on the same rows",
        _CALIBRATE,
    ),
    "sklearn.ensemble._bagging": (
        "it draws rows for each of its models, so that one row counts several times",
        _ROUNDS,
    ),
    "sklearn.ensemble._gb": (
        "it adds exact trees that are fitted on the same rows",
        _ROUNDS,
    ),
    "sklearn.ensemble._stacking": (
        "it trains on predictions of other models, which one row changes for all rows",
        _ALONE,
    ),
    "sklearn.ensemble._weight_boosting": (
        "it weights the rows by exact errors of earlier models",
        _ROUNDS,
    ),
    "sklearn.feature_selection._rfe._rfe_single_fit": (
        "it scores sets of columns exactly on held-out rows",
        _SELECT,
    ),
    "sklearn.feature_selection._sequential": (
        "it scores sets of columns exactly on held-out rows",
        _SELECT,
    ),
    "sklearn.impute._iterative": (
        "it fills the cells of a row by models of all rows, and trains several",
        _ALONE,
    ),
    "sklearn.linear_model._ransac": (
        "it chooses the rows of the training by exact errors of earlier models",
        _ALONE,
    ),
    "sklearn.model_selection._classification_threshold": (
        "it chooses a threshold by exact scores of held-out rows, and trains several models on "
        "the same rows",
        _THRESHOLD,
    ),
    "sklearn.model_selection._search": (_SEVERAL, _SELECT),
    "sklearn.model_selection._search_successive_halving": (_SEVERAL, _SELECT),
    "sklearn.model_selection._validation.cross_val_predict": (
        "it trains several models on the same rows, and returns a prediction of each row by the "
        "models of the others",
        _EVALUATE,
    ),
    "sklearn.model_selection._validation._fit_and_predict": (
        "it trains several models on the same rows, and returns a prediction of each row by the "
        "models of the others",
        _EVALUATE,
    ),
    "sklearn.model_selection": (_SEVERAL, _EVALUATE),
    "sklearn.multiclass": (
        "the classes that occur decide how many models there are and which labels they are "
        "trained on, so that one row can change all of them",
        _EACH_CLASS,
    ),
    "sklearn.semi_supervised._self_training": (
        "it labels rows by earlier models of the same rows, and trains several",
        _ALONE,
    ),
}
"""Callers of ``fit``, by module or function, with the reason for the refusal and an alternative.

The first entry that is on the call stack gives the reason, so specific entries precede general
ones.
"""
_EXACT_FITS = (
    "sklearn.calibration",
    "sklearn.ensemble._stacking",
    "sklearn.model_selection",
)
"""Modules whose fitting functions use the predictions of an already fitted model."""


def refuse_meta_estimators(*, binary: bool) -> None:
    """Refuse to train inside a scikit-learn caller whose use of the rows has no privacy bound.

    Args:
        binary: Whether the model has two declared classes.
    """
    stack = [one for one in callers() if not (binary and _is_fixed_threshold(*one))]
    for name, (reason, instead) in _REFUSED.items():
        for caller, _ in stack:
            if caller == name or caller.startswith(name + "."):
                _refuse(caller, reason, instead)
    for caller, frame in stack:
        _refuse_some(caller, frame)


def _is_fixed_threshold(caller: str, frame: FrameType) -> bool:
    """Whether the caller compares the scores of one model with a public threshold."""
    known = caller.startswith("sklearn.model_selection._classification_threshold.")
    return known and type(frame.f_locals.get("self")).__name__ == "FixedThresholdClassifier"


def _refuse_some(caller: str, frame: FrameType) -> None:
    """Refuse callers that are safe only with other arguments."""
    if not caller.startswith("sklearn."):
        return  # reading the variables of a frame of the user would keep a copy of them
    target: Any = frame.f_locals.get("self")
    if caller == "sklearn.feature_selection._rfe._fit" and not in_force():
        _refuse(
            caller,
            "it trains several models on the same rows, of which the ledger that remains shows one",
            "Give the model a budget, on which each of them draws: set_params(budget=...), or "
            "`with xgb_dp.Budget(...).drawing(): ...` around it. To choose among sets of columns "
            "with one epsilon, use xgb_dp.select.",
        )
    if caller == "sklearn.multioutput.fit" and getattr(target, "cv", None) is not None:
        _refuse(
            caller,
            "with `cv` it trains on predictions of other models, which one row changes for all "
            "rows",
            "Leave `cv` out: each model is then trained on the labels before it.",
        )
    if caller == "sklearn.compose._target.fit" and getattr(target, "transformer", None) is not None:
        _refuse(
            caller,
            "it trains on labels that its `transformer` makes, which may depend on all rows",
            "Give it `func` and `inverse_func`, which see each label by itself.",
        )
    if caller == "sklearn.ensemble._base._fit_single_estimator":  # of VotingClassifier
        from sklearn.base import is_classifier

        if is_classifier(frame.f_locals["estimator"]):
            _refuse(caller, _CODES, _APART)


def warn_of_exact_fits() -> None:
    """Warn if a caller fits or scores the predictions of a private model without noise."""
    functions = [caller.rpartition(".") for caller, _ in callers()]
    for module in _EXACT_FITS:
        if any(m.startswith(module) and f.startswith(("fit", "_fit")) for m, _, f in functions):
            warnings.warn(
                f"A private model predicts inside {module}, which fits or scores its predictions "
                "on these rows without noise: no epsilon covers the result. Do not release it if "
                "the rows are private. For a noisy calibration or threshold use "
                "xgb_dp.evaluate(model, rows, ...) with its `calibrated` or `threshold`.",
                PrivacyWarning,
                stacklevel=3,
            )
            return


def _refuse(caller: str, reason: str, instead: str) -> NoReturn:
    raise PrivacyRefusal(
        f"Private training is refused inside {caller}: {reason}, which no epsilon covers. {instead}"
    )


_PIPELINES = ("sklearn.pipeline.", "imblearn.pipeline.")


def callers() -> Iterator[tuple[str, FrameType]]:
    """Module and name of each function on the call stack above this module, and its frame.

    A frame of this module that listed itself would keep the training data alive in a cycle.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            yield f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_name}", frame
        frame = frame.f_back


def fitted_steps() -> list[tuple[str, str]]:
    """Pipeline steps known to be fitted on the training rows before this training."""
    fitted: list[tuple[str, str]] = []
    seen: list[Any] = []
    for name, frame in callers():
        pipeline = frame.f_locals.get("self") if name.startswith(_PIPELINES) else None
        steps = getattr(pipeline, "steps", None)
        if isinstance(steps, list) and not any(pipeline is other for other in seen):
            seen.append(pipeline)
            sparse = is_sparse_table(frame.f_locals.get("X"))
            fitted += rows_read_by(steps[:-1], sparse=sparse)
    return fitted
