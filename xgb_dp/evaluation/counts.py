"""The public cells of scores and values, and the posterior of their counts given noisy sums.

A score of two classes lies in one of 128 cells on the scale of its logit. The counts of the cells
are not released one by one: sums and differences of neighbouring cells (a Haar tree for each
class), in which large scales have little noise, and the residuals of ten bins of the probability,
from which the calibration error follows. All of it depends on public numbers alone.

The sums can be solved for the counts without bias. But counts are not negative, scores have a
smooth density with point masses, and the share of positive rows follows a smooth curve near the
predicted one. A weak prior that says so halves the noise of AUC and log loss. It is
post-processing.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from ..noisy_sums import Floats, Ints

CELLS = 128
"""Cells of a score, a power of 2."""
BINS = 10
"""Bins of the probability in which calibration is looked at, of equal width."""
UNIT = 1 << 8
"""Grid units of what one row adds at most."""

_FARTHEST = 8.0  # logits beyond lie in the first or last cell
_NARROWEST = 0.05
_ROOT, _TREE, _CALIBRATION = 0.1, 0.5, 0.4  # of the squared norm of what one row adds
_FALL = math.sqrt(0.5)  # share of a level of the tree, over that of the level above


@dataclass(frozen=True)
class ScoreGrid:
    """Cells of a score on the scale of the logit; scores beyond count for the first or last."""

    low: float = -_FARTHEST
    high: float = _FARTHEST

    @classmethod
    def within(cls, low: float, high: float) -> ScoreGrid:
        """The grid for margins that are known to lie in a range."""
        low, high = max(low, -_FARTHEST), min(high, _FARTHEST)
        if math.isnan(low + high):
            return cls()
        if not high - low >= _NARROWEST:
            middle = min(max(0.5 * (low + high), -_FARTHEST), _FARTHEST)
            low, high = middle - _NARROWEST / 2.0, middle + _NARROWEST / 2.0
        return cls(low, high)

    @property
    def edges(self) -> Floats:
        """Inner edges, ascending; those next to a bound of a calibration bin lie on it."""
        return _edges(self.low, self.high)

    @property
    def ends(self) -> Floats:
        """All edges."""
        return np.concatenate([[self.low], self.edges, [self.high]])

    @property
    def centres(self) -> Floats:
        """The logit that stands for each cell."""
        ends = self.ends
        return np.asarray(0.5 * (ends[1:] + ends[:-1]))

    @property
    def probability(self) -> Floats:
        """The probability that stands for each cell."""
        return np.asarray(expit(self.centres))

    @property
    def bins(self) -> Ints:
        """The calibration bin of each cell."""
        return np.minimum((self.probability * BINS).astype(np.int64), BINS - 1)

    def cell(self, margins: npt.ArrayLike) -> Ints:
        """The cell of each margin; NaN counts as the first."""
        values = np.nan_to_num(np.asarray(margins, dtype=np.float64), nan=self.low)
        return np.asarray(np.searchsorted(self.edges, values, side="right"), dtype=np.int64)


@lru_cache(maxsize=64)
def _edges(low: float, high: float) -> Floats:
    edges = np.linspace(low, high, CELLS + 1)[1:-1]
    share = np.arange(1, BINS) / BINS
    width = (high - low) / CELLS
    for bound in np.log(share) - np.log1p(-share):
        nearest = int(np.argmin(np.abs(edges - bound)))
        if abs(edges[nearest] - bound) <= 0.5 * width * (1.0 + 1e-9):
            edges[nearest] = bound
    edges.setflags(write=False)
    return edges


@lru_cache(maxsize=64)
def counts_matrix(grid: ScoreGrid) -> Ints:
    """What a row in each cell adds to what is released: (sums, 2 * CELLS), negatives first."""
    tree = tree_matrix(CELLS, _ROOT, _TREE)
    none = np.zeros_like(tree)
    inside = grid.bins == np.arange(BINS)[:, np.newaxis]
    p = grid.probability
    residual = math.sqrt(_CALIBRATION) * np.hstack([inside * -p, inside * (1.0 - p)])
    whole = np.vstack([np.hstack([tree, none]), np.hstack([none, tree]), residual])
    matrix = np.rint(whole * UNIT).astype(np.int64)
    matrix.setflags(write=False)
    return matrix


def tree_matrix(cells: int, root: float, tree: float) -> Floats:
    """Haar tree: the number of rows, and at each node the left half less the right one."""
    levels = cells.bit_length() - 1
    share = _FALL ** np.arange(levels)
    share *= tree / share.sum()
    rows = [np.full((1, cells), math.sqrt(root))]
    for level in range(levels):
        half = cells >> (level + 1)
        sides = np.concatenate([np.ones(half), -np.ones(half)])
        rows.append(math.sqrt(share[level]) * np.kron(np.eye(1 << level), sides))
    return np.vstack(rows)


def value_cells(values: Floats, power: int = 1, cells: int = CELLS) -> Ints:
    """The cell of each value; what lies beyond -1 or 1 counts as that, NaN as 1."""
    clipped = np.clip(np.nan_to_num(values, nan=1.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    root = np.sign(clipped) * np.abs(clipped) ** (1.0 / power)
    return np.minimum(((root + 1.0) * (cells / 2)).astype(np.int64), cells - 1)


def value_ends(power: int = 1, cells: int = CELLS) -> Floats:
    """The edges of the cells of values, which are even on the scale of a root of the value."""
    return np.asarray(np.linspace(-1.0, 1.0, cells + 1) ** power)


def value_points(power: int = 1, cells: int = CELLS) -> Floats:
    """The value in the middle of each cell."""
    ends = value_ends(power, cells)
    return np.asarray(0.5 * (ends[1:] + ends[:-1]))


def log_cells(values: Floats, low: float, high: float, cells: int) -> Ints:
    """The cell of the logarithm of each value; what is no number is in the first."""
    with np.errstate(all="ignore"):
        place = (np.log(values) - low) / (high - low) * cells
    place = np.nan_to_num(place, nan=0.0, neginf=0.0, posinf=cells)
    return np.clip(place, 0, cells - 1).astype(np.int64)


DRAWS = 400
TOTALS = np.stack([np.repeat((0.0, 1.0), CELLS), np.ones(2 * CELLS)])
"""Sums over the counts of the cells: positive rows, and all rows."""

_FIRST, _ROUNDS, _AGAIN = 3, 5, 2
_UNKNOWN = 9.0
_DAMPING = 0.7
_THIN = 0.02  # least density of the prior, of the mean one
_DENSITY, _DENSITY_LENGTH, _MASS = 1.0, 1.0, 0.7
_OFFSET, _SLOPE, _CURVE_LENGTH = 1.0, 0.3, 2.0
_TAIL, _TAIL_MEAN, _TAIL_SLOPE = -3.0, 0.3, 0.3  # logit below which probabilities are rare
_CURVES = (0.05, 0.2, 0.8)  # deviations of the curve that are thought possible
_LEAST = 1e-6  # rows that are expected in a cell at least
_SMOOTH = 0.75  # width over which the density of the prior is averaged, in logits


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the noisy sums say about the counts of the cells."""

    grid: ScoreGrid
    mean: Floats  # counts of the rows: negatives, then positives; (2 * CELLS,)
    draws: Floats  # counts that are as likely, given the sums; (draws, 2 * CELLS)
    population: Floats  # counts to be expected in other rows of the same population; >= 0
    density: Floats  # rows in each cell of the population, as `draws`
    curve: Floats  # logit of the share of positives in the population, less the predicted one
    totals: Floats  # positive rows and all rows by the sums alone, without bias or prior; (2,)
    totals_noise: Floats  # covariance of `totals` by the noise of the release; (2, 2)

    @property
    def by_class(self) -> Floats:
        """`population` of negatives and positives, (2, CELLS); above 0, to be divided by."""
        return np.maximum(self.population, _LEAST).reshape(2, CELLS)

    def sampled(self) -> Floats:
        """Draws of the counts of other rows of the same population."""
        rng = np.random.default_rng(2)
        noise = rng.normal(size=self.draws.shape) * np.sqrt(self.population)
        return np.asarray(self.draws + noise)


