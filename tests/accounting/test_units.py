"""Events for rows and events for persons: how ledgers write them, and that they never mix."""

from dataclasses import replace

import pytest

from tests.mutations import at, places
from xgb_dp.accounting import (
    ACCOUNTANTS,
    PERSON,
    ROW,
    ChoiceEvent,
    Event,
    GaussianEvent,
    Repetitions,
    SelectionEvent,
    event_from_json,
    make_accountant,
    one_unit,
)
from xgb_dp.accounting.events import is_within, with_unit
from xgb_dp.accounting.filter import charge_of
from xgb_dp.accounting.sampled_rounds import ParallelEvent, SampledEvent
from xgb_dp.errors import LedgerError

from .events import GAUSSIAN, LAPLACE, PARALLEL, ROUND, SAMPLED, SELECTION

FIRST = GaussianEvent("rows", 2**20, 2**24, 1, 1)
CHOICE = ChoiceEvent((FIRST,), ((SAMPLED,), ROUND), 1)
SELECT = SelectionEvent(Repetitions.of("geometric", 3.0), (ROUND, (SAMPLED,)), (FIRST,), 1)
KINDS: list[Event] = [GAUSSIAN, SELECTION, LAPLACE, SAMPLED, PARALLEL, CHOICE, SELECT]


@pytest.mark.parametrize("event", KINDS)
def test_a_ledger_from_before_units_speaks_of_rows(event):
    assert "unit" not in repr(event.to_json())
    assert event_from_json(event.to_json()) == event
    assert event.unit == ROW


@pytest.mark.parametrize("event", KINDS)
def test_every_event_of_a_person_says_so(event):
    of_person = with_unit(event, PERSON)
    assert of_person.unit == PERSON
    assert event_from_json(of_person.to_json()) == of_person
    assert with_unit(of_person, ROW) == event
    data = of_person.to_json()
    for part in (at(data, path) for path in ((), *places(data))):
        assert not isinstance(part, dict) or part.get("unit") == PERSON or "mechanism" not in part


@pytest.mark.parametrize("unit", ["household", "row", "", None, 1, ["person"]])
@pytest.mark.parametrize("event", KINDS)
def test_an_unknown_unit_is_refused(event, unit):
    with pytest.raises(LedgerError, match="unit"):
        event_from_json({**event.to_json(), "unit": unit})


def test_an_event_has_a_known_unit():
    with pytest.raises(LedgerError, match="unknown `unit`"):
        replace(GAUSSIAN, unit="household")


@pytest.mark.parametrize("event", [SAMPLED, PARALLEL, CHOICE, SELECT])
def test_the_parts_of_an_event_have_its_unit(event):
    outer = {**event.to_json(), "unit": PERSON}
    inner = with_unit(event, PERSON).to_json()
    del inner["unit"]
    for data in (outer, inner):
        with pytest.raises(LedgerError, match="unit"):
            event_from_json(data)


def test_units_never_mix():
    mixed = (with_unit(SELECTION, PERSON), GAUSSIAN)
    for make in (
        lambda: SampledEvent(2**30, 32, mixed, 5),
        lambda: ParallelEvent(10, mixed, 5),
        lambda: ChoiceEvent((FIRST,), ((with_unit(GAUSSIAN, PERSON),),)),
        lambda: SelectionEvent(SELECT.repetitions, (mixed,), (FIRST,), 1),
        lambda: SelectionEvent(SELECT.repetitions, (ROUND,), (with_unit(FIRST, PERSON),), 1),
        lambda: one_unit([SAMPLED, with_unit(LAPLACE, PERSON)]),
        lambda: charge_of([SAMPLED, with_unit(LAPLACE, PERSON)], 1e-6),
        *(
            lambda name=name: make_accountant(name, [GAUSSIAN, with_unit(SELECTION, PERSON)])
            for name in ACCOUNTANTS
        ),
    ):
        with pytest.raises(LedgerError, match="losses cannot be added"):
            make()


@pytest.mark.parametrize("event", KINDS)
def test_what_was_planned_for_another_unit_covers_nothing(event):
    assert is_within(with_unit(event, PERSON), with_unit(event, PERSON))
    assert not is_within(event, with_unit(event, PERSON))
    assert not is_within(with_unit(event, PERSON), event)


@pytest.mark.parametrize("event", KINDS)
def test_a_person_costs_what_a_row_costs(event):
    """The unit says who the figures speak of; it changes none of them."""
    rows, persons = (
        make_accountant("exact", [e]).get_epsilon(1e-6) for e in (event, with_unit(event, PERSON))
    )
    assert rows == persons > 0.0
