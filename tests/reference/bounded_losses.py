"""More losses of the plugin in float64: those that bound a row by themselves, and those of a user.

Each has the members of the losses in ``losses.py``.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from .splits import Doubles, Plan


def largest_norms(loss: Any, margin: Doubles, r: float, labels: Iterable[Any]) -> Doubles:
    """Norms of rows with the worst of some labels, each one number or one for each row."""
    pairs = [loss.pairs(margin, np.broadcast_to(y, len(margin)), 0) for y in labels]
    return np.sqrt(np.max([g[:, 0] ** 2 + r * h[:, 0] ** 2 for g, h in pairs], axis=0))


class PseudoHuberLoss:
    """Squared near the label, absolute far from it; margins are in slopes."""

    def __init__(self, loss: Plan, target: tuple[float, float]) -> None:
        self.slope, self.target = float(loss["slope"]), target

    def unit(self, t: int) -> float:
        """The slope."""
        return self.slope

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """First and second derivatives by margins in slopes."""
        root = np.sqrt(1.0 + ((margin - y[:, None]) / self.slope) ** 2)
        return (margin - y[:, None]) / self.slope / root, 1.0 / (root * root * root)

    def norms(self, margin: Doubles, r: float, t: int) -> Doubles:
        """At the ends of the range, or at the label that is the margin."""
        inside = np.clip(margin[:, 0], *self.target)
        return largest_norms(self, margin, r, (*self.target, inside))


class SquaredLogLoss:
    """Squared error of log1p, clipped there; margins are in half widths and within the range."""

    def __init__(self, loss: Plan, target: tuple[float, float]) -> None:
        self.clip, self.target = float(loss["clip"]), target
        self.half = (target[1] - target[0]) / 2

    def unit(self, t: int) -> float:
        """Half the width of the range."""
        return self.half

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """First derivatives, and second ones without the part of the residual."""
        inside = np.clip(margin, *self.target)
        slope = self.half / (1.0 + inside)
        off = np.clip(np.log1p(inside) - np.log1p(y)[:, None], -self.clip, self.clip)
        return slope * off, slope * slope

    def norms(self, margin: Doubles, r: float, t: int) -> Doubles:
        """At the further end of the range."""
        return largest_norms(self, margin, r, self.target)


class LogisticLoss:
    """Logistic loss of shares."""

    def __init__(self, loss: Plan, target: tuple[float, float]) -> None:
        self.target = target

    def unit(self, t: int) -> float:
        """Margins are log odds."""
        return 1.0

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """First and second derivatives."""
        with np.errstate(over="ignore"):
            p = 1.0 / (1.0 + np.exp(-margin))
        return p - y[:, None], p * (1.0 - p)

    def norms(self, margin: Doubles, r: float, t: int) -> Doubles:
        """At the further end of the range."""
        return largest_norms(self, margin, r, self.target)


class TargetsLoss:
    """Squared error of several targets, each clipped, in half widths of its range."""

    def __init__(self, loss: Plan, target: tuple[float, float]) -> None:
        self.clip = float(loss["clip"])
        self.ranges = tuple(np.array(loss[end], dtype=np.float64) for end in ("lower", "upper"))
        self.units = (self.ranges[1] - self.ranges[0]) / 2

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """Derivatives by margins in half widths; labels are (rows, targets)."""
        off = np.clip((margin - y) / self.units, -self.clip, self.clip)
        return off, np.ones_like(off)

    def norms(self, margin: Doubles, r: float, t: int) -> Doubles:
        """At the further end of the range of each target."""
        ends = [np.abs(self.pairs(margin, end, t)[0]) for end in self.ranges]
        off: Doubles = np.maximum(*ends)
        return np.sqrt((off * off + r).sum(axis=1))


class LabelsLoss(LogisticLoss):
    """The same of several labels of 0 and 1, which are columns."""

    def __init__(self, loss: Plan, target: tuple[float, float]) -> None:
        super().__init__(loss, (0.0, 1.0))
        self.ranges = np.zeros(loss["count"]), np.ones(loss["count"])

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """Derivatives by margins, (rows, labels)."""
        p = 1.0 / (1.0 + np.exp(-margin))
        return p - y, p * (1.0 - p)

    def norms(self, margin: Doubles, r: float, t: int) -> Doubles:
        """Every label is the one that is less expected."""
        p, h = self.pairs(margin, np.zeros_like(margin), t)
        return np.sqrt((np.maximum(p, 1.0 - p) ** 2 + r * h * h).sum(axis=1))


class ProgramLoss:
    """A list of instructions; only those that the tests use."""

    TWO: ClassVar[dict[str, Any]] = {
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "max": np.maximum,
        "lt": np.less,
    }

    def __init__(self, loss: Plan, target: tuple[float, float]) -> None:
        self.own, self.step = loss, float(loss["unit"])

    def unit(self, t: int) -> float:
        """Given."""
        return self.step

    def pairs(self, margin: Doubles, y: Doubles, t: int) -> tuple[Doubles, Doubles]:
        """By the instructions, one after the other."""
        values: list[Any] = []
        for name, *read in self.own["program"]:
            if name == "number":
                values.append(np.full(len(y), float(read[0])))
            elif name in ("margin", "label"):
                values.append(margin[:, 0] if name == "margin" else y)
            elif name == "tanh":
                values.append(np.tanh(values[read[0]]))
            elif name == "where":
                condition, a, b = (values[i] for i in read)
                values.append(np.where(condition, a, b))
            else:
                values.append(self.TWO[name](*(values[i] for i in read)))
        g, h = (values[self.own[k]][:, None] for k in ("gradient", "hessian"))
        return g, h * self.step


BOUNDED: dict[str, Any] = {
    "pseudo_huber": PseudoHuberLoss,
    "squared_log": SquaredLogLoss,
    "logistic": LogisticLoss,
    "program": ProgramLoss,
    "targets": TargetsLoss,
    "labels": LabelsLoss,
}
