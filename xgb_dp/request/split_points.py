"""Where the splits of each feature may be: private candidates, public cuts or categories."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError, named
from ..parameters import parse
from ..parameters.config import Config

_MOST_CUTS = 65534
_MOST_CATEGORIES = 65536


@dataclass(frozen=True)
class Feature:
    """Candidates of one feature."""

    kind: str  # "private" (released), "cuts" (public) or "categorical" (declared)
    cuts: tuple[float, ...] = ()  # public split points, float32 values in increasing order
    size: int = 0  # declared number of categories
    # of a private feature: public edges of its noisy histogram, or the ends that cuts lie between
    grid: tuple[float, ...] = ()

    def to_plan(self) -> dict[str, Any]:
        """Its entry in the plan."""
        if self.kind == "categorical":
            return {"kind": self.kind, "size": self.size}
        name, edges = ("cuts", self.cuts) if self.kind == "cuts" else ("grid", self.grid)
        # The shortest decimals that read back as the same 32-bit floats.
        return {"kind": self.kind, name: [float(str(np.float32(edge))) for edge in edges]}


def public_cuts(name: str, values: Any) -> tuple[float, ...]:
    """Public split points as XGBoost can hold them: increasing, finite, normal 32-bit floats."""
    entries = parse.listed(values)
    if entries is None:
        raise PrivacyParameterError(f"{name} must be a list of finite numbers.")
    if len(entries) > _MOST_CUTS:
        raise PrivacyParameterError(f"{name} has more than {_MOST_CUTS} cuts. Give fewer.")
    numbers = np.array([parse.parse_number(name, v) for v in entries], dtype=np.float64)
    with np.errstate(over="ignore"):
        cuts = numbers.astype(np.float32)
    info = np.finfo(np.float32)
    if not np.isfinite(cuts).all():
        raise PrivacyParameterError(
            f"{name} exceeds the range of 32-bit floats. Give smaller numbers, or use another unit."
        )
    cuts[np.abs(cuts) < info.smallest_normal] = 0.0  # also turns -0 into 0
    return tuple(map(float, np.unique(cuts[cuts < info.max])))


def grid_edges(name: str, bounds: Any, bins: int) -> tuple[float, ...]:
    """Edges of an even or geometric grid, both ends included."""
    entries = parse.listed(bounds) or []
    kind = entries[2] if len(entries) == 3 else "even"
    if not (isinstance(kind, str) and kind in ("even", "log")):
        raise PrivacyParameterError(
            f"{name} takes (low, high), (low, high, 'even') or (low, high, 'log')."
        )
    log = kind == "log"
    low, high = parse.parse_range(name, entries[:2] if len(entries) == 3 else bounds)
    if log and low <= 0:
        raise PrivacyParameterError(
            f"{name}: a 'log' grid needs low > 0. Raise the low end, or leave 'log' out."
        )
    if log:
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


def _category(where: str, value: Any) -> str:
    try:
        text = str(int(value) if isinstance(value, (bool, np.bool_)) else value)
        text.encode()
    except Exception:  # an object of the caller may do anything
        raise PrivacyParameterError(
            f"{where} has a {type(value).__name__} that cannot be "
            "written as a text of Unicode characters. Give its name as a text."
        ) from None
    return text


def _category_count(name: str, value: Any, dictionary: list[bytes] | None) -> int:
    where, entries = f"{named.dp_categories} of feature {name}", parse.listed(value)
    if entries is None:
        if isinstance(value, str):
            raise PrivacyParameterError(
                f"{where} is one text, {parse.shown(value)}, and a list of names was expected: "
                f"[{parse.shown(value)}] for this one."
            )
        if dictionary is not None:
            raise PrivacyParameterError(
                f"{where} must be the list of names: the data frame "
                "brings a dictionary, which the model would store, so it must be declared."
            )
        return parse.parse_int(f"dp_categories[{name}]", value, 1, _MOST_CATEGORIES)
    declared = [_category(where, v) for v in entries]
    if len(set(declared)) != len(declared):
        raise PrivacyParameterError(
            f"{named.dp_categories} names a category of {name} twice. Keep one of them."
        )
    if dictionary is not None and not _same_names(dictionary, declared):
        raise PrivacyParameterError(
            f"{where} differs from the dictionary of the data frame, "
            "which the model would store. Build the column with the declared list: "
            "pandas.Categorical(values, categories=declared)."
        )
    if not 1 <= len(declared) <= _MOST_CATEGORIES:
        raise PrivacyParameterError(f"{where} must have 1 to 65536 entries.")
    return len(declared)


def _counts_all_floats(s: Config) -> bool:
    """Whether bounds narrow the search for private cuts. Else cuts are an even grid of them.

    Published systems have such grids, and so does whoever draws no Gaussian noise on counts.
    """
    return s["dp_preset"] == "default" and s.may_draw_gaussian


def _feature(s: Config, index: int) -> Feature:
    """Candidates of a column from the declarations."""
    schema, cells = s.schema, s["dp_candidate_cells"] or 0
    name = repr(schema.names[index])
    bounds, cuts, categories = s["dp_feature_bounds"], s["dp_feature_cuts"], s["dp_categories"]
    if index in bounds and index in cuts:
        raise PrivacyParameterError(
            f"Feature {name} is in both {named.dp_feature_bounds} and {named.dp_feature_cuts}: "
            "keep one."
        )
    if index in schema.categorical:
        if index in bounds or index in cuts:
            raise PrivacyParameterError(
                f"Feature {name} is categorical: declare it in {named.dp_categories} only, not in "
                f"{named.dp_feature_bounds} or {named.dp_feature_cuts}."
            )
        if index not in categories:
            raise PrivacyParameterError(
                f"{named.dp_categories} does not declare the categorical feature {name}. Declare "
                "every category that may occur: which ones do occur is private."
            )
        size = _category_count(name, categories[index], schema.dictionaries.get(index))
        return Feature("categorical", size=size)
    if index in categories:
        _category_count(name, categories[index], None)
        raise PrivacyParameterError(
            f"{named.dp_categories} declares feature {name}, which is not categorical. Give it the "
            "type 'c' (feature_types, or a pandas category with enable_categorical=True)."
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
            f"{named.dp_feature_bounds} does not declare the feature {name}, and noisy histograms "
            "need its public range. Give (low, high) from knowledge of the domain, or use "
            "dp_candidates='quantile_tree', which needs none."
        )
    return Feature("private")


def resolve_features(s: Config) -> tuple[Feature, ...]:
    """Candidates of every column."""
    return tuple(_feature(s, index) for index in range(s.schema.width))
