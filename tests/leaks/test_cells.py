"""No error shows a cell: neither its text, nor the chain of exceptions behind it, nor a log."""

import datetime
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import xgboost as xgb

from tests.conftest import private
from xgb_dp import DPXGBClassifier, DPXGBRegressor
from xgb_dp.errors import PrivacyError, PrivacyParameterError, RowDomainError

SECRET = "-".join(["SECRET", "CELL", "8128"])  # tracebacks show lines of code
SHARED: dict[str, Any] = {"n_estimators": 2, "max_depth": 2, "n_jobs": 1}
STOCK = private(enable_categorical=True)
OWN: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "DPXGBClassifier": lambda: DPXGBClassifier(classes=2, **OWN, **SHARED),
    "DPXGBRegressor": lambda: DPXGBRegressor(target_bounds=(0, 1), **OWN, **SHARED),
    "XGBClassifier": lambda: xgb.XGBClassifier(dp_classes=2, **STOCK, **SHARED),
    "XGBRegressor": lambda: xgb.XGBRegressor(dp_target_bounds=(0, 1), **STOCK, **SHARED),
}
estimators = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=list(ESTIMATORS))
N = 11
X = np.arange(3.0 * N).reshape(N, 3)
Y = np.arange(N) % 2


def bad(values: Any, cell: Any, dtype: Any = object) -> np.ndarray:
    """The values as objects, with this cell in row 7."""
    array = np.asarray(values).astype(dtype)
    array[(7, *[1] * (array.ndim - 1))] = cell
    return array


class Telling:
    """A cell that shows itself in whatever error is raised about it."""

    def _tell(self, *_: Any) -> Any:
        raise RuntimeError(SECRET)

    __float__ = __int__ = __index__ = __bool__ = __eq__ = __hash__ = __len__ = __str__ = _tell


