"""Figures of clipped numbers say so, and the report counts what lies beyond the bounds."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.evaluation.tasks import stock
from xgb_dp.evaluation.figures import Limits, outside
from xgb_dp.evaluation.measure import plan_evaluation
from xgb_dp.evaluation.rows import Rows, events_for, read_evaluated_model
from xgb_dp.noisy_sums import Block, Layout, release

CLEAR = {"epsilon": 10.0, "delta": 1e-3}
TIMES = 100
LEAST = 87  # where 95% cover, fewer have a probability below 1e-3


def incomes(n: int = 40_000) -> tuple[np.ndarray, np.ndarray]:
    """Log-normal incomes, of which .2% are outliers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = np.exp(10.5 + 0.5 * X[:, 0] + 0.5 * rng.normal(size=n))
    return X, np.where(rng.random(n) < 0.002, 40.0 * y, y)


@pytest.fixture(scope="module")
def judged_incomes() -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    X, y = incomes()
    model = stock(X[:4000], np.minimum(y[:4000], 2e5), objective="reg:squarederror")
    return model, X[4000:], y[4000:], model.predict(xgb.DMatrix(X[4000:])).astype(np.float64)


@pytest.mark.usefixtures("quiet")
def test_outliers_beyond_the_bounds_are_counted_and_named(judged_incomes):
    """The true error is several times the clipped one, and no interval is said to cover it."""
    model, X, y, p = judged_incomes
    report = xgb_dp.evaluate(model, (X, y), target_bounds=(0, 2e5), **CLEAR)
    figures = report.figures()
    inside = np.minimum(y, 2e5)
    clipped, true = (float(np.sqrt(np.mean((p - v) ** 2))) for v in (inside, y))
    assert true > 3.0 * clipped
    assert float(figures["clipped rmse"]) == pytest.approx(clipped, rel=5e-3)
    share = float(np.mean(y > 2e5))
    assert float(figures["labels beyond"]) == pytest.approx(share, abs=1e-4)
    assert figures["labels beyond"].low <= share <= figures["labels beyond"].high
    assert float(figures["errors beyond"]) == pytest.approx(
        np.mean(np.abs(p - inside) > 2e5), abs=1e-4
    )
    plain = {n for n in figures if not n.startswith("clipped ")}
    assert plain == {"rows", "labels beyond", "errors beyond"}
    statement = report.statement()
    assert "does not account for errors beyond the bounds" in statement
    clipped = "are clipped to these bounds: about"
    assert f"Labels below 0 or above 200000 {clipped} {share:.2%} (" in statement
    assert f"Errors below -200000 or above 200000 {clipped} 0." in statement
    for text in (report.summary(), report.to_json(), str(report.to_frame())):
        assert "labels beyond" in text
        assert "clipped rmse" in text


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_every_row_attains_the_norm_of_the_block(k, share):
    limits = Limits({name: name for name in "abc"[:k]})
    [matrix] = limits.matrices(share)
    block = Block(matrix)
    norms = (matrix.astype(object) ** 2).sum(axis=0)
    assert set(norms) == {block.norm2}
    rng = np.random.default_rng(0)
    flags = {name: rng.random(500) < 0.3 for name in limits.strings}
    [cells] = limits.cells(flags)
    whole = block.sums(cells)[0]
    for row in range(20):
        moved = whole - block.sums(np.delete(cells, row))[0]
        assert int((moved.astype(object) ** 2).sum()) == block.norm2
    read = limits.read([whole.astype(float)], share, 0.0, (500.0, 0.0), 0.95)
    for name, figure in read.shares.items():
        assert float(figure) == pytest.approx(flags[name].mean())


def test_the_block_has_its_share_of_the_norm_of_a_row(judged_incomes):
    model, *_ = judged_incomes
    for bounds in ((0.0, 2e5), (-1.0, 1e9)):
        blocks = plan_evaluation((read_evaluated_model(model),), None, None, bounds).blocks
        whole = sum(block.norm2 for block in blocks)
        assert blocks[-1].norm2 / whole == pytest.approx(0.05, rel=0.02)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(("share", "epsilon"), [(0.001, 8.0), (0.005, 0.5), (0.05, 2.0)])
