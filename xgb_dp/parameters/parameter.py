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
from typing import Any

from ..errors import PrivacyError, PrivacyParameterError, spelt
from .config import Config
from .parse import Reader

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
    PUBLISHED = "Published systems"  # one table for each
    STOCK = "Passed on to XGBoost"


@dataclass(frozen=True)
class Parameter:
    """One parameter."""

    name: str  # name in the user's dictionary
    meaning: str  # what it means
    read: Reader  # reads and checks a value; its text says which values there are
    default: Any  # what holds when it is unset: a value, or a function of the settings read so far
    effect: str  # privacy effect: ``public``, ``spends budget`` or ``free post-processing``
    page: str  # where its proof or explanation is: a page of ``docs/``, or XGBoost
    table: Table = Table.USUAL  # where the page of parameters lists it
    unit: str = ""  # its unit
    values: str = ""  # the values it takes in words, where the reader's own text does not do
    shown: str = ""  # the default in words, where it is a function
    aliases: tuple[str, ...] = ()  # other accepted names (XGBoost's own aliases)
    # where the plan has it (``plugin_cpp/plan/plan.h``), if it travels there as it is
    plan: str = ""
    xgboost: bool = False  # whether XGBoost reads it as well
    recorded: bool = True  # whether the public record of a model has it among its hyperparameters

    def value(self, settings: Config) -> Any:
        """What holds in these settings."""
        if self.name in settings.given:
            return self.read(spelt(self.name), settings.given[self.name], settings)
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
    """A demand on parameters."""

    name: str  # short name
    broken: Callable[[Config], bool]  # whether settings break it
    # what does not go together, why, and how to mend it. ``{name}`` stands for the value of a
    # parameter, and the same with backticks inside the braces for its name
    message: str
    # :class:`PrivacyRefusal` where the combination would not be private, or is not proved to be
    error: type[PrivacyError] = PrivacyParameterError

    def check(self, settings: Config) -> None:
        """Raise its error if the settings break it."""
        if self.broken(settings):
            raise self.error(self.message.format_map(_Fields(settings)))


class _Fields(dict[str, Any]):
    """What the message of a rule may show."""

    def __init__(self, settings: Config) -> None:
        super().__init__()
        self._settings = settings

    def __missing__(self, key: str) -> Any:
        name = key.strip("`")
        return self._settings[name] if name == key else f"`{spelt(name)}`"
