"""Accounts for the best of a random number of runs, which private selection releases.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from ..errors import LedgerError
from .events import Event, check_int, check_release, event_from_json, one_unit
from .gaussian import gaussian_mu
from .ranks import BestOfRuns
from .search import narrow
from .table import ChordTable

__all__ = ["Repetitions", "SelectionAccountant", "SelectionEvent", "map_runs"]

SHAPE_BITS = 16
RATE_BITS = 32
_FAMILIES = ("negative_binomial", "poisson")
_UP = 1.0 + 1e-12
_MOST_SELECTIONS = 1 << 16  # each has a curve of its own
_RANKS = 1500
_POINTS = 400  # of the curve of a run
_BEYOND = 1e-4  # of delta, for losses of a run above its last point
_LOWEST = 1e-200
_CHORDS = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Repetitions:
    """Law of the secret number of runs, K >= 1.

    Attributes:
        family: "negative_binomial", truncated to K >= 1: P(K = k) is proportional to
            (1 - gamma)^k (eta + 1) ... (eta + k - 1) / k!, which is logarithmic for eta = 0 and
            geometric for eta = 1; or "poisson", given K >= 1.
        shape_num: eta in units of 2**-16, -1 < eta <= 1; 0 for Poisson.
        rate_num: gamma in (0, 1), or the rate of the Poisson law, in units of 2**-32.

    Examples:
        >>> from xgb_dp.accounting.selection import Repetitions
        >>> runs = Repetitions.of("logarithmic", mean=4.0)
        >>> round(runs.mean, 3)
        4.0
    """

    family: str
    shape_num: int
    rate_num: int

    def __post_init__(self) -> None:
        if self.family not in _FAMILIES:
            raise LedgerError(
                "A selection of the privacy ledger draws its number of runs from an unknown "
                f"`family`; known ones are {', '.join(_FAMILIES)}."
            )
        check_int("rate_num", self.rate_num, 1)
        if self.family == "poisson":
            sound = self.shape_num == 0 and self.rate <= 1e6
        else:
            sound = type(self.shape_num) is int and -1.0 < self.shape <= 1.0 and self.rate < 1.0
        if not sound:
            raise LedgerError(
                "A selection of the privacy ledger draws its number of runs from a distribution "
                "that is out of range."
            )

    @classmethod
    def of(cls, family: str, mean: float) -> Repetitions:
        """The law of a name with about this mean.

        Args:
            family: "logarithmic", "geometric", "negative_binomial" (eta = -1/2) or "poisson".
            mean: Expected number of runs, above 1 and at most 1000 ("negative_binomial": 100).

        Raises:
            ValueError: Another name, or a mean out of range.
        """
        shapes = {"logarithmic": 0.0, "geometric": 1.0, "negative_binomial": -0.5}
        if family != "poisson" and family not in shapes:
            raise ValueError(f"must be one of {', '.join(shapes)}, poisson.")
        most = 100 if family == "negative_binomial" else 1000  # the exact sampler takes long
        if not 1.0 < mean <= most:
            raise ValueError(f"must be a number above 1 and at most {most}.")
        units = 2.0**RATE_BITS
        if family == "poisson":
            rate = brentq(lambda r: -r / math.expm1(-r) - mean, 1e-9, mean + 1.0)
            return cls("poisson", 0, max(1, round(rate * units)))
        shape = shapes[family]

        def excess(log_gamma: float) -> float:
            return math.log(_mean(shape, math.exp(log_gamma))) - math.log(mean)

        gamma = math.exp(brentq(excess, math.log(2.0 / units), math.log1p(-1e-9)))
        num = min(max(1, round(gamma * units)), (1 << RATE_BITS) - 1)
        return cls("negative_binomial", round(shape * 2**SHAPE_BITS), num)

    @property
    def shape(self) -> float:
        """The shape eta."""
        return self.shape_num / 2.0**SHAPE_BITS

    @property
    def rate(self) -> float:
        """Gamma, or the rate of the Poisson law."""
        return self.rate_num / 2.0**RATE_BITS

    @property
    def mean(self) -> float:
        """Expected number of runs, rounded upwards."""
        if self.family == "poisson":
            return -self.rate / math.expm1(-self.rate) * _UP
        return _mean(self.shape, self.rate) * (1.0 + 1e-9)

    def weight(self, better: Array) -> Array:
        """f'(F) / f'(1) where a run is better with chance 1 - F; f(x) = E x^K."""
        if self.family == "poisson":
            return np.asarray(np.exp(-self.rate * better))
        grown = 1.0 + better * (1.0 - self.rate) / self.rate
        return np.asarray(grown ** -(1.0 + self.shape))

    @property
    def ranks(self) -> Array:
        """Chances from 0 to 1 between which the weight changes by a little."""
        parts = np.linspace(0.0, 1.0, _RANKS)
        if self.family == "poisson":
            return parts
        ranks = np.expm1(parts * -math.log(self.rate)) * self.rate / (1.0 - self.rate)
        return np.asarray(np.clip(np.append(ranks[:-1], 1.0), 0.0, 1.0))

    def to_json(self) -> dict[str, Any]:
        """The ledger's form."""
        return {
            "family": self.family,
            "shape_num": self.shape_num,
            "rate_num": self.rate_num,
        }


