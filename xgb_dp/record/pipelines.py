"""Find pipeline steps before a private estimator that are fitted on all rows.

The result of such a step, for example a scale, a dictionary or synthetic rows, reaches the model
without noise, and no ledger accounts for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from ..data.cells import read_data
from ..errors import PrivacyRefusal

_ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
_BY_ROW = ("PolynomialFeatures", "FrozenEstimator")
_FIXES = (
    (("fit_resample",), "resampled or synthetic rows do not belong to one person: remove it, and "
     "use row weights (`sample_weight`, `scale_pos_weight`)"),
    (("TargetEncoder",), "it uses exact means of labels: remove it, and declare the `categories`"),
    (_ENCODERS, "it takes the categories from the rows: set its `categories`, or remove it and "
     "declare them"),
    (("Scaler", "PowerTransformer", "QuantileTransformer"), "trees need no scaling: remove it"),
    (("Select", "VarianceThreshold", "RFE"), "it selects columns by exact statistics: keep all "
     "columns, which costs little, or select on public rows"),
    (("Imputer",), "missing values need no imputation: remove it"),
)  # fmt: skip
_SPARSE = (
    "all rows together determine whether its output is sparse, where 0 means missing: set "
    "sparse_threshold=0"
)
_SELECTOR = (
    "it selects columns by a function, which can depend on all rows: list the columns by name"
)
_DENSE = ("OrdinalEncoder",)
_AS_GIVEN = ("FunctionTransformer", "Normalizer", "Binarizer", "PolynomialFeatures",
             "SimpleImputer")  # fmt: skip
"""Steps that return dense output for dense input."""
_DEFAULT_FIX = (
    "fit it on public rows and wrap it in a sklearn.frozen.FrozenEstimator, or replace it with a "
    "transformation of each row on its own (FunctionTransformer)"
)


def steps_of(model: Any) -> list[Any]:
    """Steps of a pipeline, as pairs of name and object; empty for other models."""
    kinds = (f"{base.__module__}.{base.__name__}" for base in type(model).__mro__)
    pipeline = any(kind in ("sklearn.pipeline.Pipeline", "imblearn.pipeline.Pipeline")
                   for kind in kinds)  # fmt: skip
    return list(model.steps) if pipeline and model.steps else []


def split_pipeline(model: Any) -> tuple[list[Any], Any]:
    """Split a model into the steps before the last one, including nested steps, and the last."""
    front: list[Any] = []
    while steps := steps_of(model):
        front, model = [*front, *steps[:-1]], steps[-1][1]
    return front, model


def fitted_in(model: Any, table: Any = None) -> list[tuple[str, str]]:
    """Pipeline steps that were fitted on rows, as pairs of name and suggested fix."""
    return list(rows_read_by(split_pipeline(model)[0], sparse=is_sparse_table(table)))


def transformed(model: Any, table: Any) -> Any:
    """Transform a table by the row-wise steps of a pipeline, as input for the last step."""
    fitted = fitted_in(model, table)
    if fitted:
        raise PrivacyRefusal(
            "Pipeline steps before the model were fitted on rows, possibly on these rows: one row "
            "could then change the transformed values of others, which no noise covers. "
            f"{_listed(fitted)}. If the steps were fitted on public rows, pass the last step of "
            "the pipeline and the transformed rows."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning from a step could reveal a row
        for _, step, *_ in split_pipeline(model)[0]:
            if step is not None and step != "passthrough":
                table = read_data(step.transform, table)
    return table


def _listed(steps: list[tuple[str, str]]) -> str:
    return "; ".join(f"{name}: {fix}" for name, fix in steps)


def is_sparse_table(table: Any) -> bool:
    """Whether a table has sparse columns, in which 0 can mean missing."""
    kinds = getattr(table, "dtypes", ())
    return hasattr(table, "nnz") or any("Sparse" in str(kind) for kind in kinds)


def rows_read_by(steps: Any, *, sparse: bool) -> Iterator[tuple[str, str]]:
    """Yield the steps that are fitted on rows, as pairs of name and suggested fix."""
    for name, step, *columns in steps:
        yield from _of_step(str(name), step, sparse=sparse)
        if any(map(callable, columns)):
            yield f"{name} (columns)", _SELECTOR


def _of_step(name: str, step: Any, *, sparse: bool) -> Iterator[tuple[str, str]]:
    """Yield the parts of a step that are fitted on rows or depend on all rows."""
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return
    for inner in ("steps", "transformers", "transformer_list"):
        parts = getattr(step, inner, None)
        if isinstance(parts, list):
            rest = getattr(step, "remainder", None)
            yield from (
                (f"{name}, {inside}", fix) for inside, fix in rows_read_by(parts, sparse=sparse)
            )
            yield from _of_step(f"{name}, remainder", rest, sparse=sparse)
            parts = [*(part for _, part, *_ in parts), rest]
            if getattr(step, "sparse_threshold", 0) and not all(
                _is_dense(p, sparse) for p in parts
            ):
                yield f"{name} ({type(step).__name__})", _SPARSE
            return
    if not _by_row(step):
        yield f"{name} ({type(step).__name__})", _suggested_fix(step)


def _is_dense(step: Any, sparse: bool) -> bool:
    """Whether the output of a step is guaranteed to be dense."""
    if step is None or step == "drop":
        return True
    if isinstance(getattr(step, "steps", None), list):
        return _is_dense(step.steps[-1][1], sparse)
    kind = type(step).__name__
    if step == "passthrough" or kind in _AS_GIVEN:
        return not sparse
    return kind in _DENSE or not getattr(step, "sparse_output", True)


def _by_row(step: Any) -> bool:
    """Whether a step is known to transform each row independently."""
    kind = type(step).__name__
    is_sklearn = type(step).__module__.startswith("sklearn.")
    if is_sklearn and kind in _ENCODERS:
        limited = (getattr(step, limit, None) for limit in ("min_frequency", "max_categories"))
        given = not isinstance(getattr(step, "categories", "auto"), str)
        return given and all(limit is None for limit in limited)
    if is_sklearn and kind == "SimpleImputer":
        whole = step.keep_empty_features and not step.add_indicator
        return step.strategy == "constant" and bool(whole)
    if is_sklearn and kind in _BY_ROW:
        return True
    tags = getattr(step, "__sklearn_tags__", None)
    try:
        return tags is not None and not tags().requires_fit
    except Exception:  # a class of another library can raise anything
        return False


def _suggested_fix(step: Any) -> str:
    kind = type(step).__name__
    for names, fix in _FIXES:
        if any(name in kind or hasattr(step, name) for name in names):
            return fix
    return _DEFAULT_FIX


def fitted_step_warnings(steps: list[tuple[str, str]]) -> list[str]:
    """Warn about fitted steps and name a fix for each; empty without steps."""
    text = (
        "Pipeline steps before this estimator are fitted on the training rows without noise, and "
        f"epsilon does not cover them. {_listed(steps)}."
    )
    return [text] if steps else []
