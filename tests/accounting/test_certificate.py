"""Epsilon by interval arithmetic agrees with the accountant, and nothing unknown is certified.

``python -m tests.accounting.test_certificate LEDGERS`` does this for a file with a ledger a line.
"""

import json
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from xgb_dp.accounting import (
    ChoiceEvent,
    ExponentialEvent,
    GaussianEvent,
    event_from_json,
    make_accountant,
)
from xgb_dp.record.privacy_report import privacy_report

from ..conftest import OBJECTIVE, arrays
from .certificate import NotCertifiedError, certify
from .certified_selections import _down, _up

DELTA = 1e-6
LEAVES = GaussianEvent("leaves", 1 << 30, 1 << 36, 3, 20)
SPLITS = ExponentialEvent("splits", 3, 5, 12)
LISTS = {
    "gaussian": [LEAVES],
    "coarse counts": [GaussianEvent("counts", 2, 4000, 2, 8)],
    "one selection": [ExponentialEvent("splits", 3, 1, 1), LEAVES],
    "selections alone": [SPLITS],
    "both": [LEAVES, SPLITS],
    "a choice": [LEAVES, ChoiceEvent((LEAVES,), ((SPLITS, LEAVES), (LEAVES,)))],
    "two ranges": [SPLITS, LEAVES, ExponentialEvent("splits", 5, 6, 9)],
    "large noise": [ExponentialEvent("splits", 13, 8, 60), GaussianEvent("leaves", 1, 400, 2, 20)],
    "many selections": [LEAVES, ExponentialEvent("splits", 1, 5, 1001)],
}


def ledger(events: list[Any], **public: Any) -> dict[str, Any]:
    return {"trainings": [{"public": public, "events": [e.to_json() for e in events]}]}


@pytest.mark.parametrize("name", LISTS)
def test_the_claim_is_within_half_a_percent(name: str) -> None:
    claim = make_accountant("exact", LISTS[name]).get_epsilon(DELTA)
    bounds = certify(ledger(LISTS[name]), DELTA)
    assert bounds.lower <= claim
    assert bounds.lower <= bounds.upper <= bounds.lower + 0.005 * claim


def test_the_dearest_plan_counts() -> None:
    cheap = GaussianEvent("leaves", 1 << 30, 1 << 38, 3, 20)
    bounds = certify(ledger([ChoiceEvent((LEAVES,), ((cheap,), (LEAVES,)))]), DELTA)
    both = make_accountant("exact", [LEAVES, LEAVES]).get_epsilon(DELTA)
    assert bounds.upper >= both and bounds.lower == pytest.approx(both, rel=1e-3)


def test_less_noise_is_refuted() -> None:
    claim = make_accountant("exact", [LEAVES, SPLITS]).get_epsilon(DELTA)
    costlier = GaussianEvent("leaves", 1 << 30, 63 << 30, 3, 20)
    assert certify(ledger([costlier, SPLITS]), DELTA).lower > claim


@pytest.mark.parametrize(
    "event",
    [
        {"mechanism": "laplace", "release": "leaves", "sensitivity": 1, "scale": 9, "count": 1},
        {"mechanism": "unheard of", "count": 1},
        GaussianEvent("counts", 1, 15, 1, 1).to_json(),
        GaussianEvent("counts", 1, 0, 1, 1).to_json(),
        ChoiceEvent((LEAVES,), ((LEAVES,),), 2).to_json(),
        ChoiceEvent((LEAVES,), ((LEAVES,),), 1).to_json() | {"options": []},
        ChoiceEvent((LEAVES,), ((LEAVES,),), 1).to_json() | {"first": [SPLITS.to_json()]},
    ],
)
def test_what_has_no_certificate_is_refused(event: dict[str, Any]) -> None:
    with pytest.raises(NotCertifiedError):
        certify({"trainings": [{"public": {}, "events": [event]}]}, DELTA)


def test_delta_zero_and_masked_sums_are_refused() -> None:
    with pytest.raises(NotCertifiedError):
        certify(ledger([SPLITS]), 0.0)
    with pytest.raises(NotCertifiedError):
        certify(ledger([LEAVES], masked_sums={"workers": 3, "colluders": 1}), DELTA)


@pytest.mark.parametrize("power", [1, 30, 400])  # 400: products that underflow
def test_rounding_bounds_sums_of_four_products(power: int) -> None:
    a, b = np.random.default_rng(power).uniform(size=(2, 500, 4)) ** power
    products = (a * b).T
    computed = (products[0] + products[1]) + (products[2] + products[3])
    for x, y, low, high in zip(a, b, _down(computed), _up(computed), strict=True):
        exact = sum(Fraction(v) * Fraction(w) for v, w in zip(x, y, strict=True))
        assert low <= exact <= high


@pytest.mark.parametrize(
    "kind, more",
    [
        ("binary", {"dp_start": "intercept"}),
        ("binary", {}),
        ("multiclass", {"dp_split": "random"}),
        ("regression", {"dp_score": "l1", "dp_start": "intercept"}),
    ],
)
def test_ledgers_of_trainings_are_confirmed(kind: str, more: dict[str, Any]) -> None:
    X, y = arrays(kind)
    params = {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": DELTA, "max_depth": 2}
    report = privacy_report(xgb.train(params | OBJECTIVE[kind] | more, xgb.DMatrix(X, y), 3))
    bounds = certify(report.record.to_json(), DELTA)
    assert bounds.lower <= report.epsilon
    assert bounds.upper <= 1.005 * report.epsilon


def every(path: Path) -> Counter[str]:
    """How the certificates of a file of ledgers end; the widest is printed."""
    ends, widest = Counter[str](), 0.0
    for line in path.open():
        read = json.loads(line)
        events = [event_from_json(e) for t in read["trainings"] for e in t["events"]]
        try:
            bounds = certify(read, DELTA)
        except NotCertifiedError as error:
            ends[f"not certified: {error}"] += 1
            continue
        claim = make_accountant("exact", events).get_epsilon(DELTA)
        widest = max(widest, (bounds.upper - bounds.lower) / claim if claim else 0.0)
        ends["refuted" if claim < bounds.lower else "confirmed"] += 1
    print(f"widest: {widest:.2%}")
    return ends


if __name__ == "__main__":
    print(every(Path(sys.argv[1])))
