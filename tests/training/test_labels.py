"""Several labels of a row, 0 or 1 each, from xgboost.train and the estimators to the model."""

import math
import pickle
from functools import partial

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import arrays, private
from xgb_dp.errors import PrivacyParameterError, RowDomainError
from xgb_dp.mechanisms.column_sums import ColumnSums
from xgb_dp.mechanisms.label_sums import LabelSums
from xgb_dp.request.schema import read_schema
from xgb_dp.testing import fixed_noise
from xgb_dp.training.hook import prepare
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
    p = np.array([0.5, 0.2, 0.999])
    expected = p if objective == "binary:logistic" else np.log(p / (1 - p))
    np.testing.assert_allclose(intercepts, expected, atol=1e-4)


@pytest.mark.parametrize("mean", [-3.0, -1.0, -0.7, 0.0, 0.4, 1.2])
@pytest.mark.parametrize("rows", [1.2, 3.0, 30.0, 1e6])
def test_an_intercept_is_what_noise_leaves_to_expect(mean, rows):
    """The mean of all that the sums may come from, and no end of the range."""
    one = xgb.DMatrix(*arrays())
    prepared = prepare(private(objective="binary:logistic"), read_schema(one), 5)
    unit = 2.0 ** prepared.noise["intercept"].shift
    deviation = math.sqrt(prepared.noise["intercept"].sigma2) / unit
    sums = [round(deviation * rows * v * unit) for v in (mean, 1.0)]
    released = base_score_from_sums(prepared.settings, prepared.noise, sums)
    means = np.linspace(-1.0, 1.0, 20_001)
    noise = math.hypot(1.0, min(max(mean, -1.0), 1.0)) / rows
    near = means - min(max(mean, -1.0 - 3.0 * noise), 1.0 + 3.0 * noise)
    likely = np.exp(-0.5 * (near**2 - near[np.abs(near).argmin()] ** 2) / noise**2)
    expected = 0.5 + 0.5 * float(np.average(means, weights=likely))
    assert released == pytest.approx(min(max(expected, 0.001), 0.999), abs=2e-4)


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
