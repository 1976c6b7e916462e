"""Readers of parameters that are more than a number, a flag or a choice.

Each takes the name of the parameter, what the user gave and the settings, of which it may read
others. Errors name the parameter.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import PrivacyParameterError, PrivacyRefusal
from ..parameters import parse
from .constraints import interaction_sets, monotone_directions
from .features import by_index, declarations
from .objectives import OBJECTIVES, REFUSED_OBJECTIVES
from .shares import resolve_shares

if TYPE_CHECKING:
    from .settings import Settings

__all__: list[str] = []


def rounds(name: str, value: Any, s: Any = None) -> int:
    """Boosting rounds; a number that is rounded would not be what is calibrated."""
    if isinstance(value, parse.OpenRounds):
        return value
    try:
        # An array of one float has `__index__` as well, and fails only when it is called.
        whole = None if isinstance(value, bool) else operator.index(value)
    except Exception:  # an object of the caller may do anything
        whole = None
    if whole is None:
        raise PrivacyParameterError(
            f"`{name}` must be a whole number: the noise is calibrated for exactly that many "
            f"rounds; got {type(value).__name__}."
        )
    return parse.parse_int(name, whole, 1, 1 << 20)


def seed(name: str, value: Any, s: Settings) -> int:
    """A whole number of 64 bits."""
    return parse.parse_int(name, value, -(1 << 63), (1 << 63) - 1)


def tree_method(name: str, value: Any, s: Settings) -> str:
    """One of the private methods."""
    if isinstance(value, str) and value in ("dp_hist", "dp_approx"):
        return value
    raise PrivacyRefusal(_tree_method(f"is {parse.shown(value)}"))


def no_tree_method(s: Settings) -> str:
    """There is no default."""
    raise PrivacyRefusal(_tree_method("is missing"))


def _tree_method(got: str) -> str:
    return (
        f"`tree_method` {got}, but dp_* parameters were given: only tree_method='dp_hist' (or "
        "'dp_approx') trains privately. Set it, or remove the dp_* parameters to train without "
        "privacy."
    )


def objective(name: str, value: Any, s: Settings) -> str:
    """A loss whose gradients have a proved bound."""
    if isinstance(value, str) and value in OBJECTIVES:
        return value
    reason = REFUSED_OBJECTIVES.get(value) if isinstance(value, str) else None
    reason = reason or "its gradients have no proved bound per row"
    raise PrivacyRefusal(
        f"`objective` {parse.shown(value)} is refused: {reason}. Private training supports "
        f"{', '.join(OBJECTIVES)}."
    )


def delta(name: str, value: Any, s: Settings) -> float:
    """In (0, 1); 0 too under the pure accountant."""
    try:
        number = parse.parse_number(name, value, low=0, high=1, open_high=True)
    except PrivacyParameterError:
        number = -1.0
    if number < 0 or (number == 0 and s["dp_accountant"] != "pure"):
        raise PrivacyParameterError(
            "`dp_delta` must lie strictly between 0 and 1 (0 is for dp_accountant='pure'): "
            "Gaussian noise has no finite epsilon at delta = 0. A usual choice is 1e-6."
        )
    return number


_LARGEST_LABEL, _LEAST_WIDTH, _LEAST_SHARE = 1e30, 1e-15, 1e-6
_LARGEST_EXPOSURE = 1e12
_LEAST_MEAN = 1e-30
_MOST_TARGETS = 1024


def target_bounds(
    name: str, value: Any, s: Settings | None
) -> tuple[float, float] | tuple[tuple[float, float], ...]:
    """A public range, or one for each of several targets; a list of one is that of one target."""
    given = parse.listed(list(value) if isinstance(value, np.ndarray) and value.ndim else value)
    if given is None or not given or any(parse.listed(v) is None for v in given):
        return _target_range(name, value)
    if len(given) > _MOST_TARGETS:
        raise PrivacyParameterError(f"`{name}` has more than {_MOST_TARGETS} targets.")
    ranges = tuple(_target_range(f"{name}[{i}]", v) for i, v in enumerate(given))
    return ranges if len(ranges) > 1 else ranges[0]


def _target_range(name: str, value: Any) -> tuple[float, float]:
    """A range that 32-bit labels can distinguish, with room for what is computed of them."""
    low, high = parse.parse_range(name, value)
    largest = max(-low, high)
    if largest > _LARGEST_LABEL or high - low < max(_LEAST_WIDTH, _LEAST_SHARE * largest):
        raise PrivacyParameterError(
            f"`{name}` must lie within -1e30 and 1e30, and be at least 1e-15 and a millionth of "
            "its larger end wide: labels are 32-bit numbers. Choose another unit for the target, "
            "or subtract a public number from it."
        )
    return low, high


def exposure_bounds(name: str, value: Any, s: Settings) -> tuple[float, float]:
    """A public range of exposures."""
    low, high = parse.parse_range(name, value)
    if not 1 / _LARGEST_EXPOSURE <= low < high <= _LARGEST_EXPOSURE:
        raise PrivacyParameterError(
            f"`{name}` must lie within 1e-12 and 1e12: it is a range of exp(base_margin), above 0. "
            "Choose another unit for the exposures."
        )
    return low, high


def classes(name: str, value: Any, s: Settings) -> int:
    """Number of classes K from an int K or the list 0..K-1."""
    labels = parse.listed(value)
    if labels is None:
        return parse.parse_int(name, value, 2, 1 << 16)
    try:
        codes = [parse.parse_number(name, v) for v in labels]
    except PrivacyParameterError:
        codes = []
    if len(codes) < 2 or codes != list(range(len(codes))):
        raise PrivacyParameterError(
            "`dp_classes` must be the list 0, 1, ..., K-1 with K >= 2 (or the number K): "
            "XGBoost needs labels encoded as 0..K-1. Encode them with a mapping that is fixed "
            "in advance."
        )
    return len(codes)


def base_score(name: str, value: Any, s: Settings) -> float | list[float]:
    """A public intercept: one number, or one for each of several classes."""
    given = parse.listed(value)
    if given is not None:
        if s.trees_per_round > 1 and len(given) == s.trees_per_round:
            return [_one_base_score(name, v, s) for v in given]
        scores = [_finite_float(name, v) for v in given]
        if len(scores) != 1:
            raise PrivacyParameterError(
                "`base_score` must be one number (several classes, quantiles or targets: or one "
                "for each)."
            )
        value = scores[0]
    return _one_base_score(name, value, s)


def _one_base_score(name: str, value: Any, s: Settings) -> float:
    number = _finite_float(name, value)
    objective = s["objective"]
    # binary:logitraw takes a margin.
    if (objective == "binary:logistic" or s.objective.link == "logit") and not (
        0 < np.float32(number) < 1
    ):
        raise PrivacyParameterError(
            f"`{name}` must be above 0 and below 1 for {objective}, as a 32-bit number too: it is "
            f"the mean of the labels; got {number!r}."
        )
    if s.objective.link == "log" and not _LEAST_MEAN <= number <= _LARGEST_LABEL:
        raise PrivacyParameterError(
            f"`{name}` must lie within 1e-30 and 1e30 for {objective}: it is the mean of the "
            f"labels, and the model starts from its logarithm; got {number!r}."
        )
    return number


def _finite_float(name: str, value: Any) -> float:
    """A number that XGBoost, which keeps 32-bit floats, takes for finite."""
    largest = float(np.finfo(np.float32).max)
    return parse.parse_number(name, value, low=-largest, high=largest)


def by_column(name: str, value: Any, s: Settings | None) -> dict[Any, Any]:
    """Declarations of single columns, by index; as the user names them while nothing is known."""
    return declarations(name, value) if s is None else by_index(name, value, s.schema)


def candidate_rounds(name: str, value: Any, s: Settings) -> int:
    """Rounds that release candidates, at most all."""
    return min(parse.parse_int(name, value, 1, 1 << 20), s.rounds)


def features_per_tree(name: str, value: Any, s: Settings) -> int:
    """At least one of the columns."""
    return parse.parse_int(name, value, 1, s.schema.width)


def subsample(name: str, value: Any, s: Settings) -> float:
    """A whole number out of 2^32, which is what is drawn and accounted."""
    rate = parse.parse_number(name, value, low=0, high=1, open_low=True)
    return max(1, round(rate * 2**32)) / 2**32


def shrinkage(name: str, value: Any, s: Settings) -> bool:
    """Off under output perturbation, which releases no sums to tell signal from noise by."""
    return parse.parse_flag(name, value) and s["dp_leaf_noise"] != "output"


def colluders(name: str, value: Any, s: Settings) -> int:
    """All workers but one, at most."""
    return parse.parse_int(name, value, 0, max(s.workers - 1, 0))


def monotone(name: str, value: Any, s: Settings) -> tuple[int, ...]:
    """A direction for each column."""
    return monotone_directions(value, s.schema)


def interactions(name: str, value: Any, s: Settings) -> tuple[tuple[int, ...], ...]:
    """Sets of columns that may share a path."""
    return interaction_sets(value, s.schema)


def privacy_id(name: str, value: Any, s: Settings) -> str | bool:
    """The name of the column of ids, or True where they have none.

    Ids are never read here, nor kept: see :mod:`xgb_dp.data.persons`.
    """
    if value is True or (isinstance(value, str) and value):
        if isinstance(value, str) and s is not None and value in s.schema.names and s.schema.named:
            raise PrivacyParameterError(
                f"`{name}`: the column {value!r} of ids is also a feature. Leave it out of the "
                "features: by it trees tell persons apart."
            )
        return value
    raise PrivacyParameterError(
        f"`{name}` is read with the rows: here it is the name of the column of ids, or True."
    )


def public_data(name: str, value: Any, s: Settings) -> bool:
    """Whether there are public rows, which were taken out before."""
    if isinstance(value, bool):
        return value
    raise PrivacyParameterError(
        f"`{name}` is read with the rows, by `xgboost.train` and the estimators only. Leave it "
        "out here."
    )


def shares(name: str, value: Any, s: Settings) -> dict[str, float]:
    """Parts of the budget for what is released; None for the default ones."""
    return resolve_shares(value, s)
