"""The core of the package works without the rings around it, and nothing imports in a circle."""

import ast
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib")


ROOT = Path(__file__).resolve().parents[2]
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"][0]["layers"]
CORE = LAYERS.index("testing")
"""The first layer of the core; those above it are the desk and the faces."""
OUTSIDE = [name for layer in LAYERS[:CORE] for name in layer.split(" | ")]

PROGRAM = """
import sys
sys.meta_path = [f for f in sys.meta_path if type(f).__module__ != "_editable_skbc_xgb_dp"]
sys.path.insert(0, sys.argv[1])
import numpy as np
import xgboost as xgb
import xgb_dp

assert xgb_dp.__file__.startswith(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 3))
data = xgb.DMatrix(X, X[:, 0] > 0)
params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
          "dp_delta": 1e-6, "nthread": 1}
model = xgb.train(params, data, 3)
print(xgb_dp.privacy_report(model).epsilon)
model.save_model(sys.argv[2])
print(xgb_dp.verify(sys.argv[2], max_epsilon=1.0, delta=1e-6).verdict)
"""


def run_core(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Train, report and verify with a copy of the package that has the core alone."""
    shutil.copytree(ROOT / "xgb_dp", folder / "xgb_dp")
    for name in OUTSIDE:
        path = folder / "xgb_dp" / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.with_suffix(".py").unlink()
    command = [sys.executable, "-c", PROGRAM, str(folder), str(folder / "model.json")]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_the_core_trains_reports_and_verifies_alone(tmp_path: Path) -> None:
    done = run_core(tmp_path)
    assert done.returncode == 0, done.stderr
    epsilon, verdict = done.stdout.split()
    assert 0.99 < float(epsilon) <= 1.0
    assert verdict == "passed"


def test_a_policy_without_its_module_stops_a_training(tmp_path: Path) -> None:
    """The environment asks for a policy that cannot be read: nothing is trained without it."""
    done = run_core(tmp_path, XGB_DP_POLICY=str(tmp_path / "policy.yaml"))
    assert done.returncode != 0
    assert "No module named 'xgb_dp.policy'" in done.stderr
    assert not (tmp_path / "model.json").exists()


def imports(path: Path) -> set[Path]:
    """The modules of xgb_dp that a module imports, for types and inside functions included."""
    package = path.relative_to(ROOT).parent.parts
    out = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            folder = ROOT.joinpath(*base, *(node.module or "").split("."))
            ways = [folder / f"{alias.name}.py" for alias in node.names]
            out |= {way for way in (*ways, folder.with_suffix(".py")) if way.is_file()}
    return out


def test_nothing_imports_in_a_circle() -> None:
    graph = {path: imports(path) for path in (ROOT / "xgb_dp").rglob("*.py")}
    assert len(list(TopologicalSorter(graph).static_order())) > 100
