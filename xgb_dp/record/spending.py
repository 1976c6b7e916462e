"""What each kind of release of a model cost: the budget by mechanism, for reports and plots.

Epsilons of parts do not add up to that of the whole, so a part is told in two ways: by its share of
mu^2, the currency in which the budget was divided (``noise.py``), and by the certified epsilon
that it would have had alone. All of it is computed from the ledger and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..accounting import Event, make_accountant
from ..accounting.describe import inner_events, mu2_of_kind, noise_in_words, of_kind
from ..accounting.events import release_counts


@dataclass(frozen=True)
class Spending:
    """What the releases of one kind cost, over all trainings of a model.

    Attributes:
        release: "intercept", "rows", "candidates", "splits", "histograms", "leaves" or "selection".
        mechanism: Name of the mechanism.
        count: Number of releases.
        noise: The noise of one release in words; of several trainings, of each of them.
        share: Part of mu^2 of the whole; the shares of a model sum to 1.
        epsilon: Certified epsilon of these releases alone, in nats, at the delta asked for.
            Infinite where the mechanism has none at that delta.

    Examples:
        >>> for spending in xgb_dp.privacy_report(model).spending():
        ...     print(spending.release, spending.mechanism)
        intercept discrete Gaussian noise
        candidates discrete Gaussian noise
        leaves discrete Gaussian noise
        splits exponential mechanism
    """

    release: str
    mechanism: str
    count: int
    noise: str
    share: float
    epsilon: float


_NAMES = {
    "gaussian": "discrete Gaussian noise",
    "laplace": "discrete Laplace noise",
    "exponential": "exponential mechanism",
    "selection": "best of a random number of runs",
    "choice": "one of several plans",
    "threshold": "threshold of noisy counts",
}


def spending(events: Sequence[Event], delta: float, group: int = 1) -> list[Spending]:
    """The budget by mechanism."""
    kinds = dict.fromkeys((e.label, e.mechanism) for event in events for e in inner_events(event))
    costs = {kind: math.fsum(mu2_of_kind(event, kind) for event in events) for kind in kinds}
    total = math.fsum(costs.values())
    parts = []
    for kind, cost in costs.items():
        alone = of_kind(events, kind)
        words = dict.fromkeys(noise_in_words(e) for event in alone for e in inner_events(event))
        parts.append(
            Spending(
                release=kind[0],
                mechanism=_NAMES[kind[1]],
                count=release_counts(alone)[kind[0]],
                noise="; ".join(words),
                share=cost / total if 0.0 < total < math.inf else 0.0,
                epsilon=make_accountant("exact", alone).get_epsilon(delta, group),
            )
        )
    return parts
