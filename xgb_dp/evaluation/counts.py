"""Public cells of scores and values, and the posterior of their counts given noisy sums.

The score of a binary classifier is binned into 128 cells on the logit scale. Instead of single cell
counts, two kinds of sums are released: a Haar tree per class (sums and differences of neighbouring
cells), which has little noise at coarse scales, and the residuals in ten bins of the probability,
which determine the calibration error. The cells and the sums depend only on public values.

Least squares gives unbiased counts from the sums. But counts are nonnegative, scores have a smooth
density with point masses, and the share of positive rows is a smooth curve near the predicted one.
A weak prior that encodes these facts halves the noise of AUC and log loss. It is post-processing.

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
"""Calibration bins: intervals of the predicted probability, of equal width."""
UNIT = 1 << 8
"""Maximum norm of one row's contribution, in grid units."""

_FARTHEST = 8.0  # larger logits are clipped to the first or last cell
_NARROWEST = 0.05  # minimum width of the grid, in logits
_ROOT, _TREE, _CALIBRATION = 0.1, 0.5, 0.4  # shares of the squared norm of a row
_FALL = math.sqrt(0.5)  # ratio of the shares of consecutive tree levels


@dataclass(frozen=True)
class ScoreGrid:
    """Cells of a score on the logit scale; scores beyond the ends are clipped."""

    low: float = -_FARTHEST
    high: float = _FARTHEST

    @classmethod
    def within(cls, low: float, high: float) -> ScoreGrid:
        """Return a grid for margins with known bounds."""
        low, high = max(low, -_FARTHEST), min(high, _FARTHEST)
        if math.isnan(low + high):
            return cls()
        if not high - low >= _NARROWEST:
            middle = min(max(0.5 * (low + high), -_FARTHEST), _FARTHEST)
            low, high = middle - _NARROWEST / 2.0, middle + _NARROWEST / 2.0
        return cls(low, high)

    @property
    def edges(self) -> Floats:
        """Inner edges, ascending; each edge next to a calibration bin's bound is moved onto it."""
        return _edges(self.low, self.high)

    @property
    def ends(self) -> Floats:
        """All edges, ascending."""
        return np.concatenate([[self.low], self.edges, [self.high]])

    @property
    def centres(self) -> Floats:
        """Representative logit of each cell."""
        ends = self.ends
        return np.asarray(0.5 * (ends[1:] + ends[:-1]))

    @property
    def probability(self) -> Floats:
        """Representative probability of each cell."""
        return np.asarray(expit(self.centres))

    @property
    def bins(self) -> Ints:
        """Calibration bin of each cell."""
        return np.minimum((self.probability * BINS).astype(np.int64), BINS - 1)

    def cell(self, margins: npt.ArrayLike) -> Ints:
        """Return the cell of each margin; NaN goes to the first cell."""
        values = np.nan_to_num(np.asarray(margins, dtype=np.float64), nan=self.low)
        return np.asarray(np.searchsorted(self.edges, values, side="right"), dtype=np.int64)


@lru_cache(maxsize=64)
def _edges(low: float, high: float) -> Floats:
    edges = np.linspace(low, high, CELLS + 1)[1:-1]
    share = np.arange(1, BINS) / BINS
    for bound in np.log(share) - np.log1p(-share):
        if low < bound < high:
            edges[np.argmin(np.abs(edges - bound))] = bound
    edges.setflags(write=False)
    return edges


