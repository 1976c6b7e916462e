"""What the labels of a file mean: the objective, and the columns that it reads beside the target.

Declarations are public, and come from options or a schema file. Cells are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import PrivacyParameterError
from ..parameters.parse import parse_range
from ..request.objectives import OBJECTIVES
from .values import column_of, kind_of, levels_of, mapping

__all__ = ["KEYS", "Outcome", "read_outcome"]


@dataclass(frozen=True)
class Outcome:
    """Which loss, and what it reads of a row beside the target and the features. All of it public.

    Exposures, events and latest times are names of columns.
    """

    objective: str | None = None  # None for that of the classes, or squared error
    quantiles: tuple[float, ...] | None = None  # the objective is then reg:quantileerror
    exposure: str | None = None  # such as the years that a policy was held
    exposure_bounds: tuple[float, float] | None = None
    event: str | None = None  # 1 where the end of a time was observed, 0 where it was censored
    target_upper: str | None = None  # empty where no latest time is known

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that only training and evaluation need, beside the target."""
        return tuple(c for c in (self.event, self.target_upper) if c is not None)

    @property
    def special(self) -> tuple[str, ...]:
        """All columns that are not features."""
        return (*self.columns, *([] if self.exposure is None else [self.exposure]))

    @property
    def ranged(self) -> bool:
        """Whether the range of the target follows from the objective."""
        known = OBJECTIVES.get(self.objective or "")
        return known is not None and known.highest < float("inf")

    def parameters(self) -> dict[str, Any]:
        """The parameters of training that follow; refuses what does not go together."""
        intervals = self.objective == "survival:aft"
        if self.columns and not intervals:
            raise PrivacyParameterError(
                "`event` and `target_upper` are for objective survival:aft, whose labels are "
                "times. Leave them out, or set this objective."
            )
        if intervals and len(self.columns) != 1:
            raise PrivacyParameterError(
                "survival:aft needs to know whose time has ended: name the column `event` (1 where "
                "the end was seen, 0 where not), or `target_upper` with the latest times; not both."
            )
        if self.quantiles is not None and self.objective not in (None, "reg:quantileerror"):
            raise PrivacyParameterError(
                "`quantiles` are for objective reg:quantileerror. Leave them out, or set this "
                "objective."
            )
        params: dict[str, Any] = {}
        if self.objective is not None:
            params["objective"] = self.objective
        if self.quantiles is not None:
            params |= {"objective": "reg:quantileerror", "quantile_alpha": list(self.quantiles)}
        if self.exposure is not None:
            params |= {"dp_base_margin": True, "dp_exposure_bounds": self.exposure_bounds}
        return params

    def to_json(self) -> dict[str, Any]:
        """What :func:`read_outcome` reads back."""
        names = ("objective", "quantiles", "event", "target_upper")
        content = {name: getattr(self, name) for name in names}
        if self.exposure is not None:
            content["exposure"] = {"column": self.exposure, "bounds": self.exposure_bounds}
        return content


def _objective(name: str, value: Any) -> str:
    """The name of an objective; whether it is supported is checked with the other parameters."""
    if not isinstance(value, str):
        raise PrivacyParameterError(
            f"{name} must be a name such as count:poisson; got {kind_of(value)}."
        )
    return value


def _exposure(name: str, value: Any) -> tuple[str, tuple[float, float]]:
    exposure = mapping(f"{name} must be {{column: NAME, bounds: [low, high]}}", value)
    if set(exposure) != {"column", "bounds"}:
        raise PrivacyParameterError(f"{name} must have the keys column and bounds and no others.")
    column = column_of("`exposure: column`", exposure["column"])
    return column, parse_range("exposure: bounds", exposure["bounds"])


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "objective": _objective,
    "quantiles": levels_of,
    "exposure": _exposure,
    "event": column_of,
    "target_upper": column_of,
}
KEYS = tuple(_READERS)


def read_outcome(given: Mapping[str, Any]) -> Outcome:
    """From the keys of a schema file."""
    values = {k: read(f"`{k}`", given[k]) for k, read in _READERS.items() if k in given}
    if "exposure" in values:
        values["exposure"], values["exposure_bounds"] = values["exposure"]
    return Outcome(**values)
