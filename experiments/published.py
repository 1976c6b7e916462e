"""Published figures, typed from the papers into ``published/*.csv``."""

from __future__ import annotations

import csv
import functools
import math
from dataclasses import dataclass

from .core import published_file


@dataclass(frozen=True)
class Figure:
    """A published number.

    Attributes:
        dataset: Name of the data set here, without the size of a generated one.
        system: Name of the published system.
        epsilon: Budget; infinity for a trainer without privacy.
        mean: The figure.
        sd: Its published standard deviation, or NaN.
        source: Paper and table.
    """

    dataset: str
    system: str
    epsilon: float
    mean: float
    sd: float
    source: str


@functools.cache
def figures(name: str) -> tuple[Figure, ...]:
    """All figures of a table; none if nothing was published as numbers."""
    path = published_file(name)
    if not path.exists():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(
            Figure(
                row["dataset"],
                row["system"],
                float(row["epsilon"]),
                float(row["mean"]),
                float(row["sd"] or math.nan),
                row["source"],
            )
            for row in csv.DictReader(file)
        )
