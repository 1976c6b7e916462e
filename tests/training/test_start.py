"""Trees that start from what each column says, and what is refused there."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from scipy import sparse

import xgb_dp
from tests.conftest import private
from tests.reference.comparison import LOGISTIC
from xgb_dp.errors import LedgerError, PrivacyParameterError
from xgb_dp.mechanisms.column_sums import PRESENT
from xgb_dp.mechanisms.mechanism import Noise
from xgb_dp.record.ledger import read_ledger
from xgb_dp.record.ledger_model import Ledger
from xgb_dp.training.start import ColumnEffects, booster_with, centre_of, trees_of

from ..models import trees

WIDTH, N = 60, 2500


def cells(n: int = N, width: int = WIDTH, seed: int = 1) -> sparse.csr_matrix:
    """Cells, of which some are below 0, and some stored zeros."""
    rng = np.random.default_rng(seed)
    values = rng.choice([1.0, 2.0, -1.0, PRESENT], (n, width), p=[0.6, 0.2, 0.1, 0.1])
    rows = sparse.csr_matrix(np.where(rng.random((n, width)) < 0.1, values, 0.0), dtype=np.float32)
    rows.data[:5] = 0.0
    return rows


def table(n: int = N) -> xgb.DMatrix:
    x = cells(n)
    odds = 2.0 * ((x[:, :10] > 0).sum(axis=1) - (x[:, 10:20] > 0).sum(axis=1))
    y = np.random.default_rng(2).random(n) < 1 / (1 + np.exp(-np.asarray(odds).ravel()))
    return xgb.DMatrix(x, y.astype(np.float32))


def private_params(**more: Any) -> dict[str, Any]:
    usual = private(objective=LOGISTIC, dp_epsilon=4.0, dp_delta=1e-5, nthread=1)
    return usual | {"dp_start": "columns"} | more


def effects(width: int = WIDTH, seed: int = 3) -> ColumnEffects:
    rng = np.random.default_rng(seed)
    moves, rates = rng.normal(size=width), rng.random(width)
    return ColumnEffects(moves, rates, (0, 2), 0.3, 1000.0, centre_of(moves, rates, 0.3))


def grown(columns: ColumnEffects) -> xgb.Booster:
    params = {"base_score": 0.5, "objective": LOGISTIC}
    d = xgb.DMatrix(np.zeros((1, len(columns.effects))))
    empty = xgb.Booster(params, [d])
    return booster_with(trees_of(columns), empty, params, [])


@pytest.mark.parametrize("width", [1, 8, 60])
def test_trees_add_up_the_effects_of_the_cells_above_0(width):
    columns, x = effects(width), cells(width=width)
    model = grown(columns)
    assert model.num_boosted_rounds() == -(-width // 8)
    expected = np.asarray((x > 0).astype(float) @ columns.effects)
    for data in (x, np.nan_to_num(x.toarray())):
        margin = model.predict(xgb.DMatrix(data), output_margin=True)
        assert np.allclose(margin, expected, atol=1e-4)
    contributions = model.predict(xgb.DMatrix(x), pred_contribs=True)
    assert np.allclose(contributions.sum(axis=1), expected, atol=1e-3)


def test_covers_are_those_of_the_rates_and_add_up_in_32_bits():
    [tree] = trees_of(effects(8))
    covers = np.array(tree["sum_hessian"], np.float32)
    inner = np.arange(255)
    assert (covers[2 * inner + 1] + covers[2 * inner + 2] == covers[inner]).all()
    assert covers[0] == pytest.approx(1000.0 * 0.3 * 0.7, rel=0.01)
    assert covers[2] / covers[0] == pytest.approx(effects(8).rates[tree["split_indices"][0]], 0.05)
    assert min(tree["loss_changes"]) >= 0.0


def test_no_trees_where_no_column_says_anything():
    silent = effects()
    assert trees_of(ColumnEffects(0 * silent.effects, silent.rates, (0,), 0.5, 0.0, 0.0)) == []


def test_at_most_1024_columns_have_trees():
    assert len(trees_of(effects(3000))) == 128


@pytest.mark.parametrize("objective", [LOGISTIC, "binary:logitraw"])
def test_a_start_from_columns(objective):
    d = table()
    model = xgb.train(private_params(objective=objective, dp_features_per_tree=20), d, 5)
    training = read_ledger(model).trainings[0]
    assert training.start is not None
    assert training.start.released
    assert training.rounds == 5
    assert model.num_boosted_rounds() == training.start.rounds + 5
    assert len(training.start.trees) == training.start.rounds <= 8
    [columns] = [e for e in training.events if e.release == "columns"]
    assert columns.coordinates == WIDTH
    assert xgb_dp.privacy_report(model).epsilon <= 4.0
    fresh = model.predict(xgb.DMatrix(cells()), output_margin=True)
    assert (model.predict(d, output_margin=True) == fresh).all()
    assert np.mean((fresh > 0) == d.get_label()) > 0.7
    # The other trees take offered columns alone, 20 at most.
    used = {i for tree in trees(model)[training.start.rounds :] for i in tree["split_indices"]}
    assert 1 < len(used) <= 20
    text = " ".join(str(xgb_dp.privacy_report(model)).split())
    assert f"The first {training.start.rounds} trees are computed from the noisy sums" in text
    assert "determined the 20 columns available to the other trees" in text
    assert "public model" not in text


def test_saved_models_keep_their_start(tmp_path):
    model = xgb.train(private_params(), table(), 2)
    model.save_model(path := tmp_path / "model.json")
    verified = xgb_dp.verify(str(path))
    assert verified.verdict == "passed"
    assert "trees come from released sums" in str(verified)


def test_a_start_is_continued_as_any_model():
    d = table()
    model = xgb.train(private_params(), d, 2)
    with pytest.raises(PrivacyParameterError, match="released intercept"):
        xgb.train(private_params(), d, 2, xgb_model=model)
    more = xgb.train(private_params(dp_start="intercept"), d, 2, xgb_model=model)
    assert more.num_boosted_rounds() == model.num_boosted_rounds() + 2
    assert len(read_ledger(more).trainings) == 2


def test_public_sets_are_scored_from_the_start_on():
    scores: dict[str, Any] = {}
    public = xgb.DMatrix(cells(seed=9), np.arange(N) % 2)
    config = private_params(dp_public_evals=True, eval_metric=["logloss", "auc"])
    model = xgb.train(config, table(), 3, evals=[(public, "public")], evals_result=scores)
    p, y = model.predict(public), public.get_label()
    assert len(scores["public"]["auc"]) == 3
    loss = -np.mean(np.log(np.where(y == 1, p, 1 - p)))
    assert scores["public"]["logloss"][-1] == pytest.approx(loss, abs=1e-4)


def test_without_noise_the_start_is_that_of_the_rows():
    """The oracle: effects of the exact sums, counted here."""
    d = table()
    model = xgb.train(
        private_params(dp_epsilon=float("inf"), dp_delta=None, dp_max_weight=1.0), d, 1
    )
    start = read_ledger(model).trainings[0].start
    assert start is not None
    x, y = (cells() > 0).toarray(), d.get_label()
    weights = x / np.sqrt(np.maximum(x.sum(axis=1, keepdims=True), 1))
    sums = np.rint(np.stack([weights[y == 0].sum(axis=0), weights[y == 1].sum(axis=0)]) * 2**20)

    noise = dict.fromkeys(("intercept", "columns"), Noise(shift=20))

    class Settings(dict[str, Any]):
        labels, exposures = 1, None

    given: Any = (Settings(dp_public_num_rows=None, dp_features_per_tree=WIDTH), noise)
    first = [round((2 * y.mean() - 1) * N * 2**20), N << 20]
    columns = ColumnEffects.of(*given, first, sums.astype(int).ravel().tolist())
    margin = model.predict(d, output_margin=True, iteration_range=(0, start.rounds))
    assert np.allclose(margin, columns.centre + x @ columns.effects, atol=0.02)


def test_columns_with_cuts_of_their_own_are_kept():
    """Candidates are released for as many columns as trees are offered, or fewer private ones."""
    cuts = {i: [0.5] for i in range(WIDTH - 3)}
    model = xgb.train(private_params(dp_feature_cuts=cuts, dp_features_per_tree=9), table(), 2)
    [event] = [e for e in read_ledger(model).events if e.release == "candidates"]
    assert event.coordinates % 3 == 0
    full = xgb.train(private_params(dp_features_per_tree=9), table(), 2)
    [nine] = [e for e in read_ledger(full).events if e.release == "candidates"]
    assert nine.coordinates == 3 * event.coordinates


def test_shares_of_columns_are_the_users():
    model = xgb.train(private_params(dp_budget_shares={"columns": 0.2}), table(300), 2)
    shares = read_ledger(model).trainings[0].hyperparameters["budget_shares"]
    assert shares["columns"] == 0.2
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("change", ["no event", "no mark", "wrong mark"])
def test_a_start_that_nothing_paid_for_is_no_start(change):
    record = read_ledger(xgb.train(private_params(), table(300), 2)).to_json()
    [training] = record["trainings"]
    if change == "no event":
        training["events"] = [e for e in training["events"] if e["release"] != "columns"]
        training["public"]["hyperparameters"]["budget_shares"].pop("columns")
    elif change == "no mark":
        training["start"].pop("released")
        assert Ledger.from_json(record).start is not None
        return
    else:
        training["start"]["released"] = False
    with pytest.raises(LedgerError):
        Ledger.from_json(record)
