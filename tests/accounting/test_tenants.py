"""Events and accountants of published systems are loaded when somebody names them."""

import subprocess
import sys

import pytest

import xgb_dp.accounting
from xgb_dp.accounting import Event, ParallelEvent, make_accountant, tenants
from xgb_dp.accounting.nested import RoundsEvent

from .events import gaussian, sampled, selections

_PROGRAM = """
import sys
from xgb_dp.accounting import event_from_json, make_accountant
assert not [name for name in sys.modules if name.startswith("xgb_dp.published")]
print(make_accountant({accountant!r}, [event_from_json({event!r})]).get_epsilon(1e-6).hex())
"""


def in_a_fresh_process(accountant: str, event: Event) -> float:
    program = _PROGRAM.format(accountant=accountant, event=event.to_json())
    command = [sys.executable, "-c", program]
    return float.fromhex(subprocess.check_output(command, text=True))


@pytest.mark.parametrize(
    "event",
    [
        sampled(0.5, 3, gaussian(4.0)),
        ParallelEvent(4, (gaussian(4.0), selections(0.1, 3)), 2),
    ],
    ids=lambda event: event.mechanism,
)
def test_a_ledger_loads_the_module_of_its_events(event):
    expected = make_accountant("exact", [event]).get_epsilon(1e-6)
    assert in_a_fresh_process("exact", event) == expected


def test_an_accountant_is_loaded_by_its_name():
    expected = make_accountant("rdp", [gaussian(4.0)]).get_epsilon(1e-6)
    assert in_a_fresh_process("rdp", gaussian(4.0)) == expected


def test_every_tenant_is_where_the_registry_says():
    for mechanism, path in tenants.EVENTS.items():
        assert getattr(xgb_dp.accounting, path.rpartition(":")[2]).mechanism == mechanism
    for name, path in tenants.ACCOUNTANTS.items():
        assert getattr(xgb_dp.accounting, path.rpartition(":")[2]).name == name
    with pytest.raises(AttributeError, match="has no attribute 'Accountants'"):
        _ = xgb_dp.accounting.Accountants


@pytest.mark.parametrize("name", ["exact", "rdp", "gdp", "classic", "pure"])
def test_rounds_that_register_no_cost_are_refused(name):
    class Unknown(RoundsEvent):
        count = 1
        unit = "row"

    with pytest.raises(TypeError, match="do not know what the event Unknown costs"):
        make_accountant(name, [Unknown()]).get_epsilon(1e-6)
