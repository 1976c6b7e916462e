"""Several labels of a row, 0 or 1 each, from xgboost.train and the estimators to the model."""

import math
import pickle
from functools import partial

import numpy as np
import pytest
import xgboost as xgb
from scipy import special

import xgb_dp
from tests.conftest import arrays, private
from xgb_dp.errors import PrivacyParameterError, RowDomainError
from xgb_dp.mechanisms.column_sums import ColumnSums
from xgb_dp.mechanisms.label_sums import LabelSums
from xgb_dp.request.schema import read_schema
from xgb_dp.testing import fixed_noise
from xgb_dp.training.prepare import prepare
from xgb_dp.training.start import base_score_from_sums

from ..models import starts
from . import several
from .several import probabilities

rows, matrix, train = (partial(f, "labels") for f in (several.rows, several.matrix, several.train))
USUAL = several.usual("labels")


def test_probabilities_of_all_labels_are_learnt_without_bias():
    """Also those of a rare label: no label enters the factor of a row."""
    X, Y = rows(20_000)
    with fixed_noise(3):
        model = train(None, xgb.DMatrix(X, Y))
    X, _ = rows(4000, seed=9)
    p = probabilities(X)
    predicted = model.predict(xgb.DMatrix(X))
    assert predicted.shape == (4000, 3)
    assert (np.abs(predicted - p).mean(axis=0) < 0.06).all()
    np.testing.assert_allclose(predicted.mean(axis=0), p.mean(axis=0), rtol=0.08)
    np.testing.assert_allclose(starts(model), Y.mean(axis=0), atol=0.03)
    report = xgb_dp.privacy_report(train())
    assert 3.8 < report.epsilon <= 4.0
    stock = xgb.Booster(model_file=bytearray(model.save_raw("json")))
    np.testing.assert_array_equal(stock.predict(xgb.DMatrix(X)), predicted)


def test_wide_tables_release_no_cells_by_class():
    """A label has classes, and several have no single one."""
    data = xgb.DMatrix(np.zeros((10, 600)), np.zeros((10, 2)))
    mechanisms = prepare(USUAL, read_schema(data), None).mechanisms
    assert not mechanisms.find(LabelSums).labels.presence
    assert mechanisms.find(ColumnSums) is None
    assert train(2, data).predict(data).shape == (10, 2)


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw"])
def test_an_intercept_of_each_label(objective):
    """From sums of labels in {-1, 1} and the number of rows."""
    prepared = prepare({**USUAL, "objective": objective}, read_schema(matrix(10)), 5)
    unit = 1 << prepared.noise["intercept"].shift
    sums = [int(v * unit) for v in (0, -600_000, 1_200_000, 1_000_000)]
    intercepts = base_score_from_sums(prepared.settings, prepared.noise, sums)
    log_odds = np.array([0.0, math.log(0.2 / 0.8), 12.0])  # the limit of log-odds
    expected = special.expit(log_odds) if objective == "binary:logistic" else log_odds
    np.testing.assert_allclose(intercepts, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("public", [None, 500])
@pytest.mark.parametrize("mean", [-3.0, -1.0, -0.7, 0.0, 0.4, 1.2])
@pytest.mark.parametrize("rows", [-2.0, 1.2, 3.0, 30.0, 1e6])
def test_an_intercept_is_the_expected_share(mean, rows, public):
    """Integrate over the numbers of rows of both classes that the sums may come from."""
    one = xgb.DMatrix(*arrays())
    params = private(objective="binary:logistic", dp_public_num_rows=public)
    prepared = prepare(params, read_schema(one), 5)
    unit = 2.0 ** prepared.noise["intercept"].shift
    noise = math.sqrt(prepared.noise["intercept"].sigma2) / unit
    assert noise > 1.0
    rows = rows if public is None else public / noise
    sums = [round(noise * rows * v * unit) for v in (mean, 1.0)]
    released = base_score_from_sums(prepared.settings, prepared.noise, sums)
    # Half of the difference or sum of both, where a public number of rows has no noise.
    share = 0.5 if public else math.sqrt(0.5)
    zeros, ones = (_expected_rows(rows * (1 + sign * mean) / 2 / share) for sign in (-1, 1))
    assert released == pytest.approx(ones / (zeros + ones), rel=2e-4, abs=1e-5)


def _expected_rows(ratio: float) -> float:
    """Expected number of rows n under the prior n^(-1/2), in units of the noise."""
    if ratio > 1000:
        return ratio
    ratio = max(ratio, -30.0)  # as in the code
    roots = np.linspace(0.0, math.sqrt(max(ratio, 0.0) + 12.0), 400_001)  # dn / sqrt(n) = 2 du
    likely = np.exp(-0.5 * (roots**2 - ratio) ** 2 + 0.5 * min(ratio, 0.0) ** 2)
    return float(np.average(roots**2, weights=likely))


def test_a_label_outside_its_classes():
    X, Y = rows(40)
    Y[7, 2] = 0.5
    with pytest.raises(RowDomainError, match="outside the declared classes"):
        train(2, xgb.DMatrix(X, Y))


def test_the_estimator_takes_several_labels():
    X, Y = rows(6000)
    p = probabilities(X)
    usual = {"epsilon": 4.0, "delta": 1e-5, "n_estimators": 10, "n_jobs": 1}
    with fixed_noise(5):
        model = xgb_dp.DPXGBClassifier(classes=2, **usual).fit(X, Y.astype(int))
    predicted = pickle.loads(pickle.dumps(model)).predict_proba(X)
    assert predicted.shape == Y.shape
    assert (np.abs(predicted - p).mean(axis=0) < 0.1).all()
    np.testing.assert_array_equal(model.predict(X), (predicted > 0.5).astype(int))
    words = np.where(Y == 1, "yes", "no")
    with fixed_noise(5):
        named = xgb_dp.DPXGBClassifier(classes=["no", "yes"], **usual).fit(X, words)
    np.testing.assert_array_equal(named.predict(X) == "yes", model.predict(X) == 1)
    with pytest.raises(PrivacyParameterError, match="several columns of binary labels"):
        xgb_dp.DPXGBClassifier(classes=3, **usual).fit(X, Y.astype(int))
    with pytest.raises(RowDomainError):
        xgb_dp.DPXGBClassifier(classes=2, **usual).fit(X, 2 * Y.astype(int))
