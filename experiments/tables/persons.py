"""Several rows of a person, and what guards all of them: ``python -m experiments persons``.

Splits are by person, delta is 1e-6, and the default has nothing but the ids. A model in which each
person counts one answers for another population than one of rows, so that scores and mean
predictions are shown for both: rows that count one each, and persons that do.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from ..core import DEFAULT, STOCK, System, Table
from ..datasets import PATIENTS, VISITS

ROWS_PER_PERSON = (1.5, 2.0, 4.0)


def system(name: str, persons: str) -> System:
    """The default with another way to take persons."""
    return replace(DEFAULT, name=name, persons=persons)


TABLE = Table(
    name="persons",
    title="Persons with several rows",
    source="own measure",
    datasets=(PATIENTS, VISITS),
    systems=(
        system(DEFAULT.name, "id"),
        *(
            replace(system(f"{k:g} rows a person", "id"), params={"dp_max_rows_per_person": k})
            for k in ROWS_PER_PERSON
        ),
        system("average of the rows", "average"),
        system("one row of each", "one"),
        system("group of all rows", "group"),
        system("rows without a guarantee", ""),
        STOCK,
    ),
    epsilons=(0.25, 1.0, 4.0),
    metrics={"": "auc"},
    also=("auc_persons", "mean_ratio", "ratio_persons", "seconds"),
    seeds=5,
    delta=1e-6,
    notes=(
        '`default` is told whom each row belongs to (`dp_privacy_id`); "K rows a person" has '
        "`dp_max_rows_per_person=K` besides. Average: weights of 1 over the rows of the person, "
        "whose guarantee is that of a row; its sums would have that of a person, its counts not. "
        "One row: drawn beforehand, at random. Group: `dp_group_size` of the most rows that a "
        f"person has, {PATIENTS.most_rows} and {VISITS.most_rows}.",
        f"{PATIENTS.name}: {PATIENTS.file}, any readmission; 71,518 persons, of whom 77% have one "
        f"row. {VISITS.name}: generated, {VISITS.size[0]:,} persons with 1 to {VISITS.most_rows:,} "
        "rows (log-normal), about 100,000 altogether, with effects of rows and of persons.",
        "Seconds: training and prediction, in one thread of a busy machine.",
    ),
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["persons", *sys.argv[1:]]))
