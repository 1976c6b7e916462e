"""``python -m experiments.attacks.checkers``: what SACRO-ML says of stock and of private models.

Its attacks take estimators of XGBoost, and so the private ones. ``stock of other rows`` is a
control: a model that has seen none of the rows that it is accused of. Needs the package `sacroml`,
and XGB_DP_XGBOOST=private.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import xgb_dp
from xgb_dp import xgboost as xgb

from ..lines import show_lines
from .__main__ import DELTA, HEAD, ROUNDS, STOCK, Setting, setting_of
from .page import Tables, write
from .ratios import BINARY, OTHERS
from .tables import TASKS, Task

RESULTS = Path(__file__).resolve().parents[1] / "results" / "checkers.csv"
STRUCTURE = {
    "degrees of freedom": "dof_risk",
    "k-anonymity": "k_anonymity_risk",
    "small groups": "smallgroup_risk",
    "class disclosure": "class_disclosure_risk",
    "parameters": "unnecessary_risk",
    "losses": "gen_error_risk",
}
ATTACKS = ("worst case, area", "LiRA, area", "attribute, train", "attribute, test")
TABLES: Tables = {"SACRO-ML, structural: share of models at risk": tuple(STRUCTURE)}
TABLES = {**TABLES, "SACRO-ML, other attacks": ATTACKS}
CONTROL = "stock of other rows"
_ATTRIBUTES = "Diabetes"  # ten columns; with thirty this attack takes minutes a model


def estimator_of(booster: Any) -> Any:
    """A stock estimator of a saved private model, with the settings that it was trained by.

    Checkers read depth, rounds and `min_child_weight` off the estimator, which has XGBoost's
    defaults once it was loaded from a file.
    """
    settings = xgb_dp.privacy_report(booster).record.trainings[-1].hyperparameters
    model = xgb.XGBClassifier(
        max_depth=settings["max_depth"],
        n_estimators=settings["rounds"],
        min_child_weight=settings["min_child_weight"],
    )
    model.load_model(booster.save_raw("json"))
    return model


def trained(s: Setting, rows: Any) -> Any:
    """An estimator of some rows, which the attacks can train again on others."""
    if s.epsilon is None:
        model = xgb.XGBClassifier(n_estimators=ROUNDS, **STOCK)
    else:
        bounds = dict(enumerate(zip(s.low, s.high, strict=True)))
        model = xgb_dp.DPXGBClassifier(
            epsilon=s.epsilon, delta=DELTA, classes=[0, 1], feature_bounds=bounds, n_jobs=1
        )
    return model.fit(s.x[rows], s.y[rows].astype(int))


def reconstructed(
    s: Setting, model: Any, member: Any, held_out: Any, *, only_structure: bool
) -> Iterator[tuple[str, float]]:
    """The figures of all attacks on a model."""
    attack = import_module("sacroml.attacks.factory").attack
    arrays: dict[str, Any] = {}
    for part, rows in (("train", member), ("test", held_out)):
        for name, values in (("X", s.x[rows]), ("y", s.y[rows].astype(int))):
            arrays |= {f"{name}_{part}": values, f"{name}_{part}_orig": values}
    target = import_module("sacroml.attacks.target").Target
    with TemporaryDirectory() as folder:
        quiet = {"output_dir": folder, "write_report": False}
        # What a release desk is handed is a file.
        saved = model if s.epsilon is None else estimator_of(model.get_booster())
        desk = target(model=saved, dataset_name=s.task.name, **arrays)
        log = attack(desk, "structural", **quiet)
        metrics = log["metadata"]["global_metrics"]
        yield from ((name, float(metrics[its])) for name, its in STRUCTURE.items())
        if only_structure:
            return
        again = target(model=model, **arrays)  # to be trained on other rows
        for name, how in (("worstcase", {"n_reps": 5}), ("lira", {"n_shadow_models": OTHERS})):
            attacked = again if name == "lira" else desk
            log = attack(attacked, name, **how, **quiet)["attack_experiment_logger"]
            runs = log["attack_instance_logger"].values()
            title = ATTACKS[0 if name == "worstcase" else 1]
            yield title, statistics.mean(run["AUC"] for run in runs)
        if s.task.name == _ATTRIBUTES:
            for column in range(s.x.shape[1]):
                desk.add_feature(str(column), [column], "float")
            log = attack(desk, "attribute", n_cpu=1, **quiet)["attack_experiment_logger"]
            columns = log["attack_instance_logger"]["instance_0"]["quantitative"]
            for part, title in zip(("train", "test"), ATTACKS[2:], strict=True):
                yield title, statistics.mean(column[part] for column in columns)


def attacked(task: Task, splits: int, epsilons: list[float]) -> Iterator[tuple[str, ...]]:
    """The lines of a table."""
    trainers = {"stock": None, CONTROL: None} | {f"private, epsilon {e:g}": e for e in epsilons}
    for split in range(splits):
        for name, epsilon in trainers.items():
            s = setting_of(task, epsilon)
            member, held_out = np.array_split(np.random.default_rng(split).permutation(len(s.y)), 2)
            model = trained(s, held_out if name == CONTROL else member)
            control = name == CONTROL
            for figure, value in reconstructed(s, model, member, held_out, only_structure=control):
                yield task.name, name, str(split), figure, f"{value:.4f}"


def main() -> None:
    """Run, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=BINARY, choices=BINARY)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    measured = (
        line for name in args.data for line in attacked(TASKS[name], args.splits, args.epsilon)
    )
    lines = show_lines(HEAD, measured, RESULTS if args.keep else None)
    if args.keep:
        write(lines, "checkers", TABLES)


if __name__ == "__main__":
    main()
