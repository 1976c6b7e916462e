"""Events of one mechanism, with the integers that the sampler was given."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..errors import LedgerError
from .events import Event, check_int, check_release, check_unit
from .units import ROW

__all__ = ["ExponentialEvent", "GaussianEvent", "LaplaceEvent", "LaplacePair", "PlainEvent"]


@dataclass(frozen=True)
class PlainEvent(Event):
    """Releases of one mechanism, which may be part of a round.

    Attributes:
        release: What was released.
        unit: See :class:`Event`. An event that consists of these, such as a round, has their unit.
    """

    release: str
    unit: str = field(default=ROW, kw_only=True)

    def __post_init__(self) -> None:
        check_release(self.release)
        check_unit(self.unit)

    @property
    def label(self) -> str:
        """What is released."""
        return self.release


@dataclass(frozen=True)
class GaussianEvent(PlainEvent):
    """`count` releases of integer sums with discrete Gaussian noise.

    Attributes:
        release: What was released: "intercept", "candidates", "leaves".
        sensitivity2: Squared L2 norm of what one row adds to the sums of one release, in grid
            units squared, >= 0.
        sigma2: Parameter of the noise, about its variance, in the same unit, >= 1; 0 stands for
            no noise, which costs everything.
        coordinates: Sums of one release that one row can touch, >= 0. Only the discreteness
            slack depends on it.
        count: Number of releases, >= 0.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> event.mu2, event.noise
        (0.0025, 'noise multiplier 20')
    """

    mechanism = "gaussian"
    sensitivity2: int
    sigma2: int
    coordinates: int
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sensitivity2", "sigma2", "coordinates", "count"):
            check_int(name, getattr(self, name), 0)

    @property
    def mu2(self) -> float:
        """See :class:`Event`."""
        if not self.sensitivity2:
            return 0.0
        return self.sensitivity2 / self.sigma2 if self.sigma2 else math.inf

    @property
    def noise(self) -> str:
        """See :class:`Event`."""
        return f"noise multiplier {math.sqrt(1.0 / self.mu2) if self.mu2 else math.inf:.4g}"

    def pure(self) -> float:
        """See :class:`Event`."""
        return math.inf if self.count and self.sensitivity2 else 0.0

    def _covered(self, limit: GaussianEvent) -> bool:
        return (
            self.sigma2 == limit.sigma2
            and self.sensitivity2 <= limit.sensitivity2
            and self.coordinates <= limit.coordinates
        )


@dataclass(frozen=True)
class ExponentialEvent(PlainEvent):
    """`count` selections by the exponential mechanism, each of bounded range eps0.

    Attributes:
        release: What was selected: "splits".
        eps_num: eps0 in units of 2**-eps_bits nats, >= 0. With 0 the choice ignores the data.
        eps_bits: 0 to 60.
        count: Number of selections that one row takes part in, >= 0. The selections in the
            disjoint nodes of one level count as one.

    Examples:
        >>> from xgb_dp.accounting.plain import ExponentialEvent
        >>> event = ExponentialEvent("splits", eps_num=1, eps_bits=4, count=20)
        >>> event.eps0, event.pure()
        (0.0625, 1.25)
    """

    mechanism = "exponential"
    eps_num: int
    eps_bits: int
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("eps_num", "eps_bits", "count"):
            check_int(name, getattr(self, name), 0)
        if self.eps_bits > 60:
            raise LedgerError("A ledger event has `eps_bits` above 60.")

    @property
    def eps0(self) -> float:
        """Range of the privacy loss of one selection, in nats."""
        return self.eps_num / 2**self.eps_bits

    @property
    def mu2(self) -> float:
        """See :class:`Event`."""
        return self.eps0**2 / 4.0

    @property
    def noise(self) -> str:
        """See :class:`Event`."""
        return f"eps0 {self.eps0:.4g}"

    def pure(self) -> float:
        """See :class:`Event`."""
        return self.count * self.eps0

    def _covered(self, limit: ExponentialEvent) -> bool:
        return self.eps_bits == limit.eps_bits and self.eps_num <= limit.eps_num


@dataclass(frozen=True)
class LaplaceEvent(PlainEvent):
    """`count` releases of integers with discrete Laplace noise.

    Attributes:
        release: What was released.
        sensitivity: L1 norm of what one row changes in the numbers of one release, in grid units,
            >= 0.
        scale: Scale of the noise in the same unit, >= 1; 0 stands for no noise, which costs
            everything.
        count: Number of releases, >= 0.

    Examples:
        >>> from xgb_dp.accounting.plain import LaplaceEvent
        >>> event = LaplaceEvent("leaves", sensitivity=1, scale=20, count=10)
        >>> event.epsilon, round(event.pure(), 6)
        (0.05, 0.5)
    """

    mechanism = "laplace"
    sensitivity: int
    scale: int
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sensitivity", "scale", "count"):
            check_int(name, getattr(self, name), 0)

    @property
    def epsilon(self) -> float:
        """Pure epsilon of one release, in nats."""
        if not self.sensitivity:
            return 0.0
        return self.sensitivity / self.scale if self.scale else math.inf

    @property
    def mu2(self) -> float:
        """See :class:`Event`."""
        return self.epsilon**2

    @property
    def noise(self) -> str:
        """See :class:`Event`."""
        return f"scale {1.0 / self.epsilon if self.epsilon else math.inf:.4g} sensitivities"

    def pure(self) -> float:
        """See :class:`Event`."""
        return self.count * self.epsilon * (1.0 + 1e-15) if self.count else 0.0

    def _covered(self, limit: LaplaceEvent) -> bool:
        return self.scale == limit.scale and self.sensitivity <= limit.sensitivity

    def simplified(self, coins: int) -> tuple[list[Event], list[Event]]:
        """See :class:`Event`."""
        if self.sensitivity and not self.scale:
            nothing_hidden = GaussianEvent(self.release, 1, 0, 1, self.count, unit=self.unit)
            return [nothing_hidden], []
        # A loss in [-epsilon, epsilon] has range 2 epsilon.
        num = -(-(2 * self.sensitivity << 60) // max(self.scale, 1))
        pair = LaplacePair(
            self.release, num, 60, self.count, scale=max(self.scale, 1), unit=self.unit
        )
        return [pair], []


@dataclass(frozen=True)
class LaplacePair(ExponentialEvent):
    """Laplace noise as accountants compose it, at the front of every order. No ledger contains it.

    It costs less than any selection of twice its epsilon, and may be charged as such a selection.

    Attributes:
        scale: Scale of the noise in grid units, >= 1.
    """

    mechanism = ""
    scale: int

    def size(self, group: int) -> float:
        """Epsilon of continuous Laplace noise that costs at least as much, for so many rows.

        Proof: docs/proofs/accounting.md, "Laplace".
        """
        return (group * self.eps0 / 2.0 + 0.25 / self.scale**2) * (1.0 + 1e-15)

    def pure(self) -> float:
        """See :class:`Event`."""
        return self.count * self.eps0 / 2.0 * (1.0 + 1e-15)
