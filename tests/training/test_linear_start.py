"""Trees that start from a linear model of ranks and categories."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.metrics import log_loss, roc_auc_score

import xgb_dp
from tests.conftest import private
from tests.reference.comparison import LOGISTIC
from xgb_dp.engine.model_writing import tree_of_column
from xgb_dp.errors import LedgerError
from xgb_dp.record.form import Ledger
from xgb_dp.record.ledger import read_ledger
from xgb_dp.releases.products import positions, products_of, scored
from xgb_dp.request.schema import read_schema
from xgb_dp.training.column_start import as_log_odds, booster_with
from xgb_dp.training.linear_start import Column, _keys, shrunk_ridge
from xgb_dp.training.prepare import checked

N, COLUMNS = 3000, 3
CATEGORIES = ["red", "green", "blue"]
POSITIONS = 1 + COLUMNS + len(CATEGORIES)


def table(n: int = N, seed: int = 1) -> tuple[pd.DataFrame, np.ndarray]:
    """Three columns of numbers, some missing, and one of categories."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(np.exp(rng.normal(size=(n, COLUMNS))).astype(np.float32), columns=list("abc"))
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    X["colour"] = pd.Categorical(rng.choice(CATEGORIES, n), CATEGORIES)
    odds = 1.5 * np.log(X["a"]) - np.log(X["c"]) + (X["colour"] == "blue")
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(np.float32)


def matrix(X: pd.DataFrame, y: np.ndarray | None = None) -> xgb.DMatrix:
    return xgb.DMatrix(X, y, enable_categorical=True, nthread=1)


def asked(**more: Any) -> dict[str, Any]:
    return private(
        objective=LOGISTIC, dp_start="linear", dp_categories={"colour": CATEGORIES}, **more
    )


def test_a_linear_start():
    X, y = table()
    model = xgb.train(asked(dp_epsilon=4.0), matrix(X, y), 5)
    training = read_ledger(model).trainings[0]
    assert training.start is not None
    assert training.start.released
    assert 2 <= training.start.rounds <= COLUMNS + 1
    assert model.num_boosted_rounds() == training.start.rounds + 5
    names = [e.release for e in training.events]
    assert names[:3] == ["intercept", "candidates", "products"]
    assert sorted(names[3:]) == ["leaves", "splits"]
    assert training.events[2].coordinates >= products_of(512) > products_of(POSITIONS)
    assert xgb_dp.privacy_report(model).epsilon <= 4.0
    text = " ".join(str(xgb_dp.privacy_report(model)).split())
    assert f"The first {training.start.rounds} trees follow from the sums" in text
    first = model.predict(matrix(X), iteration_range=(0, training.start.rounds))
    assert np.mean((first > 0.5) == y) > 0.7


def test_open_rounds_and_persons_start_linearly():
    X, y = table()
    ids = np.arange(N) // 2
    for more in ({}, {"dp_privacy_id": ids}):
        model = xgb.train(asked(dp_epsilon=2.0, **more), matrix(X, y))
        [training] = read_ledger(model).trainings
        assert training.start is not None
        assert training.start.rounds >= 2
        assert xgb_dp.privacy_report(model).epsilon <= 2.0


