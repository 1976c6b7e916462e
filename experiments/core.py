"""What a table consists of: data sets, systems, budgets, and cells to run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .datasets import Dataset

NOT_PRIVATE = math.inf
LARGE = 100_000
METRICS = {
    "auc": "test AUC",
    "error": "test error in %",
    "rmse": "test RMSE",
    "r2": "test R²",
    "log_loss": "log loss",
    "excess": "log loss above that of the class share, in %",
    "calibration": "expected calibration error",
    "mean_ratio": "mean prediction over mean label",
    "mean_gap": "distance of mean probabilities from class shares",
    "auc_persons": "test AUC, each person counting one",
    "ratio_persons": "mean prediction over mean label, each person counting one",
    "deviance": "mean deviance",
    "gini": "Gini index over that of the best order",
    "concordance": "concordance",
    "survival_gap": "distance of predicted survival from Kaplan and Meier's",
    "pinball": "mean pinball loss",
    "coverage_gap": "largest distance of coverage from a level",
    "tree_ms": "CPU milliseconds a tree",
    "loss": "privacy loss",
    "seconds": "seconds",
    "peak_mib": "peak memory in MiB",
}
# What the tables of our own default show besides; of each task those that it has.
PROBABILITIES = ("log_loss", "calibration", "mean_ratio", "mean_gap")


@dataclass(frozen=True)
class System:
    """One way to train.

    Attributes:
        name: Its name in tables and results.
        preset: ``dp_preset`` of private training; "" for XGBoost's own ``hist`` without privacy.
        params: Further training parameters; they override the preset.
        rounds: Number of boosting rounds; None leaves them open.
        rounds_per_column: Whether `rounds` counts passes over the columns (explainable boosting).
        inputs: What it is told about the columns: "plain", the declared categories; "ranges", also
            the range of each number, as public; "codes", numbers in place of categories and the
            range of each column, as the papers do; "grid", the same with the grid of Maddock et
            al., whose first candidate is the least value itself; "log", their logarithmic grid.
        numbers: Whether a binary label is fitted as a number, with squared error.
        reproduces: Name of the published system that it stands for.
        peer: Environment of another library that trains instead (see peers.py); "here" is this
            one, of own code that no build of the library changes.
        method: What a worker of `peer` trains, the name of the peer if empty.
        limit_s: Seconds that such a training may take.
        apart: Whether this package trains in a process of its own, whose memory is measured.
        grid: Whether settings that share the name before a comma share a process, which makes
            many of them cheap. Only the best one is kept in the committed results.
        delta: Failure probability; None for the table's.
        large: Parameters that it has instead on data sets of at least LARGE rows.
        persons: How it takes a data set with persons: "", their rows as they are; "id", told whom
            a row belongs to; "one", a random row of each; "average", with weights that sum to one
            for each; "group", calibrated for as many rows as a person may have.
    """

    name: str
    preset: str = "default"
    params: Mapping[str, Any] = field(default_factory=dict)
    rounds: int | None = 50
    rounds_per_column: bool = False
    inputs: str = "plain"
    numbers: bool = False
    reproduces: str = ""
    peer: str = ""
    method: str = ""
    limit_s: float = 900.0
    apart: bool = False
    grid: bool = False
    delta: float | None = None
    large: Mapping[str, Any] = field(default_factory=dict)
    persons: str = ""

    @property
    def private(self) -> bool:
        """Whether it trains with privacy."""
        return bool(self.preset or self.peer)


DEFAULT = System("default", rounds=None)
STOCK = System(
    "not private",
    preset="",
    params={"tree_method": "hist", "eta": 0.1, "max_depth": 6},
    rounds=150,
)


def base(name: str) -> str:
    """Name of a data set without the size of a generated one."""
    return name.split("(")[0].strip()


@dataclass(frozen=True)
class Cell:
    """One training: the key under which its result is kept."""

    dataset: str
    system: str
    epsilon: float
    seed: int


@dataclass(frozen=True)
class Options:
    """What the command line changes about a table.

    Attributes:
        seeds: Number of splits; None for the table's.
        datasets: Names to run; all if empty.
        systems: Names to run; all if empty.
        epsilons: Budgets to run; all if empty.
        rounds: Rounds of `default`, if given.
        size: "ROWSxCOLUMNS" of generated data sets, if given.
        extra: Further parameters of `default`.
        threads: Threads of each training.
    """

    seeds: int | None = None
    datasets: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = ()
    rounds: int | None = None
    size: str = ""
    extra: tuple[tuple[str, str], ...] = ()
    threads: int = 1


@dataclass(frozen=True)
class Table:
    """A published table or figure, and how it is run here.

    Attributes:
        name: Name of its module.
        title: Heading.
        source: Where it was published.
        datasets: Data sets that are run.
        systems: Systems that are run.
        epsilons: Budgets.
        metrics: Metric of each data set; "" stands for all others.
        also: Metrics that are shown and kept besides, on the data sets that have them.
        absent: Published data sets that are not run, and why.
        layout: "epsilons" for one table a data set with a column for each budget; "systems" for
            one table a budget with a column for each system; "differences" for the same of what
            `default` gains over each, split by split; "default" for one table of `default`;
            "trees" for a column for each number of trees; "cells" for one table a data set with
            all metrics of a system and budget in one cell.
        test_size: Fraction of rows held out, of each data set; "" stands for all others.
        stratify: Whether splits keep the shares of the classes.
        seeds: Number of splits if none is asked for.
        delta: Failure probability; None for one over the number of training rows, as in the papers.
        only: Restricts a system to some data sets or budgets: (data set, system, epsilon) -> bool.
        notes: Lines under the table.
        best_of: Whether the best setting of each system is shown, chosen on test scores as in the
            paper. Settings are the systems that share the part of their names before a comma.
        ranks: Whether mean ranks of the systems over data sets are shown too.
        compute: Works out a cell by code of the table; (table, cell, options) -> its row of
            results.
        lines: Markdown in place of a layout, with verdicts of its own; (table, means) -> lines.
        beside: Those of `also` that are shown beside `lines`.
        draw: Plot in place of the usual ones, into the current figure; (table, means).
    """

    name: str
    title: str
    source: str
    datasets: tuple[Dataset, ...]
    systems: tuple[System, ...]
    epsilons: tuple[float, ...]
    metrics: Mapping[str, str]
    absent: Mapping[str, str] = field(default_factory=dict)
    layout: str = "epsilons"
    test_size: Mapping[str, float] = field(default_factory=lambda: {"": 0.3})
    stratify: bool = False
    seeds: int = 5
    delta: float | None = None
    only: Any = None
    notes: tuple[str, ...] = ()
    best_of: bool = False
    ranks: bool = False
    compute: Callable[[Table, Cell, Options], dict[str, Any]] | None = None
    lines: Callable[[Table, Any], list[str]] | None = None
    beside: tuple[str, ...] = ()
    draw: Callable[[Table, Any], None] | None = None
    also: tuple[str, ...] = ()

    def metric(self, dataset: str) -> str:
        """Metric of a data set."""
        return self.metrics.get(base(dataset), self.metrics[""])

    def held_out(self, dataset: str) -> float:
        """Fraction of rows held out."""
        return self.test_size.get(base(dataset), self.test_size[""])

    def system(self, name: str) -> System:
        """The system of that name."""
        return next(s for s in self.systems if s.name == name)

    def dataset(self, name: str) -> Dataset:
        """The data set of that name."""
        return next(d for d in self.datasets if d.name == name)

    def cells(self, options: Options) -> Iterator[Cell]:
        """All trainings, seed by seed, so that an interrupted run has a bit of everything."""
        seeds = range(self.seeds if options.seeds is None else options.seeds)
        for seed, data, system in itertools.product(seeds, self.datasets, self.systems):
            names = {data.name, base(data.name), data.file}
            if options.datasets and names.isdisjoint(options.datasets):
                continue
            names = {system.name, system.name.split(",")[0]}
            if options.systems and names.isdisjoint(options.systems):
                continue
            budgets = self.epsilons if system.private else (NOT_PRIVATE,)
            for epsilon in budgets:
                if system.private and options.epsilons and epsilon not in options.epsilons:
                    continue
                if self.only is None or self.only(data.name, system.name, epsilon):
                    yield Cell(data.name, system.name, epsilon, seed)


def published_file(name: str) -> Path:
    """The published figures of a table."""
    return Path(__file__).parent / "published" / f"{name}.csv"
