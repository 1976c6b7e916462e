"""Which package ``import xgboost`` gives, with a stock one on the path and without."""

import inspect
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import light_environment
from tests.upstream.stock import stock_folder

SHOW = "import xgboost; print(hasattr(xgboost.core._LIB, 'XGDPBuildInfo'))"


def environment(folder: Path, path: str) -> dict[str, str]:
    """That of a process which starts at once, with one more folder on its path."""
    path = os.pathsep.join(filter(None, [path, str(folder)]))
    return light_environment(folder) | {"PYTHONPATH": path}


def python(code: str, folder: Path, path: str = "", **env: str) -> str:
    """Standard output of code in a process of its own, with a folder more on its path."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment(folder, path) | env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_which_package_has_the_name(tmp_path):
    """A stock one keeps it; a folder of that name, such as a checkout of its sources, is none."""
    assert python(SHOW, tmp_path) == "True\n"
    (tmp_path / "xgboost").mkdir()
    assert python(SHOW, tmp_path) == "True\n"
    stock = str(stock_folder())
    assert python(SHOW, tmp_path, stock) == "False\n"
    assert python(SHOW, tmp_path, stock, XGB_DP_XGBOOST="private") == "True\n"
    assert python(SHOW, tmp_path, stock, XGB_DP_XGBOOST="") == "False\n"


def shows() -> bool:
    """Whether a child that imports nothing but ``xgboost`` has the private build."""
    import xgboost

    return hasattr(xgboost.core._LIB, "XGDPBuildInfo")


CHILD = """
import multiprocessing, sys
import job
if __name__ == "__main__":
    if sys.argv[1] == "private":
        import xgb_dp
    with multiprocessing.get_context(sys.argv[2]).Pool(1) as pool:
        print(pool.apply(job.shows))
"""


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("kind", ["private", "stock"])
def test_children_have_the_build_of_their_parent(kind, start, tmp_path):
    """They import xgboost alone: the main module names xgb_dp only where it is the program."""
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip("no such way of starting on this system")
    (tmp_path / "job.py").write_text(inspect.getsource(shows))
    (tmp_path / "main.py").write_text(CHILD)
    done = subprocess.run(
        [sys.executable, "main.py", kind, start],
        cwd=tmp_path,
        env=environment(tmp_path, str(stock_folder())),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{kind == 'private'}\n"


def test_the_stock_package_behind_the_door(tmp_path):
    """`--version` names it after `import xgb_dp`, and a program that is started has it."""
    code = f"import subprocess, sys, xgb_dp; subprocess.run([sys.executable, '-c', {SHOW!r}])"
    assert python(code, tmp_path, str(stock_folder())) == "False\n"
    code = "import xgb_dp, xgb_dp.engine.native as native; print(native.stock_origin())"
    origin = python(code, tmp_path, str(stock_folder())).strip()
    assert Path(origin).is_relative_to(stock_folder())
    assert python(code, tmp_path) == "None\n"


@pytest.mark.parametrize("code", ["import xgb_dp;" + SHOW, "from xgb_dp import xgboost;" + SHOW])
def test_xgb_dp_takes_the_name(code, tmp_path):
    assert python("import warnings; warnings.simplefilter('error');" + code, tmp_path,
                  str(stock_folder())) == "True\n"  # fmt: skip


def test_a_stock_package_that_was_loaded_first_is_said(tmp_path):
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


def test_a_stock_build_does_not_train_with_private_parameters(tmp_path):
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


def test_models_pass_between_the_two(tmp_path):
    """Files of both, and pickles of the stock one, which name the package that both have."""
    train = """
import warnings
import numpy as np
from xgb_dp import xgboost as xgb
d = xgb.DMatrix(np.arange(40.0).reshape(20, 2), np.arange(20) % 2)
p = {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6, "objective": "binary:logistic"}
warnings.simplefilter("ignore")  # 20 rows are too few
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
