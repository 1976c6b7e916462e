"""An additive round: a tree of every feature alone, and what their leaves say, in one release."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .candidates import Feature
from .draws import Noise
from .grow import COLUMNS, Tree, add_node, expand_levels
from .leaves import finish_tree, row_variance
from .partitions import cell_of, draw_partition
from .splits import Ints, Plan, RowBound

Doubles = npt.NDArray[np.float64]


@dataclass
class ColumnPrior:
    """Prior variances of the effects of each column: squares of what was found, over how many."""

    square: Doubles | None = None
    measured: Doubles = field(default_factory=lambda: np.zeros(0))
    variance: Doubles = field(default_factory=lambda: np.zeros(0))

    def fit(
        self, g: list[Doubles], h: list[Doubles], noise2: list[Doubles], rows: float
    ) -> list[Doubles]:
        """Leaf weights of each column."""
        depths = [len(x).bit_length() - 1 for x in g]
        strata = [np.array([deepest(k, d) for k in range(1 << d)]) for d in depths]
        shape = (len(g), max(depths) + 1)
        if self.square is None:
            self.square, self.measured = np.zeros(shape), np.zeros(shape)
            self.variance = np.tile(0.1 * 0.5 ** np.arange(shape[1]), (len(g), 1))

        def solve(f: int, of_rows: float) -> tuple[Doubles, Doubles, Doubles, Doubles]:
            n = len(g[f])
            walsh = np.array([[(-1.0) ** (i & k).bit_count() for k in range(n)] for i in range(n)])
            variance = noise2[f] + of_rows * h[f]
            prior = np.maximum(self.variance[f][strata[f]], 1e-9)
            precision = walsh.T @ np.diag(h[f] * h[f] / variance) @ walsh
            covariance = np.linalg.inv(precision + np.diag(1 / prior))
            mean = covariance @ (walsh.T @ (-h[f] * g[f] / variance))
            return mean, np.diag(covariance), prior, walsh

        for _ in range(6):
            square, measured = 0.8 * self.square, 0.8 * self.measured
            for f in range(len(g)):
                mean, left, prior, _walsh = solve(f, 1e-6 * rows)
                np.add.at(square[f], strata[f], mean**2)
                np.add.at(measured[f], strata[f], np.clip(1.0 - left / prior, 0.0, 1.0))
            shared = (square.sum(axis=0) + 1e-9) / (measured.sum(axis=0) + 1e-3)
            self.variance = np.minimum((square + 5.0 * shared) / (measured + 5.0), 1.0)
        self.square, self.measured = square, measured
        weights = []
        for f in range(len(g)):
            mean, _left, _prior, walsh = solve(f, rows)
            weights.append(walsh @ mean)
        return weights


def deepest(effect: int, depth: int) -> int:
    """The deepest level that an effect involves, from 1 on; 0 for the mean."""
    turns = [d + 1 for d in range(depth) if effect >> (depth - 1 - d) & 1]
    return max(turns, default=0)


def column_round(
    plan: Plan, features: list[Feature], pairs: Ints, noise: Noise, prior: ColumnPrior
) -> tuple[list[Tree], list[Ints]]:
    """The trees of a round, and the leaf of every row in each."""
    trees: list[Tree] = []
    cells: list[Ints] = []
    at: list[Ints] = []
    absent: list[int] = []
    for f, feature in enumerate(features):
        depth = min(int(plan["depth"]), max(1, math.ceil(math.log2(feature.size))))
        partition = draw_partition(f, feature, depth, noise)
        none = -1
        if feature.cuts is not None:  # missing values go where 0 goes
            zero = min(int(np.searchsorted(feature.cuts, 0.0, side="right")), feature.size - 1)
            if feature.size > 1:  # and the nearest cut to where 0 ends
                end = min(zero, feature.size - 2)
                nearest = min(range(len(partition)), key=lambda i: abs(partition[i].bin - end))
                partition[nearest] = partition[nearest]._replace(bin=end)
            partition = [p._replace(missing_left=zero <= p.bin) for p in partition]
            none = int(cell_of(partition, np.array([zero]), False)[0])
        tree: Tree = {name: [] for name in COLUMNS}
        trees.append(tree)
        root = np.full(len(pairs), add_node(tree))
        at.append(expand_levels(tree, features, [0], {0: partition}, {0: frozenset()}, root)[1])
        cells.append(cell_of(partition, feature.bins, feature.cuts is None))
        absent.append(none)

    # A row pays for the columns that it has, and for the sum of all rows.
    entered = 1 + sum((c != a).astype(np.int64) for c, a in zip(cells, absent, strict=True))
    scaled = np.trunc(pairs[:, :2] * (1.0 / np.sqrt(entered))[:, None]).astype(np.int64)
    sums = []
    for c, a, tree in zip(cells, absent, trees, strict=True):
        of_tree = np.zeros(((len(tree["left"]) + 1) // 2, 2), dtype=np.int64)
        np.add.at(of_tree, c, scaled)
        sums += [s for i, s in enumerate(of_tree) if i != a]
    sums.append(scaled.sum(axis=0))
    sigma2 = int(plan["leaf"]["sigma2"])
    released = np.array([[int(v) + noise.gaussian(sigma2) for v in s] for s in sums], np.float64)
    finish_columns(plan, trees, absent, released, prior)
    return trees, at


def finish_columns(
    plan: Plan, trees: list[Tree], absent: list[int], released: Doubles, prior: ColumnPrior
) -> None:
    """Values of all leaves from released sums: contrasts to a step of the intercept."""
    bound, leaf = RowBound.of(plan), plan["leaf"]
    lam, alpha, eta = float(leaf["lambda"]), float(leaf["alpha"]), float(leaf["eta"])
    most, least = float(leaf["max_delta_step"]), float(leaf["min_child_weight"])
    deviation = math.sqrt(int(leaf["sigma2"]))

    def soft(G: Doubles) -> Doubles:
        return np.copysign(np.maximum(np.abs(G) - alpha, 0.0), G)

    def clipped(w: Doubles) -> Doubles:
        return np.clip(w, -most, most) if most > 0 else w

    G, H = released[:, 0] * bound.g_unit, released[:, 1] * bound.h_unit
    total = max(H[-1], deviation * bound.h_unit, least, 1e-6)
    intercept = float(clipped(-soft(G[-1:]) / (total + lam))[0])
    spread, mean = float(np.var(H[:-1])), float(np.mean(H[:-1]))
    kept = max(spread - (deviation * bound.h_unit) ** 2, 0.0) / spread if spread > 0 else 0.0
    H = np.maximum(mean + kept * (H - mean), max(least, 1e-6))
    g, h, noise2, at, present = [], [], [], 0, 0.0
    for tree, none in zip(trees, absent, strict=True):
        n = (len(tree["left"]) + 1) // 2
        there = np.arange(n) != none
        cells = slice(at, at + int(there.sum()))
        at += int(there.sum())
        gi, hi = np.zeros(n), np.zeros(n)
        ni = np.full(n, math.inf)
        gi[there], hi[there] = G[cells] + H[cells] * intercept, H[cells]
        ni[there] = max((deviation * bound.g_unit) ** 2, 1e-12)
        present += float(hi.sum())
        if none >= 0:
            hi[none] = max(total - float(hi.sum()), 1e-6)
        g, h, noise2 = [*g, gi], [*h, hi], [*noise2, ni]
    columns = min(max(present / total, 0.0), float(len(trees)))
    rows = row_variance(plan) / math.sqrt(columns + 1.0)
    if leaf["shrinkage"]:
        weights = prior.fit([soft(x) for x in g], [x + lam for x in h], noise2, rows)
    else:
        weights = [-soft(x) / (y + lam) for x, y in zip(g, h, strict=True)]
    for f, tree in enumerate(trees):
        w = clipped(weights[f])
        w = w + ((intercept if f == 0 else 0.0) - float(h[f] @ w) / float(h[f].sum()))
        nodes = [node for node, left in enumerate(tree["left"]) if left == -1]
        of = (dict(zip(nodes, x.tolist(), strict=True)) for x in (g[f], h[f], noise2[f], w))
        finish_tree(plan, tree, *of, eta, (lam, alpha))
