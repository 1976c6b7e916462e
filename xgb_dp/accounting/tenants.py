"""Names the events and accountants that are defined outside of this package.

Nothing here imports them. Their module is imported where a ledger contains such an event or where a
caller asks for such an accountant, and registers what it defines.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

EVENTS = {
    "poisson": "xgb_dp.published.rounds:SampledEvent",
    "parallel": "xgb_dp.published.rounds:ParallelEvent",
}
"""Where the events of a mechanism are defined."""
ACCOUNTANTS = {
    "rdp": "xgb_dp.published.accountants:RDPAccountant",
    "gdp": "xgb_dp.published.accountants:GDPAccountant",
    "classic": "xgb_dp.published.accountants:ClassicAccountant",
}
"""Where the accountant of a name is defined."""


def load(name: str) -> Any:
    """Import the event or accountant with this class name."""
    for path in (*EVENTS.values(), *ACCOUNTANTS.values()):
        if path.endswith(f":{name}"):
            return resolve_name(path)
    raise AttributeError(f"module 'xgb_dp.accounting' has no attribute {name!r}")
