"""Notes beside the files that `xgb-dp split` writes, which say which part of a split a file is.

A file without a note counts as all rows, and so does one that was written after its note.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from ..data.parts import Part
from ..errors import PrivacyParameterError

_FORM = 1  # of notes
_FIELDS = {"form", "part", "column", "size", "changed"}


def note_of(path: Path) -> Path:
    """Where the note of a file lies."""
    return path.with_name(f"{path.name}.part.json")


def note_text(path: Path, part: Part, column: str | None) -> str:
    """The note that a file is this part, by the column of ids if the split was made by person."""
    note = {"form": _FORM, "part": part.to_json(), "column": column, **_state(path)}
    return json.dumps(note, indent=2) + "\n"


def part_of_file(path: Path) -> tuple[Part | None, str | None]:
    """The part that a file is, and the column of ids by which it was made.

    None where that is not known, as after any change of the file.
    """
    note = note_of(path)
    if not note.is_file():
        return None, None
    try:
        content = json.loads(note.read_text(encoding="utf-8"))
        if not isinstance(content, Mapping) or content.get("form") != _FORM:
            raise ValueError("another form")
        part, column = Part.from_json(content.get("part")), content.get("column")
        if set(content) != _FIELDS or not (column is None or isinstance(column, str)):
            raise ValueError("other fields")
    except ValueError:
        raise PrivacyParameterError(
            f"{note.name} is not a note of `xgb-dp split`. Remove it, and the rows count as all "
            "rows; or split them again."
        ) from None
    if {name: content[name] for name in ("size", "changed")} != _state(path):
        click.secho(
            f"{path.name} was changed or copied since `xgb-dp split` wrote it, so it counts as all "
            "rows. `cp -p` keeps the time of the last change, by which the note knows the file.",
            fg="yellow",
            err=True,
        )
        return None, None
    return part, column


def _state(path: Path) -> dict[str, int]:
    """What differs once a file was written again, in bytes and in nanoseconds."""
    status = path.stat()
    return {"size": status.st_size, "changed": status.st_mtime_ns}
