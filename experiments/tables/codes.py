"""Codes as numbers, declared, and examined: ``python -m experiments codes``.

A code book is public, or a part of the budget examines the columns first. Codes are all columns of
names with many values, in the order of these names.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from typing import Any

import xgb_dp

from ..core import DEFAULT, Cell, Options, System, Table
from ..datasets import Dataset, as_codes
from ..scoring import scores
from ..train import Split, delta_of, here, parameters, split

FEWEST = 30  # names of a column of codes
SHARE = 0.1  # of epsilon, for a look at the columns
NUMBERS, EXAMINED = "as numbers", "examined"


def examined(parts: Split, names: list[str], epsilon: float, delta: float) -> tuple[Split, Any]:
    """Columns whose categories are released, and the parameters that declare them."""
    discovery = xgb_dp.discover(
        parts.x_train[names].astype("object"),
        dict.fromkeys(names, "text"),
        epsilon=epsilon,
        delta=delta,
    )
    x_train, x_test = (
        x.drop(columns=names).join(discovery.apply(x[names].astype("object")))
        for x in (parts.x_train, parts.x_test)
    )
    params = discovery.params()
    params["dp_categories"] = parts.categories | params.get("dp_categories", {})
    return replace(parts, x_train=x_train, x_test=x_test), params


def compute(table: Table, cell: Cell, options: Options) -> dict[str, Any]:
    """Train and score one cell."""
    system, data = table.system(cell.system), table.dataset(cell.dataset)
    parts = split(data, DEFAULT, cell.seed, table.held_out(data.name), stratify=False)
    names = [name for name, known in parts.categories.items() if len(known) >= FEWEST]
    epsilon, delta = cell.epsilon, delta_of(table, system, len(parts.y_train))
    more: dict[str, Any] = {}
    if system.name != DEFAULT.name:
        others = {k: v for k, v in parts.categories.items() if k not in names}
        parts = replace(parts, categories=others)
    if system.name == NUMBERS:
        x_train, x_test = (x.assign(**as_codes(x[names])) for x in (parts.x_train, parts.x_test))
        parts = replace(parts, x_train=x_train, x_test=x_test)
    elif system.name == EXAMINED:
        parts, more = examined(parts, names, SHARE * epsilon, delta / 2)
        epsilon, more = (1 - SHARE) * epsilon, more | {"dp_delta": delta / 2}
    params = parameters(table, data, DEFAULT, epsilon, parts, more, options.threads)
    predicted, measured = here(params, parts, None, None, private=True)
    shape = {"n_train": len(parts.y_train), "columns": parts.x_train.shape[1]}
    return asdict(cell) | shape | scores(data.objective, parts.y_test, predicted) | measured


TABLE = Table(
    name="codes",
    title="Columns of codes",
    source="own measure",
    datasets=(
        Dataset("50 codes", generate="codes 50", size=(30_000, 9)),
        Dataset("200 codes", generate="codes 200", size=(30_000, 9)),
        Dataset("Diabetes 130, any readmission", "diabetes130us", positive=(1, 2)),
    ),
    systems=(DEFAULT, System(NUMBERS), System(EXAMINED)),
    epsilons=(0.25, 1.0, 4.0),
    metrics={"": "auc"},
    compute=compute,
    seeds=3,
    notes=(
        "default: all categories are declared. As numbers: the positions of the names. Examined: "
        f"`xgb_dp.discover` reads these columns as text with {SHARE:g} of epsilon and half of "
        "delta, and the training takes the rest.",
        "Codes: normal columns, and one of codes with an effect each and uneven shares. "
        "Diabetes 130: three diagnoses of 716 to 789 names and a specialty of 72.",
    ),
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["codes", *sys.argv[1:]]))
