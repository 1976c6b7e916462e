"""Train private models on real data at several epsilons, and show what they predict and cost.

    make demo
    python examples/demo.py --help

The data is a survey of 6,366 married women that statsmodels includes; the model predicts whether a
respondent has had an affair. Private training uses its defaults. One budget file records all of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xgboost as xgb
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score
from statsmodels.datasets import fair
from tqdm import tqdm

import xgb_dp

ROOT = Path(__file__).resolve().parent.parent
DELTA = 1e-6  # a constant; never computed from the rows
TRAIN_SHARE = 0.7
SHOWN = 1.0  # epsilon of the model that is saved and described
PRIVATE = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_delta": DELTA}
# Chosen by hand; the private models use their defaults.
NOT_PRIVATE = {"tree_method": "hist", "objective": "binary:logistic", "max_depth": 3, "eta": 0.1}


def load() -> tuple[xgb.DMatrix, xgb.DMatrix]:
    """Training and test rows of the survey."""
    table = fair.load_pandas().data.astype("float32")
    labels = (table.pop("affairs") > 0).to_numpy()
    train = np.random.default_rng(0).random(len(labels)) < TRAIN_SHARE
    print(
        "Data: survey of married women (Redbook, 1974), included in statsmodels. Target: whether\n"
        f"the respondent has had an affair. {train.sum()} training rows, {(~train).sum()} test "
        f"rows, {table.shape[1]} columns.\n"
    )
    return xgb.DMatrix(table[train], labels[train]), xgb.DMatrix(table[~train], labels[~train])


def auc(model: xgb.Booster, test: xgb.DMatrix) -> float:
    return float(roc_auc_score(test.get_label(), model.predict(test)))


def print_scores(scores: dict[float, list[float]], baseline: float) -> None:
    print("Test AUC (0.5: guessing, 1: perfect)\n")
    print(f"{'epsilon':>14}  {'mean':>6}  {'lowest to highest':>18}")
    for epsilon, values in scores.items():
        spread = f"{min(values):.3f} to {max(values):.3f}"
        print(f"{epsilon:>14g}  {np.mean(values):>6.3f}  {spread:>18}")
    print(f"{'not private':>14}  {baseline:>6.3f}\n")


def print_calibration(model: xgb.Booster, test: xgb.DMatrix) -> None:
    """Mean prediction beside the observed share in fifths of the test rows."""
    rows = pd.DataFrame({"predicted": model.predict(test), "observed": test.get_label()})
    means = rows.groupby(pd.qcut(rows["predicted"].rank(method="first"), 5, labels=False)).mean()
    print(f"Calibration at epsilon {SHOWN:g}: test rows in fifths by predicted probability\n")
    for name in means:
        print(f"{name:>14}  " + "  ".join(f"{value:>5.2f}" for value in means[name]))
    print()


def print_cost(shown: xgb.Booster, models: list[xgb.Booster], path: Path) -> None:
    one, total = xgb_dp.privacy_report(shown), xgb_dp.privacy_report(models)
    print(
        f"Cost: this model is ({one.epsilon:.4g}, {DELTA:g})-differentially private per row.\n"
        f"All {len(models)} models together: epsilon {total.get_epsilon(DELTA):.4g} at the same "
        f"delta, recorded in {_short(path)}.\nThe scores above are exact and for this demo "
        "only: to publish a score, release it with noise\n(xgb_dp.evaluate).\n"
    )


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def plot(scores: dict[float, list[float]], baseline: float, path: Path) -> None:
    """Test score against epsilon: means, single models, and the model that is not private."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.axhline(baseline, color="0.35", linestyle="--", label=f"not private: {baseline:.3f}")
    axes.plot(list(scores), [np.mean(each) for each in scores.values()], "o-", label="mean")
    for epsilon, each in scores.items():
        axes.plot([epsilon] * len(each), each, ".", color="C0", alpha=0.45)
    axes.set(xscale="log", xlabel=f"epsilon of one model (delta = {DELTA:g})", ylabel="test AUC")
    axes.set_title("Private models: mean and single models", loc="left")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.3, SHOWN, 3.0])
    parser.add_argument("--repeats", type=int, default=5, help="models for each epsilon")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "demo")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    start = time.perf_counter()
    train, test = load()
    baseline = auc(xgb.train(NOT_PRIVATE, train, 50), test)

    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "budget.json"
    path.unlink(missing_ok=True)  # of an earlier demo
    budget = xgb_dp.Budget(path, epsilon=10.0, delta=1e-5)
    scores: dict[float, list[float]] = {}
    models: dict[float, list[xgb.Booster]] = {}
    epsilons = sorted({*args.epsilons, SHOWN})
    with tqdm(total=len(epsilons) * args.repeats, unit="model", desc="private training") as bar:
        for epsilon in epsilons:
            scores[epsilon] = []
            for _ in range(args.repeats):
                model = budget.train({**PRIVATE, "dp_epsilon": epsilon}, train)
                scores[epsilon].append(auc(model, test))
                models.setdefault(epsilon, []).append(model)
                bar.update()
    print()
    shown = models[SHOWN][-1]
    print_scores(scores, baseline)
    print_calibration(shown, test)
    print_cost(shown, [model for each in models.values() for model in each], path)

    model_file, picture = args.out / "model.json", args.out / "score_against_epsilon.png"
    shown.save_model(model_file)
    plot(scores, baseline, picture)
    print(f"Model: {_short(model_file)} (stock XGBoost can load it)\nPlot:  {_short(picture)}")
    print(f"{time.perf_counter() - start:.0f} seconds. Next, the model's privacy report:\n")
    print(f"    .venv/bin/xgb-dp report {_short(model_file)}")


if __name__ == "__main__":
    main()
