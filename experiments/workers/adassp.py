"""A private linear model: ridge regression on noisy sums (AdaSSP, Wang 2018, algorithm 2).

Rows are ranks of numbers, one-hot codes of categories and a constant, of norm at most 1. Gaussian
noise of equal parts of the budget is on the least eigenvalue, the products of all pairs, and those
with the label.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .codes import bin_codes
from .descent import gaussian_mu

BINS = 64
RISK = 0.05  # that the ridge is too small for the noise


def scores(data: dict[str, np.ndarray], nominal: list[bool]) -> np.ndarray:
    """Training and test rows: what is read off the whole file counts as public."""
    both = np.concatenate([data["x_train"], data["x_test"]])
    parts = [np.ones((len(both), 1))]
    for j, is_nominal in enumerate(nominal):
        codes = bin_codes(both[:, j], is_nominal, BINS)
        counts = np.bincount(codes)
        if is_nominal:
            parts.append(np.eye(len(counts))[codes])
        else:
            ranks = (2.0 * np.cumsum(counts) - counts) / len(both) - 1.0
            parts.append(ranks[codes][:, None])
    rows = np.hstack(parts)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, math.sqrt(np.mean(norms**2))))


def fit(x: np.ndarray, y: np.ndarray, mu: float) -> np.ndarray:
    """Weights of the scores.

    Args:
        x: Rows of norm at most 1.
        y: Labels, -1 or 1.
        mu: Budget, as the shift of one unit Gaussian.
    """
    rng = np.random.default_rng()
    n, noise = x.shape[1], math.sqrt(3.0) / mu
    products = x.T @ x
    spread = math.sqrt(n * math.log(2.0 * n * n / RISK)) * noise
    sure = math.sqrt(2.0 * math.log(1.0 / RISK)) * noise
    least = max(float(np.linalg.eigvalsh(products)[0]) + rng.normal(0.0, noise) - sure, 0.0)
    half = np.triu(rng.normal(0.0, noise, (n, n)))
    noisy = products + half + np.triu(half, 1).T
    by_label = x.T @ y + rng.normal(0.0, noise, n)
    return np.linalg.solve(noisy + max(spread - least, 0.0) * np.eye(n), by_label)


def predict(request: dict[str, Any], data: dict[str, np.ndarray]) -> np.ndarray:
    """Train and predict as asked; shares of label 1, cut to be probabilities."""
    x, train = scores(data, request["nominal"]), len(data["x_train"])
    mu = gaussian_mu(request["epsilon"], request["delta"])
    weights = fit(x[:train], 2.0 * data["y_train"] - 1.0, mu)
    return np.clip(0.5 + 0.5 * (x[train:] @ weights), 0.001, 0.999)
