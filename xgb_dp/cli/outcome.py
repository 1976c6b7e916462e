"""What the labels of a file mean: the objective, and the columns that it reads beside the target.

Declarations are public, and come from options or a schema file. Cells are read one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import PrivacyParameterError
from ..parameters.parse import parse_number, parse_range
from ..request.objectives import OBJECTIVES
from .column import mapping
from .values import kind_of

__all__ = ["KEYS", "Outcome", "column_of", "levels_of", "read_outcome"]

KEYS = ("objective", "quantiles", "exposure", "event", "target_upper")


@dataclass(frozen=True)
class Outcome:
    """Which loss, and what it reads of a row beside the target and the features. All of it public.

    Attributes:
        objective: XGBoost's name of it; None for that of the classes or of squared error.
        quantiles: Levels that are predicted; the objective is then reg:quantileerror.
        exposure: Name of the column of exposures, such as years that a policy was held.
        exposure_bounds: Range of these, above 0.
        event: Name of the column that says whether the end of a time was seen: 1, or 0 where it was
            lost from sight at that time.
        target_upper: Name of the column of the latest times; empty cells where none is known.
    """

    objective: str | None = None
    quantiles: tuple[float, ...] | None = None
    exposure: str | None = None
    exposure_bounds: tuple[float, float] | None = None
    event: str | None = None
    target_upper: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that only training and evaluation need, beside the target."""
        return tuple(c for c in (self.event, self.target_upper) if c is not None)

    @property
    def special(self) -> tuple[str, ...]:
        """All columns that are no features."""
        return (*self.columns, *([] if self.exposure is None else [self.exposure]))

    @property
    def ranged(self) -> bool:
        """Whether the objective brings the range of the target itself."""
        known = OBJECTIVES.get(self.objective or "")
        return known is not None and known.highest < float("inf")

    @property
    def intervals(self) -> bool:
        """Whether labels are the ends of intervals of times."""
        return self.objective == "survival:aft"

    def check(self) -> None:
        """Refuse what does not go together."""
        if self.columns and not self.intervals:
            raise PrivacyParameterError(
                "`event` and `target_upper` are for objective survival:aft, whose labels are "
                "times. Leave them out, or set this objective."
            )
        if self.intervals and len(self.columns) != 1:
            raise PrivacyParameterError(
                "survival:aft needs to know whose time has ended: name the column `event` (1 where "
                "the end was seen, 0 where not), or `target_upper` with the latest times; not both."
            )
        if self.quantiles is not None and self.objective not in (None, "reg:quantileerror"):
            raise PrivacyParameterError(
                "`quantiles` are for objective reg:quantileerror. Leave them out, or set this "
                "objective."
            )

    def parameters(self) -> dict[str, Any]:
        """The parameters of training that follow."""
        self.check()
        made: dict[str, Any] = {}
        if self.objective is not None:
            made["objective"] = self.objective
        if self.quantiles is not None:
            made |= {"objective": "reg:quantileerror", "quantile_alpha": list(self.quantiles)}
        if self.exposure is not None:
            made |= {"dp_base_margin": True, "dp_exposure_bounds": self.exposure_bounds}
        return made

    def to_json(self) -> dict[str, Any]:
        """What :func:`read_outcome` reads back."""
        made: dict[str, Any] = {
            "objective": self.objective,
            "quantiles": self.quantiles,
            "event": self.event,
            "target_upper": self.target_upper,
        }
        if self.exposure is not None:
            made["exposure"] = {"column": self.exposure, "bounds": self.exposure_bounds}
        return {k: v for k, v in made.items() if v is not None}


def levels_of(name: str, value: Any) -> tuple[float, ...]:
    """Levels of quantiles; their order is checked with the other parameters."""
    found = value if isinstance(value, (list, tuple)) else [value]
    return tuple(parse_number(name, v) for v in found)


def column_of(key: str, value: Any) -> str:
    """The name of a column."""
    if not isinstance(value, str) or not value.strip():
        raise PrivacyParameterError(
            f"`{key}` must be the name of a column; got {kind_of(value)}. Put it in quotes, or "
            "leave the line out."
        )
    return value.strip()


def read_outcome(given: Mapping[str, Any]) -> Outcome:
    """From the keys of a schema file."""
    made: dict[str, Any] = {
        k: column_of(k, given[k]) for k in ("event", "target_upper") if k in given
    }
    if "objective" in given:
        made["objective"] = _objective(given["objective"])
    if "quantiles" in given:
        made["quantiles"] = levels_of("quantiles", given["quantiles"])
    if "exposure" in given:
        exposure = mapping(
            "`exposure` must be {column: NAME, bounds: [low, high]}", given["exposure"]
        )
        if set(exposure) != {"column", "bounds"}:
            raise PrivacyParameterError(
                "`exposure` must have the keys column and bounds and no others."
            )
        made["exposure"] = column_of("exposure: column", exposure["column"])
        made["exposure_bounds"] = parse_range("exposure: bounds", exposure["bounds"])
    return Outcome(**made)


def _objective(value: Any) -> str:
    """The name of an objective; whether it is supported is checked with the other parameters."""
    if not isinstance(value, str):
        raise PrivacyParameterError(
            f"`objective` must be a name such as count:poisson; got {kind_of(value)}."
        )
    return value
