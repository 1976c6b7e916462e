"""Lines of figures: printed as they are measured, kept as a CSV file, and shown on a page."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["show_lines", "with_part"]


def show_lines(
    head: Sequence[str], lines: Iterable[Sequence[Any]], keep: Path | None
) -> list[Sequence[Any]]:
    """Print each line as soon as it is measured, and write all of them to a file at the end.

    Args:
        head: Names of the columns.
        lines: Figures, in the order of the columns.
        keep: File that is written, or None.

    Returns:
        list: The lines.
    """
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(head)
    shown = []
    for line in lines:
        writer.writerow(line)
        sys.stdout.flush()
        shown.append(line)
    if keep is not None:
        with keep.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *shown])
    return shown


def with_part(text: str, name: str, part: str) -> str:
    """A page with the part of this name written anew.

    Args:
        text: The page, with ``<!-- name: begin -->`` and ``<!-- name: end -->`` once.
        name: Of the part.
        part: What stands between the marks, in lines of its own.

    Raises:
        ValueError: A mark is missing, or is there twice.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    new, times = re.subn(
        f"{begin}.*?{end}", lambda _: f"{begin}\n{part}{end}", text, flags=re.DOTALL
    )
    if times != 1:
        raise ValueError(f"A page must have the marks {begin} and {end} once.")
    return new
