"""Where the splits of each feature may be: private candidates, public cuts or categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError
from ..parameters import parse
from .features import Schema

__all__ = ["Feature", "grid_edges", "public_cuts", "resolve_features"]

MAX_CUTS = 65534
MAX_CATEGORIES = 65536


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


def public_cuts(name: str, values: Any) -> tuple[float, ...]:
    """Public split points as XGBoost can hold them: increasing, finite, normal 32-bit floats."""
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
    """Edges of an even or geometric grid, both ends included."""
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
        text = str(int(value) if isinstance(value, (bool, np.bool_)) else value)
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
    """Candidates of every feature from the declarations."""
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
