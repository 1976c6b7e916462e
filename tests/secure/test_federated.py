"""What a party sends to the server of a framework: one model or one error, and nothing else."""

import contextlib
import json

import numpy as np
import pytest
import xgboost as xgb

from xgb_dp import federated
from xgb_dp.federated import PartyError, one_model, train_party

X = np.arange(20.0).reshape(10, 2)
DATA = xgb.DMatrix(X, np.arange(10) % 2)
PRIVATE = {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One party, which XGBoost takes for no group."""
    monkeypatch.setattr(federated, "CommunicatorContext", contextlib.nullcontext)


@pytest.mark.parametrize("params", [{}, PRIVATE], ids=["not private", "not masked"])
def test_a_model_without_masked_sums_is_not_sent(params):
    """Of a party that forgot `dp_hist`, or trained alone."""
    common = {"objective": "binary:logistic", "verbosity": 0, "nthread": 1}
    with pytest.raises(PartyError, match=r"PrivacyRefusal: .*It was not sent"):
        train_party(lambda settings: xgb.train(common | params, DATA, 1), {}, {})


@pytest.mark.parametrize("secret", ["4711", "PrivacyError"])
def test_an_error_that_could_quote_a_cell_stays_here(secret, caplog, capsys):
    """Also out of the logs, which FLARE sends to its server by default."""

    def fail(settings: object) -> xgb.Booster:
        raise ValueError(f"could not convert string to float: {secret}")

    with pytest.raises(PartyError) as caught:
        train_party(fail, {}, {})
    assert secret not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert secret not in caplog.text
    assert secret in capsys.readouterr().err


def test_an_error_about_parameters_is_sent():
    def train(settings: object) -> xgb.Booster:
        return xgb.train(PRIVATE | {"dp_epsilon": -1.0}, DATA, 1)

    with pytest.raises(PartyError, match="PrivacyParameterError: `dp_epsilon` must be"):
        train_party(train, {}, {})


def model(entry: int, leaf: float = 0.5, epsilon: float = 1.0) -> bytes:
    ledger = {"digest": str(entry), "trainings": [{"entry": entry, "epsilon": epsilon}]}
    attributes = {"dp_ledger": json.dumps(ledger)}
    return json.dumps({"learner": {"attributes": attributes, "leaf": leaf}}).encode()


def test_models_differ_only_in_the_entries_of_budgets():
    assert one_model([model(1), model(2), model(3)]) == model(1)
    for other in (model(2, leaf=0.6), model(2, epsilon=2.0)):
        with pytest.raises(PartyError, match="different models"):
            one_model([model(1), other])
