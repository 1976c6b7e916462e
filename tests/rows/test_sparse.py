"""A sparse row is read alone: unsorted ones as sorted ones, and no cell is given twice."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from xgb_dp.data.matrices import private_matrix
from xgb_dp.engine import native
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal, RowDomainError
from xgb_dp.testing import fixed_noise

from ..batches import Batches

Row = list[tuple[int, float]]
F = 5
pytestmark = pytest.mark.filterwarnings("ignore:Unknown data type")  # XGBoost, of rare formats
PARAMS = private(objective="binary:logistic", max_depth=2, nthread=1, verbosity=0)


# --------------------------------------------------------------------- rows as they are given
def flat(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, columns and beginnings of rows, as they stand."""
    lengths = [len(row) for row in rows]
    cells = [cell for row in rows for cell in row]
    return (
        np.array([v for _, v in cells], dtype=np.float32),
        np.array([c for c, _ in cells], dtype=np.int32),
        np.append(0, np.cumsum(lengths)).astype(np.int32),
    )


def csr(rows: list[Row], kind: Any = sp.csr_matrix) -> Any:
    """Nothing is sorted, added or looked at, also where SciPy would."""
    X = kind((len(rows), F), dtype=np.float32)
    X.data, X.indices, X.indptr = flat(rows)
    return X


def csc(rows: list[Row], kind: Any = sp.csc_matrix) -> Any:
    """Column by column; a column has its rows in falling order."""
    values, columns, indptr = flat(rows)
    row = np.repeat(np.arange(len(rows)), np.diff(indptr))
    order = np.lexsort((-row, columns))
    X = kind((len(rows), F), dtype=np.float32)
    X.data, X.indices = values[order], row[order].astype(np.int32)
    X.indptr = np.searchsorted(columns[order], np.arange(F + 1)).astype(np.int32)
    return X


def coo(rows: list[Row], kind: Any = sp.coo_matrix) -> Any:
    values, columns, indptr = flat(rows)
    row = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(indptr))
    X = kind((values, (row, np.zeros_like(columns))), shape=(len(rows), F))
    X.col[:] = columns
    return X


def lil(rows: list[Row], kind: Any = sp.lil_matrix) -> Any:
    X = kind((len(rows), F), dtype=np.float32)
    for i, row in enumerate(rows):
        X.rows[i] = [c for c, _ in row]
        X.data[i] = [v for _, v in row]
    return X


MAKERS: dict[str, Callable[[list[Row]], Any]] = {
    f"{make.__name__} {kind}": partial(make, kind=getattr(sp, f"{make.__name__}_{kind}"))
    for make in (csr, csc, coo, lil)
    for kind in ("matrix", "array")
}
SORTED: Row = [(0, 1.0), (2, 2.0), (4, 3.0)]
UNSORTED: Row = [(4, 3.0), (0, 1.0), (2, 2.0)]
ALL: Row = [(c, float(c)) for c in range(F)]
TWICE: Row = [(0, 1.0), (2, 2.0), (2, 5.0)]
APART: Row = [(2, 2.0), (0, 1.0), (2, 2.0)]  # both entries alike, and another one between them
BELOW: Row = [(0, 1.0), (-1, 2.0)]
BEYOND: Row = [(0, 1.0), (F, 2.0)]
BAD = {"twice": TWICE, "apart": APART, "below": BELOW, "beyond": BEYOND}


def can_hold(form: str, row: Row) -> bool:
    """In a matrix by columns there is no column that there is not."""
    return not form.startswith("csc") or all(0 <= c < F for c, _ in row)


def by_hand(X: Any) -> xgb.DMatrix:
    return xgb.DMatrix(X, np.arange(X.shape[0]) % 2, nthread=1)


def read(X: Any) -> np.ndarray | None:
    """The cells that XGBoost has of each row, or None if they are refused."""
    try:
        d = private_matrix(X, nthread=1)
    except RowDomainError:
        return None
    native.check_rows(d)
    cells = d.get_data()
    cells.sort_indices()
    out = np.full(X.shape, np.nan, dtype=np.float32)
    out[np.repeat(np.arange(X.shape[0]), np.diff(cells.indptr)), cells.indices] = cells.data
    return out


