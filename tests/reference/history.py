"""Which features earlier trees found worth a split, from released sums."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .splits import Plan, Score

Ints = npt.NDArray[np.int64]


class History:
    """Released gains of the features in the trees of one class, or of all that share splits."""

    def __init__(self, plan: Plan) -> None:
        self.gain = [0.0] * int(plan["n_features"])
        self.weight = float(plan["split_prior"])
        self.eps_num = int(plan["selection"]["eps_num"])
        self.off = bool(plan["noise_free"])

    def update(self, tree: dict[str, list[Any]], g: dict[int, float], h: dict[int, float],
               noise2: dict[int, float], *, first: bool = True) -> None:  # fmt: skip
        """Count the splits of another tree, less what noise alone would give.

        `first` is False where earlier trees of the round had the same splits.
        """
        if first:
            self.gain = [0.9 * x for x in self.gain]
        for node, left in enumerate(tree["left"]):
            if left == -1:
                continue
            right = tree["right"][node]
            both = h[left] + h[right]
            difference = (g[left] * h[right] - g[right] * h[left]) / both
            expected = noise2[left] * (h[right] / both) ** 2 + noise2[right] * (h[left] / both) ** 2
            gain = (difference * difference - expected) * both / (h[left] * h[right])
            self.gain[tree["split_index"][node]] += gain

    def offsets(self, features: list[int], score: Score) -> list[int]:
        """(range / eps0) log of the prior of each feature, relative to the uniform one."""
        seen = [max(self.gain[f], 0.0) for f in features]
        total = sum(seen)
        if self.off or self.weight == 0.0 or not total > 0:
            return [0] * len(features)
        unit = float(score.range_int) * 2.0**40 / self.eps_num
        prior = [1.0 - self.weight + self.weight * (s / total) * len(features) for s in seen]
        return [math.floor(min(max(unit * math.log(p), -(2.0**50)), 2.0**50)) for p in prior]
