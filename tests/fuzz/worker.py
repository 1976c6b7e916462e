"""Runs cases one after another and says so, line by line, to the process that started it."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from .judge import run

__all__ = ["main"]


def main(seed: int, first: int, last: int, step: int) -> None:
    """Run every `step`-th case from `first` below `last`."""
    # Lines for the parent go to a descriptor of their own: print of a case must not disturb them.
    with tempfile.TemporaryDirectory() as folder, open(3, "w", buffering=1) as out:
        for number in range(first, last, step):
            out.write(json.dumps({"start": number}) + "\n")
            out.write(json.dumps({"number": number, **run(seed, number, Path(folder))}) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
