import ast
import contextlib
import json
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import xgb_dp.accounting
from xgb_dp.accounting import Event, ExponentialEvent, GaussianEvent, event_from_json
from xgb_dp.errors import LedgerError

from ..mutations import mutations
from .events import SAMPLED, SELECTION
from .test_units import CHOICE, KINDS

G = GaussianEvent("leaves", 2**36, 2**44, 2, 50)


BEYOND: list[tuple[Event, dict[str, Any]]] = [
    (SELECTION, {"eps_bits": 80}),
    *((SAMPLED, {"rate_num": v}) for v in (0, 2**32 + 1)),
    *((SAMPLED, {"rate_bits": v}) for v in (0, 61)),
    (SAMPLED, {"count": 1 << 200}),
    (SAMPLED, {"events": [SAMPLED.to_json()]}),
    (CHOICE, {"count": 1 << 40}),
    (CHOICE, {"first": [SELECTION.to_json()]}),
    *((CHOICE, {"options": v}) for v in ([], [[CHOICE.to_json()]])),
]
NEVER = ("True", "-1", "0.5", "1e+300", "''", "None", "{}")
"""Values that no field has, but for shapes below 0."""


@pytest.mark.parametrize(("event", "change"), BEYOND)
def test_what_is_beyond_its_range_is_refused(event, change):
    with pytest.raises(LedgerError):
        event_from_json({**event.to_json(), **change})


@pytest.mark.parametrize("event", KINDS, ids=lambda event: event.mechanism)
def test_a_changed_event_is_refused_or_means_what_it_says(event):
    """No field is added, left out or read as another one, and no number is below 0."""
    for what, changed in mutations(event.to_json()):
        with contextlib.suppress(LedgerError):
            read = event_from_json(changed).to_json()
            assert json.dumps(read, sort_keys=True) == json.dumps(changed, sort_keys=True), what
            assert not what.endswith(NEVER) or what.endswith("'shape_num') -1"), what


def test_range_of_a_selection():
    assert ExponentialEvent("splits", 3 << 38, 40, 1).eps0 == 0.75


def imports(path: Path) -> set[str]:
    """Modules of the package that a module imports, wherever the import stands."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {
        name
        for node in tree
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for name in ([node.module] if node.module else [alias.name for alias in node.names])
    }


def test_no_module_needs_itself():
    """Events are data: they import no accountant, and nothing in the package runs in a circle."""
    files = Path(xgb_dp.accounting.__file__).parent.glob("*.py")
    graph = {path.stem: imports(path) for path in files if path.stem != "__init__"}
    order = list(TopologicalSorter(graph).static_order())  # raises where there is a circle
    assert graph["events"] == {"units"}
    assert order.index("events") < order.index("simplify") < order.index("accountant")


def test_events_are_nested_as_deep_as_selections_of_choices():
    """Each level is read by a call of its own: a ledger cannot exhaust the stack."""
    data = G.to_json()
    for _ in range(200):
        data = {"mechanism": "choice", "first": [], "options": [[data]], "count": 1}
    with pytest.raises(LedgerError, match="unknown mechanism"):
        event_from_json(data)
