"""Rows of patients, their book, and the policy of their holder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp import policy
from xgb_dp.errors import POLICY, RowDomainError

TEXT = """\
unit: person
id: patient
epsilon: 1
delta: 1e-6
total_epsilon: 4
total_delta: 1e-5
budget: budget.json
schema:
  target: ill
  classes: ["no", "yes"]
  columns:
    age: {bounds: [0, 120]}
    sex: [f, m]
    height: number
"""
CHANGES = {"max_depth": 2, "nthread": 1, "verbosity": 0}
Enforce = Callable[..., Path]


def table(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age = rng.integers(18, 90, n)
    return pd.DataFrame(
        {
            "patient": [f"p{i % 90}" for i in range(n)],
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "height": rng.normal(170, 10, n).round(1),
            "ill": np.where(age > 50, "yes", "no"),
        }
    )


def matrix(**changes: Any) -> xgb.DMatrix:
    """The features that the policy declares, or others."""
    rows = table().assign(**changes)
    sex = pd.Categorical(rows["sex"], categories=["f", "m"])
    features = rows.drop(columns=["patient", "ill"]).assign(sex=sex)
    return xgb.DMatrix(features, rows["ill"] == "yes", enable_categorical=True)


def params(**changes: Any) -> dict[str, Any]:
    """A training that the policy permits, with changes; None removes a key."""
    given = {
        "tree_method": "dp_hist",
        "objective": "binary:logistic",
        "dp_epsilon": 0.5,
        "dp_delta": 1e-6,
        "dp_privacy_id": table()["patient"],
        "dp_categories": {"sex": ["f", "m"]},
    }
    return {k: v for k, v in (given | CHANGES | changes).items() if v is not None}


@pytest.fixture
def enforce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Enforce:
    """Puts a policy in force, as a process finds one that its environment names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(policy, "_first", [])
    monkeypatch.setattr(RowDomainError, "exact", None)
    monkeypatch.setenv(POLICY, "")
    monkeypatch.delenv(POLICY)  # put back as it was at the end

    def make(text: str = TEXT, **budget: Any) -> Path:
        total = {"epsilon": 4.0, "delta": 1e-5, "unit": "person"} | budget
        xgb_dp.Budget("budget.json", **total)
        Path("policy.yaml").write_text(text)
        monkeypatch.setenv(POLICY, "policy.yaml")
        return tmp_path / "policy.yaml"

    return make
