"""The plugin's own losses in float64: pairs of rows, their largest norms, and units of margins."""

import math
from typing import Any

import numpy as np
from scipy.stats import gumbel_l, logistic, norm

from .bounded_losses import BOUNDED, largest_norms
from .splits import Doubles, Floats, Ints, Plan, RowBound


class QuantileLoss:
    """Check loss, smoothed by Epanechnikov's kernel of a width that falls over the rounds.

    The first rounds may fit the median, for all outputs together.
    """

    def __init__(self, loss: Plan) -> None:
        self.levels = [float(a) for a in loss["levels"]]
        self.first, self.last = float(loss["first_width"]), float(loss["last_width"])
        self.decay = float(loss["width_decay"])
        self.centre_rounds = int(loss["centre_rounds"])
        self.scale, self.centre_width = float(loss["centre_scale"]), float(loss["centre_width"])

    def shares_leaves(self, t: int) -> bool:
        """Whether all trees of a round are alike."""
        return t < self.centre_rounds and len(self.levels) > 1

    def unit(self, t: int) -> float:
        """Width of the kernel in a round."""
        if t < self.centre_rounds:
            return self.centre_width
        return max(self.first * self.decay ** (t - self.centre_rounds), self.last)

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """First and second derivatives by margins in widths, (rows, levels)."""
        u = np.clip((margin - y[:, None]) / self.unit(t), -1.0, 1.0)
        levels = np.array(self.levels)
        if t < self.centre_rounds:
            first = np.zeros_like(u)
            first[:, 0] = self.scale
            return first * (0.25 * u * (3.0 - u * u)), first * (0.75 * (1.0 - u * u))
        return 0.5 + 0.25 * u * (3.0 - u * u) - levels, 0.75 * (1.0 - u * u)

    def norms(self, margin: Doubles, r: float, t: int) -> Doubles:
        """Of rows with the worst label: on one side of all quantiles, where these are in order."""
        if t < self.centre_rounds:
            u = np.linspace(0.0, 1.0, 100_001)
            g, h = 0.25 * u * (3.0 - u * u), 0.75 * (1.0 - u * u)
            largest = self.scale * math.sqrt(float((g * g + r * h * h).max()))
            return np.full(len(margin), largest)
        a = np.array(self.levels)
        middle = (a - 0.5) ** 2 + r * 0.5625
        above, below = (np.maximum(end**2, middle) for end in (a, 1 - a))
        crossed = (np.diff(margin, axis=1) < 0).any(axis=1)
        ordered = max(float(above.sum()), float(below.sum()))
        return np.sqrt(np.where(crossed, float(np.maximum(above, below).sum()), ordered))


class PowerLoss:
    """Deviance of a power, of labels cut at a cap, in units of their mean and of the cap."""

    def __init__(self, loss: Plan) -> None:
        self.power, self.mean = float(loss["power"]), float(loss["mean"])
        self.cap, self.capped = float(loss["cap"]), float(loss["capped_mean"])
        self.start = float(loss["start"])

    def unit(self, t: int) -> float:
        """Margins are logarithms."""
        return 1.0

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """Derivative and expected second derivative, (rows, 1)."""
        a = np.exp(margin) / self.mean
        factor = a ** (1 - self.power) * self.capped / self.cap
        return factor * (a - np.minimum(y[:, None], self.cap) / self.capped), factor * a

    def norms(self, margin: Doubles, r: float, t: int) -> Doubles:
        """The larger of a label of 0 and one at the cap."""
        return largest_norms(self, margin, r, (0.0, self.cap))

    def mean_of(self, margin: Doubles) -> Doubles:
        """What a margin predicts."""
        return np.exp(margin)

    @property
    def largest_mean(self) -> float:
        """Where predictions are cut in the correction of the mean."""
        return 16.0 * self.mean


