"""Runs the cells of a table that are not finished yet, in parallel, with a progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tqdm import tqdm

from . import datasets, peers, tables, train
from .core import Cell, Options, Table
from .store import Store, build, this_run


def work(name: str, cells: list[Cell], options: Options) -> list[dict[str, Any]]:
    """Cells that are trained together; a failure becomes a note in their rows."""
    table = tables.get(name, options.size)
    try:
        if table.compute is not None:
            return [table.compute(table, cell, options) for cell in cells]
        return train.run(table, cells, options)
    except Exception as reason:  # the other cells go on, and these are named in the table
        kind = "" if isinstance(reason, peers.PeerError) else f"{type(reason).__name__}: "
        note = f"{kind}{reason}".splitlines()[0]
        return [asdict(cell) | {"note": note[:200]} for cell in cells]


def together(table: Table, todo: list[Cell]) -> list[list[Cell]]:
    """Cells in the order in which they are run, those of a grid together."""
    out: dict[tuple[str, str, float, int], list[Cell]] = {}
    for cell in todo:
        name = cell.system.split(",")[0] if table.system(cell.system).grid else cell.system
        out.setdefault((cell.dataset, name, cell.epsilon, cell.seed), []).append(cell)
    return list(out.values())


def results(
    name: str, todo: list[list[Cell]], options: Options, jobs: int
) -> Iterator[dict[str, Any]]:
    """Rows of cells as they finish; in this process if one is enough."""
    if jobs == 1:
        for cells in todo:
            yield from work(name, cells, options)
        return
    # A process with threads of OpenMP cannot be forked: its children would wait for them. What is
    # not told how many threads to take, as BLAS, would take all cores in each of the processes.
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        # A few ahead of the workers only, so that an interruption does not wait for the rest.
        queue = iter(todo)
        running: set[Future[list[dict[str, Any]]]] = set()
        while True:
            for cells in islice(queue, jobs + 1 - len(running)):
                running.add(pool.submit(work, name, cells, options))
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for job in done:
                yield from job.result()
    finally:
        pool.shutdown(cancel_futures=True)


def missing(table: Table, options: Options) -> dict[str, str]:
    """Data sets of the run that are not at hand, and why."""
    out: dict[str, str] = {}
    for name in {cell.dataset for cell in table.cells(options)}:
        data = table.dataset(name)
        if data.file and not data.generate:
            try:
                datasets.path(data)
            except datasets.MissingDataError as reason:
                out[name] = str(reason)
    return dict(sorted(out.items()))


def uninstalled(table: Table, systems: set[str]) -> dict[str, str]:
    """Peers of the wanted systems that cannot be installed, and why. Others are left alone."""
    out = {}
    for system in table.systems:
        if system.peer and system.name in systems:
            try:
                peers.install(system.peer)
            except peers.PeerError as reason:
                out[system.name] = str(reason)
    return out


def run(
    table: Table,
    options: Options,
    path: Path,
    command: str,
    *,
    jobs: int = 1,
    redo: tuple[str, ...] = (),
    any_build: bool = False,
    limit: int | None = None,
) -> tuple[Store, dict[str, str]]:
    """Run what is not finished.

    Args:
        table: What to run.
        options: What of it, and how.
        path: Results file. Cells in it are kept if the same build of the library made them.
        command: Command line, for the record.
        jobs: Worker processes; 1 for this one.
        redo: Systems to run again.
        any_build: Whether cells of other builds are kept too.
        limit: Largest number of cells to run now.

    Returns:
        The results, and the data sets and peers that could not be had.
    """
    store = Store(path)
    elsewhere = frozenset(s.name for s in table.systems if s.peer)
    forgotten = store.keep(None if any_build else build(), redo, elsewhere)
    if forgotten:
        print(f"{forgotten} cells of another build of the library are run again", file=sys.stderr)
    absent = missing(table, options)
    cells = [c for c in table.cells(options) if c.dataset not in absent]
    absent |= uninstalled(table, {c.system for c in cells})
    cells = [c for c in cells if c.system not in absent]
    for reason in absent.values():
        print(reason, file=sys.stderr)
    todo = [c for c in cells if c not in store.rows][:limit]
    with (
        store.writing(this_run(command)) as add,
        tqdm(total=len(todo), desc=table.name, file=sys.stderr) as bar,
    ):
        try:
            for row in results(table.name, together(table, todo), options, jobs):
                add(row)
                bar.update()
        except KeyboardInterrupt:
            print("Interrupted; finished cells are kept.", file=sys.stderr)
            raise
    return store, absent
