"""Rows of one person on a cluster: brought together, or refused before anything is drawn."""

import pickle
import re
import traceback
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from distributed import Client
from xgboost import dask as dxgb

from tests.conftest import private
from xgb_dp import clusters
from xgb_dp.errors import PrivacyParameterError, RowDomainError

from ..conftest import arrays

SECRET = "SECRET" + "-91-"
N = 300
WHO = [f"{SECRET}{i % 70}" for i in range(N)]
FREE = private(objective="binary:logistic", dp_epsilon=float("inf"), max_depth=2, verbosity=0)
COLUMN = FREE | {"dp_privacy_id": "patient"}


def table(**more: Any) -> pd.DataFrame:
    X, y = arrays()
    return pd.DataFrame(X, columns=list("abcd")).assign(**{"patient": WHO, "y": y} | more)


def frame(rows: pd.DataFrame, parts: int = 5) -> tuple[dd.DataFrame, dd.Series]:
    """Five partitions, so that most persons have rows in several of them."""
    whole = dd.from_pandas(rows, npartitions=parts, sort=False)
    return whole.drop(columns=["y"]), whole["y"]


def one_machine() -> list[str]:
    X, y = arrays()
    d = xgb.DMatrix(pd.DataFrame(X, columns=list("abcd")), y)
    return xgb.train(FREE | {"dp_privacy_id": WHO}, d, 2).get_dump()


def rows_of_workers(client: Client, d: Any) -> list[list[Any]]:
    """Ids of the rows that each worker has."""
    return [
        [
            v
            for p in client.gather(parts)
            for v in np.array(p["persons"].distinct)[p["persons"].codes]
        ]
        for parts in d.worker_map.values()
    ]


def test_each_person_is_brought_to_one_worker(client):
    """With all that belongs to a row."""
    rows = table(w=np.arange(N))
    X, y = frame(rows.drop(columns="w"))
    weight = dd.from_pandas(rows["w"], npartitions=5, sort=False)
    d = dxgb.DaskDMatrix(client, X, y, weight=weight)
    params, together = client.sync(clusters.bring_together, client, COLUMN, d)
    assert params["dp_privacy_id"] == "patient"
    held = rows_of_workers(client, together)
    assert sorted(v for ids in held for v in ids) == sorted(WHO)
    assert sum(len(set(ids)) for ids in held) == len(set(WHO))
    assert sum(bool(ids) for ids in held) > 1
    for parts in together.worker_map.values():
        for part in client.gather(parts):
            at = part["weight"].to_numpy()
            pd.testing.assert_frame_equal(part["data"], rows.loc[at, list("abcd")])
            np.testing.assert_array_equal(part["label"], rows.loc[at, "y"])
            ids = np.array(part["persons"].distinct)[part["persons"].codes]
            assert ids.tolist() == rows.loc[at, "patient"].tolist()
    assert "patient" in client.gather(next(iter(d.worker_map.values())))[0]["data"]  # as it was


def test_a_column_of_the_frame(client):
    """It is no feature, and the model is that of one machine."""
    X, y = frame(table())
    model = dxgb.train(client, COLUMN, dxgb.DaskDMatrix(client, X, y), 2)["booster"]
    assert model.feature_names == list("abcd")
    assert model.get_dump() == one_machine()


def test_a_series_or_an_array_beside_the_data(client):
    X, y = frame(table())
    d = dxgb.DaskDMatrix(client, X.drop(columns=["patient"]), y)
    model = dxgb.train(client, FREE | {"dp_privacy_id": X["patient"]}, d, 2)["booster"]
    assert model.get_dump() == one_machine()
    values, labels = arrays()
    chunks = da.from_array(values, (100, 4)), da.from_array(labels, 100)
    ids = da.from_array(np.array([i % 70 for i in range(N)]), 100)
    rows = dxgb.DaskDMatrix(client, *chunks)
    model = dxgb.train(client, FREE | {"dp_privacy_id": ids}, rows, 2)["booster"]
    named = [re.sub(r"f(\d)", lambda m: "abcd"[int(m[1])], tree) for tree in model.get_dump()]
    assert named == one_machine()


