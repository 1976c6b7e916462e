"""Columns of a training: public schema, split candidates and constraints.

Declarations refer to a column by name or index. The split candidates of a column are private,
public cuts, or categories.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ..engine import workers
from ..engine.saved_model import as_bytes, category_names
from ..errors import PrivacyParameterError, PrivacyRefusal, named
from ..parameters import parse
from ..parameters.config import Config

MOST_COLUMNS = (1 << 20) - 1
"""Largest number of columns; :func:`xgb_dp.verify` can still recompute the releases of a plan."""
LARGEST_WEIGHT = 1 << 31
"""Integer value of the largest ``feature_weights`` entry; 2^31 columns sum within 64 bits."""


@dataclass(frozen=True)
class Schema:
    """Public schema of a DMatrix, without information about any row."""

    names: list[str]  # column names, or "0", "1", ... without names
    named: bool  # whether the columns have their own names
    categorical: frozenset[int]  # indices of categorical columns
    # category names from the data frame, by column index
    dictionaries: dict[int, list[bytes]] = field(default_factory=dict)
    typed: bool = False  # whether the matrix declares categorical columns
    # XGBoost's ``feature_weights`` for sampling columns; None for equal weights
    weights: tuple[float, ...] | None = None
    labels: int = 1  # number of label columns, one per target; 1 without labels

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.names)


def dictionaries_of(dtrain: Any) -> dict[int, list[bytes]]:
    """Category names in a DMatrix, by column index. A model would store them."""
    names, types = as_bytes(category_names(dtrain)), dict(enumerate(dtrain.feature_types or ()))
    if any(types.get(index) != "c" for index in names):
        raise PrivacyRefusal(
            "A column has categories, but `feature_types` declares another type. Its codes would "
            "be treated as numbers, and the list of categories may depend on all rows. Remove "
            f"`feature_types`, and declare the categories in {named.dp_categories}."
        )
    return names


_DOUBTS = {
    "file": "was read from a file by XGBoost, which infers the number of columns from the rows: "
    "one row may add columns. Read the rows with a declared number of columns, for example "
    "xgboost.DMatrix(*sklearn.datasets.load_svmlight_file(path, n_features=...)), or use `xgb-dp "
    "train` for CSV and Parquet files.",
    "batches": "was built from inconsistent batches. XGBoost concatenates batches by position, so "
    "one row could change other rows. Give all batches the same columns and categories, with the "
    "same names in the same order. Provide labels, weights and margins for all rows or for none.",
    "blocks": "was built from a SciPy matrix in BSR format, which stores explicit zeros in nonzero "
    "blocks, so whether a cell is 0 or missing may depend on other rows. Convert it to CSR: "
    "matrix.tocsr().",
    "handle": "was created from a raw handle, so the origin of its columns is unknown. Build an "
    "xgboost.DMatrix from the rows.",
}


def check_source(matrix: Any, name: str) -> None:
    """Refuse a matrix if one row may change its columns or its other rows."""
    doubt = getattr(matrix, "_dp_doubt", "handle")
    if doubt:
        raise PrivacyRefusal(f"{name} {_DOUBTS[doubt]}")


def read_schema(dtrain: Any, name: str = "`dtrain`") -> Schema:
    """Read the public schema of the training data, or of public rows."""
    check_source(dtrain, name)
    names = dtrain.feature_names
    width = dtrain.num_col()
    if width > MOST_COLUMNS:
        raise PrivacyParameterError(
            f"{name} has {width:,} columns, but private training supports at most "
            f"{MOST_COLUMNS:,}. Remove columns, or hash them to a smaller number."
        )
    types = dtrain.feature_types or []
    categorical = frozenset(i for i, t in enumerate(types) if t == "c")
    # XGBoost has checked that the weights are finite and >= 0.
    weights = tuple(float(w) for w in dtrain.get_float_info("feature_weights"))
    if weights and len(weights) != width:
        raise PrivacyParameterError(
            f"`feature_weights` of {name} has {len(weights)} entries for {width} columns. Pass one "
            "weight per column."
        )
    shape = dtrain.get_label().shape  # public; no cell is read
    return Schema(
        names=list(names) if names and width else [str(i) for i in range(width)],
        named=bool(names),
        categorical=categorical,
        dictionaries=dictionaries_of(dtrain),
        typed=dtrain.feature_types is not None,
        weights=weights or None,
        labels=max(shape[1], 1) if len(shape) == 2 else 1,
    )


def common_schema(schema: Schema) -> Schema:
    """The public schema that all workers share, also for a worker with an empty matrix."""
    # The category names of a data frame stay private to its worker until they have been compared
    # with the declared names.
    public = [
        schema.names, schema.named, sorted(schema.categorical), schema.typed, schema.weights,
        schema.labels,
    ]  # fmt: skip
    common = workers.broadcast_first(public if schema.width else None)
    if schema.width or common is None:
        return schema
    try:
        names, named, categorical, typed, weights, labels = common
        return Schema(
            names=[str(name) for name in names],
            named=bool(named),
            categorical=frozenset(int(index) for index in categorical),
            typed=bool(typed),
            weights=None if weights is None else tuple(float(w) for w in weights),
            labels=int(labels),
        )
    except (TypeError, ValueError):
        raise workers.invalid_message_error() from None


def integer_weights(weights: tuple[float, ...] | None) -> list[int]:
    """Integer sampling weights of columns, whose sum is exact; the largest is ``LARGEST_WEIGHT``.

    As in XGBoost, a weight below 1e-6 counts as 1e-6, so no weight is 0.
    """
    if weights is None:
        return []
    raised = [max(w, 1e-6) for w in weights]
    return [max(1, round(w / max(raised) * LARGEST_WEIGHT)) for w in raised]


def by_column(param: str, given: Any, s: Config | None) -> dict[Any, Any]:
    """Declarations by column index; without a schema, by the user's keys."""
    declared = parse.mapped(given)
    if declared is None:
        raise PrivacyParameterError(
            f"`{param}` must be a mapping from feature names or indices, e.g. {{'age': ...}}."
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
    """Index of the column with a given name or index."""
    if isinstance(key, str) and key in schema.names:
        return schema.names.index(key)
    if isinstance(key, (int, np.integer)) and 0 <= key < len(schema.names):
        return int(key)
    if isinstance(key, str) and not schema.named:
        positions = [f"f{i}" for i in range(schema.width)]  # XGBoost's names of unnamed columns
        if key in positions:
            return positions.index(key)
    shown = "a feature with a larger index"
    if not isinstance(key, (int, np.integer)) or -99 <= key <= 1 << 32:
        shown = f"the feature {key if isinstance(key, int) else parse.show(key)}"
    raise PrivacyParameterError(
        f"`{param}` declares {shown}, which is not in the training data. Use the name of a column "
        "or its index, starting at 0. If it is the label, leave it out: after a column discovery, "
        "with `found.params(target=...)`."
    )


_MOST_CUTS = 65534
_MOST_CATEGORIES = 65536


@dataclass(frozen=True)
class Feature:
    """Split candidates of one feature."""

    kind: str  # "private" (released), "cuts" (public) or "categorical" (declared)
    cuts: tuple[float, ...] = ()  # public split points, float32 values in increasing order
    size: int = 0  # declared number of categories
    # for a private feature: public edges of its noisy histogram, or the two bounds of its cuts
    grid: tuple[float, ...] = ()

    def to_plan(self) -> dict[str, Any]:
        """The entry in the plan."""
        if self.kind == "categorical":
            return {"kind": self.kind, "size": self.size}
        name, edges = ("cuts", self.cuts) if self.kind == "cuts" else ("grid", self.grid)
        # The shortest decimals that parse to the same 32-bit floats.
        return {"kind": self.kind, name: [float(str(np.float32(edge))) for edge in edges]}


def public_cuts(name: str, values: Any) -> tuple[float, ...]:
    """Public split points in XGBoost's form: increasing, finite, normal 32-bit floats."""
    entries = parse.listed(values)
    if entries is None:
        raise PrivacyParameterError(f"{name} must be a list of finite numbers.")
    if len(entries) > _MOST_CUTS:
        raise PrivacyParameterError(f"{name} has more than {_MOST_CUTS} cuts. Pass fewer.")
    numbers = np.array([parse.parse_number(name, v) for v in entries], dtype=np.float64)
    with np.errstate(over="ignore"):
        cuts = numbers.astype(np.float32)
    info = np.finfo(np.float32)
    if not np.isfinite(cuts).all():
        raise PrivacyParameterError(
            f"{name} exceeds the range of 32-bit floats. Use smaller numbers or another unit."
        )
    cuts[np.abs(cuts) < info.smallest_normal] = 0.0  # also turns -0 into 0
    return tuple(map(float, np.unique(cuts[cuts < info.max])))


def grid_edges(name: str, bounds: Any, bins: int) -> tuple[float, ...]:
    """Edges of an even or geometric grid, both ends included."""
    entries = parse.listed(bounds) or []
    kind = entries[2] if len(entries) == 3 else "even"
    if not (isinstance(kind, str) and kind in ("even", "log")):
        raise PrivacyParameterError(
            f"{name} must be (low, high), (low, high, 'even') or (low, high, 'log')."
        )
    log = kind == "log"
    low, high = parse.parse_range(name, entries[:2] if len(entries) == 3 else bounds)
    if log and low <= 0:
        raise PrivacyParameterError(
            f"{name}: a 'log' grid requires low > 0. Raise the low end, or remove 'log'."
        )
    if log:
        grid = np.exp(np.linspace(np.log(low), np.log(high), bins + 1))
    else:
        grid = low + (high - low) * (np.arange(bins + 1) / bins)
    edges = public_cuts(name, grid)
    if len(edges) < 2:
        raise PrivacyParameterError(f"{name} is too narrow for 32-bit floats. Use a wider range.")
    return edges


def _same_names(dictionary: list[bytes], declared: list[str]) -> bool:
    """Whether the category names of a DMatrix equal the declared names."""
    if dictionary == [name.encode() for name in declared]:
        return True
    # XGBoost 3.2.0 cuts names from pandas by number of characters instead of bytes.
    text = "".join(declared).encode()[: sum(map(len, declared))]
    ends = [0, *accumulate(map(len, declared))]
    return dictionary == [text[a:b] for a, b in pairwise(ends)]


def _category(where: str, value: Any) -> str:
    try:
        text = str(int(value) if isinstance(value, (bool, np.bool_)) else value)
        text.encode()
    except Exception:  # an object of the caller may raise anything
        raise PrivacyParameterError(
            f"{where} contains a {type(value).__name__} that cannot be converted to a Unicode "
            "string. Pass its name as a string."
        ) from None
    return text


def _category_count(name: str, value: Any, dictionary: list[bytes] | None) -> int:
    where, entries = f"{named.dp_categories} of feature {name}", parse.listed(value)
    if entries is None:
        if isinstance(value, str):
            raise PrivacyParameterError(
                f"{where} must be a list of names; got the string {parse.show(value)}. For a "
                f"single category pass [{parse.show(value)}]."
            )
        if dictionary is not None:
            raise PrivacyParameterError(
                f"{where} must be the list of category names: the data frame has names, which the "
                "model would store, so they must be declared."
            )
        return parse.parse_int(f"dp_categories[{name}]", value, 1, _MOST_CATEGORIES)
    declared = [_category(where, v) for v in entries]
    if len(set(declared)) != len(declared):
        raise PrivacyParameterError(
            f"{named.dp_categories} contains a category of {name} twice. Remove one."
        )
    if dictionary is not None and not _same_names(dictionary, declared):
        raise PrivacyParameterError(
            f"{where} differs from the categories of the data frame, which the model would store. "
            "Build the column from the declared list: "
            "pandas.Categorical(values, categories=declared)."
        )
    if not 1 <= len(declared) <= _MOST_CATEGORIES:
        raise PrivacyParameterError(f"{where} must have 1 to 65536 entries.")
    return len(declared)


def _counts_all_floats(s: Config) -> bool:
    """Whether (low, high) limits the search for private cuts instead of defining an even grid.

    Published systems use grids, and so do trainings without Gaussian noise on counts.
    """
    return s["dp_preset"] == "default" and s.may_draw_gaussian


def _feature(s: Config, index: int) -> Feature:
    """Candidates of a column, from its declarations."""
    schema, cells = s.schema, s["dp_candidate_cells"] or 0
    name = repr(schema.names[index])
    bounds, cuts, categories = s["dp_feature_bounds"], s["dp_feature_cuts"], s["dp_categories"]
    if index in bounds and index in cuts:
        raise PrivacyParameterError(
            f"Feature {name} is in both {named.dp_feature_bounds} and {named.dp_feature_cuts}: "
            "remove one."
        )
    if index in schema.categorical:
        if index in bounds or index in cuts:
            raise PrivacyParameterError(
                f"Feature {name} is categorical: declare it in {named.dp_categories}, not in "
                f"{named.dp_feature_bounds} or {named.dp_feature_cuts}."
            )
        if index not in categories:
            raise PrivacyParameterError(
                f"{named.dp_categories} does not declare the categorical feature {name}. Declare "
                "every category that may occur, because the categories that do occur are private; "
                "xgb_dp.discover finds common ones with noise."
            )
        size = _category_count(name, categories[index], schema.dictionaries.get(index))
        return Feature("categorical", size=size)
    if index in categories:
        _category_count(name, categories[index], None)
        raise PrivacyParameterError(
            f"{named.dp_categories} declares feature {name}, which is not categorical. Set its "
            "type to 'c' in feature_types, or use a pandas category with enable_categorical=True."
        )
    if index in cuts:
        return Feature("cuts", public_cuts(f"{named.dp_feature_cuts} of {name}", cuts[index]))
    if index in bounds:
        where = f"{named.dp_feature_bounds} of {name}"
        if not cells and len(parse.listed(bounds[index]) or []) != 3 and _counts_all_floats(s):
            return Feature("private", grid=grid_edges(where, bounds[index], 1))
        edges = grid_edges(where, bounds[index], cells or s["max_bin"])
        return Feature("private", grid=edges) if cells else Feature("cuts", edges[1:-1])
    if cells:
        raise PrivacyParameterError(
            f"{named.dp_feature_bounds} does not declare the feature {name}, but noisy histograms "
            "need its public range. Pass (low, high) from domain knowledge, or use "
            "dp_candidates='quantile_tree', which needs no range."
        )
    return Feature("private")


def resolve_features(s: Config) -> tuple[Feature, ...]:
    """Candidates of every column."""
    return tuple(_feature(s, index) for index in range(s.schema.width))


def _parsed(name: str, value: Any) -> Any:
    """Parse XGBoost's string form, e.g. "(1,0,-1)" or "[[0, 1], [2]]"; other values stay."""
    if not isinstance(value, str):
        return value
    text = value.strip().replace("(", "[").replace(",)", "]").replace(")", "]")
    try:
        return json.loads(text or "[]")
    except (ValueError, RecursionError):
        raise PrivacyParameterError(
            f"`{name}` is not a list. Use XGBoost's form, e.g. "
            + ("'(1,0,-1)'." if name == "monotone_constraints" else "'[[0, 1], [2, 3]]'.")
        ) from None


def monotone_directions(name: str, value: Any, s: Config) -> tuple[int, ...]:
    """Direction of every feature: 1 increasing, -1 decreasing, 0 free."""
    schema, value = s.schema, _parsed(name, value)
    if not isinstance(value, Mapping):
        entries = parse.listed(value)
        if entries is None or len(entries) > schema.width:
            raise PrivacyParameterError(
                f"`{name}` must be a list of -1, 0 or 1 with one entry for each of the "
                f"{schema.width} columns, or a mapping from column names."
            )
        value = dict(enumerate(entries))
    given = by_column(name, value, s)
    directions = [0] * schema.width
    for index, direction in given.items():
        directions[index] = parse.parse_int(name, direction, -1, 1)
        if directions[index] and index in schema.categorical:
            raise PrivacyParameterError(
                f"`{name}` contains the categorical feature {schema.names[index]!r}, but "
                f"categories have no order. Remove it."
            )
    return tuple(directions)


def interaction_sets(name: str, value: Any, s: Config) -> tuple[tuple[int, ...], ...]:
    """Sets of features that may occur on one path of a tree."""
    entries = parse.listed(_parsed(name, value))
    sets = [
        list(one) if isinstance(one, (set, frozenset)) else parse.listed(one)
        for one in entries or ()
    ]
    if entries is None or None in sets:
        raise PrivacyParameterError(
            f"`{name}` must be a list of lists of columns, e.g. [[0, 1], [2, 3]]."
        )
    return tuple(
        tuple(sorted({column_index(name, column, s.schema) for column in one or ()}))
        for one in sets
    )
