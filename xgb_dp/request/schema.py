"""The public schema of a matrix, and declarations of single columns by their names or indices."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..engine import workers
from ..errors import PrivacyParameterError, PrivacyRefusal, named
from ..parameters import parse
from ..parameters.config import Config

MOST_COLUMNS = (1 << 20) - 1
"""Columns of a training: :func:`xgb_dp.verify` computes what such a plan releases once more."""
LARGEST_WEIGHT = 1 << 31
"""What the largest of the ``feature_weights`` becomes, of which 2^31 columns sum within 64 bits."""


@dataclass(frozen=True)
class Schema:
    """Public schema of a DMatrix: what is not a secret of any row."""

    names: list[str]  # column names, or "0", "1", ... if there are none
    named: bool  # whether the columns have names of their own
    categorical: frozenset[int]  # indices of categorical columns
    # category names that the data frame brought along, by column index
    dictionaries: dict[int, list[bytes]]
    typed: bool = False  # whether the matrix says which columns are categorical
    # XGBoost's ``feature_weights``, by which columns are drawn; None where all have the same chance
    weights: tuple[float, ...] | None = None
    labels: int = 1  # columns of labels: one, or one for each of several targets

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.names)


def dictionaries_of(dtrain: Any) -> dict[int, list[bytes]]:
    """Category names stored in a DMatrix, by index of the column; a model would store them."""
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
        types = dict(enumerate(dtrain.feature_types or ()))
        if any(types.get(index) != "c" for index in out):
            raise PrivacyRefusal(
                "A column of the data has categories, and `feature_types` calls it something else. "
                "Its codes would count as numbers, and a list of categories may follow from all "
                "rows. Leave `feature_types` out, and declare the categories in "
                f"{named.dp_categories}."
            )
        return out
    finally:
        if handle.value is not None:
            _check_call(_LIB.XGBCategoriesFree(handle))


_DOUBTS = {
    "file": "was read from a file by XGBoost, which takes the number of columns from the rows in "
    "it: one row may add columns. Declare the number and read the rows yourself, for example "
    "xgboost.DMatrix(*sklearn.datasets.load_svmlight_file(path, n_features=...)), or use `xgb-dp "
    "train` for CSV and Parquet files.",
    "batches": "was made from batches that do not agree. XGBoost joins batches by position, so one "
    "row could change what the others are. Give every batch the same columns with the same names "
    "in the same order, the same list of categories in the same order, and labels, weights and "
    "margins for each of its rows, or for no row of any batch.",
    "blocks": "was made of a SciPy matrix in the format bsr, which stores a cell of 0 where "
    "another cell of its block is none: other rows say whether a cell is 0 or missing. Give it as "
    "csr: matrix.tocsr().",
    "handle": "was made from a bare handle, so that it is not known what its columns follow from. "
    "Build an xgboost.DMatrix from the rows.",
}


def check_source(matrix: Any, name: str) -> None:
    """Refuse a matrix of which one row may change the columns, or what the other rows are."""
    doubt = getattr(matrix, "_dp_doubt", "handle")
    if doubt:
        raise PrivacyRefusal(f"{name} {_DOUBTS[doubt]}")


def read_schema(dtrain: Any, name: str = "`dtrain`") -> Schema:
    """Public schema of the training data, or of public rows that go with it."""
    check_source(dtrain, name)
    names = dtrain.feature_names
    width = dtrain.num_col()
    if width > MOST_COLUMNS:
        raise PrivacyParameterError(
            f"{name} has {width:,} columns, and private training takes {MOST_COLUMNS:,} at most. "
            "Leave out columns, or hash their names to fewer."
        )
    types = dtrain.feature_types or []
    categorical = frozenset(i for i, t in enumerate(types) if t == "c")
    return Schema(
        names=list(names) if names and width else [str(i) for i in range(width)],
        named=bool(names),
        categorical=categorical,
        dictionaries=dictionaries_of(dtrain),
        typed=dtrain.feature_types is not None,
        weights=_weights(dtrain, name, width),
        labels=columns_of_labels(dtrain),
    )


def common_schema(schema: Schema) -> Schema:
    """The public schema, also for a worker whose matrix has neither rows nor columns."""
    # The categories that a data frame comes with are data of its worker, until they have been
    # compared with the declared ones.
    public = [
        schema.names, schema.named, sorted(schema.categorical), schema.typed, schema.weights,
        schema.labels,
    ]  # fmt: skip
    common = workers.first_of_all(public if schema.width else None)
    if schema.width or common is None:
        return schema
    try:
        names, named, categorical, typed, weights, labels = common
        return Schema(
            names=[str(name) for name in names],
            named=bool(named),
            categorical=frozenset(int(index) for index in categorical),
            dictionaries={},
            typed=bool(typed),
            weights=None if weights is None else tuple(float(w) for w in weights),
            labels=int(labels),
        )
    except (TypeError, ValueError):
        raise workers.no_message() from None


def columns_of_labels(dtrain: Any) -> int:
    """How many labels each row of a DMatrix has; one where it has none. Public, no cell is read."""
    shape = dtrain.get_label().shape
    return max(shape[1], 1) if len(shape) == 2 else 1


def _weights(dtrain: Any, name: str, width: int) -> tuple[float, ...] | None:
    """The ``feature_weights`` of a matrix, which XGBoost has found finite and not negative."""
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
    """
    if weights is None:
        return []
    raised = [max(w, 1e-6) for w in weights]
    return [max(1, round(w / max(raised) * LARGEST_WEIGHT)) for w in raised]


def by_column(param: str, given: Any, s: Config | None) -> dict[Any, Any]:
    """Declarations of single columns by index; as the user names them where no schema is known."""
    declared = parse.mapped(given)
    if declared is None:
        raise PrivacyParameterError(
            f"`{param}` must map names or indices of features to declarations: {{'age': ...}}."
        )
    if s is None:
        return declared
    out: dict[int, Any] = {}
    for key, value in declared.items():
        index = column_index(param, key, s.schema)
        if index in out:
            raise PrivacyParameterError(
                f"`{param}` declares the feature {s.schema.names[index]!r} twice."
            )
        out[index] = value
    return out


def column_index(param: str, key: Any, schema: Schema) -> int:
    """Index of a column from its name or index."""
    if isinstance(key, str) and key in schema.names:
        return schema.names.index(key)
    if isinstance(key, (int, np.integer)) and 0 <= key < len(schema.names):
        return int(key)
    if isinstance(key, str) and not schema.named:
        positions = [f"f{i}" for i in range(schema.width)]  # as XGBoost calls them without names
        if key in positions:
            return positions.index(key)
    shown = "a feature with a larger index"
    if not isinstance(key, (int, np.integer)) or -99 <= key <= 1 << 32:
        shown = f"the feature {key if isinstance(key, int) else parse.shown(key)}"
    raise PrivacyParameterError(
        f"`{param}` declares {shown}, which the training data does not have. Use a column's name "
        "or its index from 0."
    )
