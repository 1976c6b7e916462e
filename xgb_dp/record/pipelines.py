"""Finds steps of a scikit-learn pipeline before a private estimator that are fitted on all rows.

Results of such a step, for example a scale, a dictionary or synthetic rows, reach the model without
noise, and no ledger accounts for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from ..data.cells import read_data
from ..errors import PrivacyRefusal

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
_SPARSE = (
    "whether it returns a sparse table, in which 0 is missing, depends on all rows: set "
    "sparse_threshold=0"
)
_SELECTOR = (
    "it selects columns by a function, and the type of a column depends on all rows: list the "
    "columns by name"
)
_DENSE = ("OrdinalEncoder",)
_AS_GIVEN = ("FunctionTransformer", "Normalizer", "Binarizer", "PolynomialFeatures",
             "SimpleImputer")  # fmt: skip
"""Steps with dense output for dense input."""
_ELSE = (
    "fit it on public rows and put it in a sklearn.frozen.FrozenEstimator, or replace it by a rule "
    "that looks at one row at a time (FunctionTransformer)"
)


def steps_of(model: Any) -> list[Any]:
    """Names and objects of a pipeline's steps; empty for other models."""
    kinds = (f"{base.__module__}.{base.__name__}" for base in type(model).__mro__)
    pipeline = any(kind in ("sklearn.pipeline.Pipeline", "imblearn.pipeline.Pipeline")
                   for kind in kinds)  # fmt: skip
    return list(model.steps) if pipeline and model.steps else []


def taken_apart(model: Any) -> tuple[list[Any], Any]:
    """All steps before the last one, including nested pipelines, and the last step."""
    front: list[Any] = []
    while steps := steps_of(model):
        front, model = [*front, *steps[:-1]], steps[-1][1]
    return front, model


def fitted_in(model: Any, table: Any = None) -> list[tuple[str, str]]:
    """Steps of a pipeline that were fitted on rows, each with an alternative."""
    return list(rows_read_by(taken_apart(model)[0], sparse=is_sparse_table(table)))


def transformed(model: Any, table: Any) -> Any:
    """A table after the row-wise steps of a pipeline, as input of the last step."""
    fitted = fitted_in(model, table)
    if fitted:
        raise PrivacyRefusal(
            "Steps of the pipeline in front of the model were fitted on rows, which may be these: "
            "one row would change what the others are, and no noise covers that. "
            f"{_listed(fitted)}. Or give the last step of the pipeline, and the rows as it sees "
            "them, if the steps were fitted on public rows."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning of a step may reveal one row
        for _, step, *_ in taken_apart(model)[0]:
            if step is not None and step != "passthrough":
                table = read_data(step.transform, table)
    return table


def _listed(steps: list[tuple[str, str]]) -> str:
    return "; ".join(f"{name}: {instead}" for name, instead in steps)


def is_sparse_table(table: Any) -> bool:
    """Whether a table has sparse columns; 0 may then mean missing."""
    kinds = getattr(table, "dtypes", ())
    return hasattr(table, "nnz") or any("Sparse" in str(kind) for kind in kinds)


def rows_read_by(steps: Any, *, sparse: bool) -> Iterator[tuple[str, str]]:
    """Names of the steps that are fitted on rows, each with an alternative."""
    for name, step, *columns in steps:
        yield from _of_step(str(name), step, sparse=sparse)
        if any(map(callable, columns)):
            yield f"{name} (columns)", _SELECTOR


def _of_step(name: str, step: Any, *, sparse: bool) -> Iterator[tuple[str, str]]:
    """Parts of a step that are fitted on rows or depend on all rows."""
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return
    for inner in ("steps", "transformers", "transformer_list"):
        parts = getattr(step, inner, None)
        if isinstance(parts, list):
            rest = getattr(step, "remainder", None)
            yield from (
                (f"{name}, {inside}", why) for inside, why in rows_read_by(parts, sparse=sparse)
            )
            yield from _of_step(f"{name}, remainder", rest, sparse=sparse)
            parts = [*(part for _, part, *_ in parts), rest]
            if getattr(step, "sparse_threshold", 0) and not all(
                _is_dense(p, sparse) for p in parts
            ):
                yield f"{name} ({type(step).__name__})", _SPARSE
            return
    if not _by_row(step):
        yield f"{name} ({type(step).__name__})", _instead(step)


def _is_dense(step: Any, sparse: bool) -> bool:
    """Whether the output of a step is known to be dense."""
    if step is None or step == "drop":
        return True
    if isinstance(getattr(step, "steps", None), list):
        return _is_dense(step.steps[-1][1], sparse)
    kind = type(step).__name__
    if step == "passthrough" or kind in _AS_GIVEN:
        return not sparse
    return kind in _DENSE or not getattr(step, "sparse_output", True)


def _by_row(step: Any) -> bool:
    """Whether a step is known to process one row at a time."""
    kind = type(step).__name__
    ours = type(step).__module__.startswith("sklearn.")
    if ours and kind in _ENCODERS:
        limited = (getattr(step, limit, None) for limit in ("min_frequency", "max_categories"))
        given = not isinstance(getattr(step, "categories", "auto"), str)
        return given and all(limit is None for limit in limited)
    if ours and kind == "SimpleImputer":
        whole = step.keep_empty_features and not step.add_indicator
        return step.strategy == "constant" and bool(whole)
    if ours and kind in _BY_ROW:
        return True
    tags = getattr(step, "__sklearn_tags__", None)
    try:
        return tags is not None and not tags().requires_fit
    except Exception:  # a foreign class may raise anything
        return False


def _instead(step: Any) -> str:
    kind = type(step).__name__
    for words, text in _INSTEAD:
        if any(word in kind or hasattr(step, word) for word in words):
            return text
    return _ELSE


def of_steps(steps: list[tuple[str, str]]) -> list[str]:
    """A warning that names the steps and their alternatives; empty without steps."""
    text = (
        "Steps of the pipeline in front of this estimator are fitted on the training rows without "
        f"noise, and epsilon does not cover them. {_listed(steps)}."
    )
    return [text] if steps else []
