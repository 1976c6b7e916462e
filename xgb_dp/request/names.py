"""Accepted and refused parameter names, with suggestions, and column names that look like ids.

Private training accepts only parameters that are known to be safe. It refuses unknown names.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..data.cells import is_unicode
from ..errors import PrivacyParameterError, PrivacyRefusal, alias
from .params import PARAMETERS

ALIASES: dict[str, str] = {a: p.name for p in PARAMETERS.values() for a in p.aliases}

NEUTRAL: dict[str, Any] = {
    "booster": "gbtree",
    "device": "cpu",
    "sampling_method": "uniform",
    "colsample_bylevel": 1,
    "colsample_bynode": 1,
    "max_leaves": 0,
    "grow_policy": "depthwise",
    "process_type": "default",
    "multi_strategy": "one_output_per_tree",
}
"""Refused parameters, with the accepted value that disables them."""

_DART = ("rate_drop", "one_drop", "skip_drop", "sample_type", "normalize_type")
_BY_SUMS = ("max_cat_to_onehot", "max_cat_threshold")
_NOISE = ("dp_noise_multiplier", "noise_multiplier", "noise_scale", "dp_sigma", "sigma")
_FOR_TREES = "columns are sampled per tree only; use colsample_bytree"
_SYNONYMS = {
    "alpha": "lambda_l1",
    "colsample_bytree": "feature_fraction max_features rsm",
    "dp_categories": "cat_features categorical_feature categorical_features",
    "dp_delta": "target_delta",
    "dp_epsilon": "target_epsilon",
    "dp_feature_bounds": "bounds data_bounds",
    "dp_gradient_bound": "clip dp_clip l2_norm_clip max_grad_norm",
    "dp_privacy_id": "group groups group_id user_id",
    "dp_target_bounds": "target",
    "eta": "shrinkage",
    "eval_metric": "metric",
    "gamma": "min_split_gain",
    "interaction_constraints": "interaction_cst",
    "lambda": "l2_leaf_reg l2_regularization lambda_l2",
    "max_bin": "border_count max_bins",
    "max_depth": "depth max_leaf_nodes num_leaves",
    "min_child_weight": "min_data_in_leaf min_samples_leaf min_sum_hessian_in_leaf",
    "monotone_constraints": "monotonic_cst",
    "nthread": "num_threads thread_count",
    "num_boost_round": "iterations max_iter n_estimators n_iter num_iterations num_rounds rounds",
    "objective": "criterion loss loss_function",
    "scale_pos_weight": "class_weight class_weights is_unbalance",
    "seed": "random_seed",
    "subsample": "bagging_fraction max_samples",
    "verbosity": "silent verbose",
}
"""The closest parameter to names of LightGBM, CatBoost, scikit-learn, Opacus and diffprivlib."""
_ELSEWHERE = {other: name for name, others in _SYNONYMS.items() for other in others.split()}
REFUSED: dict[str, str] = {
    "booster": "only gbtree has private leaves and splits",
    **dict.fromkeys(("device", "gpu_id", "predictor"), "private training runs on the CPU"),
    "sampling_method": "gradient-based sampling depends on the exact gradients of all rows",
    "colsample_bylevel": _FOR_TREES,
    "colsample_bynode": f"{_FOR_TREES}. "
    "XGBRFClassifier and XGBRFRegressor set it to 0.8 unless you pass colsample_bynode=1",
    "max_leaves": "the order in which leaves grow would depend on exact gains",
    "grow_policy": "lossguide grows the leaf with the largest exact gain first",
    "updater": "it would replace the private tree updater with one that is not private",
    "process_type": "updating trees recomputes their exact statistics",
    "refresh_leaf": "refreshing leaves stores their exact statistics",
    "multi_strategy": "there is no private updater for trees with several outputs; each class or "
    "target has its own tree in every round",
    **dict.fromkeys(_DART, "private training does not support dart"),
    **dict.fromkeys(_BY_SUMS, "private splits do not sort categories by their sums"),
    "max_cached_hist_node": "the private updater manages its own histograms",
    "extmem_single_page": "the private updater manages its own pages",
    "budget": "it is not a parameter; use xgb_dp.Budget(path).train(params, dtrain, rounds)",
    **dict.fromkeys(
        _NOISE, "the noise is calibrated from dp_epsilon and dp_delta (see xgb-dp calibrate)"
    ),
    "schema": "xgboost.train takes the parameters of a discovery; pass {**params, "
    "**discovery.params()}",
    "dp_plan": "xgb_dp computes the plan; pass dp_epsilon and dp_delta instead",
    "dp_state": "xgb_dp computes it from the released values",
}
"""Reasons for refusing parameters, by name. All other unknown names are refused as well."""


def flatten(params: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Merge XGBoost's two forms of parameters into one dictionary, without unset (None) values."""
    try:
        pairs = [(n, v) for n, v in (params.items() if isinstance(params, Mapping) else params)]
    except Exception:  # an object of the caller may raise anything
        raise PrivacyParameterError(
            "`params` must be a dictionary or a list of (name, value) pairs; got a "
            f"{type(params).__name__}. An estimator has its own `fit` and `fit_select`, and a "
            "parameter `budget`."
        ) from None
    flat: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise PrivacyParameterError(
                f"The names in `params` must be strings; got a {type(name).__name__}."
            )
        if value is None and not name.startswith("dp_"):
            continue
        key = ALIASES.get(name, name)
        if key == "eval_metric" and key in flat:
            old = flat[key] if isinstance(flat[key], list) else [flat[key]]
            flat[key] = old + (value if isinstance(value, list) else [value])
        elif key in flat and not _same(flat[key], value):
            raise PrivacyParameterError(
                f"`{_shown(name)}` is given twice (possibly as an alias) with different values. "
                "Remove one."
            )
        else:
            flat[key] = value
    return flat


