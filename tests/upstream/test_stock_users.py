"""For somebody who never asks for privacy, our `xgboost` is the stock one, to the last byte."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import xgboost as xgb
from xgboost import dask as dxgb

from tests.upstream import every_estimator
from tests.upstream.stock import run_stock

SCRIPT = Path(every_estimator.__file__)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """What our build makes of every estimator, and what the stock wheel makes of it."""
    private = subprocess.run(
        [sys.executable, "-c", SCRIPT.read_text(), "dask"],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert private.returncode == 0, private.stderr
    return _read(private.stdout), _read(run_stock(SCRIPT.read_text(), "dask", light=False))


def _read(text: str) -> Any:
    [line] = [line for line in text.splitlines() if line.startswith("FOUND")]
    return json.loads(line[len("FOUND") :])


@pytest.mark.slow
def test_two_builds_are_compared(outcomes):
    private, stock = outcomes
    assert private.pop("private") is True
    assert stock.pop("private") is False


def test_every_estimator_is_tried():
    """Also one that a later release adds."""
    classes = {
        f"{prefix}{name}"
        for module, prefix in ((xgb, ""), (dxgb, ""))
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, xgb.XGBModel)
    }
    tried = {*every_estimator.IN_MEMORY, *(f"Dask{n}" for n in every_estimator.IN_MEMORY)}
    assert classes - tried == {"XGBModel", "DaskScikitLearnBase"} & classes


def test_models_and_defaults_are_those_of_stock(outcomes):
    private, stock = ({k: v for k, v in side.items() if k != "private"} for side in outcomes)
    assert sorted(private) == sorted(stock)
    different = [name for name in stock if private[name] != stock[name]]
    assert not different, {name: (private[name], stock[name]) for name in different[:2]}
