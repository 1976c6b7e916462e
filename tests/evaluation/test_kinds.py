"""Several classes and pairs of models, and what one row of a regression changes."""

from functools import cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

import xgb_dp
from tests.evaluation.tasks import TARGET, refused, rows, stock
from xgb_dp.evaluation.classification import MultipleClasses, PairedModels
from xgb_dp.evaluation.counts import ScoreGrid, value_cells
from xgb_dp.evaluation.figures import value_matrix
from xgb_dp.evaluation.regression import Regression
from xgb_dp.evaluation.rows import Groups, Rows, group_codes
from xgb_dp.noisy_sums import Layout, NoisySums

EXAMPLES = settings(max_examples=60, deadline=None)
ANY = st.floats(width=32)
CLEAR = {"epsilon": 10.0, "delta": 1e-3}


class Model:
    """What a plan asks of a model."""

    margins = (-3.0, 3.0)
    classes = 3
    public: ClassVar[dict[str, Any]] = {}
    objective = "reg:squarederror"
    levels = ()


def moved(plan: Any, cells: Any, n: int) -> int:
    """Squared norm of what the last row changes, of all sums."""
    out = 0
    for block, members in zip(plan.blocks, cells, strict=True):
        change = block.sums(members, None) - block.sums(members[: n - 1], None)
        out += int((change.astype(object) ** 2).sum())
    return out


