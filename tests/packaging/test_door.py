"""Which package ``import xgboost`` gives, with a stock one on the path and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.upstream.stock import stock_folder

SHOW = "import xgboost; print(hasattr(xgboost.core._LIB, 'XGDPBuildInfo'))"


def python(code: str, folder: Path, path: str = "", **env: str) -> str:
    """Standard output of code in a process of its own, with a folder more on its path."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_without_a_stock_package_the_private_one_has_the_name(tmp_path: Path) -> None:
    assert python(SHOW, tmp_path) == "True\n"


def test_a_folder_of_that_name_is_no_package(tmp_path: Path) -> None:
    """Such as a checkout of its sources, in which somebody works."""
    (tmp_path / "xgboost").mkdir()
    assert python(SHOW, tmp_path) == "True\n"


def test_a_stock_package_keeps_the_name(tmp_path: Path) -> None:
    assert python(SHOW, tmp_path, str(stock_folder())) == "False\n"


@pytest.mark.parametrize("code", ["import xgb_dp;" + SHOW, "from xgb_dp import xgboost;" + SHOW])
def test_xgb_dp_takes_the_name(code: str, tmp_path: Path) -> None:
    assert python("import warnings; warnings.simplefilter('error');" + code, tmp_path,
                  str(stock_folder())) == "True\n"  # fmt: skip


def test_the_environment_gives_the_name(tmp_path: Path) -> None:
    stock = str(stock_folder())
    assert python(SHOW, tmp_path, stock, XGB_DP_XGBOOST="private") == "True\n"
    assert python(SHOW, tmp_path, stock, XGB_DP_XGBOOST="") == "False\n"


def test_a_stock_package_that_was_loaded_first_is_said(tmp_path: Path) -> None:
    code = """
import xgboost
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import xgb_dp
assert "Import xgb_dp first" in str(seen[0].message), seen
try:
    xgb_dp.xgboost
except xgb_dp.NativeLibraryError as error:
    print(error)
"""
    assert "before xgb_dp" in python(code, tmp_path, str(stock_folder()))


def test_a_stock_build_does_not_train_with_private_parameters(tmp_path: Path) -> None:
    code = """
import numpy as np
import xgboost
try:
    d = xgboost.DMatrix(np.zeros((4, 1)), np.zeros(4))
    xgboost.train({"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6}, d, 1)
except xgboost.core.XGBoostError as error:
    print("Invalid Input: 'dp_hist'" in str(error))
"""
    assert python(code, tmp_path, str(stock_folder())).endswith("True\n")


def test_models_pass_between_the_two(tmp_path: Path) -> None:
    """Files of both, and pickles of the stock one, which name the package that both have."""
    train = """
import numpy as np
from xgb_dp import xgboost as xgb
d = xgb.DMatrix(np.arange(40.0).reshape(20, 2), np.arange(20) % 2)
p = {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6, "objective": "binary:logistic"}
bst = xgb.train(p, d, 3)
bst.save_model("model.json")
print(bst.predict(d).tolist())
"""
    read = """
import pickle
import numpy as np
import xgboost as xgb
assert not hasattr(xgb.core._LIB, "XGDPBuildInfo")
bst, d = xgb.Booster(model_file="model.json"), xgb.DMatrix(np.arange(40.0).reshape(20, 2))
pickle.dump(xgb.train({}, xgb.DMatrix(np.arange(40.0).reshape(20, 2), np.arange(20)), 3),
            open("stock.pkl", "wb"))
print(bst.predict(d).tolist())
"""
    stock = str(stock_folder())
    assert python(train, tmp_path, stock) == python(read, tmp_path, stock)
    again = (
        "import pickle, xgb_dp; print(pickle.load(open('stock.pkl', 'rb')).num_boosted_rounds())"
    )
    assert python(again, tmp_path, stock) == "3\n"
