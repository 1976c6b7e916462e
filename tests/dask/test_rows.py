"""Which worker has which rows decides nothing: neither whether training raises, nor its model."""

import traceback
from collections.abc import Callable
from itertools import count, cycle, pairwise
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost as xgb
from distributed import Client
from xgboost import dask as dxgb

from tests.conftest import private
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal, RowDomainError
from xgb_dp.testing import fixed_noise

from .conftest import KEY

NAMES = ["u", "v", "wé"]
ROWS = [(0.5, "u", 0), (-1.0, "wé", 1), (2.0, None, 0), (float("nan"), "v", 1)]
PARAMS = private(objective="binary:logistic", max_depth=2, verbosity=0)
DECLARED = PARAMS | {"dp_categories": {"c": NAMES}}
# Rows of each partition. Those of the second worker stand at odd places.
LAYOUTS = {
    0: [(0,), (0, 0)],
    1: [(1,), (1, 0), (0, 1), (0, 0, 1)],
    2: [(2,), (1, 1), (2, 0), (0, 2)],
    4: [(4,), (3, 1), (4, 0), (0, 4), (0, 1, 0, 2, 1)],
}
number = count()


class Workers(NamedTuple):
    """Those that have the rows, of all that the client knows."""

    client: Client
    addresses: list[str]


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def workers(request: pytest.FixtureRequest, client: Client, known_noise: None) -> Workers:
    return Workers(client, sorted(client.nthreads())[: request.param])


Part = Callable[[list[tuple[Any, Any, Any]]], Any]


def frame(rows: list[tuple[Any, Any, Any]]) -> pd.DataFrame:
    """Its categories are those that are declared, in another order."""
    a = pd.Series([r[0] for r in rows], dtype="float64")
    c = pd.Categorical([r[1] for r in rows], categories=NAMES[::-1])
    return pd.DataFrame({"a": a, "c": c})


def strings(rows: list[tuple[Any, Any, Any]]) -> pd.DataFrame:
    return frame(rows).assign(c=pd.Series([r[1] for r in rows], dtype=object))


def array(rows: list[tuple[Any, Any, Any]]) -> np.ndarray:
    codes = [[a, np.nan if c is None else float(NAMES.index(c))] for a, c, _ in rows]
    return np.array(codes).reshape(len(rows), 2)


def sparse(rows: list[tuple[Any, Any, Any]]) -> Any:
    return sp.csr_matrix(np.nan_to_num(array(rows)))


def spread(workers: Workers, layout: tuple[int, ...], rows: list[Any], part: Part) -> list[Any]:
    """One partition for each entry of the layout, on the workers in turn."""
    cut = np.cumsum([0, *layout])
    return [
        workers.client.submit(
            part, rows[a:b], workers=[address], key=f"part-{next(number)}", pure=False
        )
        for address, (a, b) in zip(cycle(workers.addresses), pairwise(cut), strict=False)
    ]


def labels(rows: list[tuple[Any, Any, Any]]) -> Any:
    return pd.Series([r[2] for r in rows], dtype="float64", name="y")


def vector(rows: list[tuple[Any, Any, Any]]) -> np.ndarray:
    return np.asarray(labels(rows))


def matrix(
    workers: Workers, layout: tuple[int, ...], part: Part, rows: list[Any] | None = None
) -> dxgb.DaskDMatrix:
    rows = ROWS if rows is None else rows
    X = spread(workers, layout, rows, part)
    if part not in (array, sparse):
        tables = dd.from_delayed(X, meta=part([]), verify_meta=False)
        targets = dd.from_delayed(
            spread(workers, layout, rows, labels), meta=labels([]), verify_meta=False
        )
        return dxgb.DaskDMatrix(workers.client, tables, targets, enable_categorical=True)
    y = spread(workers, layout, rows, vector)
    arrays = [da.from_delayed(p, (n, 2), dtype=float) for p, n in zip(X, layout, strict=True)]
    vectors = [da.from_delayed(p, (n,), dtype=float) for p, n in zip(y, layout, strict=True)]
    return dxgb.DaskDMatrix(workers.client, da.concatenate(arrays), da.concatenate(vectors))


def raw(model: Any) -> bytes:
    return bytes(model["booster"].save_raw("ubj"))


@pytest.mark.parametrize("n", LAYOUTS)
@pytest.mark.parametrize("part", [frame, strings])
def test_declared_categories_train_however_rows_lie(workers, part, n):
    """And the model is that of one machine, byte for byte."""
    table = frame(ROWS[:n])
    table["c"] = table["c"].cat.set_categories(NAMES)
    with fixed_noise(KEY):
        one = xgb.train(DECLARED, xgb.DMatrix(table, labels(ROWS[:n]), enable_categorical=True), 2)
    for layout in LAYOUTS[n]:
        d = matrix(workers, layout, part)
        assert raw(dxgb.train(workers.client, DECLARED, d, 2)) == bytes(one.save_raw("ubj")), layout


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("part", [array, sparse])
def test_arrays_train_however_rows_lie(workers, part, n):
    models = {
        raw(dxgb.train(workers.client, PARAMS, matrix(workers, v, part), 2)) for v in LAYOUTS[n]
    }
    assert len(models) == 1


