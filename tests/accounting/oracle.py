"""What an adversary reaches, by definition: slow, and independent of the accountants."""

import math

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


def stick(p, q, x):
    """Hockey stick of two discrete laws."""
    return float(np.maximum(p - math.exp(x) * q, 0.0).sum())


class Composed:
    """`count` independent rounds of one pair of laws: some adversary has at least this.

    Losses are rounded down to a grid; those of a round above `most` count as `most`, and those
    below `-most` as none.
    """

    def __init__(self, p, q, count, step, most=8.0):
        loss = np.log(p / q)
        kept = loss > -most
        cells = np.floor(np.minimum(loss[kept], most) / step).astype(int)
        span = int(cells.max() - cells.min()) * count + 1
        law = np.bincount(cells - cells.min(), weights=p[kept], minlength=span)
        n = 1 << span.bit_length()
        law = np.maximum(np.fft.irfft(np.fft.rfft(law, n) ** count, n)[:span], 0.0)
        first = int(cells.min()) * count
        positive = max(0, -first)  # only losses above an epsilon count, which is not negative
        self.loss = (first + np.arange(positive, span)) * step
        self.law = law[positive:]

    def delta(self, epsilon):
        over = self.loss > epsilon
        return float(np.sum(self.law[over] * -np.expm1(epsilon - self.loss[over])))

    def epsilon(self, delta):
        """The largest grid point at which the curve is above delta; 0 where none is."""
        low, high = 0, len(self.loss)
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (middle + 1, high) if self.delta(self.loss[middle]) > delta else (low, middle)
            )
        return float(self.loss[low - 1]) if low else 0.0
