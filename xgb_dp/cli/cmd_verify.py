"""The command that checks model files, by a program that needs no extra."""

from __future__ import annotations

import click

from .group import PASSED_ON, Given, command


@command("verify", context_settings=PASSED_ON)
@click.argument("arguments", metavar="MODEL [OPTIONS]", nargs=-1, type=click.UNPROCESSED)
def verify(given: Given) -> None:
    """Check what a model file claims about its privacy, without libxgboost.

    Use it before you release a model. It recomputes epsilon from the ledger in the file, compares
    the trees with the ledger, and lists whatever else the file contains. It needs neither the
    private build nor the extra `cli`. `xgb-dp verify --help` prints the options.

    \b
    xgb-dp verify model.json --max-epsilon 1 --delta 1e-6 --json
    """
    from .verifier import main

    raise SystemExit(main(given.arguments))
