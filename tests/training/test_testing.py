"""Fixed noise repeats a training exactly and never calls itself private."""

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.reference.plans import base_plan
from xgb_dp import testing
from xgb_dp.errors import PrivacyParameterError

from ..conftest import arrays


def _dump(model):
    return model.get_dump(with_stats=True)


def test_same_key_same_trees(params, matrix):
    def train(key):
        with testing.fixed_noise(key):
            return _dump(xgb.train(params(), matrix(), 3))

    assert train(5) == train(5)
    assert train(5) != train(6)
    assert train(5) == train((5).to_bytes(32, "little")) == train("05" + "00" * 31)


def test_the_key_ends_with_the_block():
    assert testing.noise_key() is None
    with testing.fixed_noise(1):
        assert testing.noise_key() == "01" + "00" * 31
        with testing.fixed_noise(2):
            assert testing.noise_key() == "02" + "00" * 31
        assert testing.noise_key() == "01" + "00" * 31
    assert testing.noise_key() is None


@pytest.mark.parametrize("key", [-1, b"short", "zz", "ab", None, 1 << 256])
def test_bad_keys(key):
    with pytest.raises(PrivacyParameterError, match="key"), testing.fixed_noise(key):
        pass


def _plan(**changes):
    return base_plan([{"kind": "private", "grid": []}] * 4, shape="per_node", **changes)


def test_train_with_plan(matrix):
    model = testing.train_with_plan(_plan(), matrix())
    assert model.num_boosted_rounds() == 2
    assert not xgb_dp.privacy_report(model).private
    X, y = arrays()
    assert np.mean((model.predict(xgb.DMatrix(X)) > 0.5) == y) > 0.8
    with pytest.raises(PrivacyParameterError, match="test_key"):
        testing.train_with_plan(_plan(noise_free=False), matrix())
