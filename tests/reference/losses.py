"""The plugin's own losses in float64: pairs of rows, their largest norms, and units of margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from .splits import Doubles, Floats, Ints, Plan, RowBound


class QuantileLoss:
    """Check loss, smoothed by Epanechnikov's kernel of a width that falls over the rounds."""

    def __init__(self, own: Plan) -> None:
        self.levels = [float(a) for a in own["levels"]]
        self.first, self.last = float(own["first_width"]), float(own["last_width"])
        self.decay = float(own["width_decay"])

    def unit(self, t: int) -> float:
        """Width of the kernel in a round."""
        return max(self.first * self.decay**t, self.last)

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """First and second derivatives by margins in widths, (rows, levels)."""
        u = np.clip((margin - y[:, None]) / self.unit(t), -1.0, 1.0)
        return 0.5 + 0.25 * u * (3.0 - u * u) - np.array(self.levels), 0.75 * (1.0 - u * u)

    def norms(self, margin: Doubles, r: float) -> Doubles:
        """Of rows with the worst label: on one side of all quantiles, where these are in order."""
        a = np.array(self.levels)
        middle = (a - 0.5) ** 2 + r * 0.5625
        above, below = (np.maximum(end**2, middle) for end in (a, 1 - a))
        crossed = (np.diff(margin, axis=1) < 0).any(axis=1)
        ordered = max(float(above.sum()), float(below.sum()))
        return np.sqrt(np.where(crossed, float(np.maximum(above, below).sum()), ordered))


LOSSES: dict[str, Any] = {"quantile": QuantileLoss}


def loss_of(plan: Plan) -> Any:
    """The loss of a plan; None where the gradients are XGBoost's."""
    own = plan.get("loss")
    return None if own is None else LOSSES[own["name"]](own)


def bounded_pairs(
    loss: Any, bound: RowBound, margin: Floats, y: Doubles, weight: Doubles, t: int
) -> tuple[list[Ints], Doubles]:
    """Integers of rows, output by output, and the norms of rows within their bound where C = 1."""
    wide, target = margin.astype(np.float64), np.clip(y, *bound.target)
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
        norm = loss.norms(wide, bound.r)
        if bound.unit_hessian:
            norm = np.sqrt(norm**2 + bound.r * g.shape[1])
        return bound.quantise_known(g, h, norm, weight)
