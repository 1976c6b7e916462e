"""The interface of a mechanism: its parameters, its place in the plan, its noise and its event."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ..accounting.events import PlainEvent
from ..accounting.sensitivity import RowBound
from ..errors import BudgetError
from ..parameters.parameter import Config, Parameter, Rule

EXACT_BITS = 20
"""Shift of counts that are released without noise."""
MIN_SIGMA2 = 2**20
"""Smallest variance: below it the slack of discrete noise would start to show."""
MAX_SIGMA2 = 2**56
_MAX_SCALE = 2**48
_MAX_SHIFT = 26
_MAX_SENS2_BITS = 61
# Target sizes of the noise of counts and of its Laplace scale. Persons have a finer grid: the rows
# of a person share one count, and somebody with a thousand rows must not vanish in its rounding.
_NOISE_BITS, _NOISE_BITS_OF_PERSONS = 17, 27
_SCALE_BITS, _SCALE_BITS_OF_PERSONS = 20, 40
_TOO_SMALL = "epsilon is too small for a useful result. Take fewer rounds or a larger epsilon."


@dataclass(frozen=True)
class Noise:
    """Noise of one mechanism as the integers that the samplers take; 0 where it does not apply."""

    sigma2: int = 0  # variance of Gaussian noise, in squares of the unit of the sums
    scale: int = 0  # scale of Laplace noise, in that unit
    shift: int = 0  # counts are multiplied by 2**shift
    eps_num: int = 0  # range eps0 of one selection in units of 2**-40 nats


@dataclass(frozen=True)
class DrawBudget:
    """Privacy budget of one draw."""

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
class Mechanism(ABC):
    """One mechanism of a plan, without its noise. Everything here is public.

    Its fields are all that its sensitivity depends on; the ledger keeps them.
    """

    name: ClassVar[str]
    section: ClassVar[tuple[str, ...]]  # where the plan has its noise
    integers: ClassVar[tuple[str, ...]]  # the fields of :class:`Noise` that the plan has there
    decides: ClassVar[bool] = False  # whether it is released before a plan is chosen
    exact_shift: ClassVar[int] = 0  # of its sums in a training without noise
    # its budget: name in ``dp_budget_shares``, and default shares
    share: ClassVar[str]
    of_count: ClassVar[float] = 0.0  # share where it is drawn for the number of rows alone
    of_all: ClassVar[float] = 0.0  # share of mu^2 where the user gives none
    of_rest: ClassVar[float] = 0.0  # share of the remainder
    no_share: ClassVar[str] = ""  # advice where nothing is left for it, with a leading space
    always_listed: ClassVar[bool] = True  # whether it has a share of 0 where it is not released
    # names of its events in ledgers, each with a description for people
    words: ClassVar[tuple[tuple[str, str], ...]]
    parameters: ClassVar[tuple[Parameter, ...]] = ()  # its rows of the table of parameters
    rules: ClassVar[tuple[Rule, ...]] = ()  # what these demand

    bound: RowBound  # bound of one row, or of all rows of a person

    @classmethod
    @abstractmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether these settings release it."""

    @classmethod
    def default_share(cls, s: Config, given: Mapping[str, float]) -> float:
        """Its share of mu^2 where the user gives none."""
        return cls.of_all

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """Its part of the plan beside its parameters and its noise, also where it is disabled."""
        return {}

    @classmethod
    @abstractmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> Mechanism | None:
        """The mechanism as a plan describes it; None where the plan does not release it."""

    @property
    def persons(self) -> bool:
        """Whether neighbours differ by all rows of a person, instead of by one row."""
        return self.bound.of_person

    @property
    def label(self) -> str:
        """Name of its events."""
        return self.name

    @property
    def draws(self) -> int:
        """Number of draws: in the whole training, or in a round if every round draws it."""
        return 1

    @property
    def of_rounds(self) -> bool:
        """Whether every round draws it, from the rows that the round reads."""
        return False

    @property
    def gaussian(self) -> bool:
        """Whether its noise is Gaussian, which no pure epsilon bounds."""
        return True

    def variance(self, budget: DrawBudget, grid_bits: int) -> float:
        """Variance of Gaussian noise in units of the gradient grid; 0 for other units."""
        return 0.0

    def exact(self) -> Noise:
        """Its integers in a training without noise."""
        return Noise(shift=self.exact_shift)

    @abstractmethod
    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """The integers of its noise, rounded to more noise."""

    @abstractmethod
    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """So many draws with this noise, as a ledger records them."""

    def to_json(self) -> dict[str, Any]:
        """Its fields, as a ledger writes them."""
        out = asdict(self)
        del out["bound"]
        return out


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
    """Shift of counts whose Laplace noise has this scale in rows."""
    bits = _SCALE_BITS_OF_PERSONS if persons else _SCALE_BITS
    return min(max(0, bits - math.floor(math.log2(variance))), _MAX_SHIFT)


def count_noise(sens2: int, mu2: float, *, persons: bool) -> Noise:
    """Gaussian noise of counts whose squared L2 sensitivity is `sens2` rows^2.

    The shift is chosen so that the noise is near 2^17 grid units, or 2^27 for persons.
    """
    variance = sens2 / mu2
    bits = math.ceil(math.log2(max(variance, 1e-300)))
    noise = _NOISE_BITS_OF_PERSONS if persons else _NOISE_BITS
    room = (_MAX_SENS2_BITS - sens2.bit_length()) // 2
    shift = min(max(0, (2 * noise - bits) // 2), _MAX_SHIFT, room)
    sigma2 = grid_sigma2(variance * 4.0**shift)
    if sigma2 > MAX_SIGMA2:
        raise BudgetError(f"The noise would be above 2^28 rows: {_TOO_SMALL}")
    return Noise(sigma2=sigma2, shift=shift)
