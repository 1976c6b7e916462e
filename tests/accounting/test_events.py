import pytest

from xgb_dp.accounting import ExponentialEvent, GaussianEvent, event_from_json, events_from_ledger
from xgb_dp.errors import LedgerError

G = GaussianEvent("leaves", 2**36, 2**44, 2, 50)
E = ExponentialEvent("splits", 2**35, 40, 200)


@pytest.mark.parametrize("event", [G, E])
def test_round_trip(event):
    assert event_from_json(event.to_json()) == event


def test_ledger_in_order():
    ledger = {"trainings": [{"events": [G.to_json()]}, {"events": [E.to_json(), G.to_json()]}]}
    assert events_from_ledger(ledger) == [G, E, G]


@pytest.mark.parametrize(
    "data",
    [
        {"mechanism": "laplace", "release": "x", "scale": 1},
        {"release": "x"},
        "gaussian",
        {**G.to_json(), "extra": 1},
        {k: v for k, v in G.to_json().items() if k != "coordinates"},
        {**G.to_json(), "sigma2": 2.0},
        {**G.to_json(), "sigma2": True},
        {**G.to_json(), "count": -1},
        {**E.to_json(), "eps_num": -1},
        {**E.to_json(), "eps_bits": 80},
        {**E.to_json(), "release": ""},
    ],
)
def test_what_is_not_understood_is_refused(data):
    with pytest.raises(LedgerError):
        event_from_json(data)


def test_range_of_a_selection():
    assert ExponentialEvent("splits", 3 << 38, 40, 1).eps0 == 0.75