@dataclass(frozen=True, eq=False)
class Solver:
    """The counts that sums stand for, without bias: a least-squares problem."""

    matrix: Floats  # what a row in each cell adds to the sums; of full column rank
    covariance: Floats  # of the counts, where each sum has noise of variance 1
    root: Floats  # its product with its transpose is `covariance`

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike) -> Solver:
        """The solver for a block of a table."""
        values = np.asarray(matrix, dtype=np.float64)
        covariance = np.linalg.inv(values.T @ values)
        return cls(values, covariance, np.linalg.cholesky(covariance))

    def solve(self, sums: Floats) -> Floats:
        """Counts for sums."""
        return np.asarray(self.covariance @ (self.matrix.T @ sums))

    def counts(self, sums: Floats, noise: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Counts for noisy sums, and others that are as likely."""
        counts = self.solve(sums)
        draws = counts + noise * rng.normal(size=(DRAWS, len(counts))) @ self.root.T
        return counts, np.asarray(draws)


def two_classes(
    grid: ScoreGrid,
    solver: Solver,
    released: Floats,
    noise: float,
    draws: int = DRAWS,
    first: Solver | None = None,
) -> Posterior:
    """The posterior of the counts of two classes."""
    alone = first or solver
    totals = TOTALS @ alone.solve(released[: len(alone.matrix)])
    seen = solver.solve(released)
    error = noise**2 * solver.covariance
    fits: list[_Fit] = []
    for size in _CURVES:
        fits.append(_fit(_prior_on(grid), seen, error, size, fits[-1] if fits else None))
    evidence = np.array([fit.evidence for fit in fits])
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    mean = np.asarray(np.sum([w * fit.mean for w, fit in zip(weight, fits, strict=True)], axis=0))
    rng = np.random.default_rng(0)
    parts = [
        fit.draws(rng, int(n), seen, noise * solver.root)
        for n, fit in zip(rng.multinomial(draws, weight), fits, strict=True)
    ]
    counts, density, curve = (np.vstack(drawn) for drawn in zip(*parts, strict=True))
    return Posterior(
        grid,
        mean,
        counts,
        fits[int(np.argmax(weight))].population,
        np.maximum(density, 0.0),
        curve + _prior_on(grid).expected - grid.centres,
        totals,
        noise**2 * (TOTALS @ alone.covariance @ TOTALS.T),
    )


class _Prior:
    """What is expected of density and curve, by the distance of cells."""

    def __init__(self, grid: ScoreGrid) -> None:
        self.logits = grid.centres
        # Distance below the logit from which on positives are rare: there private models, whose
        # leaves are small, say too much of them more often than too little.
        self.below = np.minimum(grid.centres - _TAIL, 0.0)
        self.expected = grid.centres + _TAIL_MEAN * self.below
        apart = np.abs(grid.centres[:, np.newaxis] - grid.centres)
        # A narrow grid is looked at on its own scale.
        scale = min(1.0, (grid.high - grid.low) / 8.0)
        average = np.exp(-0.5 * (apart / (_SMOOTH * scale)) ** 2)
        self.average = average / average.sum(axis=1, keepdims=True)
        self.density = _DENSITY**2 * np.exp(-0.5 * (apart / (_DENSITY_LENGTH * scale)) ** 2)
        self.curve = np.exp(-0.5 * (apart / _CURVE_LENGTH) ** 2)
        self.density_root, self.curve_root = _root(self.density), _root(self.curve)

    def covariances(self, smooth: Floats, curve: float) -> tuple[Floats, Floats]:
        """Of density and curve, around a density and with a deviation of the curve."""
        of_density = np.outer(smooth, smooth) * self.density + np.diag((_MASS * smooth) ** 2)
        of_curve = curve**2 * self.curve + _OFFSET**2
        of_curve = of_curve + _SLOPE**2 * np.outer(self.logits, self.logits)
        of_curve = of_curve + _TAIL_SLOPE**2 * np.outer(self.below, self.below)
        return np.asarray(of_density), np.asarray(of_curve)

    def drawn(
        self, rng: np.random.Generator, size: int, smooth: Floats, curve: float
    ) -> tuple[Floats, Floats]:
        """Densities and curves."""
        normal, cells = rng.normal, (size, CELLS)
        density = smooth * (
            1.0 + normal(size=cells) @ self.density_root.T + _MASS * normal(size=cells)
        )
        curves = (
            curve * normal(size=cells) @ self.curve_root.T
            + _OFFSET * normal(size=(size, 1))
            + _SLOPE * normal(size=(size, 1)) * self.logits
            + _TAIL_SLOPE * normal(size=(size, 1)) * self.below
        )
        return density, curves


_prior_on = lru_cache(maxsize=16)(_Prior)


def _root(covariance: Floats) -> Floats:
    """A matrix whose product with its transpose is a covariance, but for rounding."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True, eq=False)
class _Fit:
    """A linear fit: the prior around which it is made, and what the counts say about it."""

    prior: _Prior
    smooth: Floats  # density of the prior
    curve: float  # deviation of the curve of the prior
    to_density: Floats  # how counts follow density and curve
    to_curve: Floats
    variance: Floats  # of the counts, given the population
    expected: Floats
    covariance: Floats  # of the counts in the prior
    factor: Any
    weights: Floats
    evidence: float
    density: Floats  # of the population, by this fit
    shift: Floats

    @property
    def mean(self) -> Floats:
        """Counts of the rows."""
        return np.asarray(self.expected + self.covariance @ self.weights)

    @property
    def population(self) -> Floats:
        """Counts to be expected in other rows."""
        q = expit(self.prior.expected + self.shift)
        return np.concatenate([self.density * (1.0 - q), self.density * q])

    def draws(
        self, rng: np.random.Generator, size: int, seen: Floats, error_root: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Counts, and density and curve of the population, given what was seen.

        Drawn from the prior with noise of their own, and moved by what differs from what was seen.
        """
        density, curve = self.prior.drawn(rng, size, self.smooth, self.curve)
        around = np.tile(density - self.smooth, (1, 2)) * self.to_density
        around += np.tile(curve, (1, 2)) * self.to_curve
        counts = self.expected + around + rng.normal(size=around.shape) * np.sqrt(self.variance)
        off = seen - counts - rng.normal(size=counts.shape) @ error_root.T
        pull = cho_solve(self.factor, off.T).T
        of_density, of_curve = self.prior.covariances(self.smooth, self.curve)
        density = density + _over_classes(pull * self.to_density) @ of_density
        curve = curve + _over_classes(pull * self.to_curve) @ of_curve
        return counts + pull @ self.covariance, density, curve


def _over_classes(values: Floats) -> Floats:
    """Sums over negatives and positives."""
    return np.asarray(values.reshape(*values.shape[:-1], 2, CELLS).sum(axis=-2))


def _fit(prior: _Prior, seen: Floats, error: Floats, curve: float, before: _Fit | None) -> _Fit:
    """Density and curve by repeated linear fits, each around the one before."""
    if before is not None:
        density, shift, first, steps = before.density, before.shift, 0, _AGAIN
    else:  # an even density with the number of rows that was seen
        total = max(float(seen.sum()), math.sqrt(float(error.sum())), 1.0)
        density, shift = np.full(CELLS, total / CELLS), np.zeros(CELLS)
        first, steps = _FIRST, _FIRST + _ROUNDS
    for step in range(steps):
        alone = step < first  # the density alone, which is not known at all in the beginning
        total = max(float(density.sum()), 1.0)
        smooth = np.maximum(prior.average @ density, _THIN * total / CELLS)
        of_density, of_curve = prior.covariances(smooth, curve)
        if alone:
            of_density, of_curve = _UNKNOWN * of_density, 0.0 * of_curve
        q = expit(prior.expected + shift)
        h = smooth * q * (1.0 - q)
        # Linear around the curve found last, while the prior of the curve is about 0.
        to_density, to_curve = np.concatenate([1.0 - q, q]), np.concatenate([-h, h])
        variance = np.tile(smooth, 2) * to_density
        expected = variance - to_curve * np.tile(shift, 2)
        covariance = np.tile(of_density, (2, 2)) * np.outer(to_density, to_density)
        covariance += np.tile(of_curve, (2, 2)) * np.outer(to_curve, to_curve)
        covariance[np.diag_indices(2 * CELLS)] += variance
        factor = cho_factor(covariance + error, lower=True)
        surprise = seen - expected
        weights = cho_solve(factor, surprise)
        density = np.maximum(smooth + of_density @ _over_classes(to_density * weights), 0.0)
        if not alone:
            target = of_curve @ _over_classes(to_curve * weights)
            shift = shift + np.clip(_DAMPING * (target - shift), -1.0, 1.0)
    log_det = 2.0 * float(np.log(np.diag(factor[0])).sum())
    evidence = -0.5 * (float(surprise @ weights) + log_det)
    return _Fit(
        prior, smooth, curve, to_density, to_curve, variance, expected, covariance, factor, weights,
        evidence, density, shift,
    )  # fmt: skip


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS of this process to one thread in a block, if threadpoolctl is installed.

    Threads of BLAS wait for each other by spinning. On matrices of some hundreds of rows they save
    little on an idle machine. If other programs want the same cores, a factorization takes fifty
    times as long as on one thread.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield
