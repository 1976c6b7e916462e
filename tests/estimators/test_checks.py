"""The checks of scikit-learn itself, with a privacy reason for every one that must fail."""

import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from xgb_dp import DPXGBClassifier, DPXGBRegressor

WEIGHTS = (
    "a row of weight zero is not the same as no row: split candidates count rows whatever their "
    "weight, and sums are on an integer grid of each row"
)
ALL_ZERO = "whether all weights are zero is a statistic of all rows, which an error would tell"
ALWAYS = {
    "check_all_zero_sample_weights_error": ALL_ZERO,
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
CLASSIFIER = {
    "check_classifiers_classes": "classes are declared, here 0..3, and other labels are refused",
    "check_classifiers_train": "probabilities have a column for every declared class, whether it "
    "occurs or not",
}
REGRESSOR = {
    "check_regressor_multioutput": "predictions are 32-bit floats, as those of XGBoost's own "
    "regressor, and the check wants 64 bits of those for several targets"
}
SHARED: dict[str, Any] = {"delta": 1e-5, "n_estimators": 10, "n_jobs": 1, "max_weight": 10}


ESTIMATORS = [
    DPXGBClassifier(epsilon=math.inf, classes=4, **SHARED),
    DPXGBRegressor(epsilon=math.inf, target_bounds=(-5, 5), **SHARED),
]


def expected(estimator: Any) -> dict[str, str]:
    return ALWAYS | (CLASSIFIER if isinstance(estimator, DPXGBClassifier) else REGRESSOR)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Warnings of no privacy, and of XGBoost for sparse forms that it converts."""
    with warnings.catch_warnings():
        for message in ("`dp_epsilon` is infinite", "Unknown data type"):
            warnings.filterwarnings("ignore", message=message)
        yield


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_without_noise(estimator, check):
    """Only what must fail fails: the same trainings repeat, so that no check is lucky."""
    check(estimator)
