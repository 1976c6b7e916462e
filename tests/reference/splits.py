"""The row bound, and the candidates of a node with their utilities and noisy sums."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .candidates import MISSING, Feature
from .draws import Noise

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Plan = dict[str, Any]


# ---------------------------------------------------------------------------- gradients
@dataclass
class RowBound:
    """What one row may add to the sums; every sensitivity and range follows from it."""

    mode: str
    C: float
    r: float
    h_max: float
    scale: float
    target: tuple[float, float]
    B: int
    unit_hessian: bool = False
    positive: float = 1.0
    heaviest: float = 0.0
    persons: bool = False
    max_rows_per_person: float = 1.0
    of_output: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of(cls, plan: Plan) -> "RowBound":
        b = plan["row_bound"]
        target = (float(b.get("target_lower", "-inf")), float(b.get("target_upper", "inf")))
        C, r, h_max = (float(b[k]) for k in ("gradient_bound", "hessian_weight", "hessian_bound"))
        B = 1 << int(plan["grid_bits"])
        weights = (float(b.get(k, 1.0)) for k in ("positive_weight", "max_weight"))
        scale, unit = float(b["scale"]), b["unit_hessian"]
        who = plan["unit"] == "person", float(b["max_rows_per_person"])
        output = float(b["output_gradient"]), float(b["output_hessian"])
        return cls(b["mode"], C, r, h_max, scale, target, B, unit, *weights, *who, output)

    @property
    def g_unit(self) -> float:
        """Gradient of one grid unit (in units of `scale`)."""
        return self.C / self.B

    @property
    def h_unit(self) -> float:
        """Hessian of one grid unit."""
        return self.C / (math.sqrt(self.r) * self.B)

    @property
    def most(self) -> int:
        """P, the largest sum of norms of the rows of a person; B for rows."""
        return math.ceil(self.max_rows_per_person * self.B)

    @property
    def most_leaf_hessian(self) -> int:
        """The largest norm of the Hessians that a person with several rows adds to leaves."""
        if self.mode in ("prediction", "row_weight"):
            return -(-self.most // 4)
        return self.most * self.hessian_max // self.B

    @property
    def output_max(self) -> tuple[int, int]:
        """Largest integers of a row in one of several outputs."""
        g, h = self.of_output
        return math.ceil(g * self.B), math.ceil(h * self.B)

    @property
    def hessian_max(self) -> int:
        """Largest Hessian integer of a row."""
        return math.ceil(math.sqrt(self.r) * self.h_max * self.B / self.C)

    def quantise(
        self, g: Doubles, h: Doubles, y: Doubles, regression: bool, weight: Doubles | None = None
    ) -> Ints:
        """Rows (gradient, Hessian, 1) of grid integers that keep the bound exactly."""
        if regression:
            g = g + h * (y - np.clip(y, *self.target))
        g = g / self.scale
        if self.unit_hessian:
            h = np.ones_like(g) if weight is None else weight
        if self.mode == "prediction":
            shrink = self.label_free(g, y, np.ones_like(g) if weight is None else weight)
            g, h = g * shrink, h * shrink
        kept = np.ones_like(g, dtype=bool)
        finite = np.isfinite(g) & np.isfinite(h)
        g, h = np.where(finite, g, 0.0), np.where(finite, h, 0.0)
        B, C, r = self.B, self.C, self.r
        if self.mode in ("prediction", "row_weight"):
            norm = np.sqrt(g * g + r * h * h)
            shrink = np.where(norm > C, C / np.where(norm > C, norm, 1.0), 1.0)
            gi = np.clip(np.rint(g * shrink * (B / C)), -B, B).astype(np.int64)
            hi = np.clip(np.rint(math.sqrt(r) * h * shrink * (B / C)), 0, B).astype(np.int64)
            for i in np.flatnonzero(gi * gi + hi * hi > B * B):
                hi[i] = math.isqrt(B * B - int(gi[i]) ** 2)
        else:
            if self.mode == "filter":
                kept = np.abs(g) <= C
            g, h = np.where(kept, g, 0.0), np.where(kept, h, 0.0)
            gi = np.clip(np.rint(np.clip(g, -C, C) * (B / C)), -B, B).astype(np.int64)
            hi = np.rint(math.sqrt(r) * np.clip(h, 0.0, self.h_max) * (B / C))
            hi = np.minimum(hi, self.hessian_max).astype(np.int64)
        return np.stack([gi, hi, kept.astype(np.int64)], axis=1)

    def label_free(self, g: Doubles, y: Doubles, weight: Doubles) -> Doubles:
        """Factors of rows: C over the norm that the row would have with the worse label."""
        full = np.full_like(g, self.heaviest) if self.heaviest > 0 else np.maximum(weight, 1.0)
        return np.asarray(self.C / np.maximum(full * self.worse(g, y, weight), self.C))

    def worse(self, g: Doubles, y: Doubles, weight: Doubles) -> Doubles:
        """Norms that rows of weight 1 would have with the worse label."""
        worth = np.where(y == 1, self.positive, 1.0)
        with np.errstate(all="ignore"):
            p = np.clip(np.nan_to_num(g / (worth * weight) + y, nan=0.0), 0.0, 1.0)
        norms = []
        for residual, value in ((p, 1.0), (1 - p, self.positive)):
            hessian = 1.0 if self.unit_hessian else p * (1 - p)
            norms.append(value * np.sqrt(residual**2 + self.r * hessian**2))
        return np.asarray(np.maximum(*norms))

    def norms(self, g: Doubles, h: Doubles, y: Doubles, weight: Doubles) -> Doubles:
        """Largest norm over the labels of every row within its bound, in 32 bits, where C = 1."""
        with np.errstate(all="ignore"):
            if g.shape[1] > 1:
                norm, shrink = self.of_classes(g, h, y, weight)
                finite = np.isfinite(h).all(axis=1)
            else:
                norm = self.worse(g[:, 0], y, weight)
                shrink = self.label_free(g[:, 0], y, weight)
                finite = np.ones(len(y), dtype=bool)
            finite &= np.isfinite(g).all(axis=1) & np.isfinite(shrink)
            norms = np.where(finite, weight * norm * shrink / self.C, 0.0)
        return np.asarray(norms.astype(np.float32).astype(float))

    def of_classes(
        self, g: Doubles, h: Doubles, y: Doubles, weight: Doubles
    ) -> tuple[Doubles, Doubles]:
        """Largest norms over the labels for a weight of 1, and factors of rows."""
        n, classes = g.shape
        heaviest = np.maximum(weight, self.heaviest or 1.0)
        squares, hessians, least = np.zeros(n), np.zeros(n), np.ones(n)
        for k in range(classes):
            p = g[:, k] / weight + (y == k)
            p = np.where(p > 0, np.minimum(p, 1.0), 0.0)  # not-a-number falls to 0
            squares, least = squares + p * p, np.minimum(least, p)
            hessians = hessians + (h[:, k] / weight) ** 2
        norm = np.sqrt(squares + 1.0 - 2.0 * least + self.r * hessians)
        shrink = np.where(weight > 0, self.C / np.maximum(heaviest * norm, self.C), 1.0)
        return np.where(weight > 0, norm, 0.0), shrink

    def quantise_classes(self, g: Doubles, h: Doubles, y: Doubles, weight: Doubles) -> list[Ints]:
        """The same for several classes whose integers have one norm, in the mode "prediction"."""
        with np.errstate(all="ignore"):
            _norm, shrink = self.of_classes(g, h, y, weight)
        return self.shrunk(g, h, shrink)

    def quantise_known(
        self, g: Doubles, h: Doubles, norm: Doubles, weight: Doubles
    ) -> tuple[list[Ints], Doubles]:
        """The same where the largest norms over the labels are known, with those in the bound."""
        with np.errstate(all="ignore"):
            full = np.maximum(weight, self.heaviest or 1.0)
            shrink = np.where(weight > 0, self.C / np.maximum(full * norm, self.C), 1.0)
            finite = np.isfinite(g).all(axis=1) & np.isfinite(h).all(axis=1) & np.isfinite(shrink)
            kept = np.where(finite, weight * norm * shrink / self.C, 0.0)
        return self.shrunk(g, h, shrink), kept.astype(np.float32).astype(float)

    def shrunk(self, g: Doubles, h: Doubles, shrink: Doubles) -> list[Ints]:
        """Integers of rows, class by class, after their factors; all of a row have one norm."""
        n, classes = g.shape
        with np.errstate(all="ignore"):
            finite = np.isfinite(g).all(axis=1) & np.isfinite(h).all(axis=1) & np.isfinite(shrink)
            G = np.rint(g * shrink[:, None] * (self.B / self.C))
            H = np.rint(math.sqrt(self.r) * h * shrink[:, None] * (self.B / self.C))
        most_g, most_h = self.output_max
        G = np.where(finite[:, None], np.clip(G, -most_g, most_g), 0.0)
        H = np.where(finite[:, None], np.clip(H, 0.0, most_h), 0.0)
        for i in range(n):
            total = sum(int(v) ** 2 for v in (*G[i], *H[i]))
            if total > self.B**2:
                factor = 0.999999999 * (self.B / math.sqrt(total))
                G[i], H[i] = np.trunc(G[i] * factor), np.trunc(H[i] * factor)
        both = np.stack([G, H, np.ones_like(G)], axis=2).astype(np.int64)
        return [both[:, k] for k in range(classes)]


# ---------------------------------------------------------------------------- splits
def norms(values: Ints) -> Ints:
    """L2 norms along the last axis, rounded down, in Python integers."""
    squares = (values.astype(object) ** 2).sum(axis=-1)
    return np.array(np.frompyfunc(math.isqrt, 1, 1)(squares), dtype=np.int64)


@cache
def newton_width(tau: float, root: float, most_g: float, most_h: float) -> float:
    """The largest sup - inf of the change of a Newton utility, of rows where C = 1.

    On fine sweeps of the ellipse, and of the pairs of one output, which is largest where the
    gradient is, instead of by a closed form.
    """

    def width(g: Doubles, h: Doubles) -> float:
        w = np.minimum(tau, g / np.maximum(h, 1e-300))  # where 2wg - hw^2 is largest
        return float(np.max(2 * tau * g + tau * tau * h + 2 * w * g - h * w * w))

    angle = np.linspace(0.0, math.pi / 2, 2_000_001)
    e = np.linspace(0.0, most_h / root, 1_000_001)
    return min(width(np.cos(angle), np.sin(angle) / root), width(np.full_like(e, most_g), e))


@dataclass
class Score:
    """phi of a node from its exact sums, in integer utility units, and the range of a change."""

    name: str
    bound: RowBound
    tau: float
    lam: float
    depth: int = 0

    def phi(self, sums: Ints) -> Ints:
        """Utility of each row of `sums` (gradient, Hessian, rows) standing alone as one leaf."""
        if self.name == "l1":
            return np.abs(sums[..., 0])
        if self.name == "norm":  # of all classes, whose columns follow each other
            return norms(sums[..., ::3])
        return np.floor(self.value(sums)).astype(np.int64)

    def ordered(self, below: Ints, above: Ints) -> Ints:
        """Utility of children whose weights must not decrease from `below` to `above`.

        Where the best weights are out of order the children share the best common one: a leaf
        with the sums of both and the penalty twice.
        """
        if self.name == "l1":  # weights of -1 and 1 only
            return np.maximum(np.abs(below[..., 0] + above[..., 0]), below[..., 0] - above[..., 0])
        if self.name == "norm":
            below, above = below[..., ::3], above[..., ::3]
            return norms(np.maximum(np.abs(below + above), below - above))
        pooled = Score(self.name, self.bound, self.tau, 2 * self.lam).phi(below + above)
        free = np.floor(self.value(below) + self.value(above)).astype(np.int64)
        return np.where(self.weight(below) <= self.weight(above), free, pooled)

    def weight(self, sums: Ints) -> Doubles:
        """The best weight of a leaf with these sums."""
        if self.name == "gain":
            return -sums[..., 0] / self.bound.B / np.maximum(sums[..., 2] + self.lam, 1e-300)
        g, h = sums[..., 0] * self.bound.g_unit, sums[..., 1] * self.bound.h_unit + self.lam
        w = np.where(np.abs(g) > self.tau * h, np.sign(g) * -self.tau, -g / np.maximum(h, 1e-300))
        return np.asarray(w)

    def value(self, sums: Ints) -> Doubles:
        """`phi` before it is rounded down."""
        if self.name == "gain":  # published gain S^2 / (n + lambda), S in units of C, n rows
            S, denominator = sums[..., 0] / self.bound.B, sums[..., 2] + self.lam
            value = np.where(denominator > 0, S * S / np.maximum(denominator, 1e-300), 0.0)
            return np.asarray(value * self.bound.B)
        g, h = sums[..., 0] * self.bound.g_unit, sums[..., 1] * self.bound.h_unit + self.lam
        w = self.weight(sums)
        return np.asarray(-(2.0 * w * g + h * w * w) / self.bound.g_unit)

    @property
    def range_int(self) -> int:
        """sup - inf over rows of the change of a utility, with slack for rounding."""
        B, cells = self.bound.most, 1 << self.depth if self.bound.persons else 1
        most_g, most_h = self.bound.output_max
        if self.name == "l1":
            return 2 * (B * most_g // self.bound.B)
        if self.name == "norm":  # the rows of a person may be in several, rounded one by one
            return 2 * B + (2 * cells if self.bound.persons else 0)
        if self.name == "gain":
            return 4 * B + 64
        tau, root = self.tau, math.sqrt(self.bound.r)
        if self.bound.mode not in ("prediction", "row_weight"):
            e = self.bound.hessian_max / (root * self.bound.B)
            real = 4.0 * tau if tau * e <= 1.0 else (1.0 + tau * e) ** 2 / e
        else:
            real = newton_width(tau, root, most_g / self.bound.B, most_h / self.bound.B)
        return math.ceil(real * B * (1.0 + 1e-12)) + 64 * cells


def left_sides(histogram: Ints, total: Ints, categorical: bool) -> Ints:
    """Sums going left for each candidate of one feature: each bin, missing right then left."""
    missing = total - histogram.sum(axis=0)
    # bins 0..i go left; or category c alone goes right
    left = histogram.sum(axis=0) - histogram if categorical else np.cumsum(histogram, axis=0)
    both = np.stack([left, left + missing], axis=1).reshape(-1, left.shape[1])
    return both if categorical else both[:-1]  # last cut: everything but the missing, once


def utilities(
    plan: Plan, features: list[Feature], allowed: list[int], pairs: Ints, rows: Ints, score: Score
) -> Ints:
    """Utility of every candidate at the node that holds `rows` (without "no split")."""
    total = pairs[rows].sum(axis=0)
    parts = []
    for f in allowed:
        feature, direction = features[f], plan["monotone"][f]
        bins = feature.bins[rows]
        histogram = np.zeros((feature.size, pairs.shape[1]), dtype=np.int64)
        np.add.at(histogram, bins[bins != MISSING], pairs[rows][bins != MISSING])
        left = left_sides(histogram, total, feature.cuts is None)
        right = total - left
        if direction == 0:
            parts.append(score.phi(left) + score.phi(right))
        else:
            parts.append(score.ordered(*((left, right) if direction > 0 else (right, left))))
    return np.concatenate(parts)


class Split(NamedTuple):
    """A candidate: bins up to `bin` go left, or category `bin` goes right."""

    feature: int
    bin: int
    missing_left: bool


def candidates(features: list[Feature], allowed: list[int]) -> list[Split]:
    """All candidates in the order of `utilities`."""
    out = []
    for f in allowed:
        feature = features[f]
        every = [Split(f, b, left) for b in range(feature.size) for left in (False, True)]
        out += every if feature.cuts is None else every[:-1]
    return out


def tree_features(plan: Plan, t: int, noise: Noise) -> list[int]:
    """Features of tree `t` of its class: all, the next ones in turn, or random ones."""
    n, k = plan["n_features"], plan["features_per_tree"]
    order = list(range(n))
    if k == n:
        return order
    if plan["feature_weights"]:
        weights, drawn = list(plan["feature_weights"]), []
        for _ in range(k):
            rest = noise.below(sum(weights))
            f = next(f for f in order if rest < sum(weights[: f + 1]))
            weights[f] = 0
            drawn.append(f)
        return sorted(drawn)
    if plan["cyclic_features"]:
        return sorted((t * k + i) % n for i in range(k))
    for i in range(k):
        j = i + noise.below(n - i)
        order[i], order[j] = order[j], order[i]
    return sorted(order[:k])


def allowed_features(plan: Plan, every: list[int], above: frozenset[int]) -> list[int]:
    """Features of the tree that may follow splits on those `above`."""
    if not plan["interactions"] or not above:
        return every
    return [
        f for f in every
        if f in above or any(above | {f} <= set(joined) for joined in plan["interactions"])
    ]  # fmt: skip