def test_intervals_cover_what_lies_beyond_and_clipped_figures(judged_incomes, share, epsilon):
    model, _, y, p = judged_incomes
    bounds = (0.0, float(np.quantile(y, 1.0 - share)))
    inside = np.clip(y, *bounds)
    error = np.clip(p - inside, -bounds[1], bounds[1])
    truth = {
        "labels": float(outside(y, *bounds).mean()),
        "errors": float((np.abs(p - inside) > bounds[1]).mean()),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.abs(error).mean()),
        "r2": float(1.0 - np.mean(error**2) / inside.var()),
    }
    plan = plan_evaluation((read_evaluated_model(model),), None, None, bounds)
    layout = Layout(plan.blocks)
    events = events_for(layout, epsilon, 1e-6)
    hits, rng = dict.fromkeys(truth, 0), np.random.default_rng(1)
    for _ in range(TIMES):
        at = rng.integers(0, len(y), 2000)
        overall, _ = plan.views(release(layout, events, plan.cells(Rows(p[at], y[at])), None), 0.95)
        for name, exact in truth.items():
            figure = overall.beyond.shares.get(name) or getattr(overall, name)
            hits[name] += figure.low <= exact <= figure.high
    assert min(hits.values()) >= LEAST, hits


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("classes", [2, 3])
def test_log_losses_that_are_clipped_are_named(classes):
    """Of a model that is sure and wrong: its true loss is larger than any that counts."""
    X = np.zeros((400, 1), dtype=np.float32)
    X[200:] = 1.0
    y = X[:, 0].astype(int)
    objective = "binary:logistic" if classes == 2 else "multi:softprob"
    params = {} if classes == 2 else {"num_class": classes}
    model = stock(X, y, objective=objective, eta=1.0, reg_lambda=0.0, min_child_weight=0, **params)
    wrong = np.where(np.arange(400) % 4 == 0, 1 - y, y)
    odds = model.predict(xgb.DMatrix(X))
    odds = np.stack([1.0 - odds, odds], axis=1) if classes == 2 else odds
    true = float(-np.log(odds[np.arange(400), wrong].astype(float) + 1e-30).mean())
    report = xgb_dp.evaluate(model, (X, wrong), **CLEAR)
    assert float(report.log_loss) <= 8.0 / 4 + 0.1 < true
    assert "interval of `log_loss` does not account for larger losses" in report.statement()


def beyond_of(report: Any) -> dict[str, float]:
    return {n: float(f) for n, f in report.figures().items() if n.endswith(" beyond")}


@pytest.mark.usefixtures("quiet")
def test_counts_and_amounts_beyond_the_bounds():
    """Deviances beyond their limit are counted too, of labels as they are clipped."""
    X, _ = incomes(4000)
    rng = np.random.default_rng(1)
    mean = np.exp(X[:, 0].astype(float))
    for objective, y, bounds in (
        ("count:poisson", rng.poisson(mean).astype(float), (0.0, 3.0)),
        ("reg:gamma", rng.gamma(0.5, 2 * mean) + 1e-3, (0.01, 4.0)),
        ("reg:tweedie", rng.poisson(mean) * rng.gamma(2.0, size=len(X)), (0.0, 6.0)),
    ):
        model = stock(X, np.maximum(y, 1e-3), objective=objective)
        plan: Any = plan_evaluation((read_evaluated_model(model),), None, None, bounds)
        report = xgb_dp.evaluate(model, (X, y), target_bounds=bounds, **CLEAR)
        p = model.predict(xgb.DMatrix(X)).astype(np.float64)
        inside = np.clip(y, *bounds)
        exact = {
            "labels beyond": np.mean((y < bounds[0]) | (y > bounds[1])),
            "errors beyond": np.mean(np.abs(p - inside) > bounds[1] - bounds[0]),
            "deviances beyond": np.mean(plan.means.deviance(inside, p) > plan.means.most),
        }
        assert beyond_of(report) == pytest.approx(exact, abs=1e-3), objective
        assert exact["labels beyond"] > 0.01
        clipped = {"deviance", "gini", "mean ratio", "deviance saved", "rmse"}
        assert not clipped & set(report.figures())
        assert {f"clipped {name}" for name in clipped} <= set(report.figures())
        assert "Deviances above" in report.statement()


