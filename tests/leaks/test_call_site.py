"""What a caller can hand in and what may carry exact statistics: one test for each row of the list
"Objects that the caller passes" in docs/leaks.md."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

from xgb_dp import DPXGBClassifier, PrivacyParameterError, PrivacyRefusal
from xgb_dp.testing import fixed_noise
from xgb_dp.training.input_checks import check_dask

from ..batches import Batches
from ..models import trees
from .scan import COMMON, DATA, OBJECTIVE, small

PARAMS = COMMON | OBJECTIVE["binary"] | {"dp_public_evals": True}
PUBLIC = tuple(v[500:600] for v in DATA["binary"])


class Subclass(xgb.DMatrix):
    """A matrix whose methods could say anything."""


def disguised(d: xgb.DMatrix) -> xgb.DMatrix:
    """A quantile matrix with the cuts of `d`, under the name of a plain one."""
    hidden = xgb.QuantileDMatrix(*PUBLIC, ref=d)
    named = xgb.DMatrix(hidden.handle)
    named.keep = hidden  # its handle is freed once only
    return named


def release_disguise(d: xgb.DMatrix) -> None:
    if hasattr(d, "keep"):
        del d.handle


SETS: dict[str, Callable[[xgb.DMatrix], xgb.DMatrix]] = {
    "bins of the training rows": lambda d: xgb.QuantileDMatrix(*PUBLIC, ref=d),
    "bins of its own": lambda d: xgb.QuantileDMatrix(*PUBLIC),
    "bins under another name": disguised,
    "subclass": lambda d: Subclass(*PUBLIC),
    "the training data": lambda d: d,
}


@pytest.mark.parametrize("name", SETS)
def test_evaluation_sets_are_plain_matrices(name):
    d = small()
    data = SETS[name](d)
    with pytest.raises(PrivacyRefusal, match="evals"):
        xgb.train(PARAMS, d, 2, evals=[(data, "v")])
    release_disguise(data)


def test_evaluation_sets_on_disk_with_bins_of_the_training_rows(tmp_path):
    d = small()
    pages = Batches([PUBLIC], tmp_path)
    data = xgb.ExtMemQuantileDMatrix(pages, ref=d)
    with pytest.raises(PrivacyRefusal, match="evals"):
        xgb.train(PARAMS, d, 2, evals=[(data, "v")])


def test_the_training_data_under_another_name():
    d = small()
    alias = xgb.DMatrix(d.handle)
    with pytest.raises(PrivacyRefusal, match="training data"):
        xgb.train(PARAMS, d, 2, evals=[(alias, "v")])
    del alias.handle


@pytest.mark.parametrize("name", ["bins of its own", "bins under another name", "subclass"])
def test_the_training_data_are_a_plain_matrix(name):
    data = SETS[name](small())
    with pytest.raises(PrivacyRefusal, match="dtrain"):
        xgb.train(PARAMS, data, 2)
    release_disguise(data)


def test_nothing_but_plain_matrices_is_asked_for_before_xgboosts_own_check():
    """XGBoost's check would lead to a matrix that shares the cuts of the training rows."""
    d = small()
    with pytest.raises(PrivacyRefusal, match=r"xgboost\.DMatrix") as caught:
        xgb.train(PARAMS, d, 2, evals=[(xgb.QuantileDMatrix(*PUBLIC), "v")])
    assert "reference" not in str(caught.value)