@dataclass(frozen=True)
class Request:
    """The arguments of one training, without the data and the call site."""

    params: dict[str, Any]  # see :func:`flatten`; True in place of public rows
    rounds: Any  # number of rounds, or an OpenRounds; None for the default
    continues: bool  # whether the training continues an earlier model
    threads: int | None  # `nthread`
    categories: Any  # `dp_categories`
    ids: Any  # `dp_privacy_id` as given
    public_rows: Any  # `dp_public_data` as given; None if unset

    @classmethod
    def parse(
        cls,
        params: Mapping[str, Any] | Iterable[tuple[str, Any]],
        rounds: Any,
        *,
        continues: bool = False,
    ) -> Request:
        """Check the names, and separate the arguments by the step that reads them."""
        flat = flatten(params)
        check_names(flat)
        threads, categories = read_flat(flat, "nthread"), read_flat(flat, "dp_categories")
        ids, public_rows = flat.get("dp_privacy_id"), flat.get("dp_public_data")
        if public_rows is False:
            public_rows = None
        if public_rows is not None:
            flat["dp_public_data"] = True
        return cls(flat, rounds, continues, threads, categories, ids, public_rows)


def read_one(params: Mapping[str, Any] | Iterable[tuple[str, Any]], name: str) -> Any:
    """Read one parameter before the training is prepared."""
    return read_flat(flatten(params), name)


def read_flat(flat: Mapping[str, Any], name: str) -> Any:
    """Read one parameter from the result of :func:`flatten`."""
    value = flat.get(name)
    return None if value is None else PARAMETERS[name].read(alias(name), value, None)


def check_names(params: Mapping[str, Any]) -> None:
    """Refuse every parameter that is not known to be safe."""
    for name, value in params.items():
        if name in PARAMETERS:
            continue
        if name in NEUTRAL and _neutral(value, NEUTRAL[name]):
            continue
        if name in REFUSED:
            fix = f" or set it to {NEUTRAL[name]!r}" if name in NEUTRAL else ""
            raise PrivacyRefusal(
                f"`{name}` is refused in private training: {REFUSED[name]}. Remove it{fix}."
            )
        near = _ELSEWHERE.get(name) or _closest(name, [*PARAMETERS, *ALIASES])
        hint = f"Did you mean `{alias(near)}`?" if near else "Remove it."
        kind = PrivacyParameterError if name.startswith("dp_") or near else PrivacyRefusal
        raise kind(
            f"`{_shown(name)}` is not a parameter of private training, which accepts only "
            f"parameters known to be safe. {hint} See the parameter table in the documentation."
        )


def _closest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably misspelled, or an empty string."""
    names = {short: one for one in known for short in (one.removeprefix("dp_"), one)}
    return next((names[n] for n in difflib.get_close_matches(name, names, 1, cutoff=0.8)), "")


_SAME_ARGUMENTS = {
    **dict.fromkeys(("metric", "metrics", "eval_metric", "scoring"), "score"),
    **dict.fromkeys(("n_iter", "n_trials"), "mean_runs"),
    **dict.fromkeys(("max_eps", "epsilon"), "max_epsilon"),
    "cv": "validation",
    "param_grid": "settings",
    "sensitive_features": "by",
    "test_size": "test",
    "weight": "sample_weight",
    "weights": "sample_weight",
}
"""Arguments of scikit-learn, Optuna and fairlearn, and ours with the same meaning."""


def refuse_unknown(
    function: str, given: Iterable[str], accepted: Iterable[str], of_model: Iterable[str] = ()
) -> None:
    """Refuse arguments that a function does not have, and name the one that was probably meant.

    Args:
        function: Name of the function.
        given: Names of its keyword arguments.
        accepted: Names of its parameters.
        of_model: Names of the parameters of the estimator that it fits.
    """
    accepted = list(accepted)
    for name in (name for name in given if name not in accepted):
        if "privacy_id" in accepted and (name in ("group", "groups", "qid") or looks_like_id(name)):
            hint = (
                "To protect all rows of a person together, pass one id per row, or the name of the "
                "id column, as `privacy_id`."
            )
        elif name in ("random_state", "seed"):
            hint = "Remove it: private random choices cannot be repeated."
        elif name in of_model:
            hint = "It is a parameter of the estimator: pass it to the constructor."
        elif "params" in accepted and (name in PARAMETERS or name in ALIASES):
            hint = "It is a parameter of the training: pass it in `params`."
        else:
            near = _SAME_ARGUMENTS.get(name, name)
            near = near if near in accepted else _closest(name, accepted)
            known = ", ".join(f"`{one}`" for one in accepted)
            hint = f"Did you mean `{near}`?" if near else f"Its arguments are {known}."
        raise PrivacyParameterError(f"`{_shown(name)}` is not an argument of `{function}`. {hint}")


def _shown(name: str) -> str:
    """A printable form of any name."""
    return name[:80].encode("utf-8", "backslashreplace").decode()


def _same(a: Any, b: Any) -> bool:
    """Whether two parameter values are equal; arrays are never equal."""
    try:
        return bool(a == b)
    except Exception:  # methods of user objects may raise anything
        return False


def _neutral(value: Any, neutral: Any) -> bool:
    if isinstance(neutral, int) and not isinstance(value, bool):
        try:
            return float(value) == neutral
        except Exception:  # an object of the caller may raise anything
            return False
    return type(value) is type(neutral) and _same(value, neutral)


_ENDINGS = ("id", "ids", "uid", "uuid", "guid", "nbr", "mrn", "ssn", "pk")
_NUMBERS = ("no", "nr", "num", "number", "key", "code", "hash", "name")
_PERSONS = (
    "applicant", "borrower", "client", "cust", "customer", "employee", "household", "member",
    "participant", "pat", "patient", "person", "policyholder", "respondent", "student", "subj",
    "subject", "user",
)  # fmt: skip
_GLUED = re.compile(f"({'|'.join(_PERSONS)})s?({'|'.join(_ENDINGS + _NUMBERS)})")


def looks_like_id(name: object) -> bool:
    """Whether a column name looks like an id of persons or rows."""
    if not isinstance(name, str):
        return False
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = re.findall(r"[a-z]+", spaced.lower())
    if not words:
        return False
    if words[-1] in _ENDINGS or _GLUED.fullmatch(words[-1]):
        return True
    if len(words) == 1:
        return words[0] in _PERSONS
    return words[0].removesuffix("s") in _PERSONS and words[-1] in _NUMBERS


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _is_text(value: Any) -> bool:
    """Whether a value is a string that UTF-8 can encode, as every file and model requires."""
    return isinstance(value, str) and is_unicode(value)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and _is_text(os.fspath(value))


def _is_strings(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(map(_is_text, value))


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "path": (_is_path, "a path (str or os.PathLike) that can be encoded in UTF-8"),
    "text": (_is_text, "a string that can be encoded in UTF-8"),
    "texts": (_is_strings, "a list of strings that can be encoded in UTF-8"),
}


def takes(**kinds: str) -> Callable[[_Function], _Function]:
    """Decorate a function to refuse arguments of the wrong kind, with an error that names them."""

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        plain = [p for p in plain if p.name != "self"]
        called = function.__qualname__.partition(".")[0]
        shown = f"{called}{inspect.Signature(plain)}"

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                refuse_unknown(called, kwargs, [p.name for p in plain])
                pairs = "positional" in str(error) and "data" in signature.parameters
                pair = " Pass X and y as one pair (X, y)." if pairs else ""
                raise TypeError(f"{called}() {error}. Call {shown}.{pair}") from None
            for name in (name for name in kinds if name in given):
                (is_kind, words), value = _KINDS[kinds[name]], given[name]
                optional = signature.parameters[name].default is None
                if not (is_kind(value) or (value is None and optional)):
                    raise PrivacyParameterError(
                        f"`{name}` must be {words}; got an invalid value of type "
                        f"{type(value).__name__}."
                    )
            return function(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate
