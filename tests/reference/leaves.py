"""What the leaves of a tree say, from noisy sums or values, with empirical-Bayes shrinkage."""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .covers import estimate_covers, explained_gains
from .draws import Noise
from .grow import Tree
from .noisy_splits import Side
from .splits import Ints, Plan, RowBound

Doubles = npt.NDArray[np.float64]


def order_leaves(plan: Plan, tree: Tree, h: dict[int, float], w: dict[int, float]) -> None:
    """Clip leaf weights so that they follow the monotone constraints."""
    if not any(plan["monotone"]):
        return

    def mean(a: int, b: int) -> float:
        return (h[a] * w[a] + h[b] * w[b]) / (h[a] + h[b])

    nodes = range(len(tree["left"]))
    for node in reversed(nodes):
        if tree["left"][node] != -1:
            w[node] = mean(tree["left"][node], tree["right"][node])
    bounds = {0: (-math.inf, math.inf)}
    for node in nodes:
        low, high = bounds[node]
        w[node] = min(max(w[node], low), high)
        left, right = tree["left"][node], tree["right"][node]
        if left == -1:
            continue
        bounds[left] = bounds[right] = (low, high)
        direction = plan["monotone"][tree["split_index"][node]]
        if direction:
            a, b = (left, right) if direction > 0 else (right, left)
            middle = 0.5 * (w[a] + w[b]) if w[a] <= w[b] else mean(left, right)
            middle = min(max(middle, low), high)
            bounds[a], bounds[b] = (low, middle), (middle, high)


@dataclass
class Shrinkage:
    """Running empirical-Bayes estimate of one class: how large leaf weights really are."""

    a: float = 0.0
    b: float = 0.0
    started: bool = False
    strata: dict[bool, list[float]] = field(default_factory=dict)
    tilt: float = 0.0
    doubt: float = 0.1 * 0.1  # variance of the tilt

    def tilted(self, measured: float, noise2: float) -> float:
        """By how much trees lean to persons that spread: a filter over what each of them says."""
        gain = self.doubt / (self.doubt + noise2)
        self.tilt += gain * (measured - self.tilt)
        self.doubt = self.doubt * (1.0 - gain) + 0.01 * 0.01
        return self.tilt

    def effects(
        self, g: Doubles, h: Doubles, noise2: Doubles, rows: float, share: float, stratum: Ints,
        oblivious: bool,
    ) -> Doubles:  # fmt: skip
        """Weights as sums of effects with a normal prior for each stratum, by EM over trees.

        The weights answer for the variance of the rows too, of which the priors see a millionth.
        """
        n, groups = len(g), int(stratum.max()) + 1
        first = oblivious not in self.strata
        past = np.array(self.strata.get(oblivious, [0.1 * 0.25**o for o in range(groups)]))
        walsh = np.array([[(-1.0) ** (i & k).bit_count() for k in range(n)] for i in range(n)])
        now = past
        for i in range(6):
            counted, sampling = (1.0, 1e-6) if i < 5 else (share, 1.0)
            variance = counted * noise2 + sampling * rows * h
            precision = walsh.T @ np.diag(h * h / variance) @ walsh
            right = walsh.T @ (-h * g / variance)
            prior = np.maximum(now[stratum], 1e-9)
            covariance = np.linalg.inv(precision + np.diag(1 / prior))
            mean = covariance @ right
            if i == 5:
                break
            square = mean**2 + np.diag(covariance)
            variances = np.array([square[stratum == o].mean() for o in range(groups)])
            now = variances if first else 0.8 * past + 0.2 * variances
        self.strata[oblivious] = now.tolist()
        return np.asarray(walsh @ mean)

    def prior(self, g: list[float], h: list[float], g_noise: list[float], largest: float) -> float:
        """Prior variance of a leaf weight after seeing one more tree's noisy sums."""
        A = sum((gi * gi - s * s) / hi for gi, hi, s in zip(g, h, g_noise, strict=True))
        total = sum(h)
        if self.started:
            self.a, self.b = 0.8 * self.a + 0.2 * A, 0.8 * self.b + 0.2 * total
        else:
            self.a, self.b, self.started = max(A, 0.0), total, True
        return min(max(2.0 * max(self.a, 0.0) / self.b, 1e-9), largest)


