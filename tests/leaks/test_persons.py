"""Nothing of who the rows belong to is in what a training leaves behind."""

import logging
import pickle
import re
import struct
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from xgb_dp import DPXGBClassifier
from xgb_dp.data import matrices
from xgb_dp.data.ids import Persons, encode_persons

from .scan import COMMON, OBJECTIVE, Watch, artefacts, small

pytestmark = pytest.mark.filterwarnings("ignore:.*NOT private")
N = 400
PERSONS = 211
FREE = {"dp_epsilon": float("inf")}
SECRET = "SECRET-" + "person"
# Whole numbers that do not turn up by chance, and texts.
NUMBERS = np.array([7_301_999_888_777_001 + 13 * (i % PERSONS) for i in range(N)])
STRINGS = [f"{SECRET}-{i % PERSONS}" for i in range(N)]


def traces(name: str) -> list[bytes]:
    """What an id would look like."""
    if name == "texts":
        return [SECRET.encode()]
    values = np.unique(NUMBERS).tolist()
    return [*(str(v).encode() for v in values), *(struct.pack("<q", v) for v in values)]


def ids(name: str) -> Any:
    return STRINGS if name == "texts" else NUMBERS


@pytest.mark.parametrize("name", ["texts", "numbers"])
def test_no_id_is_in_a_model_or_in_what_was_said(name, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    watch = Watch()
    params = COMMON | OBJECTIVE["binary"] | FREE | {"verbosity": 3, "dp_privacy_id": ids(name)}
    model = xgb.train(params, small(n=N), 2, callbacks=[watch])
    printed = capfd.readouterr()
    kept_by_name = {**artefacts(model), **watch.seen, "out": printed.out, "err": printed.err}
    kept_by_name |= {"log": caplog.text, "pickle": pickle.dumps(model)}
    for what, kept in kept_by_name.items():
        text = kept if isinstance(kept, bytes) else kept.encode("utf-8", "replace")
        assert not any(trace in text for trace in traces(name)), what


@pytest.mark.parametrize("name", ["texts", "numbers"])
def test_no_id_is_in_an_estimator(name):
    X = np.arange(2.0 * N).reshape(N, 2) % 7
    model = DPXGBClassifier(epsilon=float("inf"), delta=1e-6, classes=2, n_estimators=2)
    model.fit(X, np.arange(N) % 2, privacy_id=ids(name))
    text = pickle.dumps(model)
    assert not any(trace in text for trace in traces(name))


def test_the_number_of_persons_is_in_no_model():
    """It is a statistic of the rows, as the number of rows is."""
    params = COMMON | OBJECTIVE["binary"] | FREE | {"dp_privacy_id": STRINGS}
    model = xgb.train(params, small(n=N), 2)
    for what, kept in artefacts(model).items():
        if isinstance(kept, str):
            assert not re.search(rf"(?<![\d.]){PERSONS}(?![\d.])", kept), what


def test_nothing_is_kept_after_a_training_or_an_error():
    params = COMMON | OBJECTIVE["binary"] | FREE | {"dp_privacy_id": True}
    for rows in (N, N - 1):
        data = small(n=rows)
        matrices.attach(data, encode_persons(STRINGS))
        with nullcontext() if rows == N else pytest.raises(ValueError, match="one id per row"):
            xgb.train(params, data, 1)
        assert not any(isinstance(value, Persons) for value in vars(data).values())
