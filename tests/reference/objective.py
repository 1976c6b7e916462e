"""XGBoost's objectives, computed in float32 as it does, or in float64."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
LOG_LINKS = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:aft")
FLT_MIN = float(np.finfo(np.float32).tiny)


def _exp(x: Floats) -> Floats:
    """C's expf: NumPy's own float32 exponential is less exact than one rounded from float64."""
    y: Floats = np.exp(x.astype(np.float64)).astype(x.dtype)
    return y


def initial_margin(objective: str, base_score: float | list[float], n: int, classes: int) -> Floats:
    """Margins (rows, classes) before the first tree; that of binary:logistic is a probability."""
    base = np.broadcast_to(np.asarray(base_score, dtype=np.float32), (n, classes)).copy()
    if objective in ("binary:logistic", "reg:logistic"):
        one, eps = np.float32(1), np.float32(1e-6)
        odds = one / np.minimum(np.maximum(base, eps), one - eps) - one
        base = -np.log(odds.astype(np.float64)).astype(np.float32)
    if objective in LOG_LINKS:
        base = np.log(base.astype(np.float64)).astype(np.float32)
    return base


def gradients(objective: str, margin: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """(g, h) of shape (rows, classes), in the precision of the margins."""
    one, eps = np.float32(1), np.float32(1e-16)
    y, weight = y[:, None], weight[:, None]
    if objective == "reg:squarederror":
        return (margin - y) * weight, np.ones_like(margin) * weight
    if objective in ("binary:logistic", "binary:logitraw"):
        p = one / (_exp(np.minimum(-margin, np.float32(88.7))) + one + eps)
        return (p - y) * weight, np.maximum(p * (one - p), eps) * weight
    if objective in ("multi:softprob", "multi:softmax"):
        largest = np.maximum(margin.max(axis=1, keepdims=True), np.float32(FLT_MIN))
        exponentials = _exp(margin - largest)
        total = np.zeros((len(margin), 1))
        for k in range(margin.shape[1]):
            total[:, 0] += exponentials[:, k]
        p = exponentials / total.astype(np.float32)
        h = np.maximum(np.float32(2) * p * (one - p) * weight, eps)
        return np.where(y == np.arange(margin.shape[1]), p - one, p) * weight, h
    raise ValueError(objective)
