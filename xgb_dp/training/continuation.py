"""Check the private or public model that a training continues.

The checks run before anything is released, and read only the model and the public schema. The user
declares that a public model was made without private rows (``dp_public_model``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.saved_model import SavedModel, as_bytes, category_names, load_booster
from ..errors import LedgerError, PrivacyParameterError, PrivacyRefusal, alias, named
from ..parameters.config import Config
from ..planning import public_inputs
from ..record import ledger
from ..record.content import check_bound
from ..record.ledger_model import Ledger, PublicStart


def check_earlier(earlier: Ledger, s: Config) -> None:
    """Check that the privacy unit, objective and number of parallel trees match the training."""
    now = public_inputs(s)
    for training in earlier.trainings:
        if not training.unit.same(s.privacy_unit):
            raise PrivacyParameterError(
                f"The privacy unit is {s.privacy_unit.label}, but `xgb_model` was trained with "
                f"{training.unit.label}, so their costs cannot be added. Set "
                f"{named.dp_privacy_id} and {named.dp_group_size} as before, or train a new model."
            )
        then = training.public
        objective = then["objective"]
        if objective != s["objective"]:
            raise PrivacyParameterError(
                f"`objective` is {s['objective']}, but `xgb_model` was trained with {objective}. "
                "Its intercept and trees would have a different meaning. Set "
                f"objective={objective!r}."
            )
        if then.get("own_objective") != now.get("own_objective"):
            raise PrivacyParameterError(
                "`dp_objective` differs from the objective of `xgb_model`, so its intercept and "
                "trees would have a different meaning. Pass the same function as before, or leave "
                "it out if there was no function."
            )
        if then.get("quantile_alpha") != now.get("quantile_alpha"):
            raise PrivacyParameterError(
                "`quantile_alpha` differs from `xgb_model`, which predicts the quantiles at "
                f"{then.get('quantile_alpha')}. Pass the same levels, or train a new model."
            )
        if _count_targets(then) != _count_targets(now):
            raise PrivacyParameterError(
                f"`xgb_model` has {_count_targets(then)} targets, but the labels have "
                f"{_count_targets(now)}. Pass labels of the same targets, or train a new model."
            )
        before = training.hyperparameters["num_parallel_tree"]
        if before != s["num_parallel_tree"]:
            raise PrivacyParameterError(
                f"`num_parallel_tree` is {s['num_parallel_tree']}, but `xgb_model` was trained "
                f"with {before}. Set num_parallel_tree={before}."
            )


def _count_targets(public: Mapping[str, Any]) -> int:
    """Number of targets with declared ranges; 1 for classes."""
    bounds = public.get("target_bounds") or [0]
    return len(bounds) if isinstance(bounds[0], list) else 1


def grown_on(
    xgb_model: Any, s: Config, private: bool, names: list[str] | None, types: list[str] | None
) -> tuple[Ledger | None, PublicStart | None]:
    """Check `xgb_model`; return the ledger to continue, or the record of a public start."""
    if s["dp_public_model"]:
        return None, public_start(xgb_model, s)
    if xgb_model is None:
        return None, None
    try:
        booster = load_booster(xgb_model)
    except LedgerError as error:
        raise ledger.not_continued(error) from None
    earlier = ledger.earlier_ledger(booster, private=private, names=names, types=types)
    check_bound(booster, earlier)
    check_earlier(earlier, s)
    check_categories(booster, s)
    return earlier, None


_KEEP = "Train the public model with the same settings, or train without it."


def public_start(xgb_model: Any, s: Config) -> PublicStart:
    """Check a public model to start from, and return its record for the ledger.

    Privacy: free; reads no rows. The row bound holds for every start, because it bounds the
    gradient at every prediction (``docs/proofs/sensitivity.md``).
    """
    try:
        booster = load_booster(xgb_model)
        model = SavedModel.from_booster(booster)
        names = ledger.tree_names(booster)
    except (LedgerError, ValueError) as error:
        raise _misfit(f"it cannot be read ({error})") from None
    if ledger.ATTRIBUTE in model.attributes:
        raise PrivacyRefusal(
            "`xgb_model` carries a privacy ledger, so it was trained on private rows and cannot be "
            f"used with {alias('dp_public_model')}=True. Remove {named.dp_public_model}; the new "
            "ledger then includes both trainings."
        )
    for problem in _problems(model, s):
        raise _misfit(problem)
    check_categories(booster, s)
    return PublicStart.of(names, model.rounds)


def check_categories(booster: Any, s: Config) -> None:
    """Refuse a model whose stored category names differ from the training data."""
    # XGBoost compares only the number of categories, and only after the first release.
    if not (expected := s.schema.dictionaries):
        return
    stored = as_bytes(category_names(booster))
    for i in sorted({*stored, *expected}):
        if stored.get(i) != expected.get(i):
            if i not in stored:
                raise _misfit(
                    f"it does not store the category names of column {s.schema.names[i]!r}, so the "
                    "names cannot be matched to its codes",
                    "Pass the numeric codes that it was trained on, and set the number of codes in "
                    f"{named.dp_categories}.",
                )
            raise _misfit(
                f"the categories of column {s.schema.names[i]!r} differ from the categories that "
                "it was trained on, or are in a different order",
                f"Use the same list of names for both, for example the same {named.dp_categories}.",
            )


def _misfit(what: str, fix: str = _KEEP) -> PrivacyParameterError:
    return PrivacyParameterError(
        f"`xgb_model` cannot be the start of this training: {what}. {fix} Nothing was released."
    )


def _problems(model: SavedModel, s: Config) -> Iterable[str]:
    """Describe every mismatch between a public model and the training."""
    if model.booster != "gbtree":  # such as dart, which weights its trees
        yield f"its booster is {model.booster}, not gbtree"
    if model.has_dropout:
        yield "its booster is gbtree with dropout, which weights its trees"
    if not model.tree_count:
        yield "it has no trees; to start from its intercept alone, pass it as `base_score`"
    if model.objective != s["objective"]:
        yield f"its objective is {model.objective}, but the training uses {s['objective']}"
    classes = model.classes if s.kind == "multiclass" else 0
    if classes and classes != s.classes:
        yield f"it has {classes} classes, but the training has {s.classes}"
    trees = model.trees
    expected = 1 if s.kind == "multiclass" else s.trees_per_round
    if model.targets != expected or any(tree.leaf_size > 1 for tree in trees):
        yield f"it predicts {model.targets} targets, but the training has {s.trees_per_round}"
    for name in s.objective.parameters:
        if not model.has_parameter(name, s[name]):
            yield f"its `{name}` differs from the training"
    parallel = model.parallel_trees
    if parallel != s["num_parallel_tree"]:
        yield (
            f"it has num_parallel_tree={parallel}, but the training has "
            f"num_parallel_tree={s['num_parallel_tree']}"
        )
    yield from _column_problems(model, s)
    if not all(math.isfinite(value) for tree in trees for value in tree.leaf_values):
        yield "one of its leaf values is not finite"


def _column_problems(model: SavedModel, s: Config) -> Iterable[str]:
    names, types = model.feature_names, model.feature_types
    if model.columns != s.schema.width:
        yield f"it has {model.columns} columns, but the training data have {s.schema.width}"
    if names and (names != s.schema.names if s.schema.named else True):
        yield "its columns have different names or a different order than the training data"
    categorical = {i for i, kind in enumerate(types) if kind == "c"}
    if types and categorical != set(s.schema.categorical):
        yield "its categorical columns differ from the training data"
    if s.schema.categorical and not types:
        split = {tree.features[i] for tree in model.trees for i in tree.right_categories}
        if not split <= set(s.schema.categorical):
            yield "its categorical columns differ from the training data"