@pytest.mark.parametrize("part", [frame, strings])
def test_a_row_that_raises_alone_raises_everywhere_alike(workers, part):
    """With one message that shows nothing of it, on whichever worker it lies."""
    secret = "-".join(["SECRET", "CELL"])
    faults: dict[str, tuple[Any, Any, Any]] = {"category": (1.0, secret, 0)}
    if part is frame:  # other faults are found once texts are codes
        faults |= {"label": (1.0, "u", 7), "infinite": (float("inf"), "u", 0)}
    for name, row in faults.items():
        messages = set()
        for layout, rows in (
            ((1,), [row]),
            ((1, 0), [row]),
            ((0, 1), [row]),
            ((2, 2), [*ROWS[:3], row]),
            ((2, 2), [row, *ROWS[:3]]),
        ):
            with pytest.raises(RowDomainError) as caught:
                dxgb.train(workers.client, DECLARED, matrix(workers, layout, _names(part), rows), 2)
            assert secret not in "".join(traceback.format_exception(caught.value))
            messages.add(str(caught.value).removeprefix("On another worker: "))
        assert len(messages) == 1, name


def _names(part: Part) -> Part:
    """Frames with the categories that occur, so that an undeclared one is not just missing."""
    if part is not frame:
        return part

    def seen(rows: list[tuple[Any, Any, Any]]) -> pd.DataFrame:
        return strings(rows).astype({"c": pd.CategoricalDtype(["SECRET-CELL", *NAMES])})

    return seen


def test_a_worker_without_any_part(workers):
    """The public set lies on a worker that has nothing of the training data."""
    d, public = matrix(workers, (2,), frame), matrix(workers, (1, 1), frame, ROWS[2:])
    params = DECLARED | {"dp_public_evals": True}
    model = dxgb.train(workers.client, params, d, 2, evals=[(public, "public")])
    assert len(model["history"]["public"]["logloss"]) == 2


def collection(workers: Workers, tables: list[Any]) -> Any:
    """A partition for each table, on the workers in turn."""
    parts = spread(workers, (1,) * len(tables), tables, _first)
    return dd.from_delayed(parts, meta=tables[0].iloc[:0], verify_meta=False)


def _first(tables: list[Any]) -> Any:
    return tables[0]


def refusal_of(
    workers: Workers, params: dict[str, Any], tables: list[Any], targets: list[Any]
) -> str:
    """What a training on these partitions raises, wherever it was found."""
    d = dxgb.DaskDMatrix(workers.client, collection(workers, tables), collection(workers, targets))
    with pytest.raises(PrivacyParameterError) as caught:
        dxgb.train(workers.client, params, d, 2)
    return str(caught.value).removeprefix("On another worker: ")


def test_partitions_with_other_columns_are_refused_together(workers):
    """On one worker, pandas would fill in what a partition lacks, until one more row brings it."""
    wide = pd.DataFrame({"a": [0.5, 1.0, 2.0], "blue": [0.0, 1.0, 0.0]})
    y = pd.Series([0.0, 1.0, 1.0], name="y")
    for other in (wide[["a"]], wide[["blue", "a"]], wide[["a"]].iloc[:0]):
        results = {
            refusal_of(workers, PARAMS, tables, [y.iloc[: len(table)] for table in tables])
            for tables in ([wide, other], [other, wide], [wide, wide, other, wide])
        }
        people = [table.assign(pid=range(len(table))) for table in (wide, other)]
        results.add(
            refusal_of(workers, PARAMS | {"dp_privacy_id": "pid"}, people, [y, y[: len(other)]])
        )
        assert len(results) == 1
        assert "Two partitions differ in the columns" in results.pop()
    same = dxgb.DaskDMatrix(
        workers.client, collection(workers, [wide, wide]), collection(workers, [y, y])
    )
    assert dxgb.train(workers.client, PARAMS, same, 2)["booster"].feature_names == ["a", "blue"]


@pytest.mark.parametrize("params", [PARAMS, PARAMS | {"dp_categories": {"c": 3}}])
def test_whole_numbers_as_categories_are_refused_in_every_partition(workers, params):
    """Where dictionaries of partitions differed they became numbers: one row decided that."""
    y = pd.Series([0.0, 1.0, 1.0], name="y")
    for last in ([0, 1, 1], [0, 1, 2]):
        values = [pd.DataFrame({"c": c, "z": y}) for c in ([0, 1, 2], last)]
        tables = [table.astype({"c": "category"}) for table in values]
        assert "categories of categorical columns" in refusal_of(workers, params, tables, [y, y])


def test_quantile_matrices_are_refused_before_rows_are_read(workers):
    for layout in LAYOUTS[1]:
        X = dd.from_delayed(spread(workers, layout, ROWS, frame), meta=frame([]))
        y = dd.from_delayed(spread(workers, layout, ROWS, labels), meta=labels([]))
        q = dxgb.DaskQuantileDMatrix(workers.client, X, y, enable_categorical=True)
        with pytest.raises(PrivacyRefusal, match="QuantileDMatrix"):
            dxgb.train(workers.client, DECLARED, q, 2)