class SurvivalLoss:
    """Minus the logarithm of the probability of an interval; labels are (rows, 2)."""

    def __init__(self, loss: Plan) -> None:
        self.distribution, self.scale = loss["distribution"], float(loss["scale"])

    def unit(self, t: int) -> float:
        """Margins are in units of the scale."""
        return self.scale

    def _z(self, time: Doubles, margin: Doubles) -> Doubles:
        with np.errstate(all="ignore"):
            z = np.clip((np.log(time) - margin) / self.scale, -30.0, 30.0)
        return np.where(np.isinf(time), np.inf, z)

    def _pair(self, lower: Doubles, upper: Doubles) -> tuple[Doubles, Doubles]:
        error = {"normal": norm, "logistic": logistic, "extreme": gumbel_l}[self.distribution]
        at, step = upper - lower < 1e-5, 5e-3
        middle = np.where(at, (lower + upper) / 2, 0.0)

        def loss(shift: float) -> Doubles:  # of margins that are higher by so many scales
            low, high = lower - shift, upper - shift
            right = low > 0  # where tails above are smaller than what is below
            above, below = error.sf(low) - error.sf(high), error.cdf(high) - error.cdf(low)
            inside = np.log(np.maximum(np.where(right, above, below), 1e-300))
            # Both tails of an infinite end are right only from above.
            tail = np.where(np.isinf(high), error.logsf(low), inside)
            return -np.where(at, error.logpdf(middle - shift), tail)

        a, b, c, d, e = (loss(k * step) for k in (-2, -1, 0, 1, 2))
        g = (a - 8 * b + 8 * d - e) / (12 * step)
        return g, np.maximum((-a + 16 * b - 30 * c + 16 * d - e) / (12 * step**2), 0.0)

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """Numerical derivatives by margins in scales, (rows, 1)."""
        lower, upper = (self._z(y[:, k], margin[:, 0]) for k in (0, 1))
        g, h = self._pair(lower, upper)
        return g[:, None], h[:, None]


LOSSES: dict[str, Any] = {
    "quantile": QuantileLoss,
    "power": PowerLoss,
    "survival": SurvivalLoss,
    **BOUNDED,
}


def loss_of(plan: Plan) -> Any:
    """The loss of a plan; None where the gradients are XGBoost's."""
    loss = plan.get("loss")
    if loss is None:
        return None
    kind = LOSSES[loss["name"]]
    return kind(loss, RowBound.of(plan).target) if loss["name"] in BOUNDED else kind(loss)


def unit_of(loss: Any, t: int, k: int) -> float:
    """What a leaf weight of one adds to the margin of an output."""
    units = getattr(loss, "units", None)
    return float(loss.unit(t) if units is None else units[k])


def bounded_pairs(
    loss: Any,
    bound: RowBound,
    margin: Floats,
    y: Doubles,
    weight: Doubles,
    t: int,
    upper: Floats | None = None,
) -> tuple[list[Ints], Doubles]:
    """Integers of rows, output by output, and the norms of rows within their bound where C = 1.

    `upper` are the ends of intervals that begin at `y`. Labels of several targets are columns.
    """
    wide = margin.astype(np.float64)
    target = np.clip(y, *getattr(loss, "ranges", bound.target))
    if t == 0:
        wide = wide + getattr(loss, "start", 0.0)
    if upper is not None:
        last = np.maximum(np.clip(upper.astype(np.float64), *bound.target), target)
        target = np.stack([target, np.where(np.isinf(upper), np.inf, last)], axis=1)
    with np.errstate(all="ignore"):
        g, h = loss.pairs(wide, target, t)
        g, h = g * weight[:, None], h * weight[:, None]
        if bound.unit_hessian:
            h = np.broadcast_to(weight[:, None], g.shape).copy()
        if bound.mode != "prediction":
            by_output = [
                bound.quantise(g[:, k], h[:, k], y, False, weight) for k in range(g.shape[1])
            ]
            return by_output, np.zeros(len(y))
        of_loss, units = (0.0, bound.r) if bound.unit_hessian else (bound.r, 0.0)
        norm = np.sqrt(loss.norms(wide, of_loss, t) ** 2 + units * g.shape[1])
        return bound.quantise_known(g, h, norm, weight)


def start_of(loss: Any, plan: Plan, tree: Any, t: int) -> None:
    """The first tree starts all predictions, where rows bring their own margins."""
    start = getattr(loss, "start", 0.0) / int(plan["parallel_trees"])
    for node, left in enumerate(tree["left"]) if t == 0 and start else ():
        weight = float(tree["base_weight"][node]) + start / float(plan["leaf"]["eta"])
        tree["base_weight"][node] = np.float32(weight)
        if left == -1:
            tree["leaf"][node] = np.float32(float(tree["leaf"][node]) + start)
