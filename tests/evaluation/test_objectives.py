"""Counts, amounts, quantiles: figures against exact ones, and what one row changes."""

import functools
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn import metrics

import xgb_dp
from tests.evaluation.tasks import TARGET, refused
from xgb_dp.evaluation.amounts import Deviance
from xgb_dp.evaluation.counts import log_cells
from xgb_dp.evaluation.measure import plan_evaluation
from xgb_dp.evaluation.regression import Regression
from xgb_dp.evaluation.rows import Groups, Rows, events_for, read_evaluated_model
from xgb_dp.noisy_sums import Block, Layout, release
from xgb_dp.testing import fixed_noise

from .test_kinds import CLEAR, EXAMPLES, moved

ANY = st.floats(width=32)
OBJECTIVES: dict[str, dict[str, Any]] = {
    "counts": {"objective": "count:poisson"},
    "amounts": {"objective": "reg:gamma"},
    "both": {"objective": "reg:tweedie", "tweedie_variance_power": 1.4},
    "quantiles": {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]},
    "quantile": {"objective": "reg:quantileerror", "quantile_alpha": 0.8},
}
BOUNDS = {"counts": (0, 12), "amounts": (0.001, 60), "both": (0, 80)}
POWERS = {"counts": 1.0, "amounts": 2.0, "both": 1.4}


