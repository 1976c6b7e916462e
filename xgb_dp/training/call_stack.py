"""Detect scikit-learn meta-estimators and pipelines from the call stack.

An estimator does not know which object fits it, so this module inspects the frames of its callers.
The privacy bound requires that one row changes only its own contribution to one training. A caller
is therefore refused if it trains on rows, labels or weights computed from other rows, if the rows
determine the number of models, or if it releases exact results. The ledger lists pipeline steps
that were fitted on the rows.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

from ..errors import PrivacyRefusal, PrivacyWarning
from ..record.pipelines import is_sparse_table, rows_read_by

_SELECT = (
    "Use xgb_dp.select, which chooses among settings privately and accounts for the choice. "
    "Public `evals` do not help, because the training rows are private. To search on public rows, "
    "train without privacy."
)
_EVALUATE = (
    "Train one model on one part of xgb_dp.split, and evaluate it on the other part with "
    "xgb_dp.evaluate. To choose among settings, use xgb_dp.select."
)
_CALIBRATE = (
    "Call `fit` of the model itself, and calibrate it with noise: "
    "xgb_dp.evaluate(model, rows, ...).calibrated(model)."
)
_THRESHOLD = (
    "Call `fit` of the model itself, and choose the threshold from noisy counts: "
    "xgb_dp.evaluate(model, rows, ...).threshold(cost=...)."
)
_ALONE = "Call `fit` of the private model itself, on the original rows."
_STACK = (
    f"{_ALONE} To combine several models, train each with one `budget` (xgb_dp.Budget), and "
    "average their predictions."
)
_ROUNDS = (
    "Call `fit` of one model itself, and set its number of trees with `n_estimators`. To average "
    "several models, train each on all rows with one `budget` (xgb_dp.Budget)."
)
_APART = "Call `fit` of each model itself, with one `budget`, and average their `predict_proba`."
_EACH_CLASS = "Declare all classes and train one multiclass model: DPXGBClassifier(classes=[...])."
_CODES = (
    "it encodes the labels by the classes that occur, so one row can change the labels of all "
    "other rows"
)
_SEVERAL = "it trains several models on the same rows and scores them exactly on held-out rows"
_CROSS_PREDICTS = (
    "it trains several models on the same rows, and returns a prediction of each row by the models "
    "of the others"
)
_COLUMNS = "it scores sets of columns exactly on held-out rows"

_REFUSED = {
    "sklearn.calibration": (
        "it fits exact calibrations on held-out rows and trains several models on the same rows",
        _CALIBRATE,
    ),
    "sklearn.ensemble._bagging": (
        "it resamples the rows for every model, so one row can count several times",
        _ROUNDS,
    ),
    "sklearn.ensemble._gb": (
        "it adds exact trees fitted on the same rows",
        _ROUNDS,
    ),
    "sklearn.ensemble._stacking": (
        "it trains on predictions of other models, and one row changes these predictions for all "
        "rows",
        _STACK,
    ),
    "sklearn.ensemble._weight_boosting": (
        "it weights the rows by the exact errors of earlier models",
        _ROUNDS,
    ),
    "sklearn.feature_selection._rfe._rfe_single_fit": (_COLUMNS, _SELECT),
    "sklearn.feature_selection._sequential": (_COLUMNS, _SELECT),
    "sklearn.impute._iterative": (
        "it imputes values with models of all rows, and trains several models",
        _ALONE,
    ),
    "sklearn.linear_model._ransac": (
        "it chooses the training rows by the exact errors of earlier models",
        _ALONE,
    ),
    "sklearn.model_selection._classification_threshold": (
        "it chooses a threshold by exact scores of held-out rows and trains several models on the "
        "same rows",
        _THRESHOLD,
    ),
    "sklearn.model_selection._search": (_SEVERAL, _SELECT),
    "sklearn.model_selection._search_successive_halving": (_SEVERAL, _SELECT),
    "sklearn.model_selection._validation.cross_val_predict": (_CROSS_PREDICTS, _EVALUATE),
    "sklearn.model_selection._validation._fit_and_predict": (_CROSS_PREDICTS, _EVALUATE),
    "sklearn.model_selection": (_SEVERAL, _EVALUATE),
    "sklearn.multiclass": (
        "the classes that occur determine the number of models and their labels, so one row can "
        "change every model",
        _EACH_CLASS,
    ),
    "sklearn.semi_supervised._self_training": (
        "it labels rows with earlier models of the same rows, and trains several models",
        _ALONE,
    ),
}
"""Refused callers of ``fit``: module or function, reason and suggested fix.