def row_variance(plan: Plan) -> float:
    """Variance of a row's bounded gradient for each unit of its Hessian."""
    loss = plan.get("loss", {})
    if loss.get("power") and float(loss["power"]) == 1.0:
        return 1.0 / float(loss["cap"])
    if loss.get("name") in ("logistic", "labels"):  # a share varies less than a label
        return 0.25 if loss["name"] == "logistic" else 0.5
    if "loss" in plan or plan["objective"] == "reg:squarederror":
        return 0.0
    if plan["row_bound"]["unit_hessian"]:
        return min(0.125, float(plan["row_bound"]["gradient_bound"]) ** 2)
    return 0.25 if plan["objective"].startswith("multi:") else 0.5


def strata_of(plan: Plan, oblivious: bool) -> Ints:
    """Of every effect: how many selections it involves, or the deepest one."""
    depth, m = int(plan["depth"]), int(plan["split_levels"])
    out = []
    for k in range(1 << depth):
        turns = [bool(k >> (depth - 1 - d) & 1) for d in range(depth)]
        used = [i for i in range(-(-depth // m)) if any(turns[i * m : (i + 1) * m])]
        out.append(len(used) if oblivious else max((i + 1 for i in used), default=0))
    return np.array(out)


def at_round(plan: Plan, t: int) -> Plan:
    """The plan with the learning rate of round t, on a line to that of the last round."""
    leaf, last = plan["leaf"], int(plan["rounds"]) - 1
    to_go = (last - t) / last if last > 0 else 0.0
    eta = float(leaf["eta"]) * (1.0 - (1.0 - float(leaf["eta_warmup"])) * to_go)
    return {**plan, "leaf": {**leaf, "eta": repr(eta)}}


def leaf_value(plan: Plan, sums: Ints, age: int) -> tuple[int, float]:
    """Output perturbation: a leaf's value as an integer, and the unit of it, where C = 1."""
    bound, leaf = RowBound.of(plan), plan["leaf"]
    lam, floor = float(leaf["lambda"]), max(float(leaf["min_child_weight"]), 1.0)
    sensitivity = (2.0 * floor + lam) / ((floor + lam) * (floor + lam + 1.0))
    clip = 1.0
    if leaf["geometric_clip"]:
        clip = max((1.0 - float(leaf["eta"])) ** age, 1e-12)
        sensitivity = min(sensitivity, 2.0 * clip)
    value = -int(sums[0]) / bound.B / (max(float(sums[2]), floor) + lam)
    return math.floor(min(max(value, -clip), clip) / sensitivity * 2**20), sensitivity / 2**20


def fill_leaves(
    plan: Plan, t: int, tree: Tree, sums: Ints, given: dict[int, Side], shrinkage: Shrinkage,
    noise: Noise, age: int, root: Ints | None = None,
) -> tuple[dict[int, float], dict[int, float], dict[int, float]]:  # fmt: skip
    """Release noisy sums of every leaf, unless given; all that the tree says follows from them.

    `root` are a third of the sums of all rows as the splits weigh them; they say how far leaves are
    tilted.
    """
    bound, leaf = RowBound.of(plan), plan["leaf"]
    sigma2 = int(leaf["sigma2"])
    eta = float(leaf["eta"]) / plan["parallel_trees"]
    lam, alpha = float(leaf["lambda"]), float(leaf["alpha"])
    step, smallest = float(leaf["max_delta_step"]), float(leaf["min_child_weight"])

    raw: dict[int, float] = {}  # Hessians without a floor, and the variance of their noise
    hess_noise2: dict[int, float] = {}

    def clipped(w: float) -> float:
        return min(max(w, -step), step) if step > 0 else w

    def soft(G: float) -> float:
        return math.copysign(max(abs(G) - alpha, 0.0), G)

    leaves = [node for node, left in enumerate(tree["left"]) if left == -1]
    g: dict[int, float] = {}
    h: dict[int, float] = {}
    w: dict[int, float] = {}
    noise_of: dict[int, float] = {}
    output = leaf["noise"] == "output"
    if output:
        lam = alpha = 0.0
    for node in leaves:
        if output:
            whole, unit = leaf_value(plan, sums[node], age)
            value = (whole + noise.laplace(int(leaf["scale"]))) * unit
            g[node], h[node], noise_of[node] = -value * bound.C, 1.0, 0.0
            raw[node], hess_noise2[node] = 1.0, 0.0
            continue
        if node in given:
            G, H, cells = given[node]
            deviation = math.sqrt(int(plan["histogram"]["sigma2"]) * cells)
        elif leaf["noise"] == "laplace":
            G = int(sums[node, 0]) + noise.laplace(int(leaf["scale"]))
            H = int(sums[node, 1]) + noise.laplace(int(leaf["scale"]))
            deviation = math.sqrt(2.0 * float(leaf["scale"]) ** 2)
        else:
            G = int(sums[node, 0]) + noise.gaussian(sigma2)
            H = int(sums[node, 1]) + noise.gaussian(sigma2)
            deviation = math.sqrt(sigma2)
        g[node], noise_of[node] = G * bound.g_unit, deviation * bound.g_unit
        raw[node], hess_noise2[node] = H * bound.h_unit, (deviation * bound.h_unit) ** 2
        h[node] = max(H * bound.h_unit, deviation * bound.h_unit, smallest, 1e-6)
    if root is not None:
        G, H = (int(v) + noise.gaussian(sigma2) for v in root)
        least = max(H * bound.h_unit, deviation * bound.h_unit, smallest, 1e-6)
        lacks = G * bound.g_unit / least - sum(g.values()) / sum(h.values())
        noise2 = (deviation * bound.g_unit / least) ** 2
        noise2 += sum(d**2 for d in noise_of.values()) / sum(h.values()) ** 2
        shift = shrinkage.tilted(lacks, noise2)
        g = {node: g[node] + h[node] * shift for node in leaves}
    shrinks = leaf["shrinkage"] and not output
    oblivious = plan["shape"] == "oblivious" or (plan["shape"] == "alternate" and t % 2 == 0)
    complete = len(leaves) == 1 << int(plan["depth"]) <= 256
    rows = row_variance(plan)
    share = float(leaf["noise_share"])
    varies = rows > 0 or min(noise_of.values()) > 0
    if strata := shrinks and leaf["strata"] and complete and varies:
        fitted = shrinkage.effects(
            np.array([soft(g[n]) for n in leaves]),
            np.array([h[n] + lam for n in leaves]),
            np.array([noise_of[n] ** 2 for n in leaves]),
            rows,
            share,
            strata_of(plan, oblivious),
            oblivious,
        )
        w.update({n: clipped(float(v)) for n, v in zip(leaves, fitted, strict=True)})
    elif shrinks:
        prior = shrinkage.prior(
            list(g.values()), list(h.values()), list(noise_of.values()), float(leaf["prior_max"])
        )
    for node in leaves:
        if strata:
            continue
        variance = share * noise_of[node] ** 2 + rows * h[node]
        penalty = variance / (prior * h[node]) if shrinks else 0.0
        w[node] = clipped(-soft(g[node]) / (h[node] + lam + penalty))
    noise2 = {n: d**2 for n, d in noise_of.items()}
    covers = estimate_covers(tree, raw, hess_noise2)
    finish_tree(plan, tree, g, h, noise2, w, eta, (lam, alpha), covers)
    return g, h, noise2


def finish_tree(
    plan: Plan, tree: Tree, g: dict[int, float], h: dict[int, float], noise2: dict[int, float],
    w: dict[int, float], eta: float, penalties: tuple[float, float], covers: dict[int, float],
) -> None:  # fmt: skip
    """All that a tree says, from the sums, weights and covers of its leaves."""
    lam, alpha = penalties
    step, scale = float(plan["leaf"]["max_delta_step"]), RowBound.of(plan).scale

    def soft(G: float) -> float:
        return math.copysign(max(abs(G) - alpha, 0.0), G)

    for node, left in enumerate(tree["left"]):
        if left == -1:
            tree["sum_hess"][node] = np.float32(covers[node])
    for node in reversed(range(len(tree["left"]))):  # children have larger ids than parents
        left, right = tree["left"][node], tree["right"][node]
        if left == -1:
            continue
        g[node], h[node] = g[left] + g[right], h[left] + h[right]
        noise2[node] = noise2[left] + noise2[right]
        newton = -soft(g[node]) / (h[node] + lam)
        w[node] = min(max(newton, -step), step) if step > 0 else newton
        tree["sum_hess"][node] = np.float32(tree["sum_hess"][left] + tree["sum_hess"][right])
    order_leaves(plan, tree, h, w)
    for node, left in enumerate(tree["left"]):
        tree["base_weight"][node] = np.float32(w[node] * scale)
        if left == -1:
            tree["leaf"][node] = np.float32(eta * w[node] * scale)
    explained_gains(tree, w)
