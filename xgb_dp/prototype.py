"""A private booster in NumPy, to try split and leaf mechanisms before writing them in C++.

:func:`fit` grows trees of equal depth on public cuts. A mechanism is any object with the methods of
:class:`SplitMechanism` or :class:`LeafMechanism`: it draws, and it states the events of its draws,
so that the accountants of this package charge it. ``docs/howto/prototype.md`` compares such a model
with the compiled trainer.

For research only. Sums are integers, as in the compiled trainer, but rows and ids are not checked,
noise comes from NumPy's generator, which is neither cryptographic nor exact, and no ledger records
the draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .accounting import Event, ExactAccountant, ExponentialEvent, GaussianEvent

UNIT = 2**10
"""Grid units per unit of a gradient: the largest gradient of one row, in integers."""
_LARGEST_HESSIAN = UNIT // 4
_EPS_BITS = 30

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class SplitMechanism(Protocol):
    """Selects the split of one node."""

    def choose(self, sums: Ints, rng: np.random.Generator) -> tuple[int, int]:
        """Choose a column and a cut.

        Args:
            sums: Gradient and hessian sums of the rows of the node, shape (columns, cuts + 1, 2),
                in grid units. Adding a row changes one bin of every column by its pair.
            rng: Random generator.

        Returns:
            tuple: Column, and cut: bins up to the cut go to the left.
        """

    def events(self, levels: int) -> list[Event]:
        """Events of all draws. A row takes part in one selection of each of the `levels`."""


class LeafMechanism(Protocol):
    """Releases the values of the leaves of one tree."""

    def values(self, sums: Ints, rng: np.random.Generator) -> Floats:
        """Compute the leaf values.

        Args:
            sums: Gradient and hessian sums of the leaves, shape (leaves, 2), in grid units. Adding
                a row changes one leaf by its pair.
            rng: Random generator.

        Returns:
            ndarray: Value of each leaf.
        """

    def events(self, trees: int) -> list[Event]:
        """Events of all draws. A row takes part in the leaves of each of the `trees`."""


@dataclass(frozen=True)
class ExponentialSplit:
    """Exponential mechanism with utility abs(G_left) + abs(G_right).

    A row changes only one of the two sums, by at most ``UNIT``. So the utility has sensitivity
    ``UNIT``, and the log probabilities have a range of `eps0` (McSherry and Talwar 2007; Dong et
    al. 2020).

    Attributes:
        eps0: Range of the privacy loss of one selection, in nats.
    """

    eps0: float

    def choose(self, sums: Ints, rng: np.random.Generator) -> tuple[int, int]:
        """Choose a split; see :class:`SplitMechanism`."""
        left = sums[:, :-1, 0].cumsum(axis=1)
        total = sums[:, :, 0].sum(axis=1, keepdims=True)
        utility = np.abs(left) + np.abs(total - left)
        scores = self.eps0 * utility / (2 * UNIT) + rng.gumbel(size=utility.shape)
        column, cut = np.unravel_index(scores.argmax(), scores.shape)
        return int(column), int(cut)

    def events(self, levels: int) -> list[Event]:
        """Events of the selections; see :class:`SplitMechanism`."""
        eps_num = int(np.ceil(self.eps0 * 2**_EPS_BITS))
        return [ExponentialEvent("splits", eps_num, _EPS_BITS, levels)]


@dataclass(frozen=True)
class GaussianLeaf:
    """Newton steps from sums with Gaussian noise, rounded to the grid.

    Attributes:
        noise_multiplier: Standard deviation of the noise, in largest norms of a row's pair.
        reg_lambda: L2 regularisation of leaf values.
        max_delta_step: Largest leaf value; bounds leaves in which noise exceeds the sums.
    """

    noise_multiplier: float
    reg_lambda: float = 1.0
    max_delta_step: float = 1.0

    @property
    def _sensitivity2(self) -> int:
        return UNIT**2 + _LARGEST_HESSIAN**2

    @property
    def _sigma2(self) -> int:
        return int(np.ceil(self.noise_multiplier**2 * self._sensitivity2))

    def values(self, sums: Ints, rng: np.random.Generator) -> Floats:
        """Compute the leaf values; see :class:`LeafMechanism`."""
        # The sums are integers, so rounding the noise rounds the noisy sum: post-processing.
        noise = np.rint(rng.normal(0.0, math.sqrt(self._sigma2), sums.shape))
        noisy = (sums + noise) / UNIT
        values = -noisy[:, 0] / (np.maximum(noisy[:, 1], 0.0) + self.reg_lambda)
        return np.clip(values, -self.max_delta_step, self.max_delta_step)

    def events(self, trees: int) -> list[Event]:
        """Events of the sums; see :class:`LeafMechanism`."""
        return [GaussianEvent("leaves", self._sensitivity2, self._sigma2, 2, trees)]


@dataclass(frozen=True)
class Prototype:
    """A model of :func:`fit`.

    Attributes:
        cuts: Public cuts of the columns, shape (columns, cuts).
        splits: Column and cut of each inner node in heap order, shape (trees, 2**depth - 1, 2).
        leaves: Leaf values times the learning rate, shape (trees, 2**depth).
        events: Events of all draws.
    """

    cuts: Floats
    splits: Ints
    leaves: Floats
    events: list[Event]

    def predict(self, X: Any) -> Floats:
        """Predict the probability of class 1 for each row. Post-processing."""
        bins = _bins(np.asarray(X, dtype=np.float64), self.cuts)
        margin = np.zeros(len(bins))
        for splits, values in zip(self.splits, self.leaves, strict=True):
            margin += values[_leaf_of(splits, bins)]
        return np.asarray(1.0 / (1.0 + np.exp(-margin)))

    def get_epsilon(self, delta: float) -> float:
        """Epsilon of all draws at `delta`, for neighbours that differ by one row."""
        return ExactAccountant(self.events).get_epsilon(delta)


def events_of(split: SplitMechanism, leaf: LeafMechanism, rounds: int, depth: int) -> list[Event]:
    """Events of a training, to find noise for a given epsilon before any draw."""
    return [*split.events(rounds * depth), *leaf.events(rounds)]


def fit(
    X: Any,
    y: Any,
    cuts: Any,
    split: SplitMechanism,
    leaf: LeafMechanism,
    *,
    rounds: int = 50,
    depth: int = 4,
    eta: float = 0.3,
    seed: int | None = None,
) -> Prototype:
    """Boost trees for the logistic loss.

    Args:
        X: Numbers, shape (rows, columns). Missing values go to the right.
        y: Labels 0 and 1.
        cuts: Public cuts, shape (columns, cuts); values below a cut go to the left.
        split: Mechanism that selects splits.
        leaf: Mechanism that releases leaf values.
        rounds: Number of trees.
        depth: Depth of every tree, at least 1.
        eta: Learning rate.
        seed: Seed of all noise.

    Returns:
        Prototype: The model, with the events of its draws.

    Examples:
        >>> from xgb_dp import prototype
        >>> cuts = np.tile(np.linspace(-2, 2, 15), (table.shape[1], 1))
        >>> split, leaf = prototype.ExponentialSplit(0.1), prototype.GaussianLeaf(10.0)
        >>> trial = prototype.fit(table, table[:, 0] > 0, cuts, split, leaf, rounds=5)
        >>> 0 < trial.get_epsilon(1e-6) < 3
        True
    """
    rng = np.random.default_rng(seed)
    cuts, labels = np.asarray(cuts, dtype=np.float64), np.asarray(y, dtype=np.float64)
    bins = _bins(np.asarray(X, dtype=np.float64), cuts)
    margin, trees, leaves = np.zeros(len(labels)), [], []
    for _ in range(rounds):
        mean = 1.0 / (1.0 + np.exp(-margin))
        # |g| <= 1 and h <= 1/4, so rounding keeps the bounds of a row on the grid.
        pairs = np.rint(UNIT * np.stack([mean - labels, mean * (1.0 - mean)], axis=1))
        splits = np.zeros((2**depth - 1, 2), dtype=np.int64)
        node = np.zeros(len(labels), dtype=np.int64)
        for inner in range(2**depth - 1):
            inside = node == inner
            column, cut = split.choose(_sums(bins[inside], pairs[inside], cuts.shape), rng)
            splits[inner] = column, cut
            node[inside] = 2 * inner + 1 + (bins[inside, column] > cut)
        place = node - (2**depth - 1)
        sums = np.stack([np.bincount(place, one, 2**depth) for one in pairs.T], axis=1)
        values = eta * leaf.values(sums.astype(np.int64), rng)
        margin += values[place]
        trees.append(splits)
        leaves.append(values)
    events = events_of(split, leaf, rounds, depth)
    return Prototype(cuts, np.array(trees), np.array(leaves), events)


def _bins(X: Floats, cuts: Floats) -> Ints:
    each = zip(X.T, cuts, strict=True)
    return np.stack([np.searchsorted(one, x, side="right") for x, one in each], axis=1)


def _sums(bins: Ints, pairs: Floats, shape: tuple[int, ...]) -> Ints:
    columns, size = shape[0], shape[1] + 1
    flat = (bins + size * np.arange(columns)).ravel()
    each = [np.bincount(flat, np.repeat(one, columns), columns * size) for one in pairs.T]
    return np.stack(each, axis=1).astype(np.int64).reshape(columns, size, 2)


def _leaf_of(splits: Ints, bins: Ints) -> Ints:
    node = np.zeros(len(bins), dtype=np.int64)
    depth = len(splits).bit_length()
    for _ in range(depth):
        column, cut = splits[node].T
        node = 2 * node + 1 + (bins[np.arange(len(bins)), column] > cut)
    return node - len(splits)