def _mean(shape: float, gamma: float) -> float:
    if shape == 0.0:
        return (1.0 / gamma - 1.0) / -math.log(gamma)
    return shape * (1.0 - gamma) / (gamma * -math.expm1(shape * math.log(gamma)))


@dataclass(frozen=True)
class SelectionEvent(Event):
    """The best, by a noisy score, of a secret number of runs.

    Each run draws one of the settings without looking at the data, trains on one part of the rows
    and scores on the other part; which part a row belongs to is drawn without looking at the data.

    Attributes:
        repetitions: Distribution of the number of runs.
        runs: What a run trains, for each different cost among the settings, in release order.
        score: What its score releases from the other part.
        count: Number of selections, >= 0.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> from xgb_dp.accounting.selection import Repetitions, SelectionEvent
        >>> runs = Repetitions.of("geometric", mean=3.0)
        >>> best = SelectionEvent(runs, runs=((event,),), score=(event,), count=1)
        >>> once, chosen = (xgb_dp.accounting.make_accountant("exact", [e]) for e in (event, best))
        >>> chosen.get_epsilon(1e-6) > once.get_epsilon(1e-6)
        True
    """

    mechanism = "selection"
    repetitions: Repetitions
    runs: tuple[tuple[Event, ...], ...]
    score: tuple[Event, ...]
    count: int
    release: str = "selection"

    def __post_init__(self) -> None:
        check_release(self.release)
        check_int("count", self.count, 0)
        if self.count > _MOST_SELECTIONS:
            raise LedgerError("A selection of the privacy ledger is counted too often.")
        inner = [e for run in (*self.runs, self.score) for e in run]
        if not self.runs or any(isinstance(e, SelectionEvent) for e in inner):
            raise LedgerError("A selection of the privacy ledger does not list its runs.")
        one_unit(inner)

    @property
    def unit(self) -> str:  # type: ignore[override]
        """See :class:`Event`; that of its runs and of its score."""
        return one_unit(e for run in (*self.runs, self.score) for e in run)

    def of_unit(self, unit: str) -> SelectionEvent:
        """See :class:`Event`."""
        return map_runs(self, lambda run: [e.of_unit(unit) for e in run])

    @property
    def label(self) -> str:
        """See :class:`Event`."""
        return self.release

    @property
    def mu2(self) -> float:
        """The mu^2 of a Gaussian that is as private; see :class:`Event`."""
        from .books import make_accountant  # which knows selections

        epsilon = make_accountant("exact", [self.counted(1)]).get_epsilon(1e-6)
        return gaussian_mu(epsilon, 1e-6) ** 2 if math.isfinite(epsilon) else math.inf

    @property
    def noise(self) -> str:
        """See :class:`Event`."""
        score = "; ".join(release.noise for e in self.score for release in e.inner)
        return f"{self.repetitions.mean:.4g} runs expected; of the score: {score}"

    def simplified(self, coins: int) -> tuple[list[Event], list[Event]]:
        """See :class:`Event`."""
        raise TypeError(
            "A private selection cannot be written as simpler events. Ask it for `pure` or for "
            "its curve."
        )

    def pure(self) -> float:
        """See :class:`Event`; docs/proofs/selection.md."""
        if not self.count:
            return 0.0
        run = max(math.fsum(e.pure() for e in part) for part in self.parts(1))
        if self.repetitions.family == "poisson":
            return self.count * (run - self.repetitions.rate * math.expm1(-run)) * (1.0 + 1e-13)
        return self.count * (2.0 + self.repetitions.shape) * run * (1.0 + 1e-13)

    def parts(self, coins: int) -> tuple[tuple[Event, ...], ...]:
        """Alternatives for what one run shows of a group of rows, of which the worst counts.

        One row is in one part, together with the row that replaces it. Several rows may be in both.

        Args:
            coins: Draws that decide which part the rows are in.
        """
        if coins == 1:
            return (*self.runs, self.score)
        return tuple((*run, *self.score) for run in self.runs)

    def _content(self) -> dict[str, Any]:
        return {
            "release": self.release,
            "repetitions": self.repetitions.to_json(),
            "runs": [[e.to_json() for e in run] for run in self.runs],
            "score": [e.to_json() for e in self.score],
            "count": self.count,
        }

    @classmethod
    def _of_content(cls, content: Mapping[str, Any], unit: str) -> SelectionEvent:
        law = content.get("repetitions")
        sound = (
            set(content) == {"release", "repetitions", "runs", "score", "count"}
            and isinstance(law, Mapping)
            and set(law) == {"family", "shape_num", "rate_num"}
            and isinstance(content["runs"], list)
            and all(isinstance(run, list) for run in [*content["runs"], content["score"]])
        )
        if not sound:
            raise LedgerError("A selection event of the privacy ledger has other fields.")
        runs = tuple(tuple(event_from_json(e) for e in run) for run in content["runs"])
        score = tuple(event_from_json(e) for e in content["score"])
        law = Repetitions(**content["repetitions"])
        return cls(law, runs, score, content["count"], content["release"])


def map_runs(
    event: SelectionEvent, change: Callable[[Sequence[Event]], Sequence[Event]]
) -> SelectionEvent:
    """The same selection with other events in every run and in the score."""
    runs = tuple(tuple(change(run)) for run in event.runs)
    return replace(event, runs=runs, score=tuple(change(event.score)))


def _chord(epsilon: float, end: float, delta: float) -> float:
    """Bound of the hockey stick at `epsilon` for whatever is (end, delta)-private in both orders.

    The hockey stick is convex in e^x. It is at most delta at `end`, and at most
    1 - (1 - delta) e^-end at -end.
    """
    if not epsilon < end or end > 700.0:
        return delta if epsilon >= end else 1.0
    weight = -math.expm1(epsilon - end) / -math.expm1(-2.0 * end)
    return min(1.0, (weight * (1.0 - (1.0 - delta) * math.exp(-end)) + (1 - weight) * delta) * _UP)


class SelectionAccountant:
    """(epsilon, delta) of one selection.

    Args:
        repetitions: Distribution of the number of runs.
        bases: Accountants of the alternatives for one run; the worst of them counts.
        group: Rows added or removed together.
        replaced: Whether so many rows are exchanged for others instead.
    """

    def __init__(
        self,
        repetitions: Repetitions,
        bases: Sequence[Any],
        group: int = 1,
        *,
        replaced: bool = False,
    ) -> None:
        self._law, self._of = repetitions, list(bases)
        self._asked: dict[str, Any] = {"group": group, "replaced": replaced}
        self._known: dict[float, BestOfRuns | None] = {}

    def get_epsilon(self, delta: float) -> float:
        """Epsilon in nats; infinite if there is none."""
        if delta >= 1.0:
            return 0.0
        best = self._best(delta * _BEYOND / self._law.mean)
        if best is None or best.delta(best.end) > delta:
            return math.inf
        if best.delta(0.0) <= delta:
            return 0.0

        def is_safe(epsilon: float) -> bool:
            return best.delta(epsilon) <= delta

        return narrow(is_safe, best.end, 0.0, 60)[0] * _UP

    def get_delta(self, epsilon: float) -> float:
        """Delta in [0, 1]."""
        value, lowest = 1.0, 1e-6
        while lowest > _LOWEST:
            best = self._best(lowest * _BEYOND)
            if best is None:
                break
            value = min(value, best.delta(epsilon * (1.0 - 1e-12)))
            if value > lowest or value == 0.0:
                break
            lowest *= 1e-6
        if value > 1e-3:  # near 0 the chord from a larger epsilon to the other order is lower
            value = min(value, *(_chord(epsilon, self.get_epsilon(d), d) for d in _CHORDS))
        return value

    def _best(self, lowest: float) -> BestOfRuns | None:
        """The curve of the best run, from that of a run down to this delta; None without one."""
        if lowest not in self._known:
            self._known[lowest] = self._curve(lowest)
        return self._known[lowest]

    def _curve(self, lowest: float) -> BestOfRuns | None:
        top = max(a.get_epsilon(lowest, **self._asked) for a in self._of)
        if not math.isfinite(top):
            return None
        points = np.linspace(0.0, top or 1.0, _POINTS)
        curves = [a.curve(list(points), max(lowest, _LOWEST), **self._asked) for a in self._of]
        run = ChordTable(points, np.max(curves, axis=0))
        return BestOfRuns(self._law.weight, self._law.ranks, self._law.mean, run)
