"""One cell: split, train, score, and what the privacy report says."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.model_selection import train_test_split

import xgb_dp
from xgb_dp.presets import PRESETS

from . import peers
from .core import DEFAULT, LARGE, Cell, Options, System, Table
from .datasets import CANDIDATES, Dataset, as_codes, load, log_cuts, public_range
from .scoring import scores

_loaded = functools.lru_cache(maxsize=4)(load)


@dataclass(frozen=True)
class Split:
    """Training and test rows of a task."""

    x_train: pd.DataFrame
    x_test: pd.DataFrame
    y_train: np.ndarray
    y_test: np.ndarray
    categories: dict[str, list[str]]
    bounds: dict[str, tuple[float, float]]
    cuts: dict[str, list[float]]
    nominal: tuple[str, ...]


def split(data: Dataset, system: System, seed: int, test_size: float, stratify: bool) -> Split:
    """A split, in the form that the system takes.

    The ranges of columns are those of the whole file: they stand for the public ranges that the
    papers assume. `default` gets none.
    """
    x, y, categories = _loaded(data)
    nominal = tuple(categories)
    bounds: dict[str, tuple[float, float]] = {}
    cuts: dict[str, list[float]] = {}
    if system.inputs in ("codes", "grid", "log"):
        x, categories = as_codes(x, data.code_all), {}
    for name in x.columns.difference(list(categories)):
        if system.inputs == "log":
            cuts[name] = log_cuts(x[name])
        elif system.inputs != "plain":
            bounds[name] = public_range(x[name], least=system.inputs == "grid")
    held_out = data.test_rows or test_size
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=held_out, random_state=seed, stratify=y if stratify else None
    )
    return Split(x_train, x_test, y_train, y_test, categories, bounds, cuts, nominal)


def target_bounds(data: Dataset, y: np.ndarray, numbers: bool) -> tuple[float, float] | None:
    """Public bounds of a target that is fitted with squared error."""
    if data.objective == "reg:squarederror":
        if data.bounds:
            return data.bounds
        return float(y.min()), float(y.max())  # generated data: the range is a public constant
    return (0.0, 1.0) if numbers else None


def parameters(
    table: Table,
    data: Dataset,
    system: System,
    epsilon: float,
    parts: Split,
    extra: Any = (),
    threads: int = 1,
) -> dict[str, Any]:
    """Training parameters of a cell."""
    y = np.concatenate([parts.y_train, parts.y_test])
    target = target_bounds(data, y, system.numbers)
    objective = "reg:squarederror" if target else data.objective
    params: dict[str, Any] = {"objective": objective, "nthread": threads}
    if objective.startswith("multi:"):
        params["num_class"] = int(y.max()) + 1  # the code book of the whole file is public
    if not system.preset:
        return params | dict(system.params)
    preset = PRESETS[system.preset].params
    params |= {"dp_epsilon": epsilon, "tree_method": preset.get("tree_method", "dp_hist")}
    if system.preset != "default":
        params["dp_preset"] = system.preset
    if preset.get("dp_accountant") != "pure" or "dp_accountant" in system.params:
        params["dp_delta"] = delta_of(table, system, len(parts.y_train))
    if parts.bounds:
        params["dp_feature_bounds"] = parts.bounds
    if system.inputs == "grid":
        params["max_bin"] = CANDIDATES + 1
    if parts.cuts:
        params["dp_feature_cuts"] = parts.cuts
    if parts.categories:
        params["dp_categories"] = parts.categories
    if target:
        params["dp_target_bounds"] = target
    params |= dict(system.params)
    if len(y) >= LARGE:
        params |= dict(system.large)
    return params | dict(extra)


def delta_of(table: Table, system: System, n_train: int) -> float:
    """Failure probability of a cell."""
    if system.delta is not None:
        return system.delta
    return 1.0 / n_train if table.delta is None else table.delta


def run(table: Table, cell: Cell, options: Options) -> dict[str, Any]:
    """Train and score one cell.

    Returns:
        A row of results: scores, seconds, and epsilon and delta as recomputed from the ledger of
        the model.
    """
    data, system = table.dataset(cell.dataset), table.system(cell.system)
    parts = split(data, system, cell.seed, table.held_out(data.name), table.stratify)
    columns = parts.x_train.shape[1]
    rounds = system.rounds
    if rounds is not None and system.rounds_per_column:
        rounds *= columns
    extra: Any = ()
    if system.name == DEFAULT.name:
        rounds, extra = options.rounds or rounds, options.extra
    start, measured = time.perf_counter(), {}
    if system.peer:
        delta = delta_of(table, system, len(parts.y_train))
        predicted, spent = peers.predict(system, cell, parts, data, rounds, delta)
    else:
        threads = options.threads
        params = parameters(table, data, system, cell.epsilon, parts, extra, threads)
        train = xgb.DMatrix(parts.x_train, parts.y_train, enable_categorical=True, nthread=threads)
        before = time.process_time()
        booster = xgb.train(
            params, train, **({} if rounds is None else {"num_boost_round": rounds})
        )
        spent_s = time.process_time() - before
        rounds = booster.num_boosted_rounds()
        measured["tree_ms"] = 1e3 * spent_s / (rounds * params.get("num_parallel_tree", 1))
        test = xgb.DMatrix(parts.x_test, enable_categorical=True, nthread=threads)
        predicted = booster.predict(test)
        spent = report(booster) if system.private else {}
    seconds = time.perf_counter() - start
    found = scores(data.objective, parts.y_test, predicted)
    return {**dataclasses.asdict(cell), **found, **measured, **spent} | {
        "seconds": round(seconds, 3),
        "n_train": len(parts.y_train),
        "columns": columns,
        "rounds": rounds,
    }


def report(booster: xgb.Booster) -> dict[str, Any]:
    """What the privacy report certifies: epsilon and delta recomputed, and all releases."""
    found = xgb_dp.privacy_report(booster)
    counts: Counter[tuple[str, str]] = Counter()
    for training in found.ledger["trainings"]:
        count(training["events"], 1, counts)
    releases = "; ".join(f"{n} {what} ({how})" for (what, how), n in sorted(counts.items()))
    return {"spent_epsilon": found.epsilon, "spent_delta": found.delta, "releases": releases}


def count(events: list[dict[str, Any]], times: int, counts: Counter[tuple[str, str]]) -> None:
    """Add up releases by what and how; an event may stand for a round of others."""
    for event in events:
        if "events" in event:
            count(event["events"], times * event["count"], counts)
        else:
            counts[event["release"], event["mechanism"]] += times * event["count"]
