"""All tables by name. A table is a module of this package with a ``TABLE``."""

from __future__ import annotations

import dataclasses
import functools
import importlib

from ..core import Table

NAMES = (
    "sarus_figure4",
    "sarus_figure1",
    "sarus_figure2",
    "dp_xgb_table1",
    "dp_xgb_figure1",
    "dp_xgb_figure2",
    "dp_xgb_figure3",
    "maddock_table3",
    "maddock_table4",
    "maddock_table5",
    "maddock_table6",
    "dpboost_figure2",
    "dpboost_table2",
    "ebm_slides",
    "peers_table",
    "bar",
    "unseen",
    "small",
    "codes",
    "tasks",
    "own_settings",
    "sizes",
    "rare",
    "alternatives",
    "sbdt_paper",
    "parts",
    "steps",
    "persons",
    "objectives",
    "public_start",
    "wide",
)


@functools.cache
def get(name: str, size: str = "") -> Table:
    """The table of that name.

    Args:
        name: One of NAMES.
        size: "ROWSxCOLUMNS" of its generated data sets, if they are to be others than usual.

    Raises:
        KeyError: If there is none.
    """
    if name not in NAMES:
        raise KeyError(name)
    table: Table = importlib.import_module(f"{__package__}.{name}").TABLE
    if size:
        resized = tuple(d.resized(size) if d.generate else d for d in table.datasets)
        table = dataclasses.replace(table, datasets=resized)
    return table
