"""What a sample of public rows gives to a private training: candidates of splits, or whole trees.

``dp_public_data`` becomes public cuts, and with ``dp_split="public"`` the structures of stock
trees that were grown on it. Everything here is a function of the sample and of public settings; no
private row is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.matrices import private_matrix
from ..engine.saved_model import SavedModel
from ..engine.tree_json import LEAF, Tree
from ..errors import PrivacyParameterError, named, spelt
from ..request.names import read_one
from ..request.schema import Schema
from ..request.settings import Settings
from ..request.sizes import settings_of_sizes
from .call_site import check_no_secret_part, check_public

_NAME = "dp_public_data"
_LEAST_SHARE = 0.002
"""Rows of a leaf of a public tree, at least, of all public rows: leaves are private sums."""


def taken_out(params: dict[str, Any], dtrain: Any, schema: Schema) -> tuple[dict[str, Any], Any]:
    """Parameters without the public rows, which say only that there are some; and the rows."""
    from xgboost import DMatrix

    given = params.get(_NAME)
    if given is None or given is False:
        return params, None
    if isinstance(given, (tuple, list)) and len(given) == 2:
        X, y = given
        check_no_secret_part(X, f"`{_NAME}`")
        given = private_matrix(
            X, categories=read_one(params, "dp_categories"), label=y, enable_categorical=True
        )
    if not isinstance(given, DMatrix):
        raise PrivacyParameterError(
            f"`{_NAME}` takes public rows as an xgboost.DMatrix with labels, or as a pair (X, y); "
            f"got {type(given).__name__}."
        )
    leak = "its exact quantiles would be thresholds of the model. Give rows of another source."
    theirs = check_public(dtrain, schema, given, f"`{_NAME}`", leak).dictionaries
    if theirs and theirs != schema.dictionaries:
        raise PrivacyParameterError(
            f"`{_NAME}` has other names of categories than the training data, or another order of "
            f"them. Give both the same {named.dp_categories}."
        )
    if not given.num_row():
        raise PrivacyParameterError(f"`{_NAME}` has no rows. Give some, or leave it out.")
    return {**params, _NAME: True}, given


def declared(s: Settings, sample: Any) -> tuple[Settings, list[list[int]] | None]:
    """Settings with the cuts of the sample as public ones, and the structures of trees."""
    if sample is None:
        return s, None
    values, schema = _columns(sample), s.schema
    if s["dp_split"] != "public":
        private = [i for i, feature in enumerate(s.features) if feature.kind == "private"]
        quantiles = {i: _quantiles(values[i], s["max_bin"] - 1) for i in private}
        return s.changed({"dp_feature_cuts": {**s["dp_feature_cuts"], **quantiles}}), None
    if s.workers > 1:
        raise PrivacyParameterError(
            "dp_split='public' is for one worker: each of several would grow public trees of its "
            "own. Start from a public model instead (`xgb_model`, "
            f"{spelt('dp_public_model')}=True)."
        )
    for name in ("dp_feature_bounds", "dp_feature_cuts"):
        if name in s.given:
            raise PrivacyParameterError(
                f"`{name}` has no effect with dp_split='public': the splits are those of the "
                "public trees. Leave it out."
            )
    for i in sorted(schema.categorical):
        if len(values[i]) and values[i].max() >= s.features[i].size:
            raise PrivacyParameterError(
                f"`{_NAME}` has a category of column {schema.names[i]!r} that "
                f"{named.dp_categories} does not declare."
            )
    _, [plan] = settings_of_sizes(s)
    trees = _stock_trees(sample, plan)
    cuts = {i: _thresholds(trees, i) for i in range(schema.width) if i not in schema.categorical}
    s = s.changed({"dp_feature_cuts": {i: list(map(float, c)) for i, c in cuts.items()}})
    return s, [_preorder(tree, cuts) for tree in trees]


def _columns(sample: Any) -> list[npt.NDArray[np.float32]]:
    """The values of each column that are there."""
    table = sample.get_data().tocsc()
    return [table.data[a:b] for a, b in zip(table.indptr[:-1], table.indptr[1:], strict=True)]


def _quantiles(values: npt.NDArray[np.float32], count: int) -> list[float]:
    """At most so many cuts that part the values evenly; each is a value, as XGBoost's cuts are."""
    cuts = np.unique(values)
    if len(cuts) > count + 1:
        cuts = np.unique(np.quantile(values, np.linspace(0, 1, count + 2)[1:-1], method="nearest"))
    elif len(cuts) > 1:
        cuts = cuts[1:]  # below the least value there is no row
    return [float(v) for v in cuts] or [0.0]


def _stock_trees(sample: Any, s: Settings) -> list[Tree]:
    """Trees of stock XGBoost on the public rows, in the order of the plan."""
    import xgboost

    params = {
        "objective": s["objective"],
        "tree_method": "hist",
        "max_depth": s["max_depth"],
        "eta": s["eta"],
        "min_child_weight": 0.25 * max(4.0, _LEAST_SHARE * sample.num_row()),
        "max_cat_to_onehot": 1 << 16,  # one category against the others, as private splits are
        "seed": 0,
        "nthread": s["nthread"] or 0,
        "verbosity": 0,
        **{name: s[name] for name in s.objective.parameters if s[name] is not None},
    }
    if s.kind == "multiclass":
        params["num_class"] = s.classes
    for name in ("monotone_constraints", "interaction_constraints"):
        if any(s[name] or ()):
            params[name] = s[name]
    return SavedModel.of(xgboost.train(params, sample, int(s.rounds))).trees


def _thresholds(trees: Sequence[Tree], feature: int) -> npt.NDArray[np.float32]:
    """All thresholds of a numeric column in these trees, rising; one where there is none."""
    cuts = {
        np.float32(tree.conditions[node])
        for tree in trees
        for node in tree.splits
        if tree.features[node] == feature
    }
    return np.array(sorted(cuts) or [0.0], dtype=np.float32)


def _preorder(tree: Tree, cuts: Mapping[int, npt.NDArray[np.float32]], node: int = 0) -> list[int]:
    left, right, feature = tree.left[node], tree.right[node], tree.features[node]
    if left == LEAF:
        return [-1]
    if feature in cuts:
        at = int(np.searchsorted(cuts[feature], np.float32(tree.conditions[node])))
    else:
        [at] = tree.right_categories[node]
    split = [feature, 2 * at + int(tree.default_left[node])]
    return split + _preorder(tree, cuts, left) + _preorder(tree, cuts, right)
