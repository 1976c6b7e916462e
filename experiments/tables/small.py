"""The packages of ``alternatives`` on few rows: ``python -m experiments small``."""

import dataclasses
import sys

from ..core import Table
from . import alternatives
from .sizes import of_size

SIZES = (500, 1_000, 3_000, 10_000)
_SYNTHETIC = (alternatives.MST, alternatives.AIM)

TABLE: Table = dataclasses.replace(
    alternatives.TABLE,
    name="small",
    title="Few rows",
    source="own measure, a generated task of 20 columns; peers from PyPI, run here",
    datasets=tuple(of_size(rows) for rows in SIZES),
    systems=tuple(
        system
        for system in alternatives.TABLE.systems
        if system.peer not in ("sbdt", "opacus", "diffprivlib") and system.name not in _SYNTHETIC
    ),
    seeds=5,
    absent={},
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["small", *sys.argv[1:]]))
