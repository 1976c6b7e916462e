"""The command that signs models."""

from __future__ import annotations

import hashlib

import click

from ..budget.budget import Budget
from ..errors import PrivacyParameterError
from ..record import signature
from ..record.verify import verify
from .group import Given, command
from .options import FILE


@command("sign")
@click.argument("model", type=FILE)
@click.option("--key", type=FILE, required=True, help="SSH key of who signs.")
@click.option("--budget", type=FILE, help="Book that has to hold every release of the model.")
def sign(given: Given) -> None:
    """Sign MODEL with an SSH key, into the file MODEL.sig.

    With --budget the signature says that this book held every release of the model. `xgb-dp verify
    MODEL --signer FILE` checks it, and so does `ssh-keygen -Y verify`.
    """
    data, checked = given.model.read_bytes(), verify(given.model)
    same = checked.file["sha256"] == hashlib.sha256(data).hexdigest()
    if checked.verdict != "passed" or not same:
        raise PrivacyParameterError(
            f"{given.model} does not pass `xgb-dp verify`, so it is not signed."
        )
    if given.budget is not None:
        import xgboost as xgb

        book = Budget(given.budget)
        book.verify()
        if missing := book.missing(xgb.Booster(model_file=bytearray(data))):
            raise PrivacyParameterError(
                f"The book {given.budget} does not hold {', '.join(missing)} of {given.model}, so "
                "it is not signed. Sign without --budget, or take the book of this model."
            )
    path = signature.sign(given.model, data, given.key, booked=given.budget is not None)
    click.echo(f"{path} is written.")