# --------------------------------------------------------------------- exactly
@pytest.mark.parametrize("kind", [sp.bsr_matrix, sp.bsr_array])
def test_blocks_of_cells_are_refused(kind):
    """Whether a cell of 0 is stored depends on the other rows of its block."""
    X = kind(np.eye(4))
    with pytest.raises(PrivacyParameterError, match="BSR"):
        private_matrix(X)
    with pytest.warns(UserWarning, match="csr"):
        d = by_hand(X)
    with pytest.raises(PrivacyRefusal, match=r"(?i)bsr"):
        xgb.train(PARAMS, d, 1)


def test_an_entry_in_no_row_is_refused():
    """XGBoost would write it outside of memory."""
    X = sp.csc_matrix((np.ones(1), np.array([0]), np.array([0, 1])), shape=(3, 1))
    X.indices[0] = 100_000
    with pytest.raises(ValueError, match="indices"):
        by_hand(X)
    with pytest.raises(RowDomainError, match="outside all rows"):
        xgb_dp.split((X, np.zeros(3)))


@pytest.mark.parametrize("name", list(BAD))
@pytest.mark.parametrize("form", list(MAKERS))
def test_a_row_is_refused_by_itself(form, name):
    if not can_hold(form, BAD[name]):
        return
    for rows in ([BAD[name]], [SORTED, BAD[name], ALL], [UNSORTED] * 3 + [BAD[name]]):
        with pytest.raises(RowDomainError, match=r"A row has (two|an) entr") as error:
            private_matrix(MAKERS[form](rows))
        assert not any(c.isdigit() for c in str(error.value))


@pytest.mark.parametrize("name", list(BAD))
def test_a_matrix_that_was_made_by_hand_is_refused(name, tmp_path):
    """Before training, evaluation or selection read what XGBoost has made of it."""
    X = csr([SORTED, ALL, BAD[name], UNSORTED])
    d, y = by_hand(X), np.arange(4) % 2
    model = xgb.train(PARAMS, by_hand(csr([SORTED, ALL])), 1)
    common = {k: v for k, v in PARAMS.items() if k not in ("dp_epsilon", "dp_delta")}
    calls: list[Callable[[], Any]] = [
        lambda: xgb.train(PARAMS, d, 1),
        lambda: xgb.train(PARAMS | {"dp_public_data": d}, by_hand(csr([SORTED, ALL])), 1),
        lambda: xgb_dp.evaluate(model, d, epsilon=1.0, delta=1e-6),
        lambda: xgb_dp.evaluate(model, (X, y), epsilon=1.0, delta=1e-6),
        lambda: xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=2).fit(X, y),
        lambda: xgb.train(PARAMS, d.slice([2]), 1),
    ]
    if name in ("twice", "apart"):  # a page on disk, whose rows are not sorted by XGBoost
        paged = xgb.DMatrix(Batches([(X, y)], tmp_path))
        calls.append(lambda: xgb.train(PARAMS, paged, 1))
    if name == "twice":
        calls.append(lambda: xgb_dp.select(common, d, [{}], epsilon=1.0, delta=1e-6))
    for call in calls:
        with pytest.raises(RowDomainError, match=r"A row has (two|an) entr") as error:
            call()
        assert not any(c.isdigit() for c in str(error.value))


@pytest.mark.parametrize("form", list(MAKERS))
def test_unsorted_rows_train_as_sorted_ones(form, tmp_path):
    rng = np.random.default_rng(4)
    rows = [
        [(int(c), float(rng.normal())) for c in rng.permutation(F)[: rng.integers(F + 1)]]
        for _ in range(300)
    ]
    y = np.array([sum(v for c, v in row if c < 2) > 0 for row in rows], dtype=np.float32)

    def fit(d: xgb.DMatrix) -> bytes:
        with fixed_noise(5):
            return bytes(xgb.train(PARAMS | {"dp_epsilon": 8.0}, d, 3).save_raw("ubj"))

    expected = fit(xgb.DMatrix(csr([sorted(row) for row in rows]), y))
    assert fit(private_matrix(MAKERS[form](rows), label=y)) == expected
    assert fit(xgb.DMatrix(csr(rows), y)) == expected
    paged = Batches([(csr(rows[:9]), y[:9]), (csr(rows[9:]), y[9:])], tmp_path)
    assert fit(xgb.DMatrix(paged)) == expected