def data(name: str, n: int = 24_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    X[:, 3] = rng.integers(0, 2, n)
    mean = np.exp(0.6 * X[:, 0] + 0.3 * X[:, 1] * (X[:, 2] > 0) - 0.7)
    if name == "counts":
        return X, np.minimum(rng.poisson(mean), 12).astype(float)
    if name == "amounts":
        return X, np.clip(rng.gamma(2.0, mean), 0.001, 60)
    if name == "both":
        return X, np.minimum(rng.poisson(mean) * rng.gamma(2.0, 1.5, n), 80)
    return X, X[:, 0] + rng.normal(size=n)


@pytest.fixture(scope="module")
def judges() -> dict[str, Any]:
    """For each objective a model without privacy, and rows that did not train it."""
    judges_by_name = {}
    for name, params in OBJECTIVES.items():
        X, y = data(name)
        params = {"max_depth": 3, "nthread": 1, "eta": 0.2, **params}
        model = xgb.train(params, xgb.DMatrix(X[:6000], y[:6000]), 20)
        judges_by_name[name] = model, X[6000:], y[6000:], model.predict(xgb.DMatrix(X[6000:]))
    return judges_by_name


def gini_of(y: Any, p: Any, exposure: Any = 1.0) -> float:
    """From the areas under the Lorenz curve, by the trapezoid rule."""
    order, exposure = np.argsort(p, kind="stable"), exposure * np.ones(len(y))
    share, at = (np.append(0.0, np.cumsum(v[order]) / v.sum()) for v in (y, exposure))
    return float(1.0 - 2.0 * np.trapezoid(share, at))


def deviances(name: str, y: Any, p: Any) -> tuple[float, float]:
    of = functools.partial(metrics.mean_tweedie_deviance, y, power=POWERS[name])
    return float(of(p)), float(of(np.full_like(p, y.mean())))


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", BOUNDS)
def test_means_without_noise(judges, name):
    model, X, y, p = judges[name]
    bounds = {"target_bounds": BOUNDS[name], "error_bound": float(BOUNDS[name][1])}
    report = xgb_dp.evaluate(model, (X, y), **bounds, by={3: [0, 1]}, **CLEAR)
    exact, constant = deviances(name, y, p)
    assert float(report.deviance) == pytest.approx(exact, rel=5e-3)
    assert float(report.deviance_saved) == pytest.approx(constant - exact, rel=2e-2)
    assert float(report.gini) == pytest.approx(gini_of(y, p), abs=4e-3)
    assert float(report.mean_ratio) == pytest.approx(p.mean() / y.mean(), rel=4e-3)
    assert float(report.bias) == pytest.approx((p - y).mean(), abs=BOUNDS[name][1] / 8000)
    column = X[:, 3] == 1
    assert float(report.groups["1"].gini) == pytest.approx(gini_of(y[column], p[column]), abs=6e-3)
    points = report.calibration_curve()
    tenths = np.array([(mean, float(label)) for mean, label, _ in points])
    assert tenths.shape == (10, 2) and (np.diff(tenths[:, 0]) > 0).all()
    assert np.corrcoef(tenths.T)[0, 1] > 0.98
    order, ends = np.argsort(p), np.cumsum([0.0, *(rows for _, _, rows in points)])
    for point, first, last in zip(points, ends[:-1].round(), ends[1:].round(), strict=True):
        inside = order[int(first) : int(last)]
        assert point[0] == pytest.approx(p[inside].mean(), rel=0.02)
        assert float(point[1]) == pytest.approx(y[inside].mean(), rel=0.02, abs=4e-3)
    for share in (0.1, 0.5, 1.0):
        top = y[order[len(y) - int(share * len(y)) :]].mean() / y.mean()
        assert float(report.lift(share)) == pytest.approx(top, rel=0.01)
    for wrong in (0.0, 1.1, None):
        with pytest.raises(xgb_dp.PrivacyParameterError):
            report.lift(wrong)
    assert {"clipped deviance", "clipped gini"} <= set(report.to_frame().loc["all"].index)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", BOUNDS)
def test_intervals_cover(judges, name):
    """Of noise and of sampling together: 25 samples of the rows, each with a release of its own."""
    model, X, y, p = judges[name]
    deviance, constant = deviances(name, y, p)
    whole = {
        "gini": gini_of(y, p), "deviance": deviance, "deviance_saved": constant - deviance,
        "mean_ratio": p.mean() / y.mean(),
    }  # fmt: skip
    covered = dict.fromkeys(whole, 0)
    n = 2500
    rng = np.random.default_rng(2)
    for _ in range(25):
        at = rng.choice(len(y), n, replace=True)
        report = xgb_dp.evaluate(
            model, (X[at], y[at]), target_bounds=BOUNDS[name], epsilon=2.0, delta=1e-5
        )
        for figure_name, value in whole.items():
            figure = getattr(report, figure_name)
            covered[figure_name] += figure.low <= value <= figure.high
    assert all(count >= 20 for count in covered.values()), covered  # 24 are due


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", BOUNDS)
def test_intervals_of_curves_cover(pairs, name):
    """Lift, mean label by prediction and double lift: means of 60 samples with own releases.

    Half of them have hardly any noise, so that their intervals are those of the sampling.
    """
    models, _, y, p, q = pairs[name]
    read = tuple(map(read_evaluated_model, models))
    single, double = (plan_evaluation(m, None, None, BOUNDS[name]) for m in (read[:1], read))
    order, rng, hits = np.argsort(-p, kind="stable"), np.random.default_rng(4), []
    lift = y[order[: int(0.3 * len(y))]].mean() / y.mean()
    by_prediction = log_cells(p, single.means.low, single.means.high, 64)
    by_ratio = double.cells(Rows((p, q), y))[0]

    def covered(figure: Any, inside: Any, values: Any) -> Any:
        exact = values[inside].mean() if inside.any() else np.nan
        return figure.low <= exact <= figure.high if inside.any() else np.nan

    for number in range(60):
        at, epsilon = rng.integers(0, len(y), 4000), 200.0 if number % 2 else 2.0
        released = [
            release(layout, events_for(layout, epsilon, 1e-6), plan.cells(Rows(values, y[at])))
            for plan, values in ((single, p[at]), (double, (p[at], q[at])))
            for layout in [Layout(plan.blocks)]
        ]
        order_view = single.views(released[0], 0.95)[0].order
        values = double.report(released[1], None, 0.95).values
        top = order_view.lift(0.3)
        labels = [
            covered(order_view.mean(m), m[by_prediction] > 0, y) for m in order_view.shares(5)
        ]
        lifts = [
            covered(one.mean(mask), mask[by_ratio] > 0, exact)
            for mask in values[0].shares(5)
            for one, exact in zip(values, (y, p, q), strict=True)
        ]
        hits.append([top.low <= lift <= top.high, np.nanmean(labels), np.nanmean(lifts)])
    assert (np.mean(hits, axis=0) >= [0.86, 0.9, 0.9]).all(), np.mean(hits, axis=0)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", ["quantile", "quantiles"])
def test_quantiles_without_noise(judges, name):
    model, X, y, p = judges[name]
    report = xgb_dp.evaluate(model, (X, y), error_bound=6.0, by={3: [0, 1]}, **CLEAR)
    levels = np.atleast_1d(OBJECTIVES[name]["quantile_alpha"])
    for level, column in zip(levels.tolist(), p.reshape(len(y), -1).T, strict=True):
        exact = metrics.mean_pinball_loss(y, column, alpha=level)
        assert float(report.pinball_loss(level)) == pytest.approx(exact, rel=5e-3)
        assert float(report.coverage(level)) == pytest.approx((y <= column).mean(), abs=2e-3)
        group = X[:, 3] == 0
        assert float(report.groups["0"].coverage(level)) == pytest.approx(
            (y <= column)[group].mean(), abs=4e-3
        )
        assert f"coverage of {level:g}" in report.figures()
    with pytest.raises(xgb_dp.PrivacyParameterError, match="quantile levels of the model"):
        report.coverage(0.33)
    for unknown in (lambda: report.gini, lambda: report.lift(0.1), report.calibration_curve):
        with pytest.raises(xgb_dp.PrivacyParameterError, match="count:poisson"):
            unknown()


@pytest.mark.usefixtures("known")
def test_quantiles_with_noise(judges):
    model, X, y, p = judges["quantiles"]
    report = xgb_dp.evaluate(model, (X, y), error_bound=6.0, epsilon=1.0, delta=1e-6)
    for level, column in zip((0.1, 0.5, 0.9), p.T, strict=True):
        figure = report.coverage(level)
        assert abs(float(figure) - (y <= column).mean()) < 4.5 * figure.noise
        assert figure.noise < 0.02


@pytest.fixture(scope="module")
def pairs(judges: dict[str, Any]) -> dict[str, Any]:
    """For each objective of means a second model, of other features and a higher level."""
    tasks = {}
    for name in BOUNDS:
        model, X, y, p = judges[name]
        params = {"max_depth": 2, "nthread": 1, "eta": 0.3, **OBJECTIVES[name]}
        fit = X[:6000].copy()
        fit[:, 0] = 0.0
        other = xgb.train(params, xgb.DMatrix(fit, 1.2 * y[:6000]), 12)
        tasks[name] = [model, other], X, y, p, other.predict(xgb.DMatrix(X))
    return tasks


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", BOUNDS)
def test_double_lift_without_noise(pairs, name):
    models, X, y, p, q = pairs[name]
    report = xgb_dp.evaluate(models, (X, y), target_bounds=BOUNDS[name], **CLEAR)
    figures = report.figures()
    whole = {"label": y, "of the first": p, "of the second": q}
    for title, values in whole.items():
        assert float(figures[f"clipped mean {title}"]) == pytest.approx(values.mean(), rel=3e-3)
    points = report.double_lift(8)
    assert 5 <= len(points) <= 8
    order = np.argsort(p / q, kind="stable")
    ends = np.cumsum([0.0, *(point[0] for point in points)]).round().astype(int)
    assert ends[-1] == len(y)
    for point, first, last in zip(points, ends[:-1], ends[1:], strict=True):
        inside = order[first:last]
        for figure, values in zip(point[1:], (y, p, q), strict=True):
            assert float(figure) == pytest.approx(values[inside].mean(), rel=1e-2)
    first, second = (np.array([float(point[k]) for point in points]) for k in (2, 3))
    assert (np.diff(first / second) > 0).all()
    assert figures["labels beyond"].value < 1e-3
    assert "clipped" in report.statement() and "mean label" in report.summary()
    with pytest.raises(xgb_dp.PrivacyParameterError, match="not the model"):
        report.calibrated(models[0])


@settings(EXAMPLES, max_examples=30)
@given(rows=st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=4))
@example(rows=[(1.0, 12.0, 12.0), (12.0, 12.0, 12.0)])
def test_one_row_of_a_double_lift(pairs, rows):
    models = tuple(map(read_evaluated_model, pairs["counts"][0]))
    plan = plan_evaluation(models, None, None, BOUNDS["counts"])
    first, second, y = (np.array(v) for v in zip(*rows, strict=True))
    cells = plan.cells(Rows((first, second), y))
    for block, column in zip(plan.blocks, cells, strict=True):
        assert ((column >= 0) & (column < block.cells)).all()
    stated = Layout(plan.blocks).sensitivity2
    assert 0 < moved(plan, cells, len(rows)) <= stated
    assert stated == pytest.approx((1 << 14) ** 2, rel=1e-3)


