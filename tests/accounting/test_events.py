import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import xgb_dp.accounting
from xgb_dp.accounting import ExponentialEvent, GaussianEvent, event_from_json
from xgb_dp.errors import LedgerError

G = GaussianEvent("leaves", 2**36, 2**44, 2, 50)
E = ExponentialEvent("splits", 2**35, 40, 200)


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
    assert order.index("events") < order.index("simplify") < order.index("exact")


def test_events_are_nested_as_deep_as_selections_of_choices():
    """Each level is read by a call of its own: a ledger cannot exhaust the stack."""
    data = G.to_json()
    for _ in range(200):
        data = {"mechanism": "choice", "first": [], "options": [[data]], "count": 1}
    with pytest.raises(LedgerError, match="unknown mechanism"):
        event_from_json(data)
