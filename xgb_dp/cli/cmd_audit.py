"""The command that audits the build, by the program of its package."""

from __future__ import annotations

import click

from .group import PASSED_ON, Given, command


@command("audit", context_settings=PASSED_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def audit(given: Given) -> None:
    """Measure lower bounds on epsilon, as python -m xgb_dp.audit does (--fast: within a minute)."""
    from ..audit.__main__ import main

    raise SystemExit(main(list(given.arguments)))