def test_a_double_lift_attains_the_bound(pairs):
    """Of a row with the largest label, and the largest prediction of both models."""
    models = tuple(map(read_evaluated_model, pairs["counts"][0]))
    plan = plan_evaluation(models, None, None, BOUNDS["counts"])
    most = np.array([float(BOUNDS["counts"][1])])
    assert moved(plan, plan.cells(Rows((most, most), most)), 1) == Layout(plan.blocks).sensitivity2


def test_two_models_that_cannot_be_compared(pairs, judges):
    models, X, y, *_ = pairs["counts"]
    refused(xgb_dp.PrivacyParameterError, "list of two", [models[0], judges["quantile"][0]], (X, y),
            target_bounds=(0, 12))  # fmt: skip
    refused(xgb_dp.PrivacyParameterError, "error_bound", models, (X, y), target_bounds=(0, 12),
            error_bound=1.0)  # fmt: skip
    refused(xgb_dp.PrivacyParameterError, "target_bounds", models, (X, y))


@pytest.fixture(scope="module")
def plans(judges: dict[str, Any]) -> dict[str, Regression]:
    groups = Groups("g", ("a", "b"))
    return {
        name: Regression.from_model(
            read_evaluated_model(case[0]), groups, 2.0, BOUNDS.get(name, (-1.0, 5.0))
        )
        for name, case in judges.items()
    }


