"""Slow, independent evaluation of the bounded-range recursion, by its definition."""

import numpy as np


def recursion(steps, h, *, upper):
    """Hockey-stick curve of selections (eps0, count) on the whole domain of the loss.

    `upper` replaces eps0 by (ceil(eps0/h) + 1) h, which contains every interval of length eps0
    between grid points. Otherwise eps0 is rounded down and t stays on the grid: some adversary
    reaches this value.
    """
    widths = [
        int(np.ceil(e / h - 1e-9)) + 1 if upper else int(np.floor(e / h + 1e-9)) for e, _ in steps
    ]
    n = sum(w * k for w, (_, k) in zip(widths, steps, strict=True))
    x = np.arange(-n, n + 1) * h
    v = -np.expm1(np.minimum(x, 0.0))
    for m, (_, count) in reversed(list(zip(widths, steps, strict=True))):
        for _ in range(count):
            best = np.zeros_like(v)
            below = -np.expm1(x[0] - np.arange(m, 0, -1) * h)
            padded = np.concatenate([below, v, np.zeros(m)])
            for j in range(m + 1):
                q = np.expm1((j - m) * h) / np.expm1(-m * h)
                lower = padded[m - j : m - j + len(v)]
                higher = padded[2 * m - j : 2 * m - j + len(v)]
                best = np.maximum(best, q * lower + (1.0 - q) * higher)
            v = best
    return x, v


def epsilon_of(x, v, delta):
    """First grid point at which the curve is at most delta."""
    return float(x[np.argmax(v <= delta)])
