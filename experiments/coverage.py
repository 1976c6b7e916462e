"""How often the intervals of an evaluation cover: ``python -m experiments.coverage``.

For each kind of model a population of made rows is judged by a model without privacy. Samples of it
are evaluated, and each interval is compared with the exact figure of the population. The same
figures of real rows are those that did not train a private model: see ``holdouts.py``. With
``--keep`` the lines of the kinds that were asked for are written to the folder of results and to
their page.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost as xgb
from sklearn import metrics

from xgb_dp.evaluation.counts import log_cells, one_thread
from xgb_dp.evaluation.figures import outside
from xgb_dp.evaluation.measure import plan_evaluation
from xgb_dp.evaluation.rows import Groups, Rows, events_for, read_evaluated_model
from xgb_dp.noisy_sums import Layout, release

from . import losses
from .evaluation import DELTA, RESULTS, calibration_error, line_of
from .holdouts import TASKS, held_out
from .lines import show_lines, with_part

Floats = npt.NDArray[np.float64]
Exact = Mapping[str, float]

PAGE = Path(__file__).resolve().parent / "pages" / "coverage.md"
POPULATION = 100_000
LEVEL = 0.95
MOST_ROWS = 8  # of a person
SHARES = (0.1, 0.3)  # of the rows with the highest scores, for lifts
GROUPS = Groups(3, (0, 1, 2))
HEAD = [
    "kind", "rows", "epsilon", "figure", "population", "bias", "95% of errors below", "covered",
    "width", "repeats",
]  # fmt: skip


@dataclass(frozen=True)
class Population:
    """Rows as an evaluation sees them, and what is true of all of them.

    Attributes:
        plan: What is released.
        predictions: Of each model, one for each row.
        labels: One for each row; of times both ends.
        groups: Number of the group of each row.
        exact: Figures of the population by name.
        curves: From a released view, figures of its curves and of its threshold, each with that of
            the population.
        ends: Where the rows of each person end, if persons are drawn and protected.
    """

    plan: Any
    predictions: tuple[Floats, ...]
    labels: Floats
    groups: npt.NDArray[np.int64] | None
    exact: Exact
    curves: Callable[[Any], Iterable[tuple[str, Any, float]]] = lambda view: ()
    ends: npt.NDArray[np.int64] | None = None

    def layout(self, epsilon: float) -> Layout:
        """What an evaluation at this epsilon releases."""
        if self.ends is None:
            return Layout(self.plan.blocks, later=self.plan.later)
        layout: Layout = self.plan.layout(epsilon, DELTA, 1, persons=True, max_rows=MOST_ROWS)
        return layout

    def sample(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        """Draw rows, or all rows of persons, with the person of each."""
        if self.ends is None:
            return rng.integers(0, len(self.labels), n), None
        drawn = rng.integers(0, len(self.ends), n)
        first = np.append(0, self.ends[:-1])[drawn]
        persons = np.repeat(np.arange(n), self.ends[drawn] - first)
        place = np.arange(len(persons)) - np.searchsorted(persons, persons)
        return first[persons] + place, persons.astype(np.uint32)

    def figures(
        self, rows: npt.NDArray[np.int64], persons: Any, events: Any, layout: Layout
    ) -> Iterator[tuple[str, Any, float]]:
        """Names and figures of some of the rows, from one release, and what is true of all."""
        view, figures = self._released(rows, persons, events, layout)
        yield from ((name, figures[name], exact) for name, exact in self.exact.items())
        yield from self.curves(view)

    def _released(
        self, rows: npt.NDArray[np.int64], persons: Any, events: Any, layout: Layout
    ) -> tuple[Any, Mapping[str, Any]]:
        predictions = tuple(p[rows] for p in self.predictions)
        labels, second_step = self.labels[rows], getattr(self.plan, "plan_second_step", None)
        if len(predictions) == 2:
            pairs = Rows(predictions, labels)
            cells, later = self.plan.cells(pairs), self.plan.later_cells(pairs)
            released = release(layout, events, cells, None, second_step, later)
            report = self.plan.report(released, None, LEVEL)
            return report, dict(report.figures())
        groups = None if self.groups is None else self.groups[rows]
        cells = self.plan.cells(Rows(predictions[0], labels, groups))
        released = release(layout, events, cells, persons, second_step)
        overall, parts = self.plan.views(released, LEVEL)
        out = dict(overall.figures())
        for name, part in parts.items():
            out |= {f"{figure} in group {name}": f for figure, f in part.figures().items()}
        return overall, out


def _features(n: int) -> Floats:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n, 5))
    table[:, 3] = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    return table


def _signal(table: Floats) -> Floats:
    return np.asarray(0.7 * table[:, 0] + 0.4 * table[:, 1] * (table[:, 2] > 0))


def _model(table: Floats, labels: Floats, objective: str, **params: Any) -> xgb.Booster:
    """A model of other rows."""
    data = xgb.DMatrix(table)
    if labels.ndim == 2:
        for end, values in zip(("lower", "upper"), labels.T, strict=True):
            data.set_float_info(f"label_{end}_bound", values)
    else:
        data.set_label(labels)
    merged = {"objective": objective, "max_depth": 3, "eta": 0.2, "nthread": 1, **params}
    return xgb.train(merged, data, 15)


def _population(
    labels_of: Callable[[Floats, np.random.Generator], Floats],
    objective: str,
    exact: Callable[[Floats, Floats, Any], dict[str, float]],
    *,
    target: tuple[float, float] | None = None,
    groups: Groups | None = None,
    **params: Any,
) -> Population:
    """Rows of a task, half of which train the model."""
    table = _features(POPULATION + 4_000)
    labels = labels_of(table, np.random.default_rng(1))
    first, rest = slice(None, 4_000), slice(4_000, None)
    model = read_evaluated_model(_model(table[first], labels[first], objective, **params))
    plan = plan_evaluation((model,), groups, None, target)
    binary = objective == "binary:logistic"
    predicted = model.booster.predict(xgb.DMatrix(table[rest]), output_margin=binary).astype(
        np.float64
    )
    codes = None if groups is None else table[rest, 3].astype(np.int64)
    y = labels[rest]
    truth = exact(predicted, y, plan)
    curves = _CURVES.get(exact, _no_curves)(predicted, y, plan)
    for code in range(0 if codes is None else 3):
        one = codes == code
        truth |= {f"{k} in group {code}": v for k, v in exact(predicted[one], y[one], plan).items()}
    return Population(plan, (predicted,), y, codes, truth, curves)


def _binary(table: Floats, rng: np.random.Generator) -> Floats:
    return (rng.random(len(table)) < 1 / (1 + np.exp(1.0 - 2.0 * _signal(table)))).astype(float)


def _of_two(margins: Floats, y: Floats, _: Any) -> dict[str, float]:
    p = 1.0 / (1.0 + np.exp(-margins))
    return {
        "auc": float(metrics.roc_auc_score(y, p)),
        "average_precision": float(metrics.average_precision_score(y, p)),
        "log_loss": float(metrics.log_loss(y, p)),
        "brier": float(np.mean((p - y) ** 2)),
        "base_rate": float(y.mean()),
        "accuracy": float(np.mean((p >= 0.5) == y)),
        "calibration_error": calibration_error(y, p),
    }


def _rare(table: Floats, rng: np.random.Generator) -> Floats:
    """About 3% of positive rows."""
    return (rng.random(len(table)) < 1 / (1 + np.exp(4.6 - 2.0 * _signal(table)))).astype(float)


def _top(order: npt.NDArray[np.int64], y: Floats, share: float) -> float:
    """Sum of the labels of the rows with the highest scores."""
    return float(y[order[: round(share * len(y))]].sum())


def _curves_of_two(margins: Floats, y: Floats, plan: Any) -> Any:
    p, order = 1.0 / (1.0 + np.exp(-margins)), np.argsort(-margins, kind="stable")
    positives = np.cumsum(y[order])
    cells = plan.grid.bins[plan.grid.cell(margins)]

    def curves(view: Any) -> Iterator[tuple[str, Any, float]]:
        up = p >= view.at
        hits, chosen, positive = float(y[up].sum()), float(up.sum()), float(y.sum())
        yield "precision at the threshold", view.precision(), hits / chosen
        yield "recall at the threshold", view.recall(), hits / positive
        yield "f1 at the threshold", view.f1(), 2.0 * hits / (chosen + positive)
        yield "alert rate at the threshold", view.selection_rate(), chosen / len(y)
        for recall in (0.2, 0.5, 0.8):
            rows = int(np.searchsorted(positives, recall * positive)) + 1
            exact = float(positives[rows - 1]) / rows
            yield f"precision at recall {recall:g}", view.precision_at(recall), exact
        for share in SHARES:
            exact = _top(order, y, share) / (share * positive)
            yield f"lift of the top {share:.0%}", view.lift(share), exact
        for mean, rate, _ in view.calibration_curve():
            inside = cells == min(int(mean * 10), 9)
            if inside.any():
                yield "share of positives by prediction", rate, float(y[inside].mean())

    return curves


def _curves_of_means(prediction: Floats, y: Floats, plan: Any) -> Any:
    y = np.clip(y, *plan.target)
    order, means = np.argsort(-prediction, kind="stable"), plan.means
    cells = log_cells(prediction, means.low, means.high, len(means.means))
    rows, sums = (
        np.bincount(cells, weights=w, minlength=len(means.means)) for w in (np.ones_like(y), y)
    )

    def curves(view: Any) -> Iterator[tuple[str, Any, float]]:
        for share in SHARES:
            yield (
                f"lift of the top {share:.0%}",
                view.lift(share),
                _top(order, y, share) / (share * float(y.sum())),
            )
        for mask in view.order.shares(10):
            if rows @ mask > 0.0:
                exact = float(sums @ mask / (rows @ mask))
                yield "mean label by prediction", view.order.mean(mask), exact

    return curves


def _of_several(p: Floats, y: Floats, _: Any) -> dict[str, float]:
    truth, answered = y.astype(int), p.argmax(axis=1)
    one = metrics.roc_auc_score(truth, p, multi_class="ovr", average=None)
    return {
        "accuracy": float(np.mean(answered == truth)),
        "log_loss": float(np.minimum(-np.log(p[np.arange(len(y)), truth]), 8.0).mean()),
        "auc": float(np.mean(one)),
        **{f"auc of {k}": float(v) for k, v in enumerate(one)},
        **{f"base_rate of {k}": float(np.mean(truth == k)) for k in range(p.shape[1])},
        "calibration_error": calibration_error(answered == truth, p.max(axis=1)),
    }


def _clipped(figures: Mapping[str, float], beyond: Mapping[str, Any]) -> dict[str, float]:
    """Figures of clipped numbers, and the shares of the rows beyond the bounds."""
    shares = {f"{name} beyond": float(np.mean(flags)) for name, flags in beyond.items()}
    return {f"clipped {name}": value for name, value in figures.items()} | shares


def _of_errors(prediction: Floats, y: Floats, plan: Any) -> dict[str, float]:
    return _clipped(*_errors(prediction, y, plan))


def _errors(prediction: Floats, y: Floats, plan: Any) -> tuple[dict[str, float], dict[str, Any]]:
    labels, y = outside(y, *plan.target), np.clip(y, *plan.target)
    error = prediction - y
    errors = outside(error, -plan.bound, plan.bound)
    error = np.clip(error, -plan.bound, plan.bound)
    out = {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.abs(error).mean()),
        "bias": float(error.mean()),
        "r2": float(1.0 - np.mean(error**2) / y.var()),
    }
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        out[f"error at {share:.0%}"] = float(np.quantile(error, share))
    return out, {"labels": labels, "errors": errors}


def _of_quantiles(predictions: Floats, y: Floats, plan: Any) -> dict[str, float]:
    out, losses_of = {}, {}
    beyond = np.zeros(len(y), dtype=bool)
    for level, predicted in zip(plan.levels, predictions.T, strict=True):
        error = predicted - y
        beyond |= outside(error, -plan.bound, plan.bound)
        error = np.clip(error, -plan.bound, plan.bound)
        out[f"coverage of {level:g}"] = float(np.mean(y <= predicted))
        loss = np.maximum(-level * error, (1.0 - level) * error)
        losses_of[f"pinball loss of {level:g}"] = float(loss.mean())
    return out | _clipped(losses_of, {"errors": beyond})


def _of_means(prediction: Floats, y: Floats, plan: Any) -> dict[str, float]:
    figures, beyond = _errors(prediction, y, plan)
    y, of = np.clip(y, *plan.target), plan.means.deviance
    beyond["deviances"] = of(y, prediction) > plan.means.most
    loss = np.minimum(of(y, prediction), plan.means.most)
    saved = of(y, np.full_like(y, y.mean())).mean() - of(y, prediction).mean()
    order = np.argsort(prediction, kind="stable")
    share = np.append(0.0, np.cumsum(y[order]) / y.sum())
    figures |= {
        "deviance": float(loss.mean()),
        "deviance saved": float(saved),
        "gini": float(1.0 - 2.0 * np.trapezoid(share, dx=1.0 / len(y))),
        "mean ratio": float(prediction.mean() / y.mean()),
    }
    return _clipped(figures, beyond)


def _of_times(prediction: Floats, ends: Floats, plan: Any) -> dict[str, float]:
    """Harrell's index of the first rows, pair by pair."""
    seen, when, first = np.isfinite(ends[:, 1]), ends[:, 0], slice(20_000)
    index = losses.concordance(when[first], seen[first], prediction[first])
    beyond = outside(when, *np.exp(plan.target))
    return {"observed": float(seen.mean())} | _clipped({"concordance": index}, {"times": beyond})