LABEL = st.one_of(ANY, st.sampled_from([0.0, -1.0, 1e-30, 12.0, 60.0]))


@pytest.mark.parametrize("name", OBJECTIVES)
@settings(EXAMPLES, max_examples=15)
@given(rows=st.lists(st.tuples(ANY, LABEL, st.integers(0, 2)), min_size=1, max_size=4))
@example(rows=[(1.0, 12.0, 0), (1e-30, 60.0, 1)])
def test_one_row(plans, name, rows):
    prediction, y, group = (np.array(v) for v in zip(*rows, strict=True))
    plan = plans[name]
    if len(plan.levels) > 1:
        prediction = np.stack([prediction, -prediction, prediction], axis=1)
    with np.errstate(all="ignore"):
        cells = plan.cells(Rows(prediction, y, group))
    for block, column in zip(plan.blocks, cells, strict=True):
        assert ((column >= 0) & (column < block.cells)).all()
    stated = Layout(plan.blocks).sensitivity2
    assert 0 < moved(plan, cells, len(rows)) <= stated
    assert stated <= 1.05 * (1 << 14) ** 2


@pytest.mark.parametrize("low", [-1e-3, -100.0, -1e9, -1e15])
def test_ranges_of_labels_that_there_are_not(judges, low):
    """Beside a small upper end they would count so much that norms left 64 bits."""
    for name in BOUNDS:
        model, X, y, _ = judges[name]
        refused(xgb_dp.PrivacyParameterError, "must be at least 0", model, (X, y),
                target_bounds=(low, 1.0))  # fmt: skip


@pytest.mark.parametrize(
    "entry, shift",
    [(1 << 15, 16), (-(1 << 15), 16), (1 << 31, 0), (-(1 << 31), 0), (1 << 40, 0), (-(1 << 63), 0)],
)
def test_a_row_that_counts_too_much_is_refused(entry, shift):
    """The square of 2^40 is 0 in 64 bits: no sensitivity may be taken from that."""
    block = Block(np.array([[1, entry]]))
    with pytest.raises(xgb_dp.LedgerError, match="bug in xgb_dp"):
        events_for(Layout((block,), shift), 1.0, 1e-6)


@pytest.mark.parametrize("power", [1.0, 1.3, 2.0])
def test_deviances_are_those_of_the_page(power):
    rng = np.random.default_rng(1)
    y, mean = rng.gamma(1.0, 2.0, 500) + 1e-3, rng.gamma(2.0, 1.0, 500) + 1e-3
    loss = Deviance(power)
    exact = metrics.mean_tweedie_deviance(y, mean, power=power)
    assert float(loss(y, mean).mean()) == pytest.approx(exact, rel=1e-9)
    # What predictions change of it is linear in the label.
    other = mean[::-1].copy()
    moved = (loss.slope(other) - loss.slope(mean)) * y + loss.offset(mean) - loss.offset(other)
    np.testing.assert_allclose(loss(y, mean) - loss(y, other), moved, rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("known")
def test_exposures_of_rows():
    """A model that was trained with exposures is judged with them; others refuse margins."""
    X, _ = data("counts", 8000)
    rng = np.random.default_rng(1)
    exposure = rng.uniform(0.1, 1.0, len(X))
    y = rng.poisson(exposure * np.exp(0.6 * X[:, 0]))
    d = xgb.DMatrix(X, y, base_margin=np.log(exposure))
    params = {"tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": 1e-6, "nthread": 1,
              "objective": "count:poisson", "dp_target_bounds": (0, 12)}  # fmt: skip
    bounds = {"dp_base_margin": True, "dp_exposure_bounds": (0.1, 1.0)}
    with fixed_noise(1):
        model = xgb.train(params | bounds, d, 20)
    report = xgb_dp.evaluate(model, d, epsilon=4.0, delta=1e-6)
    p = model.predict(d)
    exact = metrics.mean_poisson_deviance(y, p)
    assert float(report.deviance) == pytest.approx(exact, abs=4.5 * report.deviance.noise + 0.01)
    exact = gini_of(y, p / exposure, exposure)
    assert abs(exact - gini_of(y, p)) > 0.08 > 2.0 * report.gini.noise
    assert abs(float(report.gini) - exact) < 4.5 * report.gini.noise + 0.01
    for margin in (np.full(len(X), np.nan), np.where(y > 3, -np.inf, 0.0), np.zeros((len(X), 2))):
        wrong = xgb.DMatrix(X, y, base_margin=margin)
        refused(xgb_dp.RowDomainError, "A row .* `base_margin`", model, wrong)
    for bare in ((X, y), xgb.DMatrix(X, y)):
        refused(xgb_dp.RowDomainError, "A row has no `base_margin`", model, bare)
    other = xgb.train(params, xgb.DMatrix(X, y), 3)
    refused(xgb_dp.PrivacyRefusal, "base_margin", other, d)
    refused(xgb_dp.PrivacyParameterError, "target_bounds",
            xgb.train({"objective": "count:poisson"}, xgb.DMatrix(X, y), 2), (X, y),
            error_bound=1.0)  # fmt: skip


@pytest.fixture(scope="module")
def policies() -> tuple[Any, ...]:
    """Half of the customers are new and have more claims a year, but few in their short time."""
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(24_000, 2)).astype(np.float32), rng.random(24_000) < 0.5
    X[:, 1] = new
    exposure = np.where(new, rng.uniform(0.2, 0.6, len(X)), rng.uniform(2.0, 4.0, len(X)))
    y = rng.poisson(exposure * np.exp(0.5 * X[:, 0] + new - 1.5)).clip(0, 12).astype(float)
    with fixed_noise(1):
        model = xgb.train(
            {"tree_method": "dp_hist", "dp_epsilon": 8.0, "dp_delta": 1e-6, "nthread": 1,
             "objective": "count:poisson", "dp_target_bounds": (0, 12), "dp_base_margin": True,
             "dp_exposure_bounds": (0.2, 4.0)},
            xgb.DMatrix(X[:8000], y[:8000], base_margin=np.log(exposure[:8000])), 20,
        )  # fmt: skip
    held = X[8000:], y[8000:], exposure[8000:]
    p = model.predict(xgb.DMatrix(held[0], base_margin=np.log(held[2]))).astype(np.float64)
    return model, *held, p


