"""What every release of a training has in common: noise as integers, and what it may cost."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..accounting.events import Event, GaussianEvent, PlainEvent
from ..errors import BudgetError
from ..parameters.parameter import Parameter, Rule

if TYPE_CHECKING:
    from ..calibrate.mechanisms import Releases
    from ..request.settings import Settings

EXACT_BITS = 20
"""Shift of counts that are released without noise."""
MIN_SIGMA2 = 2**20
"""Below, the slack of discrete noise would start to show."""
MAX_SIGMA2 = 2**56
_MAX_SCALE = 2**48
_MAX_SHIFT = 26
_MAX_SENS2_BITS = 61
# Noise of counts and its Laplace scale. The rows of a person share one of its counts, so that these
# have a finer grid: someone with a thousand rows must not vanish in its rounding.
_NOISE_BITS, _NOISE_BITS_OF_PERSONS = 17, 27
_SCALE_BITS, _SCALE_BITS_OF_PERSONS = 20, 40
_TOO_SMALL = "epsilon is too small for a useful result. Take fewer rounds or a larger epsilon."


@dataclass(frozen=True)
class Noise:
    """Noise of one release as the integers that the samplers take; 0 for what it does not have."""

    sigma2: int = 0  # variance of Gaussian noise, in squares of the unit of the sums
    scale: int = 0  # scale of Laplace noise, in that unit
    shift: int = 0  # counts are multiplied by 2**shift. A person with more rows counts nothing
    eps_num: int = 0  # range eps0 of one selection in units of 2**-40 nats


@dataclass(frozen=True)
class Part:
    """How loud one draw of a release may be."""

    each: float  # its mu^2, or its pure epsilon
    linear: bool  # whether that is a pure epsilon

    @property
    def mu2(self) -> float:
        """sensitivity^2 / sigma^2 of a Gaussian draw."""
        return self.each * self.each if self.linear else self.each

    @property
    def laplace(self) -> float:
        """Pure epsilon of Laplace noise, which costs about its square."""
        return self.each if self.linear else math.sqrt(self.each)

    @property
    def selection(self) -> float:
        """Range eps0 of a selection, which costs about a quarter of its square."""
        return self.each if self.linear else math.sqrt(4.0 * self.each)


@dataclass(frozen=True)
class Asked:
    """What decides on the releases of a training; public."""

    settings: Settings  # checked settings
    presence: bool = False  # whether the cells that are present are released with the intercept


@dataclass(frozen=True)
class Release(ABC):
    """One thing that a training releases, without its noise. Everything here is public."""

    name: ClassVar[str]  # of its noise, and of its section of the plan
    share: ClassVar[str]  # name of its part of the budget in ``dp_budget_shares``
    of_count: ClassVar[float] = 0.0  # its share where it is drawn for the number of rows alone
    of_all: ClassVar[float] = 0.0  # its part of mu^2 where the user gives none
    of_rest: ClassVar[float] = 0.0  # its share of the remainder
    no_share: ClassVar[str] = ""  # what to do where nothing is left for it, with a space before it
    exact_shift: ClassVar[int] = 0  # of its sums in a training without noise
    decides: ClassVar[bool] = False  # whether it is released before a plan is chosen
    # the names that its events have, each with what is released, for people
    words: ClassVar[tuple[tuple[str, str], ...]]
    # whether a division of the budget names it where it is not released, too
    always_listed: ClassVar[bool] = True
    # the rows of the table of parameters that are about it alone
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    rules: ClassVar[tuple[Rule, ...]] = ()  # what these demand
    persons: bool  # whether neighbours differ by all rows of a person, instead of by one row

    @classmethod
    @abstractmethod
    def wanted(cls, s: Settings) -> bool:
        """Whether these settings release it."""

    @classmethod
    def default_share(cls, s: Settings, given: Mapping[str, float]) -> float:
        """Its part of mu^2 where the user gives none, where it follows from the settings."""
        return cls.of_all

    @classmethod
    @abstractmethod
    def of(cls, asked: Asked) -> Release:
        """What these settings release of it."""

    @property
    def draws(self) -> int:
        """How often it is drawn: in the whole training, or in a round where it is of rounds."""
        return 1

    @property
    def of_rounds(self) -> bool:
        """Whether every round draws it, from the rows that the round reads."""
        return False

    @property
    def gaussian(self) -> bool:
        """Whether its noise is Gaussian, which no pure epsilon bounds."""
        return True

    def variance(self, part: Part, grid_bits: int) -> float:
        """Variance of Gaussian noise in units of the grid of gradients; 0 in other units."""
        return 0.0

    def exact(self) -> Noise:
        """What a training without noise is told in place of it."""
        return Noise(shift=self.exact_shift)

    @classmethod
    def section(cls, s: Settings, noise: Noise) -> dict[str, Any]:
        """What the plan says of it beside its parameters, also where it is not released."""
        return {}

    @abstractmethod
    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """The integers of its noise, rounded to more of it, and its event."""


class OfRounds(Release):
    """One that every round draws."""

    of_rounds = True


class Reading(ABC):
    """Which rows a round reads, where these are not all of them."""

    parameters: ClassVar[tuple[Parameter, ...]] = ()  # that are about it alone
    rules: ClassVar[tuple[Rule, ...]] = ()  # what these demand

    @staticmethod
    @abstractmethod
    def wanted(asked: Releases) -> bool:
        """Whether a training reads rows like this."""

    @staticmethod
    @abstractmethod
    def louder(asked: Releases, each: float, *, linear: bool) -> float:
        """How much louder a round may be whose part of the budget is `each`; bounds nothing."""

    @staticmethod
    @abstractmethod
    def event(asked: Releases, of_round: Sequence[PlainEvent]) -> Event:
        """The event of all rounds, of which each releases this."""


def grid_sigma2(variance: float) -> int:
    """Integer variance of Gaussian noise, no smaller than the slack of discrete noise allows."""
    return max(math.ceil(variance), MIN_SIGMA2)


def laplace_scale(sens: int, epsilon: float) -> int:
    """Integer scale of Laplace noise."""
    scale = max(math.ceil(sens / epsilon * (1.0 + 1e-15)), 1)
    if scale > _MAX_SCALE:
        raise BudgetError(f"The Laplace noise would be above 2^48 grid units: {_TOO_SMALL}")
    return scale


def laplace_shift(variance: float, *, persons: bool) -> int:
    """Shift of counts with Laplace noise of so many rows."""
    bits = _SCALE_BITS_OF_PERSONS if persons else _SCALE_BITS
    return min(max(0, bits - math.floor(math.log2(variance))), _MAX_SHIFT)


def noisy_counts(
    name: str, units: int, coordinates: int, part: Part, draws: int = 1, *, persons: bool
) -> tuple[Noise, PlainEvent]:
    """Gaussian noise on sums of which a row moves so many, each by one at most, and its event."""
    shift, sigma2 = shifted(units, part.mu2, persons=persons)
    event = GaussianEvent(name, units << (2 * shift), sigma2, coordinates, draws)
    return Noise(sigma2=sigma2, shift=shift), event


def shifted(sens2: int, mu2: float, *, persons: bool) -> tuple[int, int]:
    """Shift and integer noise of counts, near 2^17 if possible, or 2^27 for persons."""
    variance = sens2 / mu2
    bits = math.ceil(math.log2(max(variance, 1e-300)))
    noise = _NOISE_BITS_OF_PERSONS if persons else _NOISE_BITS
    room = (_MAX_SENS2_BITS - sens2.bit_length()) // 2
    shift = min(max(0, (2 * noise - bits) // 2), _MAX_SHIFT, room)
    sigma2 = grid_sigma2(variance * 4.0**shift)
    if sigma2 > MAX_SIGMA2:
        raise BudgetError(f"The noise would be above 2^28 rows: {_TOO_SMALL}")
    return shift, sigma2