@lru_cache(maxsize=64)
def counts_matrix(grid: ScoreGrid) -> Ints:
    """Return the contribution of a row in each cell: (sums, 2 * CELLS), negatives first."""
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
    """Return a weighted Haar matrix: the row count, and left minus right half at each node."""
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
    """Return the cell of each value, clipped to [-1, 1]; NaN counts as 1."""
    clipped = np.clip(np.nan_to_num(values, nan=1.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    root = np.sign(clipped) * np.abs(clipped) ** (1.0 / power)
    return np.minimum(((root + 1.0) * (cells / 2)).astype(np.int64), cells - 1)


def value_ends(power: int = 1, cells: int = CELLS) -> Floats:
    """Return the edges of the value cells: equally spaced roots, raised to the odd `power`."""
    return np.asarray(np.linspace(-1.0, 1.0, cells + 1) ** power)


def value_points(power: int = 1, cells: int = CELLS) -> Floats:
    """Return the midpoint of each value cell."""
    ends = value_ends(power, cells)
    return np.asarray(0.5 * (ends[1:] + ends[:-1]))


def log_cells(values: Floats, low: float, high: float, cells: int) -> Ints:
    """Return the cell of the logarithm of each value; NaN goes to the first cell."""
    with np.errstate(all="ignore"):
        place = (np.log(values) - low) / (high - low) * cells
    place = np.nan_to_num(place, nan=0.0, neginf=0.0, posinf=cells)
    return np.clip(place, 0, cells - 1).astype(np.int64)


DRAWS = 400
TOTALS = np.stack([np.repeat((0.0, 1.0), CELLS), np.ones(2 * CELLS)])
"""Linear functions of the cell counts: number of positive rows, and of all rows."""

_FIRST, _ROUNDS, _AGAIN = 3, 5, 2  # iterations: density only, joint, and joint from a warm start
_UNKNOWN = 9.0  # factor of the density's prior variance in the first iterations
_DAMPING = 0.7
_THIN = 0.02  # minimum prior density as a fraction of the mean density
_DENSITY, _DENSITY_LENGTH, _MASS = 1.0, 1.0, 0.7
_OFFSET, _SLOPE, _CURVE_LENGTH = 1.0, 0.3, 2.0
_TAIL, _TAIL_MEAN, _TAIL_SLOPE = -3.0, 0.3, 0.3  # positives are rare below the logit _TAIL
_CURVES = (0.05, 0.2, 0.8)  # candidate prior standard deviations of the calibration curve
_LEAST = 1e-6  # minimum expected rows per cell
_SMOOTH = 0.75  # bandwidth of the smoothing of the prior density, in logits


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of the cell counts given the noisy sums."""

    grid: ScoreGrid
    mean: Floats  # posterior mean counts: negatives, then positives; (2 * CELLS,)
    draws: Floats  # posterior draws of the counts; (draws, 2 * CELLS)
    population: Floats  # expected counts in the population; >= 0
    density: Floats  # draws of the population's expected rows per cell; (draws, CELLS)
    curve: Floats  # draws of logit(share of positives) - predicted logit; (draws, CELLS)
    totals: Floats  # unbiased positive and total counts, without the prior; (2,)
    totals_noise: Floats  # covariance of `totals` due to privacy noise; (2, 2)

    @property
    def by_class(self) -> Floats:
        """`population` of negatives and positives, (2, CELLS); positive, so safe to divide by."""
        return np.maximum(self.population, _LEAST).reshape(2, CELLS)

    def sampled(self) -> Floats:
        """Return posterior draws that also vary with the sampling of rows from the population."""
        rng = np.random.default_rng(2)
        noise = rng.normal(size=self.draws.shape) * np.sqrt(self.population)
        return np.asarray(self.draws + noise)


@dataclass(frozen=True, eq=False)
class Solver:
    """Unbiased least-squares estimate of counts from sums."""

    matrix: Floats  # contribution of a row in each cell; full column rank
    covariance: Floats  # covariance of the counts for noise of variance 1 in each sum
    root: Floats  # Cholesky factor of `covariance`

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike) -> Solver:
        """Build the solver for a block's matrix."""
        values = np.asarray(matrix, dtype=np.float64)
        covariance = np.linalg.inv(values.T @ values)
        return cls(values, covariance, np.linalg.cholesky(covariance))

    def solve(self, sums: Floats) -> Floats:
        """Estimate the counts from the sums."""
        return np.asarray(self.covariance @ (self.matrix.T @ sums))

    def counts(self, sums: Floats, noise: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Estimate the counts from noisy sums; also return draws that reflect the noise."""
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
    """Compute the posterior of the counts of a binary classifier."""
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
    """Gaussian prior of density and calibration curve; covariances depend on cell distance."""

    def __init__(self, grid: ScoreGrid) -> None:
        self.logits = grid.centres
        # In the low tail, private models tend to overestimate the share of positives, because
        # their leaf values are small. The prior mean corrects for this.
        self.below = np.minimum(grid.centres - _TAIL, 0.0)
        self.expected = grid.centres + _TAIL_MEAN * self.below
        distance = np.abs(grid.centres[:, np.newaxis] - grid.centres)
        # Length scales shrink with a narrow grid.
        scale = min(1.0, (grid.high - grid.low) / 8.0)
        average = np.exp(-0.5 * (distance / (_SMOOTH * scale)) ** 2)
        self.average = average / average.sum(axis=1, keepdims=True)
        self.density = _DENSITY**2 * np.exp(-0.5 * (distance / (_DENSITY_LENGTH * scale)) ** 2)
        self.curve = np.exp(-0.5 * (distance / _CURVE_LENGTH) ** 2)
        self.density_root, self.curve_root = _root(self.density), _root(self.curve)

    def covariances(self, smooth: Floats, curve: float) -> tuple[Floats, Floats]:
        """Return the covariances of the density, given its mean, and of the curve."""
        of_density = np.outer(smooth, smooth) * self.density + np.diag((_MASS * smooth) ** 2)
        of_curve = curve**2 * self.curve + _OFFSET**2
        of_curve = of_curve + _SLOPE**2 * np.outer(self.logits, self.logits)
        of_curve = of_curve + _TAIL_SLOPE**2 * np.outer(self.below, self.below)
        return np.asarray(of_density), np.asarray(of_curve)

    def draw_curves(
        self, rng: np.random.Generator, size: int, smooth: Floats, curve: float
    ) -> tuple[Floats, Floats]:
        """Draw densities around `smooth`, and curves, from the prior."""
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
    """Return a matrix R such that R @ R.T equals the covariance, up to rounding."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit of density and curve, linearized around the previous iteration."""

    prior: _Prior
    smooth: Floats  # prior mean of the density
    curve: float  # prior standard deviation of the curve
    to_density: Floats  # derivatives of the expected counts by density and by curve
    to_curve: Floats
    variance: Floats  # sampling variance of the counts, given the population
    expected: Floats  # prior mean of the counts
    covariance: Floats  # prior covariance of the counts
    factor: Any  # Cholesky factor of covariance + noise
    weights: Floats  # residual solved by `factor`
    evidence: float  # log marginal likelihood, up to a constant
    density: Floats  # posterior mean of the density
    shift: Floats  # posterior mean of the curve

    @property
    def mean(self) -> Floats:
        """Posterior mean of the counts."""
        return np.asarray(self.expected + self.covariance @ self.weights)

    @property
    def population(self) -> Floats:
        """Expected counts in the population."""
        q = expit(self.prior.expected + self.shift)
        return np.concatenate([self.density * (1.0 - q), self.density * q])

    def draws(
        self, rng: np.random.Generator, size: int, seen: Floats, error_root: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Draw counts, densities and curves from the posterior.

        Draws from the prior with simulated noise, then corrects each draw by the gain applied to
        its difference from the observation (Matheron's rule).
        """
        density, curve = self.prior.draw_curves(rng, size, self.smooth, self.curve)
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
    """Add the values for negatives and positives."""
    return np.asarray(values.reshape(*values.shape[:-1], 2, CELLS).sum(axis=-2))


def _fit(prior: _Prior, seen: Floats, error: Floats, curve: float, before: _Fit | None) -> _Fit:
    """Fit density and curve by repeated linearization around the previous iteration."""
    if before is not None:
        density, shift, first, steps = before.density, before.shift, 0, _AGAIN
    else:  # start from a uniform density with the observed number of rows
        total = max(float(seen.sum()), math.sqrt(float(error.sum())), 1.0)
        density, shift = np.full(CELLS, total / CELLS), np.zeros(CELLS)
        first, steps = _FIRST, _FIRST + _ROUNDS
    for step in range(steps):
        alone = step < first  # fit the density alone first, with a vague prior
        total = max(float(density.sum()), 1.0)
        smooth = np.maximum(prior.average @ density, _THIN * total / CELLS)
        of_density, of_curve = prior.covariances(smooth, curve)
        if alone:
            of_density, of_curve = _UNKNOWN * of_density, 0.0 * of_curve
        q = expit(prior.expected + shift)
        h = smooth * q * (1.0 - q)
        # Linearize around the last curve; the prior mean of the curve is 0.
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
    """Limit BLAS in this process to one thread within a block, if threadpoolctl is installed.

    The matrices here have a few hundred rows, so more threads help little even on an idle machine.
    On a busy one, spinning BLAS threads can make a factorization fifty times slower.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield
