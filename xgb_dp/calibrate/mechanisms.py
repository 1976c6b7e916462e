"""All releases of a training, without and with their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..accounting import ChoiceEvent, Event, sensitivity
from ..accounting.sensitivity import RowBound
from ..errors import BudgetError
from ..releases.release import Asked, Noise, Release
from ..request.registry import RELEASES
from ..request.settings import Settings
from ..request.shares import SHARE_NAMES

SAMPLE_BITS = 32
AnyRelease = TypeVar("AnyRelease", bound=Release)


def finest_grid(score: str, row_bound: RowBound, tau: float, **places: Any) -> int:
    """Bits of the finest grid on which the range of a score fits the exponential mechanism."""
    for bits in range(18, 3, -1):
        if sensitivity.range_int(score, row_bound, bits, tau, **places) < sensitivity.MAX_RANGE:
            return bits
    raise BudgetError(
        "`dp_score_clip` or `dp_rows_per_person` is too large for this gradient bound. Lower it."
    )


@dataclass(frozen=True)
class Releases:
    """What a training will release, without noise. Everything here is public.

    Attributes:
        each: The releases, in the order of the ledger.
        shares: Fractions of mu^2 by name of a share, >= 0. What releases nothing gives its share to
            the others in proportion.
        rounds: Boosting rounds T >= 0.
        grid_bits: Grid of the gradients, 4 to 20; reduced where the noise would not fit.
        sampling_num: A round reads each row with probability sampling_num / 2**32; 2**32 for all.
        ensemble: Rounds of an ensemble, which read disjoint parts of the rows; 1 for none.

    Examples:
        >>> from xgb_dp.calibrate import Releases
        >>> from xgb_dp.releases.splits import Splits
        >>> one = Releases((Splits(False, 3),), {"splits": 1.0}, rounds=10)
        >>> one.released_shares()
        {'splits': 1.0}
    """

    each: tuple[Release, ...]
    shares: Mapping[str, float] = field(hash=False)
    rounds: int
    grid_bits: int = 18
    sampling_num: int = 1 << SAMPLE_BITS
    ensemble: int = 1

    @classmethod
    def of(cls, s: Settings, *, counts: bool = False, presence: bool = False) -> Releases:
        """What the checked settings of a training release.

        Args:
            s: Checked settings.
            counts: Whether the number of rows is released where no intercept is.
            presence: Whether the cells that are present are released with them.
        """
        asked = Asked(s, presence)
        kinds = [kind for kind in RELEASES if kind.wanted(s) or (counts and kind.of_count)]
        shares = dict(s["dp_budget_shares"])
        shares |= {kind.share: kind.of_count for kind in kinds if not kind.wanted(s)}
        places = {"joint": s["dp_class_trees"] == "joint", "depth": s["max_depth"]}
        grid_bits = finest_grid(s["dp_score"], s.row_bound, s["dp_score_clip"], **places)
        return cls(
            tuple(kind.of(asked) for kind in kinds),
            shares,
            rounds=s.rounds,
            grid_bits=grid_bits,
            sampling_num=s.sampling_num,
            ensemble=s["dp_ensemble"],
        )

    def find(self, kind: type[AnyRelease]) -> AnyRelease | None:
        """The release of a kind; None without."""
        return next((r for r in self.each if isinstance(r, kind)), None)

    @property
    def of_persons(self) -> bool:
        """Whether neighbours differ by all rows of a person, instead of by one row."""
        return any(release.persons for release in self.each)

    @property
    def charged_rounds(self) -> int:
        """Number of rounds that a row takes part in, one of each ensemble."""
        return -(-self.rounds // self.ensemble)

    @property
    def gaussian(self) -> bool:
        """Whether any noise is Gaussian, which no pure epsilon bounds."""
        return any(release.gaussian for release in self.each)

    def draws(self, release: Release) -> int:
        """How often a row pays for a release."""
        return release.draws * (self.charged_rounds if release.of_rounds else 1)

    def released_shares(self) -> dict[str, float]:
        """Shares of what is released by name of the release, which sum to 1.

        Raises:
            BudgetError: A share is unknown, negative, or 0 for something that is released.
        """
        if not set(self.shares) <= set(SHARE_NAMES):
            raise BudgetError(
                "`dp_budget_shares` names a release that does not exist. Its names are "
                f"{', '.join(SHARE_NAMES)}."
            )
        shares = {r.name: float(self.shares.get(r.share, 0.0)) for r in self.each}
        for name, share in shares.items():
            if not (math.isfinite(share) and share > 0.0):
                raise BudgetError(
                    f"`dp_budget_shares` gives nothing to `{name}`, which this training releases. "
                    "Give it a share above 0."
                )
        total = math.fsum(shares.values())
        return {name: share / total for name, share in shares.items()}


@dataclass(frozen=True)
class NoisePlan:
    """Noise of every release, as the integers that the samplers take.

    ``plan["leaves"].sigma2`` is that of a release; one that does not happen has noise 0.

    Attributes:
        grid_bits: Gradients are integers in units of C / 2**grid_bits.
        epsilon: Certified epsilon of the whole, at most the target; infinite without noise.
        delta: Target failure probability.
        noise: Noise by name of the release.
        events: What the ledger will hold when the training is complete.

    Examples:
        >>> from xgb_dp.calibrate import Releases, calibrate
        >>> from xgb_dp.releases.splits import Splits
        >>> asked = Releases((Splits(False, 3),), {"splits": 1.0}, rounds=10)
        >>> plan = calibrate(asked, epsilon=1.0, delta=1e-6)
        >>> plan["splits"].eps_num > 0, plan["leaves"].sigma2
        (True, 0)
    """

    grid_bits: int
    epsilon: float = math.inf
    delta: float = 0.0
    noise: Mapping[str, Noise] = field(default_factory=dict)
    events: tuple[Event, ...] = ()

    def __getitem__(self, name: str) -> Noise:
        return self.noise.get(name, Noise())

    @classmethod
    def without_noise(cls, asked: Releases, epsilon: float, delta: float) -> NoisePlan:
        """The plan of a training that draws nothing: no noise and no events.

        Args:
            asked: What is released.
            epsilon: 0 where nothing is released, infinite where all of it is exact.
            delta: Target failure probability.
        """
        exact = {release.name: release.exact() for release in asked.each}
        return cls(asked.grid_bits, epsilon, delta, exact)


@dataclass(frozen=True)
class FamilyNoise:
    """Noise of several plans, of which one is taken after their common first release."""

    plans: tuple[NoisePlan, ...]  # noise of each, the first release among it
    event: ChoiceEvent  # what the ledger will be charged with, whichever plan is taken
    epsilon: float  # certified epsilon of the choice

    @property
    def events(self) -> tuple[Event, ...]:
        """What the ledger will be charged with."""
        return (self.event,)
