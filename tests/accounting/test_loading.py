"""Events and accountants of published systems are loaded when somebody names them."""

import subprocess
import sys
from pkgutil import resolve_name

import pytest

from xgb_dp.accounting import ACCOUNTANTS, Event, events, make_accountant
from xgb_dp.accounting.events import RoundsEvent
from xgb_dp.accounting.sampled_rounds import ParallelEvent

from .events import gaussian, sampled, selections

_PROGRAM = """
import sys
from xgb_dp.accounting import event_from_json, make_accountant
later = ["xgb_dp.accounting.sampled_rounds", "xgb_dp.accounting.published_accountants"]
assert not set(later) & set(sys.modules)
print(make_accountant({accountant!r}, [event_from_json({event!r})]).get_epsilon(1e-6).hex())
"""


def in_a_fresh_process(accountant: str, event: Event) -> float:
    program = _PROGRAM.format(accountant=accountant, event=event.to_json())
    command = [sys.executable, "-c", program]
    return float.fromhex(subprocess.check_output(command, text=True))


@pytest.mark.parametrize(
    "event",
    [sampled(0.5, 3, gaussian(4.0)), ParallelEvent(4, (gaussian(4.0), selections(0.1, 3)), 2)],
    ids=lambda event: event.mechanism,
)
def test_a_ledger_loads_the_module_of_its_events(event):
    expected = make_accountant("exact", [event]).get_epsilon(1e-6)
    assert in_a_fresh_process("exact", event) == expected


def test_an_accountant_is_loaded_by_its_name():
    expected = make_accountant("rdp", [gaussian(4.0)]).get_epsilon(1e-6)
    assert in_a_fresh_process("rdp", gaussian(4.0)) == expected


def test_every_name_is_found_where_it_is_said_to_be():
    for mechanism, path in events.SAMPLED_EVENTS.items():
        assert resolve_name(path).mechanism == mechanism
    for name, path in ACCOUNTANTS.items():
        if isinstance(path, str):
            assert resolve_name(path).name == name


@pytest.mark.parametrize("name", ["exact", "rdp", "gdp", "classic", "pure"])
def test_rounds_that_register_no_cost_are_refused(name):
    class Unknown(RoundsEvent):
        count = 1
        unit = "row"

    with pytest.raises(TypeError, match="no privacy loss for events of type Unknown"):
        make_accountant(name, [Unknown()]).get_epsilon(1e-6)
