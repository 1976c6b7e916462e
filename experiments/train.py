"""One cell: split, train, score, and what the privacy report says."""

from __future__ import annotations

import functools
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.model_selection import train_test_split

import xgb_dp
from xgb_dp.presets import PRESETS

from . import datasets, peers
from .core import DEFAULT, LARGE, Cell, Options, System, Table
from .datasets import CANDIDATES, Dataset, as_codes, load, log_cuts, public_range
from .scoring import scores, scores_of_persons, weights_of_persons

# Predictions, and what else is known of a training.
Trained = tuple[np.ndarray, dict[str, Any]]
_loaded = functools.lru_cache(maxsize=4)(load)
_persons = functools.lru_cache(maxsize=4)(datasets.persons)


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
    who_train: np.ndarray | None = None
    who_test: np.ndarray | None = None

    def one_each(self, seed: int) -> Split:
        """The same with a random training row of each person."""
        assert self.who_train is not None
        order = np.random.default_rng(seed).permutation(len(self.who_train))
        first = np.unique(self.who_train[order], return_index=True)[1]
        rows = np.sort(order[first])
        return replace(
            self,
            x_train=self.x_train.iloc[rows],
            y_train=self.y_train[rows],
            who_train=self.who_train[rows],
        )


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
    if data.person:
        who = _persons(data)
        ids = np.unique(who)
        _, test_ids = train_test_split(ids, test_size=test_size, random_state=seed)
        test = np.isin(who, test_ids)
        parts = (x[~test], x[test], y[~test], y[test])
        return Split(*parts, categories, bounds, cuts, nominal, who[~test], who[test])
    held_out = data.test_rows or test_size
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=held_out, random_state=seed, stratify=y if stratify else None
    )
    if data.negatives:
        rows = thinned(y_train, data.negatives)
        x_train, y_train = x_train.iloc[rows], y_train[rows]
    return Split(x_train, x_test, y_train, y_test, categories, bounds, cuts, nominal)