@EXAMPLES
@given(
    st.lists(st.tuples(ANY, ANY, ANY, st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4)
)
def test_one_row_of_several_classes(rows):
    a, b, c, y, group = (np.array(v) for v in zip(*rows, strict=True))
    plan = MultipleClasses(Model.classes, Groups("g", ("a", "b")))
    with np.errstate(all="ignore"):
        cells = plan.cells(Rows(np.stack([a, b, c], axis=1), y, group))
    assert 0 < moved(plan, cells, len(rows)) <= Layout(plan.blocks).sensitivity2


@EXAMPLES
@given(st.lists(st.tuples(ANY, ANY, st.integers(0, 2)), min_size=1, max_size=4))
def test_one_row_of_a_regression(rows):
    prediction, y, group = (np.array(v) for v in zip(*rows, strict=True))
    plan = Regression.from_model(Model(), Groups("g", ("a", "b")), 2.0, (-1.0, 5.0))
    with np.errstate(all="ignore"):
        cells = plan.cells(Rows(prediction, y, group))
    assert 0 < moved(plan, cells, len(rows)) <= Layout(plan.blocks).sensitivity2


@cache
def second_step_of_pair(seed: int) -> tuple[PairedModels, Any]:
    """A plan, and its second step after noise alone: it takes a second, and no row decides it."""
    grid, rng = ScoreGrid.within(*Model.margins), np.random.default_rng(seed)
    plan = PairedModels((grid, grid))
    noisy = tuple(rng.normal(0.0, 5000.0, (1, len(b.matrix))) for b in plan.blocks)
    return plan, plan.plan_second_step(NoisySums(Layout(plan.blocks), noisy, 2000.0))


@EXAMPLES
@given(st.lists(st.tuples(ANY, ANY, st.integers(0, 1)), min_size=1, max_size=4))
def test_one_row_of_a_pair(rows):
    first, second, y = (np.array(v) for v in zip(*rows, strict=True))
    plan, blocks = second_step_of_pair(len(rows))
    pairs = Rows((first, second), y)
    with np.errstate(all="ignore"):
        cells = plan.cells(pairs)
    assert 0 < moved(plan, cells, len(rows)) <= Layout(plan.blocks).sensitivity2
    later = Layout(blocks)
    assert later.sensitivity2 <= plan.later.norm2 and later.coordinates == plan.later.sums
    for block, places in zip(blocks, plan.later_cells(pairs), strict=True):
        assert ((places >= 0) & (places < block.cells)).all()


def test_a_value_adds_its_moments():
    matrix = value_matrix()
    for value in (-1.0, -0.3, 0.0, 0.77, 1.0):
        column = matrix[:, value_cells(np.array([value]))[0]] / 256.0
        moments = [1, value, 2 * abs(value) - 1, 2 * value**2 - 1]
        expected = np.sqrt([0.2, 0.25, 0.15, 0.2]) * moments
        np.testing.assert_allclose(column[:4], expected, atol=0.03)
        assert float((column[4:] ** 2).sum()) == pytest.approx(0.2, rel=0.05)
    assert value_cells(np.array([np.nan, np.inf, -np.inf, 5, -5])).tolist() == [127, 127, 0, 127, 0]


@pytest.fixture(scope="module")
def classes() -> Any:
    X, _ = rows(16_000)
    latent = 2 * X[:, 0] + X[:, 1] * X[:, 2] + np.random.default_rng(1).normal(size=len(X))
    y = np.digitize(latent, [-1.5, 1.5])
    model = stock(X[:4000], y[:4000], objective="multi:softprob", num_class=3)
    return model, X[4000:], y[4000:], model.predict(xgb.DMatrix(X[4000:]))


@pytest.mark.usefixtures("quiet")
def test_several_classes_without_noise(classes):
    model, X, y, p = classes
    report = xgb_dp.evaluate(model, (X, y), **CLEAR)
    predicted = p.argmax(axis=1)
    assert float(report.accuracy) == pytest.approx(np.mean(predicted == y), abs=4e-3)
    assert float(report.log_loss) == pytest.approx(metrics.log_loss(y, p), abs=4e-3)
    assert float(report.auc) == pytest.approx(
        metrics.roc_auc_score(y, p, multi_class="ovr"), abs=4e-3
    )
    for k, view in enumerate(report.one_against_rest):
        assert float(view.auc) == pytest.approx(metrics.roc_auc_score(y == k, p[:, k]), abs=5e-3)
    confusion = [[float(f) for f in row] for row in report.confusion()]
    np.testing.assert_allclose(confusion, metrics.confusion_matrix(y, predicted), rtol=0.02, atol=1)


def test_several_classes_with_noise_and_groups(classes):
    model, X, y, _ = classes
    report = xgb_dp.evaluate(model, (X, y), by={4: [0, 1]}, **TARGET)
    assert set(report.groups) == {"0", "1", "other"}
    figures = report.groups["0"].figures()
    assert {"accuracy", "auc of 2"} <= set(figures)
    assert all(f.low <= f.value <= f.high for f in figures.values())
    refused(xgb_dp.PrivacyParameterError, "error_bound", model, (X, y), error_bound=1.0)


@pytest.mark.usefixtures("quiet")
def test_pairs_without_noise():
    X, y = rows(24_000)
    models = [stock(X[:4000], y[:4000], max_depth=depth) for depth in (3, 1)]
    X, y = X[4000:], y[4000:]
    first, second = (m.predict(xgb.DMatrix(X)) for m in models)
    report = xgb_dp.evaluate(models, (X, y), **CLEAR)
    gap = metrics.roc_auc_score(y, first) - metrics.roc_auc_score(y, second)
    assert float(report.auc_difference) == pytest.approx(gap, abs=2e-3)
    loss = metrics.log_loss(y, first) - metrics.log_loss(y, second)
    assert float(report.log_loss_difference) == pytest.approx(loss, abs=2e-3)
    # Paired: narrower than the difference of two figures of rows that have nothing to do with
    # each other.
    wide = np.hypot(*(v.auc.high - v.auc.low for v in (report.first, report.second)))
    assert report.auc_difference.high - report.auc_difference.low < 0.8 * wide
    assert "difference" in report.summary() and "auc difference" in report.to_json()


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("shift", [0.0, 0.001, -0.01])
def test_small_differences_of_the_loss_have_no_bias(shift):
    """Cells of one width would take them all for the middle of one cell, 0.016 nats away."""
    X, y = rows(6000)
    first = stock(X, y)
    second = stock(X, y, base_score=float(first.predict(xgb.DMatrix(X)).mean()) + shift)
    loss = [metrics.log_loss(y, m.predict(xgb.DMatrix(X))) for m in (first, second)]
    report = xgb_dp.evaluate([first, second], (X, y), **CLEAR)
    assert float(report.log_loss_difference) == pytest.approx(loss[0] - loss[1], abs=3e-4)
    assert report.log_loss_difference.low < loss[0] - loss[1] < report.log_loss_difference.high
    same = xgb_dp.evaluate([first, first], (X, y), **CLEAR)
    assert abs(float(same.log_loss_difference)) < 1e-5


def test_bad_pairs():
    X, y = rows(500)
    model, numbers = stock(X, y), stock(X, X[:, 0], objective="reg:squarederror")
    for models in ([model], [model] * 3, [model, numbers], []):
        with pytest.raises(xgb_dp.PrivacyParameterError, match="model"):
            xgb_dp.evaluate(models, (X, y), **TARGET)
    refused(xgb_dp.PrivacyParameterError, "by", [model, model], (X, y), by={4: [0]})


@pytest.mark.parametrize("halved", [False, True])
def test_groups_of_a_matrix_go_by_the_names_of_categories(halved):
    """One row of another category moves the codes of all, and the groups of nobody."""
    X = pd.DataFrame({"c": list("abc") * 200, "x": np.linspace(0, 1, 600)})
    y = (X["x"] > 0.5).astype(int)
    other = X.assign(c=X["c"].where(X.index != 4, "Aardvark"))
    codes = []
    for table in (X, other):
        matrix = xgb.DMatrix(table.astype({"c": "category"}), y, enable_categorical=True)
        matrix = matrix.slice(np.arange(300)) if halved else matrix
        codes.append(group_codes(Groups("c", ("a", "b", "c")), matrix, None))
    assert list(codes[0][:6]) == [0, 1, 2, 0, 1, 2] and codes[1][4] == 3
    np.testing.assert_array_equal(np.delete(codes[0], 4), np.delete(codes[1], 4))
