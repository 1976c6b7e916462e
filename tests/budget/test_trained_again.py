"""A second training of the same rows, which no book counts, says what all of them cost."""

import pickle
import re
import threading
import warnings

import numpy as np
import pytest
import xgboost as xgb
from scipy import sparse

import xgb_dp
from tests.callbacks import After, interrupt
from xgb_dp.record import privacy_warnings
from xgb_dp.record.ledger import read_ledger
from xgb_dp.request.schema import read_schema
from xgb_dp.training.run import LedgerCallback

PARAMS = {
    "tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0, "dp_delta": 1e-6,
}  # fmt: skip


def table():
    X = np.random.default_rng(0).normal(size=(300, 3))
    return X, (X[:, 0] > 0).astype(int)


def warnings_of(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", xgb_dp.PrivacyWarning)
        run()
    return [str(w.message) for w in caught if "no budget records them" in str(w.message)]


def test_the_second_and_the_fourth_say_the_total():
    data, models = xgb.DMatrix(*table()), []
    strings = [warnings_of(lambda: models.append(xgb.train(PARAMS, data, 2))) for _ in range(5)]
    assert list(map(len, strings)) == [0, 1, 0, 1, 0]
    total = float(re.search(r"about epsilon ([\d.]+)", strings[1][0])[1])
    assert total == pytest.approx(xgb_dp.privacy_report(models[:2]).epsilon, abs=0.02)
    assert "training number 4" in strings[3][0]


@pytest.mark.parametrize(
    "again",
    [
        lambda X, y: xgb.DMatrix(X.copy(), y),
        lambda X, y: xgb.DMatrix(X[100:], 1 - y[100:]),
        lambda X, y: xgb.DMatrix(X, y).slice(range(50)),
        lambda X, y: xgb.DMatrix(sparse.csr_matrix(X), y),
    ],
    ids=["copied", "other labels", "sliced", "rebuilt"],
)
def test_rows_are_known_by_their_columns(again):
    X, y = table()
    xgb.train(PARAMS, xgb.DMatrix(X, y), 2)
    (text,) = warnings_of(lambda: xgb.train(PARAMS, again(X, y), 2))
    assert "If they read the same people" in text


def test_other_columns_parts_and_booked_trainings_say_nothing(tmp_path):
    X, y = table()
    data, parts = xgb.DMatrix(X, y), xgb_dp.split(xgb.DMatrix(X, y))
    others = [xgb.DMatrix(X[:, :2], y), xgb.DMatrix(X, y, feature_names=list("abc"))]
    for rows in (data, *others, parts.train, parts.test):
        assert not warnings_of(lambda rows=rows: xgb.train(PARAMS, rows, 2))
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=5.0, delta=1e-5)
    assert not warnings_of(lambda: budget.train(PARAMS, data, 2))


def test_a_continued_model_is_one_model():
    data = xgb.DMatrix(*table())
    first = xgb.train(PARAMS, data, 2)
    assert not warnings_of(lambda: xgb.train(PARAMS, data, 2, xgb_model=first))


def test_units_that_do_not_add_up():
    data = xgb.DMatrix(*table())
    xgb.train(PARAMS, data, 2)
    (text,) = warnings_of(lambda: xgb.train({**PARAMS, "dp_group_size": 2}, data, 2))
    assert "no bound on their total cost" in text


def test_a_training_that_was_interrupted_counts():
    data = xgb.DMatrix(*table())
    with pytest.raises(KeyboardInterrupt):
        xgb.train(PARAMS, data, 2, callbacks=[After(interrupt)])
    assert len(warnings_of(lambda: xgb.train(PARAMS, data, 2))) == 1


def test_a_training_counts_from_its_first_release_on(monkeypatch):
    def stop(callback, model):
        raise KeyboardInterrupt

    data = xgb.DMatrix(*table())
    with monkeypatch.context() as patched:
        patched.setattr(LedgerCallback, "before_training", stop)
        with pytest.raises(KeyboardInterrupt):
            xgb.train(PARAMS, data, 2)
    assert len(warnings_of(lambda: xgb.train(PARAMS, data, 2))) == 1


def test_estimators_are_known_by_their_columns():
    ensemble = pytest.importorskip("sklearn.ensemble")
    X, y = table()
    one = xgb_dp.DPXGBRegressor(epsilon=1.0, delta=1e-6, target_bounds=(0, 1), n_estimators=2)
    voting = ensemble.VotingRegressor([("a", one), ("b", one)])
    (text,) = warnings_of(lambda: voting.fit(X, y))
    assert "training number 2" in text


def test_trainings_of_several_threads_are_counted(monkeypatch):
    """A thread looks at what is kept while another one adds to it."""
    record, errors = read_ledger(xgb.train(PARAMS, xgb.DMatrix(*table()), 1)), []
    schema = read_schema(xgb.DMatrix(*table()))

    def work() -> None:
        try:
            for _ in range(300):
                privacy_warnings.keep(schema, object(), record)
                privacy_warnings.repeated_training_warnings(schema, record)
        except RuntimeError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (kept,) = privacy_warnings._trained.values()
    assert not errors and len(kept) == 1201


def test_little_is_kept_of_a_training():
    data = xgb.DMatrix(*table())
    xgb.train(PARAMS, data, 50)
    ((kept,),) = (one.values() for one in privacy_warnings._trained.values())
    assert len(pickle.dumps(kept)) < 500
