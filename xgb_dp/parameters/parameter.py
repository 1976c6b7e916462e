"""One parameter of private training: a row of the table.

The privacy effect of a parameter is one of

- ``public``: the value is taken as known to everybody; it must not be chosen by looking at the
  data;
- ``spends budget``: it decides how much privacy is spent, or on what;
- ``free post-processing``: it acts on already released values only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .parse import Reader

if TYPE_CHECKING:
    from ..request.settings import Settings

__all__ = ["FREE", "PUBLIC", "SPENDS", "Parameter"]

PUBLIC = "public"
SPENDS = "spends budget"
FREE = "free post-processing"


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
