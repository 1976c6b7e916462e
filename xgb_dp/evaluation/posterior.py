"""Counts of cells from their noisy sums: what is known about them afterwards, as a Gaussian.

The sums alone would do (they can be solved for the counts, without bias), but counts are not
negative, scores have a smooth density with points of mass, and the share of positive rows follows a
smooth curve near the predicted one. A prior that says so, weakly, halves the noise of AUC and log
loss. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from ..noisy_sums import Floats
from .grid import CELLS, Grid

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

    grid: Grid
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
    def of(cls, matrix: npt.ArrayLike) -> Solver:
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
    grid: Grid,
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

    def __init__(self, grid: Grid) -> None:
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
