"""Accepted and refused parameter names, with suggestions, and column names that look like ids.

Private training accepts only parameters that are known to be safe and refuses every unknown name.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..data.cells import is_unicode
from ..errors import PrivacyParameterError, PrivacyRefusal, spelt
from ..parameters.parse import same
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
"""Refused parameters, with the value that turns them off and is accepted."""

_DART = ("rate_drop", "one_drop", "skip_drop", "sample_type", "normalize_type")
_BY_SUMS = ("max_cat_to_onehot", "max_cat_threshold")
_NOISE = ("dp_noise_multiplier", "noise_multiplier", "dp_sigma", "sigma")
_FOR_TREES = "columns are sampled for whole trees only; use colsample_bytree"
REFUSED: dict[str, str] = {
    "booster": "only gbtree has private leaves and splits",
    "device": "private training runs on the CPU",
    "sampling_method": "gradient-based sampling depends on exact gradients of all rows",
    "colsample_bylevel": _FOR_TREES,
    "colsample_bynode": f"{_FOR_TREES}. "
    "XGBRFClassifier and XGBRFRegressor set 0.8 unless you give colsample_bynode=1",
    "max_leaves": "the order in which leaves grow would follow exact gains",
    "grow_policy": "lossguide grows the leaf with the largest exact gain first",
    "updater": "it would replace the private tree updater by one that is not private",
    "process_type": "updating trees recomputes their exact statistics",
    "refresh_leaf": "refreshing leaves stores their exact statistics",
    "multi_strategy": "trees with several outputs have no private updater; several targets and "
    "classes have a tree each in every round",
    **dict.fromkeys(_DART, "dart is not part of private training"),
    **dict.fromkeys(_BY_SUMS, "categories are divided without being sorted by their sums"),
    "max_cached_hist_node": "the private updater keeps its own histograms",
    "extmem_single_page": "the private updater keeps its own pages",
    "n_estimators": "xgboost.train takes the number of rounds as num_boost_round",
    "budget": "a book is opened around it: xgb_dp.Budget(path).train(params, dtrain, rounds)",
    **dict.fromkeys(_NOISE, "noise follows from dp_epsilon and dp_delta (see xgb-dp calibrate)"),
    "dp_plan": "it is the calibrated result, written by xgb_dp; give dp_epsilon and dp_delta",
    "dp_state": "it follows from what was released, and is written by xgb_dp",
}
"""The reason for refusing a parameter, by name. Names in neither table are refused as unknown."""


def flatten(params: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Merge XGBoost's two forms of parameters into one dictionary, without unset (None) values."""
    try:
        pairs = [(n, v) for n, v in (params.items() if isinstance(params, Mapping) else params)]
    except Exception:  # an object of the caller may raise anything
        raise PrivacyParameterError(
            "`params` must be a dictionary, or a list of pairs of a name and a value; got a "
            f"{type(params).__name__}."
        ) from None
    flat: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise PrivacyParameterError(
                f"The names in `params` must be texts; one of them is a {type(name).__name__}."
            )
        if value is None and not name.startswith("dp_"):
            continue
        key = ALIASES.get(name, name)
        if key == "eval_metric" and key in flat:
            old = flat[key] if isinstance(flat[key], list) else [flat[key]]
            flat[key] = old + (value if isinstance(value, list) else [value])
        elif key in flat and not same(flat[key], value):
            raise PrivacyParameterError(
                f"`{_shown(name)}` is given twice (also as an alias) with different values: keep "
                "one."
            )
        else:
            flat[key] = value
    return flat


def read_one(params: Mapping[str, Any] | Iterable[tuple[str, Any]], name: str) -> Any:
    """One parameter as the user gave it, before the training is prepared."""
    return read_flat(flatten(params), name)


def read_flat(flat: Mapping[str, Any], name: str) -> Any:
    """One parameter from the result of :func:`flatten`."""
    value = flat.get(name)
    return None if value is None else PARAMETERS[name].read(spelt(name), value, None)


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
                f"`{name}` is refused in private training: {REFUSED[name]}. Leave it out{fix}."
            )
        near = difflib.get_close_matches(name, [*PARAMETERS, *ALIASES], n=1, cutoff=0.6)
        hint = f" Did you mean `{spelt(near[0])}`?" if near else ""
        kind = PrivacyParameterError if name.startswith("dp_") or near else PrivacyRefusal
        raise kind(
            f"`{_shown(name)}` is not a parameter of private training, which accepts only what is "
            f"known to be safe.{hint} See the parameter table in the documentation."
        )


def _shown(name: str) -> str:
    """A printable form of any name."""
    return name[:80].encode("utf-8", "backslashreplace").decode()


def _neutral(value: Any, neutral: Any) -> bool:
    if isinstance(neutral, int) and not isinstance(value, bool):
        try:
            return float(value) == neutral
        except Exception:  # an object of the caller may raise anything
            return False
    return type(value) is type(neutral) and same(value, neutral)


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
    "path": (_is_path, "a path as text or os.PathLike, in UTF-8"),
    "text": (_is_text, "a text in UTF-8"),
    "texts": (_is_strings, "a list of texts in UTF-8"),
}


def takes(**kinds: str) -> Callable[[_Function], _Function]:
    """Refuse arguments of the wrong kind with an error that names them."""

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:
                return function(*args, **kwargs)  # Python's own error names the argument
            for name in (name for name in kinds if name in given):
                (is_kind, words), value = _KINDS[kinds[name]], given[name]
                optional = signature.parameters[name].default is None
                if not (is_kind(value) or (value is None and optional)):
                    raise PrivacyParameterError(
                        f"`{name}` must be {words}; got a value of type {type(value).__name__} "
                        "that is not."
                    )
            return function(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate
