"""What an adversary reaches, by definition: slow, and independent of the accountants."""

import math

import numpy as np


class Adversary:
    """Curves of adaptive compositions at multiples of a step, from below."""

    def __init__(self, step, reach):
        self.step, self.x = step, np.arange(-reach, reach + 1) * step
        self.curve = -np.expm1(np.minimum(self.x, 0.0))

    def _shifted(self, steps):
        """V(x - steps * step); beyond the grid all losses lie on one side."""
        at = self.x - steps * self.step
        inside = np.clip(np.arange(self.x.size) - steps, 0, self.x.size - 1)
        outside = np.maximum(-np.expm1(at), 0.0)
        return np.where(np.abs(at) <= self.x[-1] + 1e-9, self.curve[inside], outside)

    def select(self, range_steps):
        """A selection before everything so far: the best two-point law on the grid."""
        e0 = range_steps * self.step
        best = self.curve.copy()
        for t in range(1, range_steps):
            q = -math.expm1(t * self.step - e0) / -math.expm1(-e0)
            best = np.maximum(best, q * self._shifted(t) + (1 - q) * self._shifted(t - range_steps))
        self.curve = best

    def laplace(self, steps):
        """Randomised response of epsilon = steps * step, which Laplace noise can be turned into."""
        q = 1.0 / (1.0 + math.exp(-steps * self.step))
        self.curve = q * self._shifted(steps) + (1 - q) * self._shifted(-steps)

    def epsilon(self, delta):
        """No smaller epsilon holds at this delta."""
        return float(self.x[int(np.argmax(self.curve <= delta)) - 1])


def recursion(steps, h, *, upper):
    """Curve of selections (eps0, count) on the whole domain of the loss.

    `upper` replaces eps0 by (ceil(eps0/h) + 1) h, which contains every interval of length eps0
    between grid points. Otherwise eps0 is rounded down: some adversary reaches this value.
    """
    widths = [
        int(np.ceil(e / h - 1e-9)) + 1 if upper else int(np.floor(e / h + 1e-9)) for e, _ in steps
    ]
    counts = [count for _, count in steps]
    adversary = Adversary(h, sum(w * k for w, k in zip(widths, counts, strict=True)))
    for m, count in reversed(list(zip(widths, counts, strict=True))):
        for _ in range(count):
            adversary.select(m)
    return adversary.x, adversary.curve


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
        distribution = np.bincount(cells - cells.min(), weights=p[kept], minlength=span)
        n = 1 << span.bit_length()
        distribution = np.maximum(
            np.fft.irfft(np.fft.rfft(distribution, n) ** count, n)[:span], 0.0
        )
        first = int(cells.min()) * count
        positive = max(0, -first)  # only losses above an epsilon count, which is not negative
        self.loss = (first + np.arange(positive, span)) * step
        self.distribution = distribution[positive:]

    def delta(self, epsilon):
        over = self.loss > epsilon
        return float(np.sum(self.distribution[over] * -np.expm1(epsilon - self.loss[over])))

    def epsilon(self, delta):
        """The largest grid point at which the curve is above delta; 0 where none is."""
        low, high = 0, len(self.loss)
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (middle + 1, high) if self.delta(self.loss[middle]) > delta else (low, middle)
            )
        return float(self.loss[low - 1]) if low else 0.0
