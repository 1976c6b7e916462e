"""The command that signs models."""

from __future__ import annotations

import hashlib

import click

from ..budget.budget import Budget
from ..engine.models import load_booster
from ..errors import PrivacyParameterError
from ..record import signature
from ..record.verify import verify
from . import options
from .group import Given, command
from .options import FILE
from .output import new_files, say
from .places import save


@command("sign")
@click.argument("model", type=FILE)
@click.option("--key", type=FILE, required=True, help="SSH key of who signs.")
@click.option("--budget", type=FILE, help="Book that has to hold every release of the model.")
@options.force
def sign(given: Given) -> None:
    """Sign MODEL with an SSH key, into the file MODEL.sig.

    With --budget the signature says that this book held every release of the model. `xgb-dp verify
    MODEL --signer FILE` checks it, and so does `ssh-keygen -Y verify`.
    """
    place = signature.beside(given.model)
    if place.is_symlink():
        raise PrivacyParameterError(f"{place} is a link. Remove it: a signature is a file.")
    new_files([place], force=given.force)
    data, checked = given.model.read_bytes(), verify(given.model)
    same = checked.file["sha256"] == hashlib.sha256(data).hexdigest()
    if checked.verdict != "passed" or not same:
        raise PrivacyParameterError(
            f"{given.model} does not pass `xgb-dp verify`, so it is not signed."
        )
    if given.budget is not None:
        book = Budget(given.budget)
        book.verify()
        if missing := book.missing(load_booster(data)):
            raise PrivacyParameterError(
                f"The book {given.budget} does not hold {', '.join(missing)} of {given.model}, so "
                "it is not signed. Sign without --budget, or take the book of this model."
            )
    save((place, signature.sign(data, given.key, booked=given.budget is not None)))
    say(f"{place} is written.")