The first entry found on the call stack determines the message, so specific entries come first.
"""
_SEARCHES = ("sklearn.model_selection._search", "sklearn.model_selection._validation.")
_EXACT_FITS = {
    **dict.fromkeys(
        ("sklearn.calibration", "sklearn.ensemble._stacking", "sklearn.model_selection"),
        ("fit", "_fit"),
    ),
    "sklearn.inspection": ("",),
}
"""Modules with functions that use the predictions of an already fitted model, by their prefix."""


def refuse_meta_estimators(*, binary: bool, recorded: bool) -> None:
    """Refuse to train inside a scikit-learn caller that uses the rows without a privacy bound.

    Args:
        binary: Whether the model has two declared classes.
        recorded: Whether a budget records every training.
    """
    stack = [one for one in callers() if not (binary and _is_fixed_threshold(*one))]
    _refuse_listed(stack)
    for caller, frame in stack:
        _refuse_some(caller, frame, recorded)


def _refuse_listed(stack: list[tuple[str, FrameType]]) -> None:
    for name, (reason, instead) in _REFUSED.items():
        inside = [one for one in stack if f"{one[0]}.".startswith(f"{name}.")]
        if inside:
            _refuse(*inside[-1], reason, instead)


def refuse_searches() -> None:
    """Refuse to be cloned by a scikit-learn search or cross-validation.

    They clone an estimator before the first `fit`. From there an error reaches the user, while
    errors of `fit` are caught, counted and quoted at the end of a long traceback.
    """
    stack = list(callers())
    if any(caller.startswith(_SEARCHES) for caller, _ in stack):
        _refuse_listed(stack)


def _is_fixed_threshold(caller: str, frame: FrameType) -> bool:
    """Whether the caller applies a fixed public threshold to the scores of one model."""
    known = caller.startswith("sklearn.model_selection._classification_threshold.")
    return known and type(frame.f_locals.get("self")).__name__ == "FixedThresholdClassifier"


def _refuse_some(caller: str, frame: FrameType, recorded: bool) -> None:
    """Refuse callers that are safe only with certain arguments."""
    if not caller.startswith("sklearn."):
        return  # reading the variables of a user's frame would keep a copy of them
    target: Any = frame.f_locals.get("self")
    if caller == "sklearn.feature_selection._rfe._fit" and not recorded:
        _refuse(
            caller,
            frame,
            "it trains several models on the same rows, but only the last ledger remains",
            "Use a budget that records every training: set_params(budget=...), or "
            "`with xgb_dp.Budget(...).drawing(): ...` around the call. To choose among sets of "
            "columns with one epsilon, use xgb_dp.select.",
        )
    if caller == "sklearn.multioutput.fit" and getattr(target, "cv", None) is not None:
        _refuse(
            caller,
            frame,
            "with `cv` it trains on predictions of other models, and one row changes these "
            "predictions for all rows",
            "Set cv=None: each model is then trained on the preceding labels.",
        )
    if caller == "sklearn.compose._target.fit" and getattr(target, "transformer", None) is not None:
        _refuse(
            caller,
            frame,
            "its `transformer` can compute labels from all rows",
            "Use `func` and `inverse_func`, which transform each label independently.",
        )
    if caller == "sklearn.ensemble._base._fit_single_estimator":  # of VotingClassifier
        from sklearn.base import is_classifier

        if is_classifier(frame.f_locals["estimator"]):
            _refuse(caller, frame, _CODES, _APART)


def warn_of_exact_fits() -> None:
    """Warn if a caller fits or scores the predictions of a private model without noise."""
    functions = [caller.rpartition(".") for caller, _ in callers()]
    for module, prefixes in _EXACT_FITS.items():
        if any(m.startswith(module) and f.startswith(prefixes) for m, _, f in functions):
            warnings.warn(
                f"A private model predicts inside {module}, which fits or scores these predictions "
                "without noise, so no epsilon covers the result. Do not release it if the rows are "
                "private. For a noisy calibration or threshold, use `calibrated` or `threshold` of "
                "xgb_dp.evaluate(model, rows, ...).",
                PrivacyWarning,
                stacklevel=3,
            )
            return


def _refuse(caller: str, frame: FrameType, reason: str, instead: str) -> NoReturn:
    """Raise an error that names the caller as users do: sklearn.ensemble.BaggingClassifier."""
    package, function = ".".join(caller.split(".")[:2]), caller.rpartition(".")[2]
    known = type(frame.f_locals["self"]).__name__ if "self" in frame.f_locals else function
    shown = package if known.startswith(("_", "<")) else f"{package}.{known}"
    raise PrivacyRefusal(
        f"Private training is refused inside {shown}: {reason}. No epsilon covers this. {instead}"
    )


_PIPELINES = ("sklearn.pipeline.", "imblearn.pipeline.")


def callers() -> Iterator[tuple[str, FrameType]]:
    """Yield the qualified name and the frame of each function on the stack above this module.

    Frames of this module are skipped, because a frame that refers to itself would keep the training
    data alive in a reference cycle.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            yield f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_name}", frame
        frame = frame.f_back


def fitted_steps() -> list[tuple[str, str]]:
    """Pipeline steps that were fitted on the training rows before this training."""
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
