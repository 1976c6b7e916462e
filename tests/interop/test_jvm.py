"""A Java process with the stock library reads private models and predicts as Python does.

The functions of C that XGBoost4J and the R package call are called here from Java; neither package
is on the machine.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from tests.upstream.stock import STOCK_VERSIONS, stock_folder

HERE = Path(__file__).parent
COMMON: dict[str, Any] = {
    "tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": 1e-6, "nthread": 1, "verbosity": 0,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "binary": {"objective": "binary:logistic"},
    "classes": {"objective": "multi:softprob", "num_class": 3},
    "regression": {"objective": "reg:squarederror", "dp_target_bounds": (0, 3)},
    "categories": {"objective": "binary:logistic", "dp_categories": {2: 4}},
}
ROWS = 40


@pytest.fixture(scope="module", params=STOCK_VERSIONS)
def java(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs `Predict.java` with the stock library of a release."""
    javac, program, cc = (shutil.which(name) for name in ("javac", "java", "cc"))
    if javac is None or program is None or cc is None:
        pytest.skip("needs a JDK and a C compiler")
    try:
        library = stock_folder(request.param) / "xgboost" / "lib"
    except AssertionError:
        pytest.skip(f"no stock xgboost {request.param} here: `make test` fetches it")
    folder: Path = tmp_path_factory.mktemp("java")
    home = Path(os.path.realpath(javac)).parents[1] / "include"
    include = [f"-I{home}", *(f"-I{path}" for path in home.iterdir() if path.is_dir())]
    bridge = folder / "libbridge.so"
    words = [cc, "-shared", "-fPIC", "-Wall", "-Werror", "-o", bridge, HERE / "predict.c", *include]
    words += [f"-L{library}", "-lxgboost", "-lm"]
    subprocess.run(words, check=True)
    subprocess.run([javac, "-d", folder, HERE / "Predict.java"], check=True)

    def run(*words: object) -> str:
        loaded = os.pathsep.join([str(library / "libxgboost.so"), str(bridge)])
        command = [program, "-cp", folder, "Predict", loaded, *words]
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def data(kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    X[:, 2] = rng.integers(0, 4, 400)
    X[::9, 0] = np.nan
    y = np.digitize(np.nan_to_num(X[:, 0]), [-0.5, 0.5])
    return X, y if kind in ("classes", "regression") else y > 0


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("kind", KINDS)
def test_java_predicts_as_python_does(kind, form, java, tmp_path):
    X, y = data(kind)
    types = ["q", "q", "c"] if kind == "categories" else None
    model = xgb.train(COMMON | KINDS[kind], xgb.DMatrix(X, y, feature_types=types, nthread=1), 5)
    path = tmp_path / f"model.{form}"
    model.save_model(path)
    rows = xgb.DMatrix(X[:ROWS], feature_types=types, nthread=1)
    expected = np.asarray(model.predict(rows), np.float32).ravel()
    cells = ["NaN" if np.isnan(v) else repr(float(v)) for v in X[:ROWS].ravel()]
    for way in ("predict", "config"):
        predicted = np.array(java(way, path, 3, *cells).split(), np.float32)
        np.testing.assert_array_equal(predicted, expected)
    ledger = json.loads(java("attribute", path, "dp_ledger"))
    assert ledger["trainings"][0]["complete"]