CELLS: dict[str, Any] = {
    "telling": Telling(),
    "signalling": Decimal("sNaN8128"),
    "text": SECRET,
    "bytes": SECRET.encode(),
    "surrogate": SECRET + "\ud800",
    "date": datetime.datetime(2128, 8, 12, 8, 12, 8, 8128),
    "timestamp": pd.Timestamp("2128-08-12 08:12:08.008128"),
    "list": [8128, SECRET],
    "object": {SECRET: 8128},
    "large": 8128**200,
    "complex": 8128 + 1j,
}
cells = pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all that hang on it, also those that are not printed."""
    while error is not None:
        yield error
        yield from chain(error.__cause__)
        error = error.__context__


def shown_by(call: Callable[[], Any], capfd: pytest.CaptureFixture[str]) -> PrivacyError:
    """The error of a call; the test fails if anything of the cell can be seen."""
    with pytest.raises(PrivacyError) as caught:
        call()
    error = caught.value
    captured = capfd.readouterr()
    seen = [captured.out, captured.err, "".join(traceback.format_exception(error))]
    for link in chain(error):
        seen += [str(link), repr(link), repr(link.args), repr(getattr(link, "__notes__", ""))]
        seen.append(str(getattr(link, "object", "")))  # what a UnicodeEncodeError holds
    text = "\n".join(s.replace(__file__, "") for s in seen)
    message = str(error)
    assert SECRET not in text
    assert "8128" not in "\n".join([captured.out, captured.err, *map(str, chain(error))])
    assert "2128" not in text
    assert "Stack trace" not in text
    assert "U16" not in text  # the width of the longest text
    assert not {"7", str(N)} & set(message.replace(".", " ").replace(",", " ").split())
    return error


@cells
@estimators
def test_features(make, cell, capfd):
    array = np.asarray(X).astype(object)
    array[7, 1] = cell
    for table in (array, pd.DataFrame(array, columns=list("abc")), array.tolist()):
        error = shown_by(lambda table=table: make().fit(table, Y), capfd)  # type: ignore[misc]
        assert isinstance(error, RowDomainError)


@cells
@estimators
def test_labels_weights_and_margins(make, cell, capfd):
    values = Y.astype(object)
    values[7] = cell
    for wrap in (lambda v: v, list, pd.Series):
        wrong = wrap(values)
        for call in (
            lambda w=wrong: make().fit(X, w),
            lambda w=wrong: make().fit(X, Y, sample_weight=w),
            lambda w=wrong: make().set_params(dp_base_margin=True).fit(X, Y, base_margin=w),
            lambda w=wrong: (
                make().set_params(dp_public_evals=True).fit(X, Y, eval_set=[(X.copy(), w)])
            ),
        ):
            assert isinstance(shown_by(call, capfd), RowDomainError)


@pytest.mark.parametrize("name", ["DPXGBClassifier", "DPXGBRegressor"])
def test_predictions_and_selection(name, capfd):
    model = ESTIMATORS[name]().fit(X, Y)
    grid = {"max_depth": [1, 2]}
    for table in (bad(X, SECRET), pd.DataFrame(bad(X, SECRET)), bad(X, SECRET).tolist()):
        for method in ("predict", "predict_proba", "apply"):
            if hasattr(model, method):
                call = getattr(model, method)
                shown_by(lambda c=call, t=table: c(t), capfd)  # type: ignore[misc]
        shown_by(lambda t=table: ESTIMATORS[name]().fit_select(t, Y, grid), capfd)  # type: ignore[misc]
    shown_by(lambda: ESTIMATORS[name]().fit_select(X, bad(Y, SECRET), grid), capfd)
    weight = bad(Y, SECRET)
    shown_by(lambda: ESTIMATORS[name]().fit_select(X, Y, grid, sample_weight=weight), capfd)


@pytest.mark.parametrize("kind", ["pandas", "pandas category", "arrow", "polars"])
def test_declared_categories(kind, capfd):
    names = ["u", "v"] * 5 + [SECRET]
    frame = pd.DataFrame({"a": X[:, 0], "c": names})
    table: Any = frame.astype({"c": "category"}) if kind == "pandas category" else frame
    if kind == "arrow":
        table = pa.table({"a": X[:, 0], "c": names})
    if kind == "polars":
        table = pl.DataFrame({"a": X[:, 0], "c": names})
    model = DPXGBClassifier(classes=2, categories={"c": ["u", "v"]}, **OWN, **SHARED)
    assert isinstance(shown_by(lambda: model.fit(table, Y), capfd), RowDomainError)
    model = DPXGBClassifier(classes=2, **OWN, **SHARED)
    assert isinstance(shown_by(lambda: model.fit(table, Y), capfd), PrivacyParameterError)


# ------------------------------------------------------------------------ each has its own words
def fit(table: Any, labels: Any = None, **params: Any) -> Any:
    labels = Y if labels is None else labels
    return DPXGBClassifier(classes=2, **OWN, **SHARED, **params).fit(table, labels)


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (bad(X, np.inf, float), RowDomainError, "infinite feature"),
        (bad(X, 1e300, float), RowDomainError, "infinite feature"),
        (sp.csr_matrix(bad(X, -np.inf, float)), RowDomainError, "infinite feature"),
        (pd.DataFrame(bad(X, np.inf, float)), RowDomainError, "infinite feature"),
        (pd.DataFrame(X, columns=["a", "b", "a"]), PrivacyParameterError, "name 'a'"),
        (pd.DataFrame(X, columns=["1", 1, 2]), PrivacyParameterError, "name '1'"),
        (
            pd.DataFrame(X, columns=pd.Index(["a", "b\ud800", "c"], dtype=object)),
            PrivacyParameterError,
            "Unicode",
        ),
        (pd.DataFrame(X, columns=["a", "b<", "c"]), PrivacyParameterError, "Rename"),
        (pd.DataFrame({"d": pd.date_range("2020", periods=N)}), PrivacyParameterError, "'d'.*rule"),
        (pl.DataFrame({"d": [datetime.date(2020, 1, 1)] * N}), PrivacyParameterError, "'d'.*rule"),
        (pa.table({"d": [datetime.date(2020, 1, 1)] * N}), PrivacyParameterError, "'d'.*rule"),
        (X.astype("datetime64[s]"), PrivacyParameterError, "public rule"),
        (X.astype(complex), PrivacyParameterError, "Complex"),
        ([*X.tolist()[1:], [1.0, 2.0]], RowDomainError, "a different number of features"),
        (X[:, 0], PrivacyParameterError, "reshape"),
        (pl.DataFrame({"d": [[1.0]] * N}), PrivacyParameterError, "'d'"),
    ],
)
def test_messages_about_tables(table, error, words):
    with pytest.raises(error, match=words):
        fit(table)


@pytest.mark.parametrize("label", [np.nan, np.inf, 1e300, 10**400, None, "a"])
def test_messages_about_labels(label):
    with pytest.raises(RowDomainError, match="label"):
        fit(X, bad(Y, label))
    with pytest.raises(RowDomainError, match="label"):
        ESTIMATORS["DPXGBRegressor"]().fit(X, bad(Y, label))


def test_number_of_labels_and_weights():
    for make in ESTIMATORS.values():
        with pytest.raises(PrivacyParameterError, match="one entry per row") as caught:
            make().fit(X, Y[:-1])
        assert not any(c.isdigit() for c in str(caught.value))
        with pytest.raises(PrivacyParameterError, match="weight` must have one entry") as caught:
            make().fit(X, Y, sample_weight=np.ones(N + 1))
        assert not any(c.isdigit() for c in str(caught.value))


def test_objects_that_are_numbers_are_numbers():
    """Neither a missing value nor the type of another row's number changes what a row is."""
    rows = [[1, 2.5, None], [Decimal("1"), True, pd.NA], ["3", np.float32(1), np.int8(2)]]
    for table in (np.array(rows, dtype=object), pd.DataFrame(rows, dtype=object), rows):
        model = fit(table, [0, 1, 0])
        assert model.n_features_in_ == 3
    assert fit(pl.DataFrame({"a": [None] * N, "b": X[:, 1]})).n_features_in_ == 2
    assert fit(pa.table({"a": pa.nulls(N), "b": X[:, 1]})).n_features_in_ == 2
