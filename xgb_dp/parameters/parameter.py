"""A row of the table of parameters, and a rule between rows.

The privacy effect of a parameter is one of

- ``public``: the value is taken as known to everybody; it must not be chosen by looking at the
  data;
- ``spends budget``: it decides how much privacy is spent, or on what;
- ``free post-processing``: it acts on already released values only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..errors import PrivacyError, PrivacyParameterError
from .parse import Reader

if TYPE_CHECKING:
    from ..request.settings import Settings

__all__ = ["FREE", "PUBLIC", "SPENDS", "Parameter", "Rule", "Table"]

PUBLIC = "public"
SPENDS = "spends budget"
FREE = "free post-processing"


class Table(Enum):
    """Tables of docs/parameters.md in their order, by what brought the parameters."""

    USUAL = "Parameters of most trainings"
    DEFAULT = "The default, in detail"
    LOSSES = "Losses and margins"
    PUBLIC_ROWS = "Public rows and models"
    MASKED_SUMS = "Masked sums"
    SARUS = "DP-XGBoost of Sarus"
    DPBOOST = "DPBoost"
    DP_XGB = "DP-XGB"
    MADDOCK = "DP-TR, DP-EBM, DP-RF and local reports"
    STOCK = "Passed on to XGBoost"


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
        name: Name in the user's dictionary.
        meaning: What it means.
        read: Reads and checks a value; its text says which values there are.
        default: What holds when it is unset: a value, or a function of the settings read so far.
        effect: Privacy effect: ``public``, ``spends budget`` or ``free post-processing``.
        page: Where its proof or explanation is: a page of ``docs/``, or XGBoost.
        unit: Its unit.
        values: The values it takes in words, where the reader's own text does not do.
        shown: The default in words, where it is a function.
        aliases: Other accepted names (XGBoost's own aliases).
        plan: Where the plan has it (``plugin_cpp/plan/plan.h``), if it travels there as it is.
        xgboost: Whether XGBoost reads it as well.
        recorded: Whether the public record of a model has it among its hyperparameters.
        table: Where the page of parameters lists it.
    """

    name: str
    meaning: str
    read: Reader
    default: Any
    effect: str
    page: str
    unit: str = ""
    values: str = ""
    shown: str = ""
    aliases: tuple[str, ...] = ()
    plan: str = ""
    xgboost: bool = False
    recorded: bool = True
    table: Table = Table.USUAL

    def value(self, settings: Settings) -> Any:
        """What holds in these settings."""
        if self.name in settings.given:
            return self.read(self.name, settings.given[self.name], settings)
        return self.default(settings) if callable(self.default) else self.default

    @property
    def domain(self) -> str:
        """The values it takes, in words."""
        return self.values or str(self.read)

    @property
    def unset(self) -> str:
        """What holds when it is unset, in words."""
        return self.shown or repr(self.default)


@dataclass(frozen=True)
class Rule:
    """A demand on parameters.

    Attributes:
        name: Short name.
        broken: Whether settings break it.
        message: What does not go together, why, and how to mend it. ``{name}`` stands for the value
            of a parameter.
        error: :class:`PrivacyRefusal` where the combination would not be private, or is not proved
            to be.
    """

    name: str
    broken: Callable[[Settings], bool]
    message: str
    error: type[PrivacyError] = PrivacyParameterError

    def check(self, settings: Settings) -> None:
        """Raise its error if the settings break it."""
        if self.broken(settings):
            raise self.error(self.message.format_map(settings))
