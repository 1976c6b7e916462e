"""Types of the paths that commands take."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

_ENDINGS = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz"}  # by the first bytes
_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


class _Rows(click.Path):
    """A file of rows, or ``-`` for standard input: CSV, CSV that gzip has packed, or Parquet.

    Standard input is kept in memory, because commands read the names of columns first.
    """

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path of the file; for standard input one that ends with the command."""
        if str(value) not in _STDIN:
            return super().convert(value, param, ctx)
        content = sys.stdin.buffer.read()
        ending = next((e for start, e in _ENDINGS.items() if content.startswith(start)), ".csv")
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="xgb-dp-"))
            path = Path(folder) / f"stdin{ending}"
            if hasattr(os, "memfd_create"):  # a link to memory: no row is written to a disk
                memory = os.memfd_create("rows")
                stack.callback(os.close, memory)
                path.symlink_to(f"/proc/self/fd/{memory}")
            path.write_bytes(content)
            ctx.call_on_close(stack.pop_all().close)
        return path


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUT = click.Path(dir_okay=False, path_type=Path)
ROWS = _Rows(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