@pytest.mark.filterwarnings("ignore:Dask currently has limited support")
@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_estimators_keep_no_ids_and_no_rows(kind, client):
    """Who is handed an estimator, or its pickle, has its parameters."""
    X, y = frame(table())
    domain = {"dp_classes": 2} if kind == "Classifier" else {"dp_target_bounds": (0, 1)}
    params = {k: v for k, v in COLUMN.items() if k != "objective"} | domain | {"n_estimators": 2}
    model = getattr(dxgb, f"DaskXGB{kind}")(**params)
    model.client = client
    for ids in (X["patient"], X["patient"].values, WHO):
        model.set_params(dp_privacy_id=ids)
        with pytest.raises(PrivacyParameterError, match="the name of a column") as caught:
            model.fit(X, y)
        assert SECRET not in str(caught.value)
    model.set_params(dp_privacy_id="patient")
    stored = pickle.dumps(model.fit(X, y))
    assert SECRET.encode() not in stored
    assert np.ascontiguousarray(table()["a"].to_numpy()).tobytes()[:64] not in stored


def test_workers_without_rows(client):
    """Of one person all rows are on one worker, and of nobody there are none."""
    rows = table(patient=1)[["a", "b", "patient", "y"]]
    for few in (rows, rows.iloc[:0], rows.iloc[:1]):
        X, y = frame(few, 3)
        dxgb.train(client, COLUMN, dxgb.DaskDMatrix(client, X, y), 2)


WRONG: dict[str, Any] = {
    "no such column": ("person", PrivacyParameterError, "not have exactly one column 'person'"),
    "an array": (np.array(WHO), PrivacyParameterError, "With Dask"),
    "other partitions": ("2 parts", PrivacyParameterError, "number of partitions"),
    "other rows": ("shifted", PrivacyParameterError, "one id per row"),
    "missing": ("missing", RowDomainError, "no id"),
    "mixed in a partition": ("mixed", RowDomainError, "mixed kinds"),
    "mixed between partitions": ("kinds", RowDomainError, "mixed kinds"),
    "also a feature": ("a", PrivacyParameterError, "also a feature"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_ids_are_refused_and_not_shown(name, client):
    ids, kind, says = WRONG[name]
    X, y = frame(table())
    d = dxgb.DaskDMatrix(client, X.drop(columns=["patient"]), y)
    who = X["patient"]
    changed = {
        "2 parts": lambda: who.repartition(npartitions=2),
        "shifted": lambda: who.map_partitions(lambda ids: ids.iloc[1:]),
        "missing": lambda: who.map_partitions(_spoilt, None),
        "mixed": lambda: who.map_partitions(_spoilt, 91),
        "kinds": lambda: who.map_partitions(_some_numbers, meta=("patient", object)),
        "a": lambda: X["a"].round().fillna(0),
    }
    given = changed[ids]() if isinstance(ids, str) and ids in changed else ids
    with pytest.raises(kind, match=says) as caught:
        dxgb.train(client, FREE | {"dp_privacy_id": given}, d, 2)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def _spoilt(ids: pd.Series, value: Any) -> pd.Series:
    ids = ids.astype(object)
    ids.iloc[-1] = value
    return ids


def _some_numbers(ids: pd.Series) -> pd.Series:
    first = len(ids) and ids.index[0] == 0
    return (
        pd.Series(range(len(ids)), index=ids.index, dtype=object) if first else ids.astype(object)
    )


def test_tasks_raise_nothing(client):
    """What a task raises is logged together with its rows."""

    class Odd:
        shape = (2, 2)

        def __getitem__(self, rows: Any) -> Any:
            raise ValueError(SECRET)

    error = clusters._divided({"data": Odd()}, [1, 2], None, bytes(32), 2)
    assert isinstance(error, RowDomainError)
    assert SECRET not in str(error)
    refused = clusters._divided({"data": np.zeros((2, 1))}, [SECRET, None], None, bytes(32), 2)
    assert isinstance(refused, RowDomainError)
    assert refused.__context__ is None
