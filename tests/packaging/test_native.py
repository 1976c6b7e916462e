"""`import xgb_dp` finds out which libxgboost is loaded, and how to mend a stock one."""

import importlib
import types

import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.engine import native
from xgb_dp.errors import NativeLibraryError


def test_the_private_build_is_loaded():
    assert xgb_dp.is_dp_build()
    assert native.build_info()["name"] == "xgb-dp"


@pytest.fixture
def stock(monkeypatch):
    """A library without the private symbols, as a stock wheel that took the package's place."""
    library = types.SimpleNamespace(path="site-packages/xgboost/lib/libxgboost.so")
    monkeypatch.setattr(native, "_raw", lambda: library)


@pytest.mark.usefixtures("stock")
def test_stock_build_warns_at_import_and_says_how_to_mend():
    assert not xgb_dp.is_dp_build()
    with pytest.warns(RuntimeWarning, match="from xgb_dp import xgboost as xgb"):
        importlib.reload(xgb_dp)


@pytest.mark.usefixtures("stock")
def test_stock_build_does_not_train(params, matrix):
    with pytest.raises(NativeLibraryError, match="Import xgb_dp first"):
        xgb.train(params(), matrix(), 2)


@pytest.mark.usefixtures("stock")
def test_no_stock_build_comes_as_the_private_one():
    with pytest.raises(NativeLibraryError, match="XGB_DP_XGBOOST=private"):
        _ = xgb_dp.xgboost


def test_both_names_give_one_package():
    assert xgb_dp.xgboost is xgb
