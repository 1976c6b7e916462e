"""Steps of a scikit-learn pipeline in front of a private estimator that are fitted on all rows.

An estimator is not told who fits it, so pipelines are recognised by their frames on the call stack,
those of scikit-learn and of imbalanced-learn. What a step learns of the rows, a scale, a dictionary
or the rows that it makes up, reaches the model without noise, and no ledger knows of it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ..errors import PrivacyWarning

_PIPELINES = ("sklearn.pipeline.", "imblearn.pipeline.")
_ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
_BY_ROW = ("PolynomialFeatures", "FrozenEstimator")
_INSTEAD = (
    (("fit_resample",), "rows that are drawn or made from others no longer belong to one person: "
     "leave it out, and weight rows (`sample_weight`, `scale_pos_weight`)"),
    (("TargetEncoder",), "it averages labels exactly: leave it out, and declare the `categories`"),
    (_ENCODERS, "it takes its categories from the rows: give it `categories`, or leave it out and "
     "declare them"),
    (("Scaler", "PowerTransformer", "QuantileTransformer"), "trees need no scaling: leave it out"),
    (("Select", "VarianceThreshold", "RFE"), "it chooses columns by exact statistics: keep all of "
     "them, which costs little, or choose on public rows"),
    (("Imputer",), "missing values need no filling: leave it out"),
)  # fmt: skip
_ELSE = (
    "fit it on public rows and put it in a sklearn.frozen.FrozenEstimator, or replace it by a rule "
    "that looks at one row at a time (FunctionTransformer)"
)


def callers() -> Iterator[tuple[str, FrameType]]:
    """Module and name of each function on the call stack, and its frame."""
    frame = inspect.currentframe()
    while frame is not None:
        yield f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_name}", frame
        frame = frame.f_back


def fitted_steps() -> list[tuple[str, str]]:
    """Steps that were fitted on the training rows before this training, as far as can be told."""
    fitted: list[tuple[str, str]] = []
    seen: list[Any] = []
    for name, frame in callers():
        pipeline = frame.f_locals.get("self") if name.startswith(_PIPELINES) else None
        steps = getattr(pipeline, "steps", None)
        if isinstance(steps, list) and not any(pipeline is other for other in seen):
            seen.append(pipeline)
            fitted += _of_steps(steps[:-1])
    return fitted


def _of_steps(steps: Any) -> Iterator[tuple[str, str]]:
    for name, step, *_ in steps:
        yield from _of_step(str(name), step)


def _of_step(name: str, step: Any) -> Iterator[tuple[str, str]]:
    """What of one step is fitted on rows."""
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return
    for inner in ("steps", "transformers", "transformer_list"):
        parts = getattr(step, inner, None)
        if isinstance(parts, list):
            yield from ((f"{name}, {inside}", instead) for inside, instead in _of_steps(parts))
            yield from _of_step(f"{name}, remainder", getattr(step, "remainder", None))
            return
    if not _by_row(step):
        yield f"{name} ({type(step).__name__})", _instead(step)


def _by_row(step: Any) -> bool:
    """Whether a step is known to look at one row at a time."""
    kind = type(step).__name__
    ours = type(step).__module__.startswith("sklearn.")
    if ours and kind in _ENCODERS:
        limited = (getattr(step, limit, None) for limit in ("min_frequency", "max_categories"))
        given = not isinstance(getattr(step, "categories", "auto"), str)
        return given and all(limit is None for limit in limited)
    if ours and kind == "SimpleImputer":
        return step.strategy == "constant" and bool(step.keep_empty_features)
    if ours and kind in _BY_ROW:
        return True
    tags = getattr(step, "__sklearn_tags__", None)
    try:
        return tags is not None and not tags().requires_fit
    except Exception:  # tags of somebody else's class
        return False


def _instead(step: Any) -> str:
    kind = type(step).__name__
    for words, text in _INSTEAD:
        if any(word in kind or hasattr(step, word) for word in words):
            return text
    return _ELSE


def warn_of_steps(steps: list[tuple[str, str]], stacklevel: int = 2) -> None:
    """Issue a ``PrivacyWarning`` that names the steps and what to do instead."""
    if steps:
        listed = "; ".join(f"{name}: {instead}" for name, instead in steps)
        warnings.warn(
            "Steps of the pipeline in front of this estimator are fitted on the training rows "
            f"without noise, and epsilon does not cover them. {listed}.",
            PrivacyWarning,
            stacklevel=stacklevel + 1,
        )
