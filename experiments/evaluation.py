"""How well a private evaluation tells the figures of a model: ``python -m experiments.evaluation``.

A private model is trained once on a part of a data set. The other rows are the population, from
which hold-outs are drawn, with replacement; each is evaluated. Shown are the error against the
exact figures of the same rows, which the noise of the release makes, and how often the interval
covers the figure of the population. With ``--keep`` the figures are written to the folder of
results, and some of them to experiments/pages/coverage.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost as xgb
from sklearn import metrics

from xgb_dp.data.matrices import private_matrix
from xgb_dp.evaluation.measure import plan_evaluation
from xgb_dp.evaluation.rows import ModelKind, Rows, events_for, read_evaluated_model
from xgb_dp.noisy_sums import Layout, release

from .datasets import Dataset, load
from .lines import show_lines, with_part

RESULTS = Path(__file__).resolve().parent / "results"
PAGE = RESULTS.parent / "pages" / "coverage.md"
SHOWN = {"auc": "AUC", "log_loss": "log loss", "calibration_error": "calibration error"}
DELTA = 1e-6
TASKS = {
    "Adult": Dataset("Adult", "adult"),
    "Bank": Dataset("Bank", "bank_full"),
    "Credit 1": Dataset("Credit 1", "credit1_gmsc"),
    "generated": Dataset("generated", generate="many interactions", size=(60_000, 20)),
}
Floats = npt.NDArray[np.float64]


def calibration_error(y: Floats, p: Floats) -> float:
    """Distance of predicted and true shares over ten bins."""
    bins = np.minimum((p * 10).astype(int), 9)
    gaps = np.bincount(bins, weights=y - p, minlength=10)
    return float(np.abs(gaps).sum() / len(y))


EXACT: dict[str, Callable[[Floats, Floats], float]] = {
    "auc": metrics.roc_auc_score,
    "log_loss": metrics.log_loss,
    "brier": metrics.brier_score_loss,
    "calibration_error": calibration_error,
    "accuracy": lambda y, p: float(np.mean((p >= 0.5) == y)),
    "recall": lambda y, p: float(np.mean(p[y > 0] >= 0.5)),
}


def prepared(task: str) -> tuple[Floats, Floats, ModelKind]:
    """Margins of a private model on rows that did not train it, their labels, and its blocks."""
    frame, y, categories = load(TASKS[task])
    y = np.asarray(y, dtype=np.float64)
    mixed = np.random.default_rng(0).permutation(len(y))
    half = min(len(y) // 2, 20_000)
    first, rest = mixed[:half], mixed[half:]
    params = {
        "tree_method": "dp_hist",
        "objective": "binary:logistic",
        "dp_epsilon": 1.0,
        "dp_delta": DELTA,
        "dp_categories": categories,
        "nthread": 1,
    }

    def matrix(rows: Any) -> xgb.DMatrix:
        part = frame.iloc[rows]
        return private_matrix(part, categories=categories, label=y[rows], enable_categorical=True)

    model = read_evaluated_model(xgb.train(params, matrix(first), 50))
    margins = np.asarray(model.booster.predict(matrix(rest), output_margin=True), dtype=np.float64)
    return margins, y[rest], plan_evaluation((model,))


def line_of(name: str, exact: float, values: Sequence[Sequence[float]]) -> list[Any]:
    """How a figure came out in all repeats.

    Args:
        name: Of the figure.
        exact: That of the population.
        values: In each repeat the error, whether the interval covers, and its width.
    """
    errors, covers, widths = np.array(values).T
    return [
        name, f"{exact:.4f}", f"{errors.mean():.4f}", f"{np.quantile(np.abs(errors), 0.95):.4f}",
        f"{covers.mean():.3f}", f"{widths.mean():.4f}", len(values),
    ]  # fmt: skip


def measured(
    task: str, sizes: list[int], epsilons: list[float], repeats: int
) -> Iterator[list[Any]]:
    """The rows of the table for one task."""
    margins, labels, plan = prepared(task)
    p = 1.0 / (1.0 + np.exp(-margins))
    truth = {name: of(labels, p) for name, of in EXACT.items()}
    for epsilon in epsilons:
        layout = Layout(plan.blocks, later=plan.later)
        events = events_for(layout, epsilon, DELTA)
        for n in sizes:
            errors: dict[str, list[list[float]]] = {name: [] for name in EXACT}
            rng = np.random.default_rng(n)
            for _ in range(repeats):
                sample = rng.integers(0, len(labels), n)
                cells = plan.cells(Rows(margins[sample], labels[sample]))
                view, _ = plan.views(
                    release(layout, events, cells, None, plan.plan_second_step), 0.95
                )
                figures = view.figures()
                for name, of in EXACT.items():
                    figure = figures[name]
                    error = figure.value - of(labels[sample], p[sample])
                    covers = figure.low <= truth[name] <= figure.high
                    errors[name].append([error, covers, figure.high - figure.low])
            for name, values in errors.items():
                yield [task, n, epsilon, *line_of(name, truth[name], values)]


def limits(task: str, n: int, epsilon: float) -> tuple[float, float]:
    """How near to the exact AUC of the same rows any release at this noise can come.

    Args:
        task: Name of the task.
        n: Rows that are evaluated.
        epsilon: Of the evaluation.

    Returns:
        The error below which 95% of the evaluations stay, of the best single sum for the AUC with
        all of epsilon: where the distribution of the scores is known beforehand, and where nothing
        is known of it.
    """
    margins, labels, plan = prepared(task)
    layout = Layout(plan.blocks, later=plan.later)
    first, second = events_for(layout, epsilon, DELTA)
    sigma = (first.sigma2 / (first.sensitivity2 + second.sensitivity2)) ** 0.5
    positive = labels > 0
    places = [np.sort(margins[positive == side]) for side in (False, True)]
    below, not_above = (
        (np.searchsorted(place, margins, "left") + np.searchsorted(place, margins, "right"))
        / (2.0 * len(place))
        for place in places
    )
    area, rate = float(below[positive].mean()), float(positive.mean())
    pull = np.where(positive, (below - area) / rate, (1.0 - not_above - area) / (1.0 - rate)) / n
    each = n / len(labels)  # rows of the evaluation for each of the population
    most = float(np.abs(pull).max())
    left = []
    for limit in np.geomspace(most / 100.0, most, 200):
        clipped = np.clip(pull / limit, -1.0, 1.0)
        signal = float(pull @ clipped) * each
        left.append(
            float(pull @ pull) * each - signal**2 / (float(clipped @ clipped) * each + sigma**2)
        )
    return 1.96 * min(left) ** 0.5, 1.96 * sigma * most


HEAD = [
    "data", "rows", "epsilon", "figure", "population", "bias", "95% of errors below", "covered",
    "width", "repeats",
]  # fmt: skip


def page(lines: Sequence[Sequence[Any]]) -> str:
    """Some of the figures, in Markdown."""
    pages: dict[tuple[str, str], dict[str, str]] = {}
    for data, n, _, figure, exact, _, off, covered, *_ in lines:
        cell = f"{float(exact):.3f}: {float(off):.4f}, {float(covered):.0%}"
        pages.setdefault((data, f"{int(n):,}"), {})[figure] = cell
    text = f"\n| data | rows | {' | '.join(SHOWN.values())} |\n|---|---|{'---|' * len(SHOWN)}\n"
    for key, cells in pages.items():
        text += f"| {' | '.join((*key, *(cells[name] for name in SHOWN)))} |\n"
    return text + "\n"


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(TASKS))
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--keep", action="store_true", help="write experiments/results")
    parser.add_argument("--limits", action="store_true", help="what no release can go below")
    args = parser.parse_args()
    if args.limits:
        for task in args.data:
            for n in args.rows:
                known, unknown = limits(task, n, args.epsilon[0])
                print(f"{task}, {n} rows: AUC within {known:.4f} (known), {unknown:.4f} (unknown)")
        return
    measurements = (
        line for task in args.data for line in measured(task, args.rows, args.epsilon, args.repeats)
    )
    lines = show_lines(HEAD, measurements, RESULTS / "evaluation.csv" if args.keep else None)
    if args.keep:
        text = with_part(PAGE.read_text(encoding="utf-8"), "holdouts", page(lines))
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
