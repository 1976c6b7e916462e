"""The commands that hand their arguments to a program of the package."""

from __future__ import annotations

import click

from .group import Given, command

_PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}


@command("audit", context_settings=_PASSED_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def audit(given: Given) -> None:
    """Measure lower bounds on epsilon, as python -m xgb_dp.audit does (--fast: within a minute)."""
    from ..audit.__main__ import main

    raise SystemExit(main(list(given.arguments)))


@command("verify", context_settings=_PASSED_ON)
@click.argument("arguments", metavar="MODEL [OPTIONS]", nargs=-1, type=click.UNPROCESSED)
def verify(given: Given) -> None:
    """Check what a model file claims about its privacy, without libxgboost.

    Use it before you release a model. It recomputes epsilon from the ledger in the file, compares
    the trees with the ledger, and lists whatever else the file contains. It needs neither the
    private build nor the extra `cli`. The exit code is 0 if all checks passed. It is 1 if the model
    is not private or exceeds a limit, or if the file contains something that the ledger does not
    mention. It is 2 for a wrong call. It is 3 if nothing can be said, because the ledger is missing
    or damaged, or is not that of the trees. `xgb-dp verify --help` prints the options.

    \b
    xgb-dp verify model.json --max-epsilon 1 --delta 1e-6 --json
    """
    from .verifier import main

    raise SystemExit(main(given.arguments))


@command("doctor")
def doctor(_: Given) -> None:
    """Check the build, entropy, versions and installations in the way."""
    from .doctor import main

    raise SystemExit(main())
