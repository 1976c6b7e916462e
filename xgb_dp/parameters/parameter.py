"""Rows of the parameter table, and rules between parameters.

The privacy effect of a parameter is one of

- ``public``: the value is public and must not be chosen from the data;
- ``spends budget``: it determines how much budget is spent, or on which release;
- ``free post-processing``: it acts on released values only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..errors import PrivacyError, PrivacyParameterError, alias
from .config import Config
from .parse import Reader

PUBLIC = "public"
SPENDS = "spends budget"
FREE = "free post-processing"


class Table(Enum):
    """Tables of docs/parameters.md, in order, by the origin of the parameters."""

    USUAL = "General parameters"
    DEFAULT = "Details of the default preset"
    LOSSES = "Losses and margins"
    PUBLIC_ROWS = "Public data and models"
    MASKED_SUMS = "Secure aggregation"
    PUBLISHED = "Published systems"  # one table for each
    STOCK = "Parameters passed to XGBoost"


@dataclass(frozen=True)
class Parameter:
    """A row of the parameter table."""

    name: str  # name in the user's dictionary
    meaning: str  # description for the parameter table
    read: Reader  # reads and checks a value; ``str(read)`` describes the valid values
    default: Any  # default: a value, or a function of the settings read so far
    effect: str  # privacy effect: ``public``, ``spends budget`` or ``free post-processing``
    page: str  # proof or explanation: a page of ``docs/``, or XGBoost
    table: Table = Table.USUAL  # table of docs/parameters.md
    unit: str = ""  # unit of the value
    values: str = ""  # valid values in words, if the description of the reader does not fit
    shown: str = ""  # default in words, if it is a function
    aliases: tuple[str, ...] = ()  # other accepted names (XGBoost's aliases)
    # path in the plan (``plugin_cpp/plan/plan.h``), if the plan contains the value unchanged
    plan: str = ""
    xgboost: bool = False  # whether XGBoost reads it as well
    recorded: bool = True  # whether the public record lists it among the hyperparameters

    def value(self, settings: Config) -> Any:
        """The checked value in these settings, or the default."""
        if self.name in settings.given:
            return self.read(alias(self.name), settings.given[self.name], settings)
        return self.default(settings) if callable(self.default) else self.default

    @property
    def domain(self) -> str:
        """Description of the valid values."""
        return self.values or str(self.read)

    @property
    def unset(self) -> str:
        """Description of the default."""
        return self.shown or repr(self.default)


@dataclass(frozen=True)
class Rule:
    """A constraint between parameters."""

    name: str  # short name
    broken: Callable[[Config], bool]  # whether settings violate the rule
    # conflict, reason and fix. ``{name}`` is replaced by the value of a parameter, and ``{`name`}``
    # by its spelling in the called interface
    message: str
    # :class:`PrivacyRefusal` if the combination is not private or not proved to be private
    error: type[PrivacyError] = PrivacyParameterError

    def check(self, settings: Config) -> None:
        """Raise the error if the settings violate the rule."""
        if self.broken(settings):
            raise self.error(self.message.format_map(_Fields(settings)))


class _Fields(dict[str, Any]):
    """Values and names of parameters for the message of a rule."""

    def __init__(self, settings: Config) -> None:
        super().__init__()
        self._settings = settings

    def __missing__(self, key: str) -> Any:
        name = key.strip("`")
        return self._settings[name] if name == key else f"`{alias(name)}`"
