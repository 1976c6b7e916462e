"""Noisy full-batch gradient descent of an additive model: a weight for each bin of each column.

Rows are one-hot codes of bins, scaled to norm 1, so that a row adds a vector of norm at most `clip`
to a sum of gradients. Each round releases one such sum with Gaussian noise; Gaussian releases
compose exactly. The model is the mean of the second half of the iterates.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from scipy import sparse, special

from .codes import all_codes

MOMENTUM = 0.9
# Above this share of rows in the first bin of an average column, that bin is not coded.
SPARSE = 0.9


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest shift of a unit Gaussian that is (epsilon, delta)-private (Balle and Wang 2018)."""

    def failure(mu: float) -> float:
        second = epsilon + special.log_ndtr(-epsilon / mu - mu / 2)
        return float(special.ndtr(-epsilon / mu + mu / 2) - np.exp(second))

    low, high = 0.0, 1.0
    while failure(high) <= delta:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if failure(middle) <= delta else (low, middle)
    return low


def one_hot(codes: np.ndarray) -> sparse.csr_matrix:
    """Rows of norm 1: a one for the bin of each column, and one for the intercept.

    Where nearly all rows of most columns are in one bin, as in data of words, that bin is not
    coded, and a row is scaled by the number of its own ones.

    Args:
        codes: Bin of each row and column.
    """
    size = len(codes)
    counts = [np.bincount(column) for column in codes.T]
    thin = np.mean([c.max() / size for c in counts]) > SPARSE
    parts = []
    for column, count in zip(codes.T, counts, strict=True):
        rows = np.arange(size)
        if thin:
            rows = rows[column != count.argmax()]
        ones = np.ones(len(rows), dtype=np.float32)
        parts.append(sparse.csr_matrix((ones, (rows, column[rows])), (size, len(count))))
    parts.append(sparse.csr_matrix(np.ones((size, 1), dtype=np.float32)))
    out = sparse.hstack(parts, format="csr", dtype=np.float32)
    norms = np.sqrt(np.diff(out.indptr)).astype(np.float32)
    return sparse.csr_matrix(sparse.diags(1 / norms, dtype=np.float32) @ out)


def unit_rows(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Rows of norm 1: log(1 + count) of each column, and a one for the intercept."""
    ones = sparse.csr_matrix(np.ones((counts.shape[0], 1), dtype=np.float32))
    out = sparse.hstack([counts.astype(np.float32).log1p(), ones], format="csr")
    norms = np.sqrt(np.asarray(out.multiply(out).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags(1 / norms, dtype=np.float32) @ out)


def fit(
    x: sparse.csr_matrix,
    y: np.ndarray,
    mu: float,
    rounds: int,
    step: float,
    clip: float,
) -> np.ndarray:
    """Weights of the bins.

    Args:
        x: Rows of norm 1.
        y: Labels, 0 or 1.
        mu: Budget, as the shift of one unit Gaussian.
        rounds: Number of gradients.
        step: Step length, for a mean gradient.
        clip: Largest residual.
    """
    rng = np.random.default_rng()
    noise = clip * math.sqrt(rounds) / mu
    back = x.T.tocsr()
    weights = np.zeros(x.shape[1], dtype=np.float32)
    velocity, mean = np.zeros_like(weights), np.zeros_like(weights)
    for index in range(rounds):
        residuals = np.clip(special.expit(x @ weights) - y, -clip, clip).astype(np.float32)
        total = back @ residuals + rng.normal(0.0, noise, len(weights)).astype(np.float32)
        velocity = MOMENTUM * velocity + total / len(y)
        weights = weights - step * velocity
        if index >= rounds // 2:
            mean += weights / (rounds - rounds // 2)
    return mean


def predict(request: dict[str, Any], data: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """Train and predict as asked: ``params`` has bins, rounds, step and clip.

    Rows in bins are kept in `data` for the next setting; their time is charged to each.
    """
    settings = dict(request["params"])
    bins, shared_s = settings.pop("bins"), 0.0
    kept = f"{bins} bins"
    if kept in data:
        x, shared_s = data[kept]
    else:
        start = time.process_time()
        x = one_hot(all_codes(data, request["nominal"], bins))
        data[kept] = x, time.process_time() - start
    train = len(data["x_train"])
    mu = gaussian_mu(request["epsilon"], request["delta"])
    weights = fit(x[:train], data["y_train"].astype(np.float32), mu, **settings)
    return special.expit(x[train:] @ weights), {"shared_s": shared_s}
