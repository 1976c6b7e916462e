"""What a party sends to the server of a framework: one model or one error, and nothing else."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from xgb_dp import Budget, federated
from xgb_dp.federated import PartyError, PartyTraining, one_model, train_party

X = np.arange(20.0).reshape(10, 2)
DATA = xgb.DMatrix(X, np.arange(10) % 2)
PRIVATE = {
    "tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6, "objective": "binary:logistic"
}  # fmt: skip
MASKED = {"dp_secure_aggregation": True}


@pytest.fixture
def budget(tmp_path: Path) -> Budget:
    return Budget(tmp_path / "budget.json", epsilon=4.0, delta=4e-6)


@pytest.fixture(autouse=True)
def joined(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The groups that were joined; each is of one party, which XGBoost takes for no group."""
    groups: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def join(**group: Any) -> Iterator[None]:
        groups.append(group)
        yield

    monkeypatch.setattr(federated, "CommunicatorContext", join)
    return groups


@pytest.mark.parametrize("params", [{}, PRIVATE, PRIVATE | {"dp_secure_aggregation": False}])
def test_no_training_without_masked_sums(params, budget, monkeypatch):
    """Of a party that forgot to mask, the trainer is not even called."""
    monkeypatch.setattr(xgb, "train", lambda *args, **kwargs: pytest.fail("trained"))
    with pytest.raises(PartyError, match=r"PrivacyRefusal: .*Nothing was sent"):
        train_party(lambda settings: PartyTraining(budget, params, DATA, 1), {}, {})
    assert not budget.entries


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"tree_method": "hist"} | MASKED, "`tree_method`"),
        (PRIVATE | MASKED | {"dp_epsilon": -1.0}, "`dp_epsilon` must be"),
        (PRIVATE | MASKED, "at least two workers"),
    ],
)
def test_wrong_parameters_of_masked_sums_charge_nothing(params, match, budget):
    with pytest.raises(PartyError, match=match):
        train_party(lambda settings: PartyTraining(budget, params, DATA, 1), {}, {})
    assert not budget.entries


@pytest.mark.parametrize("secret", ["4711", "PrivacyError"])
def test_an_error_that_could_quote_a_cell_stays_here(secret, joined, caplog, capsys):
    """Also out of the logs, which FLARE sends to its server by default."""

    def fail(settings: object) -> PartyTraining:
        raise ValueError(f"could not convert string to float: {secret}")

    with pytest.raises(PartyError) as caught:
        train_party(fail, {}, {})
    assert secret not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert secret not in caplog.text
    assert secret in capsys.readouterr().err
    assert not joined  # a party reads its rows before it can exchange anything


def model(entry: int, leaf: float = 0.5, epsilon: float = 1.0) -> bytes:
    ledger = {"digest": str(entry), "trainings": [{"entry": entry, "epsilon": epsilon}]}
    attributes = {"dp_ledger": json.dumps(ledger)}
    return json.dumps({"learner": {"attributes": attributes, "leaf": leaf}}).encode()


def test_models_differ_only_in_the_entries_of_budgets():
    assert one_model([model(1), model(2), model(3)]) == model(1)
    for other in (model(2, leaf=0.6), model(2, epsilon=2.0)):
        with pytest.raises(PartyError, match="different models"):
            one_model([model(1), other])
