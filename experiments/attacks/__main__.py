"""``python -m experiments.attacks``: what model files tell about their training rows.

Half of a table is trained on and half is held out. What an attack tells about rows that were never
trained on, it knows from the population, so that each figure stands beside that of the others. With
``--keep`` the results are written to ``experiments/results`` and to experiments/pages/audits.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost as xgb

from ..lines import show_lines
from . import membership, reconstruction, targets
from .forest import Model, read
from .page import write
from .tables import TASKS, Task, rows_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "attacks.csv"
DELTA = 1e-5
TREES = (1, 2, 3)
OTHERS = 8  # models of the attacker's own for membership inference
ROUNDS = 30
STOCK = {"max_depth": 6, "eta": 0.3, "nthread": 1}
MASKED = "stock, masked"
PUBLISHED = {"Sarus": "sarus", "DPBoost": "dpboost", "DP-XGB": "dp_xgb"}
HEAD = ("data", "trainer", "split", "figure", "value")
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Setting:
    """A table, its public ranges, and how it is trained on.

    Attributes:
        task: What the rows are.
        x: All columns.
        y: All targets.
        low: Lowest value of each column.
        high: Highest value.
        epsilon: None for stock XGBoost.
        preset: Of a published system; "default" is ours.
        max_rows_per_person: Rows with one id, all of which are protected; None where a row is.
    """

    task: Task
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    epsilon: float | None = None
    preset: str = "default"
    max_rows_per_person: int | None = None

    @property
    def eta(self) -> float:
        """The learning rate, which the attacker knows."""
        return STOCK["eta"] if self.epsilon is None else 0.5

    @property
    def target_bounds(self) -> tuple[float, float]:
        """The public range of the target."""
        return float(self.y.min()), float(self.y.max())

    def train(self, rows: Rows) -> xgb.Booster:
        """A model of some rows."""
        matrix = xgb.DMatrix(self.x[rows], self.y[rows])
        objective = {"objective": self.task.objective}
        if self.epsilon is None:
            return xgb.train(STOCK | objective, matrix, ROUNDS)
        params = objective | {
            "tree_method": "dp_hist",
            "dp_epsilon": self.epsilon,
            "dp_delta": DELTA,
            "dp_feature_bounds": dict(enumerate(zip(self.low, self.high, strict=True))),
            "eta": self.eta,
            "nthread": 1,
            "dp_preset": self.preset,
            "dp_start": "intercept",  # trees of one column each have no cells to put rows into
        }
        if self.task.is_regression:
            params["dp_target_bounds"] = self.target_bounds
        if self.max_rows_per_person is not None:
            params["dp_privacy_id"] = rows // self.max_rows_per_person
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # epsilon above 10
            return xgb.train(params, matrix)

    def read(self, booster: xgb.Booster) -> Model:
        """What the attacker has."""
        return read(booster.save_raw("json"), self.low, self.high)

    def margins(self, booster: xgb.Booster, rows: Rows) -> Floats:
        """Predictions before the link."""
        margins = booster.predict(xgb.DMatrix(self.x[rows]), output_margin=True)
        return np.asarray(margins, dtype=np.float64)


def setting_of(task: Task, epsilon: float | None = None) -> Setting:
    """A table with its public ranges."""
    x, y = rows_of(task)
    low, high = x.min(axis=0), x.max(axis=0)
    margin = 0.05 * (high - low)  # a public range is a little wider than that of the table
    return Setting(task, x, y, low - margin, high + margin, epsilon)


def cells(s: Setting, model: Model, member: Rows, held_out: Rows, masked: bool) -> dict[str, float]:
    """Reconstruction: rows in their true cells, and how many a stranger's rows would have."""
    known = reconstruction.Knowledge(len(member), s.low, s.high, s.eta, masked=masked)
    out = {}
    for trees in TREES:
        guess = reconstruction.reconstruct(model, known, trees)
        cells_of_members = reconstruction.cells(model, s.x[member], s.y[member], trees)
        others = reconstruction.cells(model, s.x[held_out], s.y[held_out], trees)
        out[f"cells of {trees}"] = reconstruction.agreement(guess, cells_of_members)
        out[f"cells of {trees}, population"] = reconstruction.agreement(others, cells_of_members)
    return out


def members(s: Setting, booster: xgb.Booster, member: Rows, held_out: Rows) -> dict[str, float]:
    """Membership of half of the members and as many others, by models of the other half."""
    half = len(member) // 2
    candidates = np.concatenate([member[:half], held_out[:half]])
    others_rows = held_out[half:]  # what the attacker has
    models = [
        s.margins(
            s.train(np.random.default_rng(i).choice(others_rows, len(others_rows))), candidates
        )
        for i in range(OTHERS)
    ]
    margin, label = s.margins(booster, candidates), s.y[candidates]
    is_member = np.arange(len(candidates)) < half
    area, share = membership.advantage(margin, models, label, is_member)
    right = (margin > 0) == (label > 0)
    return {
        "membership, area": area,
        "membership, found at 1%": share,
        "labels": float(right[is_member].mean()),
        "labels, population": float(right[~is_member].mean()),
    }


def attacked(
    task: Task, splits: int, epsilons: list[float], also: list[str]
) -> Iterator[tuple[str, ...]]:
    """The lines of a table."""
    base = setting_of(task)
    x, y = base.x, base.y
    trainers: dict[str, dict[str, Any]] = {"stock": {}, MASKED: {}}
    for e in epsilons:
        trainers[f"private, epsilon {e:g}"] = {"epsilon": e}
        if "persons" in also:
            of_persons = {"epsilon": e, "max_rows_per_person": 4}
            trainers[f"private, persons of 4 rows, epsilon {e:g}"] = of_persons
        if "published" in also and not task.is_regression:
            trainers |= {
                f"{system}, epsilon {e:g}": {"epsilon": e, "preset": preset}
                for system, preset in PUBLISHED.items()
            }
    n = len(y) // 2
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(y))
        member, held_out = order[:n], order[n : 2 * n]
        for name, trainer in trainers.items():
            s = replace(base, **trainer)
            booster = s.train(member)
            model = s.read(booster)
            if task.is_regression:
                # Masked files have a Hessian of 1 in all leaves, so that none stands out.
                claims = [] if name == MASKED else targets.single_rows(model, s.eta)
                width = s.target_bounds[1] - s.target_bounds[0]
                right = targets.found(claims, x[member], y[member], width)
                figures = {"targets told": len(claims) / n, "targets right": right / n}
            else:
                figures = cells(s, model, member, held_out, name == MASKED)
                if name != MASKED:  # its predictions are those of stock
                    figures |= members(s, booster, member, held_out)
            for figure, value in figures.items():
                yield task.name, name, str(split), figure, f"{value:.4f}"


def main() -> None:
    """Run, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 4.0, 10.0, 100.0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument(
        "--also", nargs="*", default=[], choices=["persons", "published"], help="further trainers"
    )
    parser.add_argument(
        "--keep", action="store_true", help="write experiments/results and the page"
    )
    args = parser.parse_args()
    measured = (
        line
        for name in args.data
        for line in attacked(TASKS[name], args.splits, args.epsilon, args.also)
    )
    lines = show_lines(HEAD, measured, RESULTS if args.keep else None)
    if args.keep:
        write(lines)


if __name__ == "__main__":
    main()