def _classes(table: Floats, rng: np.random.Generator) -> Floats:
    score = np.stack([_signal(table), -_signal(table), table[:, 4] - 1.0], axis=1)
    return np.asarray((score + rng.gumbel(size=score.shape)).argmax(axis=1), dtype=float)


def _times(table: Floats, rng: np.random.Generator) -> Floats:
    days = np.clip(np.exp(5.0 + _signal(table) + 0.5 * rng.logistic(size=len(table))), 1, 2000)
    end = rng.uniform(10, 2000, len(table))
    return np.stack([np.minimum(days, end), np.where(days <= end, days, np.inf)], axis=1)


def _numbers(table: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(_signal(table) + 0.5 * rng.standard_t(4, len(table)))


def _incomes(table: Floats, rng: np.random.Generator) -> Floats:
    """Log-normal, of which .2% are outliers."""
    y = np.exp(10.5 + 0.5 * _signal(table) + 0.5 * rng.normal(size=len(table)))
    return np.where(rng.random(len(table)) < 0.002, 40.0 * y, y)


def _beyond(share: float) -> Population:
    """Incomes of which a share lies beyond the bound."""
    every = _incomes(_features(POPULATION + 4_000), np.random.default_rng(1))
    bounds = (0.0, float(np.quantile(every, 1.0 - share)))
    return _population(_incomes, "reg:squarederror", _of_errors, target=bounds)


def _counts(table: Floats, rng: np.random.Generator) -> Floats:
    return np.minimum(rng.poisson(np.exp(_signal(table) - 1.5)), 10).astype(float)


def _amounts(table: Floats, rng: np.random.Generator) -> Floats:
    return np.clip(rng.gamma(0.8, np.exp(_signal(table) + 0.5)), 0.01, 60.0)


def _totals(table: Floats, rng: np.random.Generator) -> Floats:
    events = rng.poisson(np.exp(_signal(table) - 1.5))
    return np.minimum(rng.gamma(1.0 * np.maximum(events, 1e-9), 4.0) * (events > 0), 80.0)


def _real(name: str) -> Population:
    """Rows of a data set that did not train the model."""
    model, predictions, labels = held_out(TASKS[name])
    plan: Any = plan_evaluation((model,))
    exact: Callable[[Floats, Floats, Any], dict[str, float]] = _of_errors
    if model.intervals:
        exact = _of_times
    elif model.levels:
        exact = _of_quantiles
    elif plan.means is not None:
        exact = _of_means
    curves = _CURVES.get(exact, _no_curves)(predictions, labels, plan)
    truth = exact(predictions, labels, plan)
    return Population(plan, (predictions,), labels, None, truth, curves)


def _rows_of_persons() -> Population:
    """Persons with 1 to 8 similar rows; those with many rows have more positives."""
    rng = np.random.default_rng(1)
    count = np.minimum(rng.geometric(0.4, 40_000), MOST_ROWS)
    of = np.repeat(np.arange(len(count)), count)
    table = _features(len(count))[of] + 0.3 * rng.normal(size=(len(of), 5))
    effect = rng.normal(size=len(count)) + 0.3 * (count - 2)
    y = (rng.random(len(of)) < 1 / (1 + np.exp(1.5 - 2 * _signal(table) - effect[of]))).astype(
        float
    )
    model = read_evaluated_model(_model(table[:4_000], y[:4_000], "binary:logistic"))
    margins = model.booster.predict(xgb.DMatrix(table), output_margin=True).astype(float)
    plan = plan_evaluation((model,))
    exact, curves = _of_two(margins, y, plan), _curves_of_two(margins, y, plan)
    return Population(plan, (margins,), y, None, exact, curves, np.cumsum(count))


def _pair(labels_of: Callable[..., Any], objective: str) -> tuple[Any, xgb.DMatrix, Any]:
    """Train two models on other rows; return them, and the rows and labels to evaluate on."""
    table = _features(POPULATION + 4_000)
    y = labels_of(table, np.random.default_rng(1))
    trained = [_model(table[:n], y[:n], objective, max_depth=d) for n, d in ((4000, 3), (800, 2))]
    return tuple(map(read_evaluated_model, trained)), xgb.DMatrix(table[4_000:]), y[4_000:]


def _two_models() -> Population:
    models, data, labels = _pair(_binary, "binary:logistic")
    margins = tuple(m.booster.predict(data, output_margin=True).astype(float) for m in models)
    one, other = (_of_two(m, labels, None) for m in margins)
    exact = {"auc difference": one["auc"] - other["auc"]}
    exact["log_loss difference"] = one["log_loss"] - other["log_loss"]
    return Population(plan_evaluation(models), margins, labels, None, exact)


def _no_curves(*_: Any) -> Any:
    return lambda view: ()


def _two_models_of_counts() -> Population:
    models, data, labels = _pair(_counts, "count:poisson")
    predictions = tuple(m.booster.predict(data).astype(float) for m in models)
    plan: Any = plan_evaluation(models, None, None, (0.0, 10.0))
    names = "mean label", "mean of the first", "mean of the second"
    values = [np.clip(v, *plan.target) for v in (labels, *predictions)]
    exact = {f"clipped {name}": float(v.mean()) for name, v in zip(names, values, strict=True)}
    place = plan.cells(Rows(predictions, labels))[0]
    rows, *sums = (
        np.bincount(place, weights=v, minlength=32) for v in (np.ones_like(labels), *values)
    )

    def curves(report: Any) -> Iterator[tuple[str, Any, float]]:
        of_label = report.values[0]
        for mask in of_label.shares(10):
            if rows @ mask > 0.0:
                for name, of, total in zip(names, report.values, sums, strict=True):
                    yield f"{name} by ratio", of.mean(mask), float(total @ mask / (rows @ mask))

    return Population(plan, predictions, labels, None, exact, curves)


_CURVES: dict[Any, Any] = {_of_two: _curves_of_two, _of_means: _curves_of_means}
_NUMBERS = partial(_population, _numbers, target=(-6.0, 6.0))
KINDS: dict[str, Callable[[], Population]] = {
    "two classes in groups": partial(
        _population, _binary, "binary:logistic", _of_two, groups=GROUPS
    ),
    "rare positives": partial(_population, _rare, "binary:logistic", _of_two),
    "rows of persons": _rows_of_persons,
    "two models": _two_models,
    "two models of counts": _two_models_of_counts,
    "several classes": partial(_population, _classes, "multi:softprob", _of_several, num_class=3),
    "errors": partial(_NUMBERS, "reg:squarederror", _of_errors),
    "errors in groups": partial(_NUMBERS, "reg:squarederror", _of_errors, groups=GROUPS),
    **{f"{share:.1%} beyond": partial(_beyond, share) for share in (0.001, 0.005, 0.02, 0.05)},
    "quantiles": partial(
        _NUMBERS, "reg:quantileerror", _of_quantiles, quantile_alpha=[0.1, 0.5, 0.9]
    ),
    "counts": partial(_population, _counts, "count:poisson", _of_means, target=(0.0, 10.0)),
    "amounts": partial(_population, _amounts, "reg:gamma", _of_means, target=(0.01, 60.0)),
    "totals": partial(_population, _totals, "reg:tweedie", _of_means, target=(0.0, 80.0)),
    "times": partial(_population, _times, "survival:aft", _of_times, target=(1.0, 2000.0)),
    **{name: partial(_real, name) for name in TASKS},
}


def measured(
    kind: str, sizes: list[int], epsilons: list[float], repeats: int
) -> Iterator[list[Any]]:
    """The rows of the table for one kind of model."""
    task = KINDS[kind]()
    for n, epsilon in itertools.product(sizes, epsilons):
        layout = task.layout(epsilon)
        events = events_for(layout, epsilon, DELTA)
        errors: dict[str, list[list[float]]] = {}
        truths: dict[str, list[float]] = {}
        rng = np.random.default_rng(n)
        for _ in range(repeats):
            for name, one, exact in task.figures(*task.sample(rng, n), events, layout):
                covers = one.low <= exact <= one.high
                error = [one.value - exact, covers, one.high - one.low]
                errors.setdefault(name, []).append(error)
                truths.setdefault(name, []).append(exact)
        for name, values in errors.items():
            yield [kind, n, epsilon, *line_of(name, float(np.mean(truths[name])), values)]


def page(lines: Iterable[Sequence[Any]]) -> str:
    """The tables as Markdown: of made rows by their number, and of real ones by epsilon."""
    kept = list(lines)
    generated = _columns([line for line in kept if line[0] not in TASKS], "{0:,} rows")
    real = _columns([line for line in kept if line[0] in TASKS], "ε = {1:g}")
    return "\n".join(["", *generated, "", *real, "", ""])


def _columns(lines: Sequence[Sequence[Any]], title: str) -> list[str]:
    """One table: a line for each figure, a column for each number of rows and epsilon."""
    by_figure: dict[tuple[str, str], dict[tuple[int, float], Sequence[Any]]] = {}
    for line in lines:
        by_figure.setdefault((line[0], line[3]), {})[int(line[1]), float(line[2])] = line
    places = sorted({place for of in by_figure.values() for place in of})
    out = [
        "| kind | figure | population | " + " | ".join(title.format(*p) for p in places) + " |",
        "|---|---|--:|" + "--:|" * len(places),
    ]
    for (kind, figure), of in by_figure.items():
        cells = [f"± {_short(float(of[p][8]) / 2)}, {float(of[p][7]):.1%}" for p in places]
        population = _short(float(next(iter(of.values()))[4]))
        out.append(f"| {kind} | {figure} | {population} | " + " | ".join(cells) + " |")
    return out


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000.0 and value < math.inf else f"{value:.4f}"


def _merged(lines: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Kept lines, those of measured kinds in place of older ones."""
    with (RESULTS / "coverage.csv").open(newline="", encoding="utf-8") as file:
        old = list(csv.reader(file))[1:]
    measured_now = {line[0] for line in lines}
    both = [line for line in old if line[0] not in measured_now] + list(lines)
    return sorted(both, key=lambda line: list(KINDS).index(line[0]))


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5])
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--keep", action="store_true", help="write results and their page")
    args = parser.parse_args()
    with one_thread():
        measurements = (
            line
            for kind in args.kind
            for line in measured(kind, args.rows, args.epsilon, args.repeats)
        )
        lines = show_lines(HEAD, measurements, None)
    if args.keep:
        lines = _merged(lines)
        with (RESULTS / "coverage.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([HEAD, *lines])
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_part(text, "coverage", page(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
