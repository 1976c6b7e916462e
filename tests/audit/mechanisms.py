"""Two-neighbour audits of each mechanism at its worst case, on the samplers that train.

Every mechanism is given the integers of a calibrated plan. The neighbours are "without the row" and
"with the row", and the row is the one that the sensitivity proof calls worst. The score is the log
likelihood ratio, up to a constant, so no other statistic of the output refutes more.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.noise import native
from xgb_dp.accounting import Event, ExactAccountant, sensitivity
from xgb_dp.accounting.sensitivity import RowBound
from xgb_dp.audit import AuditResult, Claim, audit_scores
from xgb_dp.calibrate import Calibration
from xgb_dp.mechanisms.candidates import Candidates
from xgb_dp.mechanisms.label_sums import LabelSums
from xgb_dp.mechanisms.leaves import Leaves
from xgb_dp.mechanisms.plan import AnyMechanism, Mechanisms
from xgb_dp.mechanisms.splits import EPS_BITS, Splits

from ..releases import Releases, label_sums

Floats = npt.NDArray[np.float64]
Sampler = Callable[[bool, int], Floats]
_CHUNK = 250_000
_STREAM = 1  # that of trainings; each call has a fresh key of the operating system


@dataclass(frozen=True)
class Mechanism:
    """A mechanism with its two worst neighbours."""

    name: str
    statistic: str
    claim: Claim
    sample: Sampler


def small_training(mode: str = "row_weight") -> Releases:
    """One tree of depth 3 over one feature: few enough sums for millions of whole trainings."""
    bound = RowBound(mode, 0.5, 1.0) if mode == "row_weight" else RowBound(mode, 0.5, 0.25)
    each = (
        label_sums(bound, "binary"),
        Candidates(bound, features=1, levels=5),
        Splits(bound, selections=3),
        Leaves(bound),
    )
    shares = {"base_score": 0.01, "candidates": 0.1, "splits": 0.27, "leaves": 0.62}
    return Releases(Mechanisms(each, bound, rounds=1), shares)


def _of(requested: Mechanisms, kind: type[AnyMechanism]) -> AnyMechanism:
    """The mechanism of a kind, which there is."""
    release = requested.find(kind)
    if release is None:
        raise ValueError(f"The plan releases no {kind.name}.")
    return release


def gaussian_scores(shift: npt.ArrayLike, sigma2: int) -> Sampler:
    """Scores of integer sums with discrete Gaussian noise, of which a row moves each by `shift`."""
    moved = np.asarray(shift, dtype=np.int64)

    def sample(with_row: bool, n: int) -> Floats:
        noise = native.discrete_gaussian(None, _STREAM, sigma2, n * moved.size)
        released = noise.reshape(n, moved.size) + (moved if with_row else 0)
        return np.asarray(released @ moved.astype(np.float64) / sigma2, dtype=np.float64)

    return sample


def _mechanism(name: str, plan: Calibration, release: str, sample: Sampler) -> Mechanism:
    events: list[Event] = [e for e in plan.events if e.label == release]
    if not events:
        raise ValueError(f"The plan releases no {release}.")
    return Mechanism(name, "likelihood ratio", ExactAccountant(events), sample)


def leaves(
    requested: Mechanisms,
    plan: Calibration,
    drawn: Calibration | None = None,
    row: tuple[int, int] | None = None,
) -> Mechanism:
    """Leaf sums of all rounds: the row moves G and H of one leaf of each tree."""
    drawn = drawn or plan
    bound = _of(requested, Leaves).bound
    b = bound.unit(plan.grid_bits)
    h = 0 if bound.ball else bound.max_hessian(plan.grid_bits)
    scores = gaussian_scores((row or (b, h)) * requested.rounds, drawn["leaves"].sigma2)
    return _mechanism("leaf sums", plan, "leaves", scores)


def candidates(
    requested: Mechanisms, plan: Calibration, drawn: Calibration | None = None
) -> Mechanism:
    """Counts of the candidate trees: the row adds 1 to one cell of every level and feature."""
    drawn = drawn or plan
    moved = [1 << plan["candidates"].shift] * _of(requested, Candidates).touched
    scores = gaussian_scores(moved, drawn["candidates"].sigma2)
    return _mechanism("candidate counts", plan, "candidates", scores)


def intercept(
    requested: Mechanisms, plan: Calibration, drawn: Calibration | None = None
) -> Mechanism:
    """Label sums: the row adds (1, 1), or 1 to one class."""
    drawn = drawn or plan
    sums, _ = _of(requested, LabelSums).labels.measure(person=False)
    moved = [1 << plan["intercept"].shift] * sums
    scores = gaussian_scores(moved, drawn["intercept"].sigma2)
    return _mechanism("intercept", plan, "intercept", scores)


def selections(
    requested: Mechanisms, plan: Calibration, drawn: Calibration | None = None, candidates: int = 2
) -> Mechanism:
    """All selections that one row takes part in, each with utilities that attain the range.

    Without the row the second half of the candidates leads by B, with it the first half: the row
    moved the utilities by +B and -B, which is the whole range 2 B.
    """
    drawn = drawn or plan
    bound, eps_num = _of(requested, Leaves).bound, drawn["splits"].eps_num
    b = bound.unit(plan.grid_bits)
    den = sensitivity.range_int("l1", bound, plan.grid_bits) << EPS_BITS
    half = candidates // 2
    utilities = {False: [5 * b] * half + [6 * b] * half, True: [6 * b] * half + [5 * b] * half}
    k = _of(requested, Splits).selections

    def sample(with_row: bool, n: int) -> Floats:
        chosen = native.select(None, _STREAM, utilities[with_row], eps_num, den, n * k)
        first = np.count_nonzero(chosen.reshape(n, k) < half, axis=1)
        return np.asarray((first - 0.5 * k) * (eps_num / 2**EPS_BITS), dtype=np.float64)

    return _mechanism("selections", plan, "splits", sample)


def whole_training(
    requested: Mechanisms, plan: Calibration, drawn: Calibration | None = None
) -> Mechanism:
    """Every release of a training at once, against the certified curve of the composition."""
    parts = [build(requested, plan, drawn) for build in (intercept, candidates, selections, leaves)]

    def sample(with_row: bool, n: int) -> Floats:
        return np.asarray(sum(part.sample(with_row, n) for part in parts), dtype=np.float64)

    claim = ExactAccountant(plan.events)
    return Mechanism("all releases of one tree", "likelihood ratio", claim, sample)


BUILDERS = (leaves, candidates, intercept, selections, whole_training)


def audit(
    mechanism: Mechanism, n: int = 1_000_000, *, confidence: float = 0.95, name: str | None = None
) -> AuditResult:
    """Draw `n` outputs under each neighbour and test the claim."""
    scores: dict[bool, Floats] = {}
    for with_row in (False, True):
        sizes = [min(_CHUNK, n - i) for i in range(0, n, _CHUNK)]
        scores[with_row] = np.concatenate([mechanism.sample(with_row, size) for size in sizes])
    return audit_scores(
        scores[False],
        scores[True],
        mechanism.claim,
        name=name or mechanism.name,
        statistic=mechanism.statistic,
        confidence=confidence,
    )
