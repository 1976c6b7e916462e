"""Errors and warnings of private training, one class for each purpose.

Every message says what was wrong, what was expected and how to mend it, and names the parameter. No
message holds a value of the data or a statistic of it: an error is an output like any other, and
one that depends on a second row would tell neighbouring data sets apart (``docs/guarantee.md``).
"""

from __future__ import annotations

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


class PrivacyError(ValueError):
    """Base class of all errors of this package; a ``ValueError``."""


class PrivacyParameterError(PrivacyError):
    """A parameter is missing, unknown, of the wrong type or out of its range."""


class PrivacyRefusal(PrivacyError):
    """The request is well formed, but it would release something that is not private."""


class BudgetError(PrivacyError):
    """No noise meets the privacy target, or the shares of the budget do not add up."""


class RowDomainError(PrivacyError):
    """A row lies outside the declared domain: something that this one row shows by itself."""


class LedgerError(PrivacyError):
    """The model carries no privacy ledger, one that is damaged, or one of other trees."""


class PrivacyWarning(UserWarning):
    """A guarantee that says little, or none at all; what was asked for is done all the same.

    ``warnings.simplefilter("error", xgb_dp.PrivacyWarning)`` turns it into an error, which is
    raised before anything is released.
    """


class NativeLibraryError(RuntimeError):
    """The loaded libxgboost is not the private build."""
