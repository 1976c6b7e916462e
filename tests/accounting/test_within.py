"""What was drawn is within what was planned: the same noise, and no more of anything that costs."""

from dataclasses import replace
from typing import Any

import pytest

from xgb_dp.accounting import Event
from xgb_dp.accounting.events import is_within
from xgb_dp.errors import LedgerError
from xgb_dp.record import ledger
from xgb_dp.record.claim import Drawn, completed
from xgb_dp.record.ledger_model import TrainingRecord

from .events import GAUSSIAN, LAPLACE, PARALLEL, ROUND, SAMPLED, SELECTION

ROUNDS = (SAMPLED, PARALLEL)

BEYOND: list[tuple[Event, dict[str, Any]]] = [
    (GAUSSIAN, {"sensitivity2": 2**36 + 1}),
    (GAUSSIAN, {"sigma2": 2**44 - 1}),
    (GAUSSIAN, {"sigma2": 0}),
    (GAUSSIAN, {"coordinates": 5}),
    (GAUSSIAN, {"release": "histograms"}),
    (SELECTION, {"eps_num": 2**35 + 1}),
    (SELECTION, {"eps_bits": 39}),
    (LAPLACE, {"sensitivity": 2**20 + 1}),
    (LAPLACE, {"scale": 2**24 - 1}),
    (LAPLACE, {"scale": 0}),
    (SAMPLED, {"rate_num": 2**30 + 1}),
    (SAMPLED, {"rate_bits": 31}),
    (SAMPLED, {"events": (SELECTION, replace(GAUSSIAN, sigma2=2**44 - 1))}),
    (SAMPLED, {"events": (SELECTION, replace(GAUSSIAN, count=6))}),
    (SAMPLED, {"events": (*ROUND, GAUSSIAN)}),
    (PARALLEL, {"parts": 11}),
    (PARALLEL, {"events": (replace(SELECTION, eps_num=2**35 + 1), GAUSSIAN)}),
    *((e, {"count": e.count + 1}) for e in (GAUSSIAN, SELECTION, LAPLACE, *ROUNDS)),
]


@pytest.mark.parametrize("event", [GAUSSIAN, SELECTION, LAPLACE, *ROUNDS])
def test_the_plan_and_less_of_it_are_within(event):
    assert is_within(event, event)
    assert is_within(replace(event, count=event.count - 1), event)  # type: ignore[type-var]


def claim(*events: Event, rounds: int) -> tuple[TrainingRecord, Any]:
    """The record of a training, and the ledger that claims it."""
    record = TrainingRecord(
        id="0" * 32, plans=("0" * 64,), complete=False, events=events, rounds=rounds,
        target=(1.0, 1e-6), public={},
    )  # fmt: skip
    return record, ledger.claim(None, record, private=True, noise="os")


def grown(events: tuple[Event, ...]) -> Drawn:
    """What the library has recorded."""
    return Drawn(True, "os", events, ())


@pytest.mark.parametrize(("plan", "changes"), BEYOND)
def test_a_training_that_drew_it_is_not_completed(plan, changes):
    """The last check before a ledger is signed; the same training is completed as planned."""
    record, claimed = claim(plan, rounds=50 if plan is PARALLEL else 5)
    beyond = (replace(plan, **changes),)  # type: ignore[type-var]
    with pytest.raises(LedgerError, match="released more than was calibrated"):
        completed(claimed, grown(beyond), record.rounds)
    if plan is not SELECTION:  # selections alone do not tell how many rounds were grown
        training = completed(claimed, grown((plan,)), record.rounds).trainings[-1]
        assert training.complete
        assert training.drawn is None


@pytest.mark.parametrize("more", [{"eps_num": 2**35 - 1}, {"count": 10}])
def test_two_entries_of_a_kind_are_beyond(more):
    """Each would be within the plan by itself, and both together would be charged once."""
    record, claimed = claim(*ROUND, rounds=5)
    drawn = (*ROUND, replace(SELECTION, **more))
    with pytest.raises(LedgerError, match="released more than was calibrated"):
        completed(claimed, grown(drawn), record.rounds)
    assert completed(claimed, grown(ROUND), 5).trainings[-1].complete