@pytest.mark.parametrize("split", ["histogram", "partial"])
@pytest.mark.parametrize("ids", [None, np.arange(N) // 2])
def test_noisy_histograms_follow_a_linear_start(split, ids):
    """Cells of the noise are counted before the candidates become cuts."""
    X, y = table()
    model = xgb.train(asked(dp_split=split, dp_privacy_id=ids, dp_epsilon=4.0), matrix(X, y), 2)
    assert xgb_dp.privacy_report(model).epsilon <= 4.0


def test_saved_models_keep_their_start(tmp_path):
    X, y = table()
    model = xgb.train(asked(), matrix(X, y), 2)
    model.save_model(path := tmp_path / "model.json")
    assert xgb_dp.verify(str(path)).verdict == "passed"
    more = xgb.train(asked() | {"dp_start": "intercept"}, matrix(X, y), 2, xgb_model=model)
    assert len(read_ledger(more).trainings) == 2


def test_without_noise_the_start_is_that_of_the_rows():
    """The oracle: ranks of the bins of the model's own splits, and a ridge on the exact sums."""
    X, y = table()
    X = X[["a", "c"]]
    params = asked(dp_epsilon=float("inf"), dp_delta=None) | {"dp_categories": None}
    model = xgb.train(params, matrix(X, y), 1)
    trees = json.loads(model.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    scores = []
    for name, tree in zip(X, trees, strict=False):
        inner = np.array(tree["left_children"]) >= 0
        cuts = np.sort(np.array(tree["split_conditions"], np.float32)[inner])
        bins = np.searchsorted(cuts, X[name].to_numpy(), side="right")
        shares = np.bincount(bins, minlength=len(cuts) + 1) / N
        ranks = 2 * np.cumsum(shares) - shares - 1
        scores.append((ranks - ranks @ shares)[bins])
    z = np.column_stack([np.ones(N), *scores])
    bound = np.sqrt(1 + 1.15 * (z[:, 1:] ** 2).mean(axis=0).sum())
    shrunk = np.minimum(bound / np.linalg.norm(z, axis=1), 1.0)
    z *= shrunk[:, None] / bound
    p = y.mean()
    sign = 2 * (y - p) * shrunk  # the label of a row, less the mean, shrinks as its scores
    w = np.linalg.solve(z.T @ z + np.eye(3), z.T @ sign)
    w *= min(w @ z.T @ sign / (w @ z.T @ z @ w), 1.5) / bound / (2 * p * (1 - p))
    effects = as_log_odds(np.column_stack(scores) * w[1:], p)
    margin = np.log(p / (1 - p)) + w[0] + effects.sum(axis=1)
    start = model.predict(matrix(X), iteration_range=(0, 2), output_margin=True)
    assert np.abs(start - margin).max() < 0.02


@pytest.mark.parametrize("n", [1, 2, 5, 64])
def test_trees_add_up_the_effects_of_bins(n):
    rng = np.random.default_rng(n)
    cuts = tuple(np.sort(rng.normal(size=n - 1)).astype(np.float32).tolist())
    x = np.concatenate([rng.normal(size=200), cuts, [np.nan]]).astype(np.float32)
    leaves = rng.normal(size=n)
    tree = tree_of_column(0, 2, 1, leaves, np.arange(1.0, n + 1), n // 2, cuts)
    d = xgb.DMatrix(np.column_stack([np.zeros(len(x)), x]))
    params = {"base_score": 0.5, "objective": LOGISTIC}
    model = booster_with([tree], xgb.Booster(params, [d]), params, [])
    bins = np.where(np.isnan(x), n // 2, np.searchsorted(cuts, x, side="right"))
    expected = leaves[bins]
    assert np.allclose(model.predict(d, output_margin=True), expected, atol=1e-6)
    contributions = model.predict(d, pred_contribs=True)
    assert np.allclose(contributions.sum(axis=1), expected, atol=1e-5)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_trees_add_up_the_effects_of_categories(n):
    """Covers are the counted rows; what is not counted has a missing cell."""
    rng = np.random.default_rng(n)
    effects, counts = rng.normal(size=n), rng.uniform(1.0, 100.0, n)
    tree = Column(0, None, np.ones(1), np.ones(n)).tree(0, 1, effects, counts, 1000.0)
    codes = pd.Series([*range(n), None], dtype=pd.CategoricalDtype(range(n)))
    d = matrix(pd.DataFrame({"c": codes}))
    params = {"base_score": 0.5, "objective": LOGISTIC}
    model = booster_with([tree], xgb.Booster(params, [d]), params, [])
    missing = np.argmin(np.abs(effects))
    expected = [*effects, effects[missing]]
    assert np.allclose(model.predict(d, output_margin=True), expected, atol=1e-6)
    counts[missing] = 1000.0 - counts.sum() + counts[missing]
    mean = model.predict(d, pred_contribs=True)[:, -1]
    assert np.allclose(mean, counts @ effects / 1000.0, atol=1e-5)


def rare(negatives: int, n: int = 30_000) -> tuple[pd.DataFrame, np.ndarray]:
    """Skewed columns and one positive for so many negatives."""
    rng = np.random.default_rng(negatives)
    X = pd.DataFrame(rng.normal(size=(n, 8)).astype(np.float32) + rng.normal(size=(n, 1)))
    odds = 1.5 * X[0] + X[1] + X[2]
    ones = np.argsort(odds + rng.logistic(size=n))[-n // negatives :]
    return X, np.isin(np.arange(n), ones).astype(np.float32)


@pytest.mark.parametrize("negatives", [20, 100, 300])
def test_a_start_ranks_a_rare_class_first(negatives):
    """Rows with large scores are shrunk, which must not look like a low share of the class."""
    X, y = rare(negatives)
    params = asked(dp_epsilon=float("inf"), dp_delta=None) | {"dp_categories": None}
    model = xgb.train(params, matrix(X, y), 1)
    first = read_ledger(model).trainings[0].start
    assert first is not None
    start = model.predict(matrix(X), iteration_range=(0, first.rounds))
    best = X[0] * 1.5 + X[1] + X[2]
    assert roc_auc_score(y, start) > roc_auc_score(y, best) - 0.03
    assert log_loss(y, start) < log_loss(y, np.full(len(y), y.mean()))


def test_few_rows_of_a_class_make_no_start():
    """The products are drawn and charged all the same."""
    X, y = rare(1000)
    model = xgb.train(asked(dp_epsilon=0.5) | {"dp_categories": None}, matrix(X, y), 2)
    [training] = read_ledger(model).trainings
    assert training.start is None
    assert model.num_boosted_rounds() == 2
    assert "products" in [e.release for e in training.events]
    assert xgb_dp.privacy_report(model).epsilon <= 0.5


def test_covers_are_released_counts():
    """Of bins and of categories, also of rare ones, and of what is missing."""
    X, y = table(20_000)
    X["colour"] = pd.Categorical.from_codes(np.where(np.arange(len(X)) % 50, 0, 2), CATEGORIES)
    model = xgb.train(asked(dp_epsilon=8.0), matrix(X, y), 1)
    first = read_ledger(model).trainings[0].start
    assert first is not None
    start = model[: first.rounds]
    assert np.allclose(
        start.predict(matrix(X), pred_contribs=True)[:, :-1].mean(axis=0), 0.0, atol=0.02
    )


def test_columns_of_few_categories_come_first():
    """While there is room for a score of each category of theirs."""
    levels = {"many": 90, "some": 50, "few": 40}
    X = pd.DataFrame({"x": np.arange(200.0)})
    for name, n in levels.items():
        X[name] = pd.Categorical(np.arange(200) % n, range(n))
    given = {"dp_categories": {name: list(range(n)) for name, n in levels.items()}}
    settings = checked(asked() | given, read_schema(matrix(X, np.arange(200) % 2)), 5)
    assert (scored(settings), positions(settings)) == ([0, 2, 3], 92)
    assert xgb.train(asked() | given, matrix(X, np.arange(200) % 2), 2).num_boosted_rounds() > 1


def test_ranks_are_those_of_the_counted_cells():
    cuts = [-1.0, 0.0, 2.0]
    ends = [0.0, *_keys(np.array(cuts, np.float32)), 2.0**32]
    leaves = list(zip(ends[:-1], ends[1:], (10, 30, -5, 60), strict=True))
    column = Column.of_numbers(0, cuts, leaves)
    assert column.counts == pytest.approx([10, 30, 0, 60], abs=1e-6)
    assert column.ranks == pytest.approx([-0.9, -0.5, -0.2, 0.4])
    asked = column.to_request(100.0)
    assert asked["scores"] == pytest.approx([-90, -50, -20, 40, -20], abs=1)
    nothing = Column.of_numbers(0, cuts, [(a, b, -1.0) for a, b, _ in leaves])
    assert nothing.counts / nothing.counts.sum() == pytest.approx([0.25] * 4)


def test_noise_alone_makes_no_start_as_a_rule():
    rng = np.random.default_rng(5)
    n, sizes = 9, []
    for _ in range(200):
        gram = rng.normal(0.0, 50.0, (n, n))
        gram = np.triu(gram, 1) + np.triu(gram, 1).T + 1000.0 * np.eye(n)
        weights = shrunk_ridge(gram, rng.normal(0.0, 70.0, n), 70.0)
        sizes.append(float(np.linalg.norm(weights)))
    assert np.count_nonzero(sizes) < 10
    assert not shrunk_ridge(np.zeros((n, n)), np.zeros(n), 1.0).any()


def test_a_ledger_without_products_has_no_start():
    X, y = table()
    record = read_ledger(xgb.train(asked(), matrix(X, y), 2)).to_json()
    record["trainings"][0]["events"] = [
        e for e in record["trainings"][0]["events"] if e["release"] != "products"
    ]
    with pytest.raises(LedgerError):
        Ledger.from_json(record)
