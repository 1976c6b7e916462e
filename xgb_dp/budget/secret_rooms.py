"""Rooms of a budget for the two parts of a split whose coins stay secret.

Proof: docs/proofs/secret-splits.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..accounting import Unit
from ..accounting.filter import Secret
from ..data.parts import may_hide, secret_num
from ..errors import PrivacyParameterError
from ..parameters.parse import parse_number

_KEY = "secret"
_PART = 0.25  # of epsilon, for what does not read the first part alone


def to_content(
    totals: Mapping[str, Any], test: float | None, test_epsilon: float | None, unit: Unit
) -> dict[str, Any]:
    """What the file of a new budget says; nothing without such a split."""
    if test is None and test_epsilon is None:
        return {}
    most = totals["epsilon"] - totals["selection_epsilon"]
    epsilon = _PART * most if test_epsilon is None else test_epsilon
    if unit.group > 1:
        raise PrivacyParameterError(
            "`secret_test` is for a total of one row or one person: several of them have a coin "
            "each. Leave `secret_test` or `group` out."
        )
    if test is None:
        raise PrivacyParameterError(
            "`test_epsilon` is of a budget for a split with secret coins. Give `secret_test` too."
        )
    epsilon = parse_number("test_epsilon", epsilon, low=0.0, high=most, open_low=True)
    return {_KEY: {"test_num": _num(test), "test_epsilon": epsilon}}


def of_content(content: Mapping[str, Any]) -> Secret | None:
    """The rooms of a budget's file; None without."""
    return Secret(**content[_KEY]) if _KEY in content else None


def is_sound(content: Mapping[str, Any]) -> bool:
    """Whether a file has no such rooms, or possible ones."""
    if _KEY not in content:
        return True
    secret = content[_KEY]
    if not isinstance(secret, dict) or set(secret) != {"test_num", "test_epsilon"}:
        return False
    num, epsilon = secret["test_num"], secret["test_epsilon"]
    sound = type(num) is int and may_hide(num) and type(epsilon) in (int, float)
    return sound and 0 < epsilon <= content["epsilon"]


def check_same(secret: Secret | None, test: float | None, test_epsilon: float | None) -> None:
    """Refuse another split, or another part of epsilon, than a budget was made with."""
    asked: dict[str, float] = {} if test is None else {"test_num": _num(test)}
    asked |= {} if test_epsilon is None else {"test_epsilon": test_epsilon}
    held = {} if secret is None else vars(secret)
    if any(held.get(name) != value for name, value in asked.items()):
        raise PrivacyParameterError(
            "The budget file was made without `secret_test` and `test_epsilon`, or with others. "
            "They cannot be changed afterwards: leave them out."
        )


def _num(test: Any) -> int:
    share = parse_number("secret_test", test, low=0.0, high=1.0, open_low=True, open_high=True)
    return secret_num(share)
