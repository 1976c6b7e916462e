"""Events of given cost, and draws of a few of them."""

import math
from typing import Any

from hypothesis import strategies as st

from xgb_dp.accounting import Event, ExponentialEvent, GaussianEvent, LaplaceEvent
from xgb_dp.accounting.sampled_rounds import ParallelEvent, SampledEvent

GAUSSIAN = GaussianEvent("leaves", 2**36, 2**44, 4, 5)
SELECTION = ExponentialEvent("splits", 2**35, 40, 20)
LAPLACE = LaplaceEvent("leaves", 2**20, 2**24, 5)
ROUND = (SELECTION, GAUSSIAN)
SAMPLED = SampledEvent(2**30, 32, ROUND, 5)
PARALLEL = ParallelEvent(10, ROUND, 5)

UNIT = 2**40  # sigma of the grid so fine that the discreteness slack vanishes


def selections(eps0: float, count: int = 1) -> ExponentialEvent:
    return ExponentialEvent("splits", math.ceil(eps0 * 2**40), 40, count)


def gaussian(noise: float, count: int = 1) -> GaussianEvent:
    return GaussianEvent("leaves", UNIT, math.ceil(UNIT * noise**2), 2, count)


def laplace(epsilon: float, count: int = 1) -> LaplaceEvent:
    return LaplaceEvent("leaves", 1 << 20, math.ceil((1 << 20) / epsilon), count)


def sampled(rate: float, count: int, *inner: Any) -> SampledEvent:
    return SampledEvent(max(1, round(rate * 2**32)), 32, tuple(inner), count)


@st.composite
def flat_events(draw: st.DrawFn) -> list[Event]:
    """A few releases of small to large cost."""
    out: list[Event] = []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.sampled_from((0.003, 0.05, 0.4, 2.0)))
        count = draw(st.integers(1, 30))
        out.append(gaussian(1 / size, count) if draw(st.booleans()) else selections(size, count))
    return out