def thinned(y: np.ndarray, negatives: int) -> np.ndarray:
    """All rows of class 0, and one of class 1 for so many of them, the first ones."""
    ones = np.flatnonzero(y > 0.5)
    most = max((len(y) - len(ones)) // negatives, 1)
    return np.setdiff1d(np.arange(len(y)), ones[most:])


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
    if system.persons == "id":
        params["dp_privacy_id"] = parts.who_train
    elif system.persons == "group":
        params["dp_group_size"] = data.most_rows
    params |= dict(system.params)
    if len(y) >= LARGE:
        params |= dict(system.large)
    return params | dict(extra)


def delta_of(table: Table, system: System, n_train: int) -> float:
    """Failure probability of a cell."""
    if system.delta is not None:
        return system.delta
    return 1.0 / n_train if table.delta is None else table.delta


def run(table: Table, cells: list[Cell], options: Options) -> list[dict[str, Any]]:
    """Train and score cells that share data and budget; more than one only of a grid.

    Returns:
        Rows of results: scores, seconds, and epsilon and delta as recomputed from the ledger of
        the model.
    """
    cell, system = cells[0], table.system(cells[0].system)
    data = table.dataset(cell.dataset)
    parts = split(data, system, cell.seed, table.held_out(data.name), table.stratify)
    if system.persons == "one":
        parts = parts.one_each(cell.seed)
    weights = None
    if system.persons == "average" and parts.who_train is not None:
        weights = weights_of_persons(parts.who_train)
    columns = parts.x_train.shape[1]
    rounds = system.rounds
    extra: Any = ()
    if rounds is not None and system.rounds_per_column:
        rounds *= columns
    if system.name == DEFAULT.name:
        rounds, extra = options.rounds or rounds, options.extra
    if system.peer or system.apart:
        outcomes = _apart(table, cells, parts, rounds, extra)
    else:
        params = parameters(table, data, system, cell.epsilon, parts, extra, options.threads)
        outcomes = [here(params, parts, rounds, weights, private=system.private)]
    shared = {"n_train": len(parts.y_train), "columns": columns, "rounds": rounds}
    out = []
    for one, (predicted, measured) in zip(cells, outcomes, strict=True):
        of_test = scores(data.objective, parts.y_test, predicted)
        if parts.who_test is not None:
            of_test |= scores_of_persons(parts.y_test, predicted, parts.who_test)
        out.append(asdict(one) | shared | of_test | measured)
    return out


def here(
    params: dict[str, Any],
    parts: Split,
    rounds: int | None,
    weights: np.ndarray | None,
    private: bool,
) -> Trained:
    """Train in this process."""
    start, threads = time.perf_counter(), params["nthread"]
    train = xgb.DMatrix(
        parts.x_train, parts.y_train, weight=weights, enable_categorical=True, nthread=threads
    )
    before = time.process_time()
    booster = xgb.train(params, train, **({} if rounds is None else {"num_boost_round": rounds}))
    spent_s = time.process_time() - before
    rounds = booster.num_boosted_rounds()
    test = xgb.DMatrix(parts.x_test, enable_categorical=True, nthread=threads)
    predicted = booster.predict(test)
    return predicted, {
        "seconds": round(time.perf_counter() - start, 3),
        "tree_ms": 1e3 * spent_s / (rounds * params.get("num_parallel_tree", 1)),
        "rounds": rounds,
        **(report(booster) if private else {}),
    }


def _apart(
    table: Table, cells: list[Cell], parts: Split, rounds: int | None, extra: Any
) -> list[Trained]:
    """Train by another library, or in another process."""
    cell, system = cells[0], table.system(cells[0].system)
    data = table.dataset(cell.dataset)
    y = np.concatenate([parts.y_train, parts.y_test])
    binary = data.objective != "reg:squarederror"
    settings = [dict(table.system(c.system).params) for c in cells]
    if system.apart:
        settings = [parameters(table, data, system, cell.epsilon, parts, extra)]
    elif len(y) >= LARGE:
        settings = [s | dict(system.large) for s in settings]
    request = peers.Request(
        method=system.method or system.peer,
        settings=settings,
        epsilon=cell.epsilon,
        delta=delta_of(table, system, len(parts.y_train)),
        rounds=rounds,
        seed=cell.seed,
        binary=binary,
        target=(0.0, 1.0) if binary else data.bounds or (float(y.min()), float(y.max())),
        nominal=[str(c) in parts.nominal for c in parts.x_train.columns],
        columns=[str(c) for c in parts.x_train.columns],
        categories=parts.categories,
    )
    predicted, answer = peers.predict(system.peer or peers.HERE, request, parts, system.limit_s)
    claim = {"releases": f"as {system.peer} claims; not checked"} if system.peer else {}
    common = {"peak_mib": answer["peak_mib"], **claim, **answer["spent"]}
    return [
        (row, {"seconds": seconds, **common})
        for row, seconds in zip(predicted, answer["seconds"], strict=True)
    ]


def report(booster: xgb.Booster) -> dict[str, Any]:
    """What the privacy report certifies: epsilon and delta recomputed, and all releases."""
    claims = xgb_dp.privacy_report(booster)
    counts: Counter[tuple[str, str]] = Counter()
    for training in claims.ledger["trainings"]:
        taken = training["public"].get("plan_choice", {}).get("taken", 0)
        count(training["events"], 1, counts, taken)
    releases = "; ".join(f"{n} {what} ({how})" for (what, how), n in sorted(counts.items()))
    return {"spent_epsilon": claims.epsilon, "spent_delta": claims.delta, "releases": releases}


def count(
    events: list[dict[str, Any]], times: int, counts: Counter[tuple[str, str]], taken: int
) -> None:
    """Add up releases by what and how; an event may stand for a round of others.

    Of a choice among plans, the one that was taken is counted.
    """
    for event in events:
        if "options" in event:
            count([*event["first"], *event["options"][taken]], times, counts, taken)
        elif "events" in event:
            count(event["events"], times * event["count"], counts, taken)
        else:
            counts[event["release"], event["mechanism"]] += times * event["count"]