def test_what_is_no_cell_is_none():
    """Keys of a dict and diagonals are there once; entries behind the last row belong to none."""
    dok = sp.dok_matrix((2, F), dtype=np.float32)
    dok[1, 3] = 2.0
    diagonal = sp.dia_matrix((np.ones((2, 9), np.float32), [0, 4]), shape=(2, F))
    longer = csr([SORTED, ALL])
    longer.data, longer.indices = (np.append(a, a[-1:]) for a in (longer.data, longer.indices))
    for table, cells in ((dok, 1), (diagonal, 3), (longer, len(SORTED) + F)):
        values = read(table)
        assert values is not None
        assert (~np.isnan(values)).sum() == cells


@pytest.mark.parametrize("change", ["indptr", "data", "falling"])
def test_parts_that_do_not_fit_are_refused(change):
    X = csr([SORTED, ALL, SORTED])
    if change == "indptr":
        X.indptr = X.indptr[:-1]
    elif change == "data":
        X.data = X.data[:-1]
    else:
        X.indptr = np.array([0, 8, 3, 11], dtype=np.int32)  # two rows share cells
    with pytest.raises(RowDomainError, match="sparse matrix"):
        private_matrix(X)


@pytest.mark.parametrize("missing", [np.nan, 0.0, 2.0])
def test_a_cell_is_missing_by_itself(missing):
    rows: list[Row] = [SORTED, [(1, 0.0), (2, 2.0)], [], [(3, np.nan), (0, 2.0)], ALL]
    together = private_matrix(csr(rows), missing=missing).get_data()
    dense = np.full((len(rows), F), np.nan, np.float32)
    for i, row in enumerate(rows):
        for c, v in row:
            dense[i, c] = v
        alone = private_matrix(csr([row]), missing=missing).get_data()
        assert (alone != together[i]).nnz == 0
        assert alone.nnz == sum(not np.isnan(v) and v != missing for _, v in row)
    views = (dense, np.asfortranarray(dense), np.repeat(dense, 2, axis=0)[::2], dense[:, ::-1])
    for view, back in zip(views, (1, 1, 1, -1), strict=True):
        cells = private_matrix(view, missing=missing).get_data()[:, ::back]
        assert (cells != together).nnz == 0
        assert cells.nnz == together.nnz


# --------------------------------------------------------------------- in pairs
def random_row(rng: np.random.Generator) -> Row:
    kind = rng.choice(["sorted", "unsorted", "twice", "empty", "all", "below", "beyond"])
    columns = rng.permutation(F)[: rng.integers(1, F + 1)]
    if kind == "sorted":
        columns = np.sort(columns)
    elif kind in ("twice", "below", "beyond"):
        extra = {"twice": columns[0], "below": -1, "beyond": F + rng.integers(3)}[kind]
        columns = rng.permutation(np.append(columns, extra))
    elif kind == "all":
        columns = np.arange(F)
    elif kind == "empty":
        columns = columns[:0]
    values = rng.choice([0.0, 1.0, -2.5, np.nan, 1e-45, 3e38], len(columns))
    return [(int(c), float(v)) for c, v in zip(columns, values, strict=True)]


def test_rows_give_together_what_each_gives_alone():
    """400 pairs: both are refused, or the cells of each are those that it has by itself."""
    rng = np.random.default_rng(11)
    refused = 0
    for number in range(400):
        form = list(MAKERS)[number % len(MAKERS)]
        pair = [random_row(rng), random_row(rng)]
        while not all(can_hold(form, row) for row in pair):
            pair = [random_row(rng), random_row(rng)]
        alone = [read(MAKERS[form]([row])) for row in pair]
        together = read(MAKERS[form](pair))
        if any(cells is None for cells in alone):
            assert together is None
            refused += 1
            continue
        assert together is not None
        np.testing.assert_array_equal(together, np.concatenate(alone))
        for row, cells in zip(pair, alone, strict=True):
            expected = np.full(F, np.nan, np.float32)
            for c, v in row:
                expected[c] = v
            np.testing.assert_array_equal(cells[0], expected)
    assert 100 < refused < 300
