"""The command that shows the whole way on real rows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np

from .files import write_table
from .group import Given, command
from .options import OUT
from .output import Failure, new_files, save

_STEPS = """\
budget book.json --epsilon 2 --delta 1e-6 --unit person
discover patients.csv --epsilon 0.2 --delta 1e-7 --privacy-id person --target visit --budget book.json --text visit,health --number lncoins,idp,lpi,fmde,physlm,disea --out patients.yaml
split patients.csv --train train.csv --test test.csv --privacy-id person
train train.csv --schema patients.yaml --epsilon 1.85 --delta 1e-6 --budget book.json --model model.json
evaluate model.json test.csv --epsilon 0.35 --delta 1e-6 --budget book.json --calibrated final.json
verify final.json --max-epsilon 2 --delta 1e-6
"""  # noqa: E501


@command("demo")
@click.option("--rows", type=OUT, help="Only write the rows, as .csv or .parquet; - prints them.")
def demo(given: Given) -> None:
    """Show the whole way on real rows: look, train for people, evaluate, calibrate and verify.

    The rows are of the RAND Health Insurance Experiment, which statsmodels carries: 20,190 years of
    patients, and who saw a doctor. They are public, so whatever is printed here is too.

    \b
    xgb-dp demo
    xgb-dp demo --rows patients.csv
    """
    table = patients()
    if str(given.rows) == "-":
        click.echo(table.to_csv(index=False), nl=False)
        return
    if given.rows is not None:
        new_files([given.rows], force=False)
        save((given.rows, lambda place: write_table(table, place)))
        return
    with tempfile.TemporaryDirectory(prefix="xgb-dp-demo-") as folder:
        write_table(table, Path(folder) / "patients.csv")
        click.echo("$ xgb-dp demo --rows patients.csv")
        for step in _STEPS.splitlines():
            click.echo(f"\n$ xgb-dp {step}")
            run = subprocess.run([sys.executable, "-m", "xgb_dp", *step.split()], cwd=folder)
            if run.returncode:
                raise SystemExit(run.returncode)


def patients() -> Any:
    """A row for each year of a patient."""
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        raise Failure("The rows come with statsmodels: pip install statsmodels.") from None
    table = randhie.load_pandas().data.astype("float32")
    health = ["hlthp", "hlthf", "hlthg"]
    same = ["lncoins", "disea", "physlm", *health]  # in all years of a patient, who follow another
    person = (table[same].diff() != 0).any(axis=1).cumsum()
    words = np.select([table.pop(n) > 0 for n in health], ["poor", "fair", "good"], "excellent")
    visit = np.where(table.pop("mdvis") > 0, "yes", "no")
    return table.assign(person=person, health=words, visit=visit)