@pytest.mark.usefixtures("quiet")
def test_times_beyond_the_bounds():
    X, _ = incomes(4000)
    rng = np.random.default_rng(2)
    time = np.exp(3.0 + X[:, 0] + rng.normal(size=len(X)))
    upper = np.where(rng.random(len(X)) < 0.3, np.inf, time)
    data = xgb.DMatrix(X, label_lower_bound=time, label_upper_bound=upper)
    model = xgb.train({"objective": "survival:aft", "max_depth": 2, "nthread": 1}, data, 5)
    report = xgb_dp.evaluate(model, data, target_bounds=(5, 60), **CLEAR)
    exact = float(np.mean((time < 5) | (time > 60)))
    assert beyond_of(report) == pytest.approx({"times beyond": exact}, abs=1e-3)
    assert set(report.figures()) == {"rows", "observed", "clipped concordance", "times beyond"}
    times = "Times below 5 or above 60 are clipped to these bounds: about"
    assert times in report.statement()


@pytest.mark.usefixtures("quiet")
def test_coverage_of_quantiles_is_that_of_labels_as_they_are():
    """Whether a label is at most a prediction beyond the bounds does not depend on the bounds."""
    X, y = incomes(6000)
    levels = [0.5, 0.9]
    model = stock(X, y, objective="reg:quantileerror", quantile_alpha=levels)
    bounds = (0.0, float(np.quantile(y, 0.8)))
    report = xgb_dp.evaluate(model, (X, y), target_bounds=bounds, **CLEAR)
    p = model.predict(xgb.DMatrix(X)).astype(np.float64)
    assert (p > bounds[1]).any()
    for level, predicted in zip(levels, p.T, strict=True):
        assert float(report.coverage(level)) == pytest.approx(np.mean(y <= predicted), abs=2e-3)
    error = np.abs(p - y[:, np.newaxis]).max(axis=1) > bounds[1]
    assert beyond_of(report) == pytest.approx({"errors beyond": error.mean()}, abs=1e-3)
    names = {n for n in report.figures() if "pinball" in n}
    assert names == {"clipped pinball loss of 0.5", "clipped pinball loss of 0.9"}


@pytest.mark.usefixtures("quiet")
def test_nothing_is_clipped_where_the_objective_has_bounds_itself():
    X, y = incomes(2000)
    shares = np.clip(y / 1e5, 0.0, 1.0)
    model = stock(X, shares, objective="reg:logistic")
    report = xgb_dp.evaluate(model, (X, shares), target_bounds=(0, 1), **CLEAR)
    assert not any("clipped" in name or "beyond" in name for name in report.figures())
    assert "clipped" not in report.statement()
    narrow = xgb_dp.evaluate(model, (X, shares), target_bounds=(0, 1), error_bound=0.1, **CLEAR)
    assert set(beyond_of(narrow)) == {"errors beyond"}
    assert "clipped rmse" in narrow.figures()


@pytest.mark.parametrize("bound", [0.1, 0.3, 1e-5, 16777217.0])
def test_labels_at_a_bound_are_not_beyond_it(bound):
    """A matrix holds them as 32-bit floats, which may lie above the number that was declared."""
    at = np.float64(np.float32(bound))
    assert not outside(np.array([at, -at]), -bound, bound).any()
    above = np.float64(np.nextafter(np.float32(bound), np.float32(np.inf)))
    assert outside(np.array([above, -above, np.nan]), -bound, bound).all()


@pytest.mark.usefixtures("quiet")
def test_shares_of_groups_and_of_persons(judged_incomes):
    model, X, y, _ = judged_incomes
    X, y = X[:6000].copy(), y[:6000]
    X[:, 2] = np.arange(6000) % 2
    report = xgb_dp.evaluate(model, (X, y), target_bounds=(0, 6e4), by={2: [0, 1]}, **CLEAR)
    for group in (0, 1):
        one = report.figures(str(group))["labels beyond"]
        assert float(one) == pytest.approx(np.mean(y[X[:, 2] == group] > 6e4), abs=2e-3)
    ids = np.repeat(np.arange(2000), 3)
    persons = xgb_dp.evaluate(model, (X, y), target_bounds=(0, 6e4), privacy_id=ids, **CLEAR)
    assert float(persons.figures()["rows"]) == pytest.approx(2000, abs=1)
    assert float(persons.figures()["labels beyond"]) == pytest.approx(np.mean(y > 6e4), abs=2e-3)
    assert "of the persons." in persons.statement()
