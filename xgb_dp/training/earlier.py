"""The model that a training continues, or starts from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.models import load_booster
from ..errors import LedgerError, PrivacyParameterError, named
from ..planning import public_inputs
from ..record import ledger
from ..record.binding import check_bound
from ..record.fields import PublicStart
from ..record.form import Ledger
from ..request.settings import Settings
from .public_start import check_categories, public_start


def check_earlier(earlier: Ledger, s: Settings) -> None:
    """A model has one unit of privacy; XGBoost keeps one objective and number of parallel trees."""
    now = public_inputs(s)
    for training in earlier.trainings:
        if not training.unit.same(s.privacy_unit):
            raise PrivacyParameterError(
                f"The unit of privacy is {s.privacy_unit.label}, but `xgb_model` was trained for "
                f"{training.unit.label}. What both cost together is known for neither: set "
                f"{named.dp_privacy_id} and {named.dp_group} as before, or train a new model."
            )
        then = training.public
        objective = then["objective"]
        if objective != s["objective"]:
            raise PrivacyParameterError(
                f"`objective` is {s['objective']}, but `xgb_model` was trained with {objective}: "
                f"its intercept and trees would mean something else. Set objective={objective!r}."
            )
        if then.get("own_objective") != now.get("own_objective"):
            raise PrivacyParameterError(
                "`dp_objective` is another one than that of `xgb_model`: its intercept and trees "
                "would mean something else. Give the same function, or none where there was none."
            )
        if then.get("quantile_alpha") != now.get("quantile_alpha"):
            raise PrivacyParameterError(
                "`quantile_alpha` is not that of `xgb_model`, which predicts the quantiles of "
                f"{then.get('quantile_alpha')}. Give the same levels, or train a new model."
            )
        if _targets_of(then) != _targets_of(now):
            raise PrivacyParameterError(
                f"`xgb_model` was trained for {_targets_of(then)} targets, and the labels have "
                f"{_targets_of(now)}. Give labels of the same targets, or train a new model."
            )
        before = training.hyperparameters["num_parallel_tree"]
        if before != s["num_parallel_tree"]:
            raise PrivacyParameterError(
                f"`num_parallel_tree` is {s['num_parallel_tree']}, but `xgb_model` was trained "
                f"with {before}: a model has one number. Set num_parallel_tree={before}."
            )


def _targets_of(public: Mapping[str, Any]) -> int:
    """For how many targets a training has declared ranges; 1 for classes."""
    bounds = public.get("target_bounds") or [0]
    return len(bounds) if isinstance(bounds[0], list) else 1


def grown_on(
    xgb_model: Any, s: Settings, private: bool, names: list[str] | None, types: list[str] | None
) -> tuple[Ledger | None, PublicStart | None]:
    """The ledger of the model that is continued, or the public model that is started from."""
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
