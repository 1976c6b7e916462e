"""An audit of the repetitions: the loop of a selection on runs whose law is known."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xgb_dp.accounting import Repetitions
from xgb_dp.accounting.curve import Curve
from xgb_dp.accounting.selection import SelectionCurve
from xgb_dp.record import ledger, selection_record
from xgb_dp.request.objectives import OBJECTIVES
from xgb_dp.selection import best_run
from xgb_dp.selection.scores import ScoreValue

from ..audit.statistics import violates
from .test_privacy import Pair, best_of

N = 6_000
SURE = 1.0 - 1e-6
P, Q = np.array([0.92, 0.05, 0.03]), np.array([0.90, 0.02, 0.08])
DISTRIBUTIONS = [
    ("geometric", 8.0),
    ("logarithmic", 4.0),
    ("poisson", 4.0),
    ("negative_binomial", 2.0),
]


class Claim:
    """A curve as an audit asks it."""

    def __init__(self, curve: Curve) -> None:
        self.get_epsilon = curve.epsilon


def winners(distribution: Repetitions, chances: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Outcomes of N selections among runs that end in 0, 1 or 2, which is also their score."""
    rng = np.random.default_rng()
    drawn = iter(())

    def outcome(*args: Any) -> int:
        nonlocal drawn
        value = next(drawn, None)
        if value is None:
            drawn = iter(rng.choice(3, p=chances, size=100_000).tolist())
            value = next(drawn)
        return value

    monkeypatch.setattr(best_run, "_train", outcome)
    monkeypatch.setattr(best_run, "_predict", lambda booster, dvalid: booster)
    monkeypatch.setattr(best_run, "Predicted", SimpleNamespace(from_settings=lambda settings: None))
    judge = SimpleNamespace(release=lambda p, *rest: ScoreValue(p, 0.0, p))
    settings = SimpleNamespace(target=None, objective=OBJECTIVES["binary:logistic"])
    candidate = SimpleNamespace(settings=settings)
    event = SimpleNamespace(repetitions=distribution, runs=[()], score=())
    plan = SimpleNamespace(event=event, runs=[()], score=None)
    record = SimpleNamespace(is_private=True, trainings=[None], events=[])
    monkeypatch.setattr(ledger, "read_ledger", lambda booster: record)
    monkeypatch.setattr(ledger, "store", lambda booster, record: None)
    monkeypatch.setattr(selection_record, "replace", lambda record, **changes: record)
    data = SimpleNamespace(matrix=SimpleNamespace(get_label=lambda: None), persons=None)
    best = (best_run._best_run([candidate], plan, judge, data, data).booster for _ in range(N))
    return np.fromiter(best, dtype=np.int64)


@pytest.mark.parametrize("family, mean", DISTRIBUTIONS)
def test_selections_keep_their_promise(family, mean, monkeypatch):
    distribution = Repetitions.of(family, mean)
    samples = [winners(distribution, chances, monkeypatch) for chances in (P, Q)]
    for sample, chances in zip(samples, (P, Q), strict=True):
        exact = best_of(chances, np.arange(3), distribution)
        counts = np.bincount(sample, minlength=3)
        z = (counts - N * exact) / np.sqrt(N * exact * (1 - exact))
        assert np.abs(z).max() < 5.5
    claim = Claim(SelectionCurve(distribution, [Pair(P, Q)]))
    for outcome in range(3):
        hits = [int(np.count_nonzero(sample == outcome)) for sample in samples]
        assert not violates(claim, hits[0], N, hits[1], N, SURE)


def test_the_audit_finds_a_selection_that_pays_for_one_run(monkeypatch):
    distribution = Repetitions.of("geometric", 20.0)
    hits = [
        int(np.count_nonzero(winners(distribution, chances, monkeypatch) == 1))
        for chances in (P, Q)
    ]
    assert violates(Claim(Pair(P, Q)), hits[0], N, hits[1], N, SURE)
    claim = Claim(SelectionCurve(distribution, [Pair(P, Q)]))
    assert not violates(claim, hits[0], N, hits[1], N, SURE)
