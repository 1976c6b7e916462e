"""Errors and warnings of private training, one class for each purpose.

Every message states the problem, the expected input and the fix, and names the parameter. No
message contains a value or a statistic of the data: an error is an output like any other, and a
message that depends on more than one row would distinguish neighbouring data sets
(``docs/guarantee.md``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar

__all__ = [
    "BudgetError",
    "LedgerError",
    "NativeLibraryError",
    "PrivacyError",
    "PrivacyParameterError",
    "PrivacyRefusal",
    "PrivacyWarning",
    "RowDomainError",
]


POLICY = "XGB_DP_POLICY"
"""Environment variable with the path of the data holder's policy."""
_OUTSIDE = "The rows do not match the declared domain. Ask the data holder for details."
_SPELLING: ContextVar[Mapping[str, str]] = ContextVar("spelling", default={})  # noqa: B039


@contextmanager
def spelling(names: Mapping[str, str]) -> Iterator[None]:
    """Use the parameter names of the outermost interface in errors."""
    token = _SPELLING.set({**names, **_SPELLING.get()})
    try:
        yield
    finally:
        _SPELLING.reset(token)


def alias(parameter: str) -> str:
    """The name of a parameter in the called interface."""
    return _SPELLING.get().get(parameter, parameter)


class _Named:
    """``named.dp_epsilon``: the name of a parameter for error messages."""

    def __getattr__(self, parameter: str) -> str:
        return f"`{alias(parameter)}`"


named = _Named()


class PrivacyError(ValueError):
    """Base class of all errors of this package; a ``ValueError``.

    Examples:
        >>> try:
        ...     xgb.train(params | {"dp_epsilon": -1.0}, data, 5)
        ... except xgb_dp.PrivacyError as error:
        ...     print(type(error).__name__)
        PrivacyParameterError
    """


class PrivacyParameterError(PrivacyError):
    """A parameter is missing, unknown, of the wrong type or out of its range.

    Examples:
        >>> try:
        ...     xgb.train(params | {"dp_epsilon": -1.0}, data, 5)
        ... except xgb_dp.PrivacyParameterError as error:
        ...     print(error)
        `dp_epsilon` must be a number above 0; got -1.
    """


class PrivacyRefusal(PrivacyError):
    """The request is well formed, but it would release something that is not private.

    Examples:
        >>> try:
        ...     xgb.train(params, data, 5, evals=[(data, "train")])
        ... except xgb_dp.PrivacyRefusal as error:
        ...     print(str(error).split(":")[0])
        A set in `evals` contains the training data
    """


class BudgetError(PrivacyError):
    """A release exceeds the budget, no noise meets the target, or budget shares do not add up.

    Examples:
        >>> budget = xgb_dp.Budget("budget.json", epsilon=0.5, delta=1e-5)
        >>> try:
        ...     budget.train(params, data, 5)
        ... except xgb_dp.BudgetError as error:
        ...     print("Nothing was released." in str(error))
        True
    """

    what: str = ""  # the problem, if a privacy budget is exceeded
    fix: str = ""  # the fix of this problem


class RowDomainError(PrivacyError):
    """A row is outside the declared domain; the error depends on this row alone.

    Examples:
        >>> wrong = xgb.DMatrix(table, np.full(2000, 7.0))
        >>> try:
        ...     xgb.train(params, wrong, 5)
        ... except xgb_dp.RowDomainError as error:
        ...     print(str(error).split(" (")[0])
        A row has a label outside the declared classes 0..1
    """

    exact: ClassVar[bool | None] = None  # whether the policy allows messages to name the deviation

    def __init__(self, text: str) -> None:
        exact = self.exact if self.exact is not None else POLICY not in os.environ
        super().__init__(text if exact else _OUTSIDE)


class LedgerError(PrivacyError):
    """The privacy ledger of a model is missing, damaged, or belongs to other trees.

    Examples:
        >>> stock = xgb.train({"objective": "binary:logistic"}, data, 2)
        >>> try:
        ...     xgb_dp.privacy_report(stock)
        ... except xgb_dp.LedgerError as error:
        ...     print(str(error).split(":")[0])
        This model carries no privacy ledger
    """


class PrivacyWarning(UserWarning):
    """The guarantee is weak or missing; the request is executed nevertheless.

    After a training, it also reports problems that the noisy counts indicate. Such a warning is
    never turned into an error, because the budget is already spent. All other warnings are issued
    before any release, so ``warnings.simplefilter("error", xgb_dp.PrivacyWarning)`` stops the
    training in time.

    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     weak = xgb.train(params | {"dp_epsilon": 50.0}, data, 2)
        >>> caught[0].category.__name__
        'PrivacyWarning'
    """


class NativeLibraryError(RuntimeError):
    """The loaded libxgboost is not the private build.

    Examples:
        >>> issubclass(xgb_dp.NativeLibraryError, xgb_dp.PrivacyError)
        False
    """