def test_a_plain_matrix_has_been_binned_before():
    """Stock training leaves its quantile bins in a plain matrix; nothing private reads them."""
    used, fresh, public, other = small(), small(), xgb.DMatrix(*PUBLIC), xgb.DMatrix(*PUBLIC)
    for d in (used, public):
        xgb.train({"max_bin": 3, "nthread": 1, "objective": "binary:logistic"}, d, 2)
    results = []
    for train, valid in ((used, public), (fresh, other)):
        scores: dict[str, Any] = {}
        with fixed_noise(3):
            model = xgb.train(
                PARAMS, train, 3, evals=[(valid, "v")], evals_result=scores, verbose_eval=False
            )
        results.append((scores, trees(model), model.predict(train).tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("loaded", [False, True])
def test_predictions_for_bins_of_the_training_rows_are_refused(loaded):
    d = small()
    model = xgb.train(PARAMS, d, 2)
    if loaded:
        model = xgb.Booster(model_file=bytearray(model.save_raw("ubj")))
    binned = xgb.QuantileDMatrix(*PUBLIC, ref=d)
    for use in (
        lambda: model.predict(binned),
        lambda: model.predict(binned, pred_contribs=True),
        lambda: model.predict(binned, pred_leaf=True),
        lambda: model.eval(binned),
    ):
        with pytest.raises(XGBoostError, match="cannot predict for a QuantileDMatrix"):
            use()
    assert model.predict(xgb.DMatrix(PUBLIC[0])).shape == (100,)
    stock = xgb.train({"nthread": 1}, d, 1)
    assert stock.predict(binned).shape == (100,)


def test_an_earlier_model_with_exact_statistics():
    """A stock model without any tree holds the exact mean of the labels as its intercept."""
    d = small()
    for rounds in (0, 2):
        stock = xgb.train({"objective": "binary:logistic", "nthread": 1}, d, rounds)
        for model in (stock, bytearray(stock.save_raw())):
            with pytest.raises(PrivacyRefusal, match="xgb_model"):
                xgb.train(PARAMS, d, 2, xgb_model=model)


@pytest.mark.parametrize(
    "callback",
    [xgb.callback.EarlyStopping(rounds=3), xgb.callback.EvaluationMonitor(period=7)],
    ids=lambda c: type(c).__name__,
)
def test_callbacks_that_hold_the_scores_of_another_training(callback):
    d, public = small(), xgb.DMatrix(*PUBLIC)
    stock = {"objective": "binary:logistic", "nthread": 1}
    xgb.train(stock, d, 2, evals=[(d, "train")], callbacks=[callback], verbose_eval=False)
    callback._latest = getattr(callback, "_latest", None) or "[1]\ttrain-logloss:0.1"
    with pytest.raises(PrivacyRefusal, match="another training"):
        xgb.train(PARAMS, d, 2, evals=[(public, "v")], callbacks=[callback])


def test_custom_metrics_see_public_sets_only():
    d, public = small(), xgb.DMatrix(*PUBLIC)
    seen = []

    def metric(predicted: np.ndarray, data: xgb.DMatrix) -> tuple[str, float]:
        seen.append(data)
        return "half", float(np.mean(predicted > 0.5))

    xgb.train(PARAMS, d, 2, evals=[(public, "v")], custom_metric=metric, verbose_eval=False)
    assert len(seen) == 3  # before training, and after each round
    assert all(data is public for data in seen)
    with pytest.raises(PrivacyRefusal, match="evals"):
        xgb.train(PARAMS | {"dp_public_evals": False}, d, 2, evals=[(public, "v")])


def test_estimators_evaluate_plain_matrices():
    X, y = (v[:400] for v in DATA["binary"])
    common: dict[str, Any] = {"n_estimators": 2, "n_jobs": 1}
    private = DPXGBClassifier(classes=2, epsilon=1, delta=1e-6, public_evals=True, **common)
    stock = xgb.XGBClassifier(
        tree_method="dp_hist",
        dp_epsilon=1,
        dp_delta=1e-6,
        dp_classes=2,
        dp_public_evals=True,
        **common,
    )
    for model in (private, stock):
        model.fit(X, y, eval_set=[PUBLIC], verbose=False)
        text = model.get_booster().eval(xgb.DMatrix(*PUBLIC))
        last = model.evals_result()["validation_0"]["logloss"][-1]
        assert float(text.rsplit(":", 1)[1]) == pytest.approx(last, rel=1e-6)
    with pytest.raises(PrivacyRefusal):  # XGBoost would build quantile matrices here
        stock.set_params(tree_method=None).fit(X, y, eval_set=[PUBLIC])


def test_estimators_refuse_the_training_table_and_its_views():
    table, y = (v[:400] for v in DATA["binary"])
    model = DPXGBClassifier(
        classes=2, epsilon=1, delta=1e-6, n_estimators=1, n_jobs=1, public_evals=True
    )
    frame = pd.DataFrame(table, columns=list("abc"))
    for X, part in ((table, table), (table, table[:50]), (table, table[::2]), (frame, frame)):
        with pytest.raises(PrivacyRefusal, match="training rows"):
            model.fit(X, y, eval_set=[(part, y[: len(part)])])
        public = DPXGBClassifier(
            classes=2, epsilon=1, delta=1e-6, n_estimators=1, dp_public_data=(part, y[: len(part)])
        )
        with pytest.raises(PrivacyRefusal, match="training rows"):
            public.fit(X, y)
    # The other part of one table is another matter.
    model.fit(table[:300], y[:300], eval_set=[(table[300:], y[300:])], verbose=False)
    with pytest.raises(PrivacyParameterError, match="eval_set"):
        model.fit(table, y, eval_set=[table])


def test_a_matrix_of_one_machine_is_no_matrix_of_workers():
    pytest.importorskip("xgboost.dask")
    with pytest.raises(PrivacyParameterError, match="DaskDMatrix"):
        check_dask(xgb.DMatrix(np.ones((4, 1)), np.ones(4)), None)
