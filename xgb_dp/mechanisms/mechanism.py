"""The interface of a mechanism: parameters, section of the plan, noise and event."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ..accounting.events import PlainEvent
from ..accounting.sensitivity import RowBound
from ..errors import BudgetError
from ..parameters.config import Config
from ..parameters.parameter import Parameter, Rule

EXACT_BITS = 20
"""Shift of counts that are released without noise."""
MIN_SIGMA2 = 2**20
"""Smallest variance; below it, the slack of discrete noise would be noticeable."""
MAX_SIGMA2 = 2**56
_MAX_SCALE = 2**48
_MAX_SHIFT = 26
_MAX_SENS2_BITS = 61
# Target sizes, in bits, of the standard deviation and the Laplace scale of counts. The grid is
# finer for persons: their rows share a count of 1, and the share of one of a thousand rows must not
# be rounded to 0.
_NOISE_BITS, _NOISE_BITS_OF_PERSONS = 17, 27
_SCALE_BITS, _SCALE_BITS_OF_PERSONS = 20, 40
_TOO_SMALL = "epsilon is too small for a useful result. Use fewer rounds or a larger epsilon."


@dataclass(frozen=True)
class Noise:
    """Integer noise parameters of one mechanism for the samplers; 0 if not applicable."""

    sigma2: int = 0  # variance of Gaussian noise, in squared units of the sums
    scale: int = 0  # scale of Laplace noise, in units of the sums
    shift: int = 0  # counts are multiplied by 2**shift
    eps_num: int = 0  # range eps0 of one selection in units of 2**-40 nats


@dataclass(frozen=True)
class DrawBudget:
    """Privacy budget of one draw."""

    each: float  # mu^2 or pure epsilon
    linear: bool  # whether `each` is a pure epsilon

    @property
    def mu2(self) -> float:
        """sensitivity^2 / sigma^2 of a Gaussian draw."""
        return self.each * self.each if self.linear else self.each

    @property
    def laplace(self) -> float:
        """Pure epsilon of a Laplace draw; its mu^2 is about epsilon^2."""
        return self.each if self.linear else math.sqrt(self.each)

    @property
    def selection(self) -> float:
        """Range eps0 of a selection; its mu^2 is about eps0^2 / 4."""
        return self.each if self.linear else math.sqrt(4.0 * self.each)


@dataclass(frozen=True)
class Mechanism(ABC):
    """One mechanism of a plan, without its noise. All fields are public.

    The fields determine the sensitivity; the ledger records them.
    """

    name: ClassVar[str]
    section: ClassVar[tuple[str, ...]]  # path of its noise in the plan
    integers: ClassVar[tuple[str, ...]]  # fields of :class:`Noise` at this path
    decides: ClassVar[bool] = False  # whether it is released before a plan is chosen
    exact_shift: ClassVar[int] = 0  # shift of its sums in a training without noise
    # name of its share in ``dp_budget_shares``; its default shares follow
    share: ClassVar[str]
    of_count: ClassVar[float] = 0.0  # share if only the number of rows is drawn
    of_all: ClassVar[float] = 0.0  # default share of mu^2
    of_rest: ClassVar[float] = 0.0  # share of the remainder
    no_share: ClassVar[str] = ""  # advice if no budget is left for it, with a leading space
    always_listed: ClassVar[bool] = True  # whether its share is listed as 0 if it is disabled
    # names of its events in ledgers, each with a readable description
    words: ClassVar[tuple[tuple[str, str], ...]]
    parameters: ClassVar[tuple[Parameter, ...]] = ()  # its rows of the table of parameters
    rules: ClassVar[tuple[Rule, ...]] = ()  # constraints on these parameters

    bound: RowBound  # bound of one row, or of all rows of a person

    @classmethod
    @abstractmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether these settings use the mechanism."""

    @classmethod
    def default_share(cls, s: Config, given: Mapping[str, float]) -> float:
        """The default share of mu^2."""
        return cls.of_all

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """Entries of the plan in addition to parameters and noise, even if it is disabled."""
        return {}

    @classmethod
    @abstractmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> Mechanism | None:
        """Create the mechanism from a plan; None if the plan does not use it."""

    @property
    def persons(self) -> bool:
        """Whether neighbours differ by all rows of a person instead of one row."""
        return self.bound.of_person

    @property
    def label(self) -> str:
        """Name of the events."""
        return self.name

    @property
    def draws(self) -> int:
        """Number of draws in the training, or in a round if every round draws it."""
        return 1

    @property
    def of_rounds(self) -> bool:
        """Whether every round draws it from the rows that the round reads."""
        return False

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian, which has no finite pure epsilon."""
        return True

    def variance(self, budget: DrawBudget, grid_bits: int) -> float:
        """Variance of Gaussian noise on the gradient grid; 0 for noise that is not on this grid."""
        return 0.0

    def exact(self) -> Noise:
        """The noise parameters in a training without noise: at most a shift."""
        return Noise(shift=self.exact_shift)

    @abstractmethod
    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """The integer noise parameters, rounded towards more noise."""

    @abstractmethod
    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """The ledger event of `count` draws with this noise."""

    def to_json(self) -> dict[str, Any]:
        """The fields in the ledger's JSON form."""
        out = asdict(self)
        del out["bound"]
        return out


def grid_sigma2(variance: float) -> int:
    """Variance of Gaussian noise rounded up to an integer, at least ``MIN_SIGMA2``."""
    return max(math.ceil(variance), MIN_SIGMA2)


def laplace_scale(sens: int, epsilon: float) -> int:
    """Scale of Laplace noise, rounded up to an integer."""
    scale = max(math.ceil(sens / epsilon * (1.0 + 1e-15)), 1)
    if scale > _MAX_SCALE:
        raise BudgetError(f"The Laplace noise would exceed 2^48 grid units: {_TOO_SMALL}")
    return scale


def laplace_shift(variance: float, *, persons: bool) -> int:
    """Shift of counts, given the scale of their Laplace noise in rows."""
    bits = _SCALE_BITS_OF_PERSONS if persons else _SCALE_BITS
    return min(max(0, bits - math.floor(math.log2(variance))), _MAX_SHIFT)


def count_noise(sens2: int, mu2: float, *, persons: bool) -> Noise:
    """Gaussian noise of counts with squared L2 sensitivity `sens2` (in rows^2).

    The shift makes the standard deviation about 2^17 grid units, or 2^27 for persons.
    """
    variance = sens2 / mu2
    bits = math.ceil(math.log2(max(variance, 1e-300)))
    noise = _NOISE_BITS_OF_PERSONS if persons else _NOISE_BITS
    room = (_MAX_SENS2_BITS - sens2.bit_length()) // 2
    shift = min(max(0, (2 * noise - bits) // 2), _MAX_SHIFT, room)
    sigma2 = grid_sigma2(variance * 4.0**shift)
    if sigma2 > MAX_SIGMA2:
        raise BudgetError(f"The noise would exceed 2^28 rows: {_TOO_SMALL}")
    return Noise(sigma2=sigma2, shift=shift)
