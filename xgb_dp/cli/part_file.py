"""Notes beside the files of a division, by which its parts are known again.

A part lies beside a note, ``NAME.part.json``, that says of which division it is, with a digest of
the file, so that it is as secret as the rows. A part without its note, or one that was written
anew, counts as all rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import click

from ..data.parts import Part, divided_by
from ..errors import PrivacyParameterError

_FORM = 1


def note_of(path: Path) -> Path:
    """Where the note of a file lies."""
    return path.with_name(f"{path.name}.part.json")


def note_text(path: Path, part: Part, column: str | None) -> str:
    """The note of which part a file holds."""
    note = {"form": _FORM, "part": part.to_json(), "column": column, "sha256": _digest(path)}
    return json.dumps(note, indent=2) + "\n"


def part_of_file(path: Path) -> Part | None:
    """The part that a file holds; None where that is not known, as after any change of it."""
    note = note_of(path)
    if not note.is_file():
        return None
    try:
        content = json.loads(note.read_text(encoding="utf-8"))
        if not isinstance(content, Mapping) or content.get("form") != _FORM:
            raise ValueError("another form")
        part = Part.from_json(content.get("part"))
        column = content.get("column")
        if not (column is None or isinstance(column, str)):
            raise ValueError("no name of a column")
    except ValueError:
        raise PrivacyParameterError(
            f"{note.name} is not a note of `xgb-dp split`. Remove it, and the rows count as all "
            "rows; or divide them again."
        ) from None
    if content.get("sha256") != _digest(path):
        click.secho(
            f"{path.name} was changed since `xgb-dp split` wrote it: it counts as all rows.",
            fg="yellow",
            err=True,
        )
        return None
    divided_by(part.split, column)
    return part


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