def rates_of(y: Any, p: Any, exposure: Any) -> dict[str, float]:
    rate, constant = p / exposure, exposure * y.sum() / exposure.sum()
    order = np.argsort(-rate, kind="stable")
    top = order[np.cumsum(exposure[order]) <= 0.3 * exposure.sum()]
    loss = metrics.mean_poisson_deviance
    return {
        "gini": gini_of(y, rate, exposure), "mean_ratio": p.mean() / y.mean(),
        "lift": y[top].sum() / exposure[top].sum() * exposure.sum() / y.sum(),
        "deviance_saved": loss(y, constant) - loss(y, p),
    }  # fmt: skip


@pytest.mark.usefixtures("quiet")
def test_counts_are_ranked_by_rate_without_noise(policies):
    model, X, y, exposure, p = policies
    d = xgb.DMatrix(X, y, base_margin=np.log(exposure))
    report = xgb_dp.evaluate(model, d, epsilon=10.0, delta=1e-3, by={1: [0, 1]})
    exact = rates_of(y, p, exposure)
    assert gini_of(y, p) - exact["gini"] > 0.04  # by count, old customers lead
    for name, value in exact.items():
        figure = report.lift(0.3) if name == "lift" else getattr(report, name)
        assert float(figure) == pytest.approx(value, rel=0.02, abs=4e-3), name
    order, at = np.argsort(p / exposure, kind="stable"), 0.0
    whole = np.cumsum(exposure[order])
    points = report.calibration_curve(5)
    for mean, label, total in points:
        inside = order[(whole > at) & (whole <= at + total)]
        at += total
        assert mean == pytest.approx(p[inside].sum() / exposure[inside].sum(), rel=0.03)
        assert float(label) == pytest.approx(y[inside].sum() / exposure[inside].sum(), rel=0.03)
    assert at == pytest.approx(exposure.sum(), rel=1e-3)


@pytest.mark.usefixtures("known")
def test_intervals_of_rates_cover(policies):
    model, _, y, exposure, p = policies
    plan = plan_evaluation((read_evaluated_model(model),))
    layout, exact = Layout(plan.blocks), rates_of(y, p, exposure)
    hits, rng, width = dict.fromkeys(exact, 0), np.random.default_rng(2), 0.0
    for _ in range(60):
        at = rng.integers(0, len(y), 4000)
        cells = plan.cells(Rows(p[at], y[at], exposures=exposure[at]))
        view, _ = plan.views(release(layout, events_for(layout, 2.0, 1e-6), cells), 0.95)
        for name, value in exact.items():
            figure = view.lift(0.3) if name == "lift" else getattr(view, name)
            hits[name] += figure.low <= value <= figure.high
        width += (view.mean_ratio.high - view.mean_ratio.low) / 60
    assert min(hits.values()) >= 50, hits  # 57 are due
    assert width < 0.4, width


def test_sensitivity_of_rates_is_attained(policies):
    """By a row with the largest label and exposure; exposures beyond the bounds count no more."""
    plan = plan_evaluation((read_evaluated_model(policies[0]),))
    stated, most = Layout(plan.blocks).sensitivity2, np.array([12.0])
    for exposure in (0.0, 0.2, 3.0, 4.0, 1e9, np.inf):
        for prediction in (1e-9, 1.0, 12.0, np.inf):
            row = Rows(np.array([prediction]), most, exposures=np.array([exposure]))
            assert moved(plan, plan.cells(row), 1) <= stated
    order = [(m.astype(np.int64) ** 2).sum(axis=0) for m in plan.means.order_matrices()]
    ends = plan.means.order_cells(Rows(np.array([8.0]), most, exposures=np.array([5.0])))
    assert [norms[cell[0]] for norms, cell in zip(order, ends, strict=True)] == pytest.approx(
        [norms.max() for norms in order], rel=1e-3
    )


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_rows(judges, n):
    for name, (model, X, y, _) in judges.items():
        bounds = BOUNDS.get(name, (-5, 5))
        report = xgb_dp.evaluate(model, (X[:n], y[:n]), target_bounds=bounds, **TARGET)
        assert all(np.isfinite(f.value) for f in report.figures().values())
