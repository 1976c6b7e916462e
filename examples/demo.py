"""Private training on a real data set: test scores against epsilon, and what was spent.

    make demo
    python examples/demo.py --help

Nothing is tuned: every private model takes the defaults of private training, the non-private one
those of XGBoost, but for the visits to a doctor: there it has shallow trees, which score better.
"""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adult
import numpy as np
import visits
import xgboost as xgb
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

import xgb_dp

DELTA = 1e-6  # a constant; never computed from the rows
SPLIT_SEED = 0
TRAIN_SHARE = 0.7


@dataclass(frozen=True)
class Task:
    """A binary task, split once into training and test rows.

    Attributes:
        name: For titles.
        train: Training rows.
        test: Rows set aside for the scores.
        declared: Parameters that declare what is public about the columns.
        plain: Parameters of the model that is not private.
    """

    name: str
    train: xgb.DMatrix
    test: xgb.DMatrix
    declared: dict[str, Any]
    plain: dict[str, Any]


def load_task(bundled: bool) -> Task:
    """Adult where it can be had, else the visits to a doctor that come with statsmodels."""
    loaded = "--bundled was given" if bundled else adult.load()
    if isinstance(loaded, str):
        print(
            f"Data: visits to a doctor (RAND Health Insurance Experiment), because {loaded}.\n"
            "For Adult, let the demo download it or set XGB_DP_DATA to a folder with adult.parquet."
        )
        columns, labels = visits.load()
        test = visits.held_out(len(labels))
        name, declared, plain = "Visits to a doctor", {}, {"max_depth": 3, "eta": 0.1}
    else:
        columns, labels, origin = loaded
        print(f"Data: Adult census income ({origin}).")
        test = np.random.default_rng(SPLIT_SEED).random(len(labels)) >= TRAIN_SHARE
        name, declared, plain = "Adult", {"dp_categories": adult.CATEGORIES}, {}
    train_set, test_set = (
        xgb.DMatrix(columns[part], labels[part], enable_categorical=True) for part in (~test, test)
    )
    rows, others = train_set.num_row(), test_set.num_row()
    print(f"{rows} training rows, {others} test rows, {train_set.num_col()} columns.")
    return Task(name, train_set, test_set, declared, plain)


def test_auc(booster: xgb.Booster, task: Task) -> float:
    return float(roc_auc_score(task.test.get_label(), booster.predict(task.test)))


def train_plain(task: Task, rounds: int) -> float:
    """Test score of XGBoost's own ``hist``."""
    params = {"tree_method": "hist", "objective": "binary:logistic", **task.plain}
    return test_auc(xgb.train(params, task.train, rounds), task)


def train_private(task: Task, epsilon: float, rounds: int) -> xgb.Booster:
    params = {
        "tree_method": "dp_hist",
        "dp_epsilon": epsilon,
        "dp_delta": DELTA,
        "objective": "binary:logistic",
        **task.declared,
    }
    return xgb.train(params, task.train, rounds)


def print_table(plain: float, scores: dict[float, list[float]]) -> None:
    print("\nTest AUC, 1 is perfect and 0.5 is guessing\n")
    print(f"{'epsilon':>14}  {'mean':>6}  {'worst to best run':>18}")
    for epsilon, values in scores.items():
        spread = f"{min(values):.3f} to {max(values):.3f}"
        print(f"{epsilon:>14g}  {np.mean(values):>6.3f}  {spread:>18}")
    print(f"{'not private':>14}  {plain:>6.3f}\n")


def print_paragraphs(text: str) -> None:
    for paragraph in text.split("\n\n"):
        print(textwrap.fill(paragraph, 100), end="\n\n")


def plot(task: Task, plain: float, scores: dict[float, list[float]], path: Path) -> None:
    """Test score against epsilon, with each run as a dot and the non-private score as a line."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = xgb_dp.plotting.plot_scores(scores, baseline=plain, delta=DELTA, ax=figure.subplots())
    axes.set_title(f"{task.name}: private models, mean and single runs", loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0, 4.0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3, help="models for each epsilon")
    parser.add_argument("--bundled", action="store_true", help="use the data of statsmodels")
    parser.add_argument("--out", type=Path, default=root / "build" / "demo")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    start = time.perf_counter()
    task = load_task(args.bundled)
    plain = train_plain(task, args.rounds)
    scores: dict[float, list[float]] = {epsilon: [] for epsilon in sorted(args.epsilons)}
    booster = None
    with tqdm(total=len(scores) * args.repeats, unit="model", desc="private training") as bar:
        for epsilon, values in scores.items():
            for _ in range(args.repeats):
                bar.set_postfix_str(f"epsilon {epsilon:g}")
                booster = train_private(task, epsilon, args.rounds)
                values.append(test_auc(booster, task))
                bar.update()
    print_table(plain, scores)

    assert booster is not None
    print(f"Privacy statement of the last model (epsilon {max(scores):g}):\n")
    print_paragraphs(xgb_dp.privacy_report(booster).statement())
    print_paragraphs(
        "This demo trained many models on the same rows and shows exact scores of the test rows. "
        "The statement is about one model; whoever publishes several, or the scores, spends more."
    )
    model, picture = args.out / "model.json", args.out / "score_against_epsilon.png"
    plot(task, plain, scores, picture)
    booster.save_model(model)
    print(f"Plot:  {picture}\nModel: {model} (stock XGBoost can load it)")
    print(f"{time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
