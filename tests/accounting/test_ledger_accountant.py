"""What a report answers for a ledger: accountants, neighbours and groups."""

import math
from typing import Any

import pytest

from xgb_dp.accounting import ACCOUNTANTS, Event, ExponentialEvent, GaussianEvent, make_accountant
from xgb_dp.accounting.events import release_counts
from xgb_dp.accounting.sampled_rounds import SampledEvent
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.record.privacy_report import PrivacyReport

from ..hand_made import mechanisms

SPLITS = ExponentialEvent("splits", 2**35, 40, 40)
LEAVES = GaussianEvent("leaves", 2**40, 2**46, 2, 10)


def report(*events: Event, **plan: Any) -> PrivacyReport:
    plan = {"rounds": 10, "selections": 4} | plan
    if "splits" not in release_counts(events):
        plan |= {"split": "random"}
    return PrivacyReport(
        {
            "version": 1,
            "private": True,
            "noise": "os",
            "trainings": [
                {
                    "id": "0" * 32,
                    "plans": ["0" * 64],
                    "complete": True,
                    "mechanisms": mechanisms(**plan),
                    "events": [e.to_json() for e in events],
                    "rounds": 0,
                    "target": {"epsilon": 1.0, "delta": 1e-6},
                    "public": {
                        "hyperparameters": {
                            "rounds": 0,
                            "budget_shares": {},
                            "group_size": 1,
                            "num_parallel_tree": 1,
                        }
                    },
                    "trees": [],
                }
            ],
        }
    )


@pytest.mark.parametrize("name", list(ACCOUNTANTS))
def test_any_accountant_on_the_same_ledger(name):
    for events in ([SPLITS, LEAVES], [LEAVES]):
        got = report(*events).get_epsilon(1e-6, accountant=name)
        assert got == make_accountant(name, events).get_epsilon(1e-6)
        assert got >= report(*events).get_epsilon(1e-6) * (1 - 1e-3)


def test_sampled_rounds():
    events = [SampledEvent(2**30, 32, (SPLITS, LEAVES), 3)]
    accountant = report(*events, rounds=3, sampling_num=2**30, selections=40, draws=10)
    one = accountant.get_epsilon(1e-6)
    assert 0.0 < one < accountant.get_epsilon(1e-6, adjacency="replace_one") < math.inf
    for name in ("rdp", "gdp", "pure"):
        assert accountant.get_epsilon(1e-6, accountant=name) == math.inf
        assert make_accountant(name, events).get_delta(1.0) == 1.0


def test_answers_are_kept_apart():
    """Asking twice gives the same, asking something else does not."""
    accountant = report(SPLITS, LEAVES)
    queries = [
        (delta, rows, name, adjacency)
        for delta in (1e-6, 1e-3)
        for rows in (1, 3)
        for name in ("exact", "rdp", "gdp")
        for adjacency in ("add_remove", "replace_one")
    ]
    got = [accountant.get_epsilon(d, k, accountant=n, adjacency=a) for d, k, n, a in queries]
    for (delta, rows, name, adjacency), epsilon in zip(queries, got, strict=True):
        if adjacency == "replace_one":  # a replaced row is two rows
            assert epsilon == accountant.get_epsilon(delta, 2 * rows, accountant=name)
    again = [accountant.get_epsilon(d, k, accountant=n, adjacency=a) for d, k, n, a in queries]
    assert got == again
    assert len(set(got)) == len(got)


@pytest.mark.parametrize("bad", [{"accountant": "hope"}, {"adjacency": "substitute"}])
def test_unknown_names(bad):
    with pytest.raises(PrivacyParameterError, match="accountant"):
        report(SPLITS, LEAVES).get_epsilon(1e-6, **bad)  # type: ignore[arg-type]
