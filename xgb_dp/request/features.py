"""Where the splits of each feature may be: private candidates, public cuts or categories."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError, PrivacyRefusal
from . import parse

__all__ = [
    "Feature",
    "Schema",
    "by_index",
    "column_index",
    "columns_of_labels",
    "grid_edges",
    "public_cuts",
    "read_schema",
    "resolve_features",
    "whole_weights",
]

MAX_CUTS = 65534
MAX_CATEGORIES = 65536
LARGEST_WEIGHT = 1 << 31
"""What the largest of the ``feature_weights`` becomes, of which 2^31 columns sum within 64 bits."""


@dataclass(frozen=True)
class Feature:
    """Candidates of one feature.

    Attributes:
        kind: "private" (released), "cuts" (public) or "categorical" (declared).
        cuts: Public split points, float32 values in increasing order.
        size: Declared number of categories.
        grid: Public edges of the noisy histogram of a private feature.
        source: How the user declared it, for the ledger.
    """

    kind: str
    cuts: tuple[float, ...] = ()
    size: int = 0
    source: str = ""
    grid: tuple[float, ...] = ()


@dataclass(frozen=True)
class Schema:
    """Public schema of a DMatrix: what is not a secret of any row.

    Attributes:
        names: Column names, or "0", "1", ... if there are none.
        named: Whether the columns have names of their own.
        categorical: Indices of categorical columns.
        dictionaries: Category names that the data frame brought along, by column index.
        typed: Whether the matrix says which columns are categorical.
        weights: XGBoost's ``feature_weights``, by which columns are drawn; None where all have the
            same chance.
        labels: Columns of labels: one, or one for each of several targets.
    """

    names: list[str]
    named: bool
    categorical: frozenset[int]
    dictionaries: dict[int, list[bytes]]
    typed: bool = False
    weights: tuple[float, ...] | None = None
    labels: int = 1

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.names)


def _dictionaries(dtrain: Any) -> dict[int, list[bytes]]:
    """Category names stored in a DMatrix; XGBoost would save them in the model as they are."""
    from xgboost._data_utils import from_array_interface
    from xgboost.core import _LIB, _check_call

    handle, text = ctypes.c_void_p(), ctypes.c_char_p()
    _check_call(
        _LIB.XGDMatrixGetCategoriesExportToArrow(
            dtrain.handle, None, ctypes.byref(handle), ctypes.byref(text)
        )
    )
    try:
        out: dict[int, list[bytes]] = {}
        for index, column in enumerate(json.loads(text.value or b"[]")):
            if column is None:
                continue
            if "offsets" not in column:
                out[index] = [str(v).encode() for v in from_array_interface(column)]
                continue
            offsets = from_array_interface(column["offsets"])
            raw = bytes(np.asarray(from_array_interface(column["values"]), dtype=np.int8))
            ends = [int(v) for v in offsets]
            out[index] = [raw[a:b] for a, b in pairwise(ends)]
        return out
    finally:
        if handle.value is not None:
            _check_call(_LIB.XGBCategoriesFree(handle))


def read_schema(dtrain: Any, name: str = "`dtrain`") -> Schema:
    """Public schema of the training data, or of public rows that go with it.

    Args:
        dtrain: The DMatrix.
        name: What errors call it.

    Returns:
        Schema: Column names, types and dictionaries; no cell is looked at.

    Raises:
        PrivacyRefusal: XGBoost has read the matrix from a file, so that its number of columns is
            that of the rows which happen to stand there.
    """
    if getattr(dtrain, "_from_file", False):
        raise PrivacyRefusal(
            f"{name} was read from a file by XGBoost, which takes the number of columns from the "
            "rows in it: one row may add columns. Declare the number and read the rows yourself, "
            "for example xgboost.DMatrix(*sklearn.datasets.load_svmlight_file(path, "
            "n_features=...)), or use `xgb-dp train` for CSV and Parquet files."
        )
    names = dtrain.feature_names
    width = dtrain.num_col()
    types = dtrain.feature_types or []
    categorical = frozenset(i for i, t in enumerate(types) if t == "c")
    return Schema(
        names=list(names) if names and width else [str(i) for i in range(width)],
        named=bool(names),
        categorical=categorical,
        dictionaries=_dictionaries(dtrain) if categorical else {},
        typed=dtrain.feature_types is not None,
        weights=_weights(dtrain, name, width),
        labels=columns_of_labels(dtrain),
    )


def columns_of_labels(dtrain: Any) -> int:
    """How many labels each row of a DMatrix has; one where it has none. Public, no cell is read."""
    shape = dtrain.get_label().shape
    return max(shape[1], 1) if len(shape) == 2 else 1


def _weights(dtrain: Any, name: str, width: int) -> tuple[float, ...] | None:
    """The ``feature_weights`` of a matrix, which XGBoost has found finite and not negative.

    Raises:
        PrivacyParameterError: Not one for each column.
    """
    weights = tuple(float(w) for w in dtrain.get_float_info("feature_weights"))
    if weights and len(weights) != width:
        raise PrivacyParameterError(
            f"`feature_weights` of {name} has {len(weights)} entries for {width} columns. Give one "
            "for each column."
        )
    return weights or None


def whole_weights(weights: tuple[float, ...] | None) -> list[int]:
    """Chances of columns as integers that sum without rounding, the largest ``LARGEST_WEIGHT``.

    As in XGBoost, a weight below 1e-6 counts as 1e-6, and no chance is 0.

    Args:
        weights: XGBoost's ``feature_weights``, finite and not negative; None for even chances.

    Returns:
        One integer of at least 1 for each column; none where all columns have the same chance.
    """
    if weights is None:
        return []
    raised = [max(w, 1e-6) for w in weights]
    return [max(1, round(w / max(raised) * LARGEST_WEIGHT)) for w in raised]


def public_cuts(name: str, values: Any) -> tuple[float, ...]:
    """Public split points as XGBoost can hold them: increasing, finite, normal 32-bit floats.

    Args:
        name: Parameter name for messages.
        values: Numbers in units of the feature.

    Raises:
        PrivacyParameterError: Not a list of finite numbers, or too many.
    """
    given = parse.listed(values)
    if given is None:
        raise PrivacyParameterError(f"{name} must be a list of finite numbers.")
    if len(given) > MAX_CUTS:
        raise PrivacyParameterError(f"{name} has more than {MAX_CUTS} cuts. Give fewer.")
    numbers = np.array([parse.parse_number(name, v) for v in given], dtype=np.float64)
    with np.errstate(over="ignore"):
        cuts = numbers.astype(np.float32)
    info = np.finfo(np.float32)
    if not np.isfinite(cuts).all():
        raise PrivacyParameterError(
            f"{name} exceeds the range of 32-bit floats. Give smaller numbers, or use another unit."
        )
    cuts[np.abs(cuts) < info.smallest_normal] = 0.0  # also turns -0 into 0
    cuts = np.unique(cuts[cuts < info.max])
    return tuple(float(c) for c in cuts)


def grid_edges(name: str, bounds: Any, bins: int) -> tuple[float, ...]:
    """Edges of an even or geometric grid, both ends included.

    Args:
        name: Parameter name for messages.
        bounds: (low, high) for an even grid, (low, high, "log") for a geometric one.
        bins: Number of bins; values beyond the bounds fall in the first and the last one.

    Raises:
        PrivacyParameterError: Ill-formed bounds.
    """
    given = parse.listed(bounds)
    log = given is not None and len(given) == 3
    if given is not None and log:
        if not (isinstance(given[2], str) and given[2] == "log"):
            raise PrivacyParameterError(f"{name} takes (low, high) or (low, high, 'log').")
        bounds = given[:2]
    low, high = parse.parse_range(name, bounds)
    if log:
        if low <= 0:
            raise PrivacyParameterError(
                f"{name}: a 'log' grid needs low > 0. Raise the low end, or leave 'log' out."
            )
        grid = np.exp(np.linspace(np.log(low), np.log(high), bins + 1))
    else:
        grid = low + (high - low) * (np.arange(bins + 1) / bins)
    edges = public_cuts(name, grid)
    if len(edges) < 2:
        raise PrivacyParameterError(f"{name} is too narrow for 32-bit floats. Give a wider range.")
    return edges


def declarations(param: str, given: Any) -> dict[Any, Any]:
    """A user's mapping with the user's own keys.

    Raises:
        PrivacyParameterError: Not a mapping.
    """
    declared = parse.mapped(given)
    if declared is None:
        raise PrivacyParameterError(f"`{param}` must map feature names or indices to declarations.")
    return declared


def by_index(param: str, given: Any, schema: Schema) -> dict[int, Any]:
    """A user's mapping with column indices as keys.

    Args:
        param: Parameter name for messages.
        given: Mapping from names or indices to declarations.
        schema: Public schema of the training data.

    Raises:
        PrivacyParameterError: Not a mapping, or a column is unknown or named twice.
    """
    out: dict[int, Any] = {}
    for key, value in declarations(param, given).items():
        index = column_index(param, key, schema)
        if index in out:
            raise PrivacyParameterError(
                f"`{param}` declares the feature {schema.names[index]!r} twice."
            )
        out[index] = value
    return out


def column_index(param: str, key: Any, schema: Schema) -> int:
    """Index of a column from its name or index.

    Raises:
        PrivacyParameterError: There is no such column.
    """
    if isinstance(key, str) and key in schema.names:
        return schema.names.index(key)
    if isinstance(key, (int, np.integer)) and 0 <= key < len(schema.names):
        return int(key)
    shown = "a feature with a larger index"
    if not isinstance(key, (int, np.integer)) or -99 <= key <= 1 << 32:
        shown = f"the feature {key if isinstance(key, int) else parse.shown(key)}"
    raise PrivacyParameterError(
        f"`{param}` declares {shown}, which the training data does not have. Use a column's name "
        "or its index from 0."
    )


def _same_names(dictionary: list[bytes], declared: list[str]) -> bool:
    """Whether a DMatrix holds exactly the declared names."""
    if dictionary == [name.encode() for name in declared]:
        return True
    # XGBoost 3.2.0 cuts names from pandas at counts of characters instead of bytes.
    text = "".join(declared).encode()[: sum(map(len, declared))]
    ends = [0, *accumulate(map(len, declared))]
    return dictionary == [text[a:b] for a, b in pairwise(ends)]


def _category(name: str, value: Any) -> str:
    try:
        text = str(value)
        text.encode()
    except Exception:  # an object of the caller may do anything
        raise PrivacyParameterError(
            f"`dp_categories` of feature {name} has a {type(value).__name__} that cannot be "
            "written as a text of Unicode characters. Give its name as a text."
        ) from None
    return text


def _category_count(name: str, value: Any, dictionary: list[bytes] | None) -> int:
    given = parse.listed(value)
    if given is not None:
        declared = [_category(name, v) for v in given]
        size = len(declared)
        if any("\ud800" <= c <= "\udfff" for name in declared for c in name):
            raise PrivacyParameterError(
                f"`dp_categories` of feature {name} has a name that is not valid Unicode: it "
                "contains half of a surrogate pair. Spell the name in whole characters."
            )
        if len(set(declared)) != size:
            raise PrivacyParameterError(
                f"`dp_categories` names a category of {name} twice. Keep one of them."
            )
        if dictionary is not None and not _same_names(dictionary, declared):
            raise PrivacyParameterError(
                f"`dp_categories` of feature {name} differs from the dictionary of the data frame, "
                "which the model would store. Build the column with the declared list: "
                "pandas.Categorical(values, categories=declared)."
            )
    else:
        if dictionary is not None:
            raise PrivacyParameterError(
                f"`dp_categories` of feature {name} must be the list of names: the data frame "
                "brings a dictionary, which the model would store, so it must be declared."
            )
        size = parse.parse_int(f"dp_categories[{name}]", value, 1, MAX_CATEGORIES)
    if not 1 <= size <= MAX_CATEGORIES:
        raise PrivacyParameterError(
            f"`dp_categories` of feature {name} must have 1 to 65536 entries."
        )
    return size


def resolve_features(
    schema: Schema,
    *,
    bounds: Mapping[int, Any],
    cuts: Mapping[int, Any],
    categories: Mapping[int, Any],
    bins: int,
    cells: int = 0,
    local: bool = False,
) -> tuple[Feature, ...]:
    """Candidates of every feature from the declarations.

    Args:
        schema: Public schema of the training data.
        bounds: Public ranges by index of the column.
        cuts: Public split points.
        categories: Domains of categorical columns.
        bins: Bins of a public grid.
        cells: Cells of the public grids under noisy histograms; 0 for other candidates.
        local: Whether nobody may see a value, so that no candidates can be released.

    Returns:
        One :class:`Feature` per column.

    Raises:
        PrivacyParameterError: A declaration is missing, contradictory or ill-formed.
    """
    out: list[Feature] = []
    for index, label in enumerate(schema.names):
        name = repr(label)
        if index in bounds and index in cuts:
            raise PrivacyParameterError(
                f"Feature {name} is in both `dp_feature_bounds` and `dp_feature_cuts`: keep one."
            )
        if index in schema.categorical:
            if index in bounds or index in cuts:
                raise PrivacyParameterError(
                    f"Feature {name} is categorical: declare it in `dp_categories` only, not in "
                    "`dp_feature_bounds` or `dp_feature_cuts`."
                )
            if index not in categories:
                raise PrivacyParameterError(
                    f"`dp_categories` does not declare the categorical feature {name}. Declare "
                    "every category that may occur: which ones do occur is private."
                )
            size = _category_count(name, categories[index], schema.dictionaries.get(index))
            out.append(Feature("categorical", size=size, source="dp_categories"))
        elif index in categories:
            raise PrivacyParameterError(
                f"`dp_categories` declares feature {name}, which is not categorical. Give it the "
                "type 'c' (feature_types, or a pandas category with enable_categorical=True)."
            )
        elif index in cuts:
            out.append(
                Feature(
                    "cuts",
                    public_cuts(f"`dp_feature_cuts` of {name}", cuts[index]),
                    source="dp_feature_cuts",
                )
            )
        elif index in bounds and cells:
            edges = grid_edges(f"`dp_feature_bounds` of {name}", bounds[index], cells)
            out.append(Feature("private", grid=edges, source="dp_feature_bounds"))
        elif index in bounds:
            edges = grid_edges(f"`dp_feature_bounds` of {name}", bounds[index], bins)
            out.append(Feature("cuts", edges[1:-1], source="dp_feature_bounds"))
        elif cells:
            raise PrivacyParameterError(
                f"`dp_feature_bounds` does not declare the feature {name}, and noisy histograms "
                "need its public range. Give (low, high) from knowledge of the domain, or use "
                "dp_candidates='quantile_tree', which needs none."
            )
        else:
            out.append(Feature("private"))
    if local:
        for label, feature in zip(schema.names, out, strict=True):
            if feature.kind == "private":
                raise PrivacyParameterError(
                    f"`dp_local` needs public cuts: nobody sees the values of {label!r} that "
                    "private candidates are counted from. Declare it in `dp_feature_bounds`, "
                    "without dp_candidates, or in `dp_feature_cuts`."
                )
    return tuple(out)
