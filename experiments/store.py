"""Results on disk: one CSV row a finished cell, kept over interruptions, and what produced it."""

from __future__ import annotations

import csv
import fcntl
import hashlib
import json
import math
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import xgboost

import xgb_dp

from . import kept
from .core import METRICS, Cell

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = [
    *("dataset", "system", "epsilon", "seed", *METRICS, "spent_epsilon", "spent_delta"),
    *("releases", "n_train", "columns", "rounds", "run", "note"),
]
NUMBERS = (*METRICS, "spent_epsilon", "spent_delta")
# Metrics that files of older runs lack.
LATER = set(METRICS) - {"auc", "error", "rmse"}
PACKAGES = ("numpy", "pandas", "scikit-learn", "scipy", "xgb-dp")


def build() -> str:
    """Fingerprint of what trains: the library and the Python package."""
    digest = hashlib.sha256()
    library = Path(xgboost.__file__).parent / "lib"
    package = Path(xgb_dp.__file__).parent
    for file in [*sorted(library.glob("*.so")), *sorted(package.rglob("*.py"))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def commit() -> str:
    """The commit of the working tree, or "unknown"."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def this_run(command: str) -> dict[str, Any]:
    """Command, versions and machine of a run; no paths and no names."""
    versions = {name: metadata.version(name) for name in PACKAGES}
    return {
        "command": command,
        "build": build(),
        "commit": commit(),
        "versions": {"python": platform.python_version(), "xgboost": xgboost.__version__}
        | versions,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def key(row: dict[str, Any]) -> Cell:
    """The cell of a row."""
    return Cell(row["dataset"], row["system"], float(row["epsilon"]), int(row["seed"]))


class Store:
    """Finished cells of one table.

    Rows are appended and flushed one by one, so an interruption loses only cells in progress. A
    torn last line is dropped. Only one process may write at a time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs_path = path.with_suffix(".runs.json")
        self.rows: dict[Cell, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        if self.runs_path.exists():
            self.runs = json.loads(self.runs_path.read_text(encoding="utf-8"))
        if path.exists():
            for row in read(path):
                self.rows[key(row)] = row

    def keep(
        self,
        same_build: str | None,
        redo: tuple[str, ...],
        elsewhere: frozenset[str] = frozenset(),
    ) -> int:
        """Forget cells of other builds, those that failed, and those to do again.

        Args:
            same_build: Build whose cells are kept; None keeps those of every build.
            redo: Systems whose cells are forgotten.
            elsewhere: Systems of other libraries: no build of this one makes their cells
                outdated, and what failed or ran out of time would do so again.

        Returns:
            How many were forgotten because of their build.
        """
        before = len(self.rows)
        self.rows = {
            c: r
            for c, r in self.rows.items()
            if c.system not in redo
            and c.system.split(",")[0] not in redo
            and (c.system in elsewhere or not r["note"])
        }
        counted = len(self.rows)
        if same_build is not None:
            self.rows = {
                c: r
                for c, r in self.rows.items()
                if c.system in elsewhere or self.runs.get(r["run"], {}).get("build") == same_build
            }
        if len(self.rows) < before:
            self._write()
        return counted - len(self.rows)

    def _write(self) -> None:
        part = self.path.with_suffix(".part")
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="")
            writer.writeheader()
            writer.writerows(text(r) for r in self.rows.values())
        part.replace(self.path)

    @contextmanager
    def writing(self, run: dict[str, Any]) -> Iterator[Any]:
        """A function that appends finished rows, for as long as the lock is held.

        Raises:
            RuntimeError: If another process writes the same table.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = self.path.with_suffix(".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as busy:
            raise RuntimeError(f"Another process writes {self.path.name}") from busy
        try:
            self._write()
            fresh = str(max(map(int, self.runs), default=0) + 1)
            number = next((n for n, r in self.runs.items() if r == run), fresh)
            self.runs[number] = run
            self._write_runs()
            with self.path.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS, restval="")

                def add(row: dict[str, Any]) -> None:
                    row = {"note": "", **row, "run": number}
                    self.rows[key(row)] = row
                    writer.writerow(text(row))
                    file.flush()

                yield add
            self._write_sorted()
        finally:
            lock.close()
            self.path.with_suffix(".lock").unlink(missing_ok=True)

    def _write_sorted(self) -> None:
        order = sorted(self.rows, key=lambda c: (c.dataset, c.system, c.epsilon, c.seed))
        self.rows = {c: self.rows[c] for c in order}
        self._write()
        used = {str(r["run"]) for r in self.rows.values()}
        self.runs = {n: r for n, r in self.runs.items() if n in used}
        self._write_runs()

    def _write_runs(self) -> None:
        self.runs_path.write_text(json.dumps(self.runs, indent=1) + "\n", encoding="utf-8")


def text(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is written."""
    out = {}
    for name, value in row.items():
        if isinstance(value, float):
            value = "inf" if math.isinf(value) else f"{value:.6g}"
        out[name] = value
    return out


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of a results file; numbers as floats, a torn line left out.

    Files in the committed form are read too. Metrics that the file has no column for are empty.

    Raises:
        ValueError: If it is no such file.
    """
    rows = []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames == kept.COLUMNS:
            return [dict.fromkeys(COLUMNS, "") | row for row in kept.rows(list(reader))]
        lacks = LATER.difference(reader.fieldnames or ())
        if set(reader.fieldnames or ()) != set(COLUMNS) - lacks:
            raise ValueError(f"{path.name} is no file of results; give --out another place")
        for row in reader:
            if any(v is None for v in row.values()) or not row["run"]:
                continue
            row |= dict.fromkeys(lacks, "")
            for name in (*NUMBERS, "epsilon"):
                if row[name]:
                    row[name] = float(row[name])
            rows.append(row)
    return rows
