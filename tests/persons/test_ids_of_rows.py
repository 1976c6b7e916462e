"""Ids for ``xgboost.train``: read before anything is drawn, and known for one training alone."""

import warnings
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from xgb_dp.errors import PrivacyParameterError, PrivacyWarning, RowDomainError

from ..batches import Batches
from ..conftest import arrays
from .conftest import same_partition

# Without noise, so that a training says nothing of how persons are bounded.
FREE = {"dp_epsilon": float("inf")}
pytestmark = pytest.mark.filterwarnings("ignore:.*NOT private")
N = 300
WHO = [UUID(int=i * i // 7 << 70) for i in range(N)]


def frame(**columns: Any) -> pd.DataFrame:
    X, _ = arrays()
    return pd.DataFrame(X, columns=list("abcd")).assign(**columns)


def test_rows_are_told_apart(params, matrix, codes_used):
    xgb.train(params(**FREE, dp_privacy_id=WHO), matrix(), 2)
    assert same_partition(codes_used[0], WHO)
    xgb.train(list(params(**FREE, dp_privacy_id=WHO).items()), matrix(), 2)
    assert same_partition(codes_used[1], WHO)


def test_no_ids_are_a_training_of_rows(params, matrix, codes_used):
    d = matrix()
    xgb.train(params(**FREE, dp_privacy_id=WHO), d, 2)
    xgb.train(params(**FREE, dp_privacy_id=None), d, 2)
    xgb.train(params(), d, 2)
    assert len(codes_used) == 1


@pytest.mark.parametrize("name", ["list", "series", "batches"])
def test_data_on_disk_have_an_array_beside_them(name, params, tmp_path, codes_used):
    """A person may have rows in several batches."""
    X, y = arrays()
    ids = [i % 70 for i in range(N)]
    d = xgb.DMatrix(Batches([(X[a : a + 100], y[a : a + 100]) for a in (0, 100, 200)], tmp_path))
    given = {"list": ids, "series": pd.Series(ids, name="patient"), "batches": np.array(ids)}[name]
    on_disk = xgb.train(params(**FREE, dp_privacy_id=given), d, 2)
    assert same_partition(codes_used[0], ids)
    in_memory = xgb.train(params(**FREE, dp_privacy_id=ids), xgb.DMatrix(X, y), 2)
    assert on_disk.get_dump() == in_memory.get_dump()


SECRET = "SECRET-91"
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "missing": ([SECRET] * (N - 1) + [None], RowDomainError, "no id"),
    "mixed": ([SECRET] * (N - 1) + [91], RowDomainError, "mixed kinds"),
    "fraction": (np.append(np.zeros(N - 1), 91.5), RowDomainError, "not an integer"),
    "too few": ([SECRET] * (N - 1), PrivacyParameterError, "one id per row"),
    "too many": ([SECRET] * (N + 1), PrivacyParameterError, "one id per row"),
    "a name": ("patient", PrivacyParameterError, "drop the id column"),
    "truth": (True, PrivacyParameterError, "drop the id column"),
    "number": (91, PrivacyParameterError, "one id per row"),
    "feature": (pd.Series([SECRET] * N, name="a"), PrivacyParameterError, "'a'.*also a feature"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_ids_are_refused_before_anything_is_drawn(name, params, no_noise):
    ids, kind, says = WRONG[name]
    d = xgb.DMatrix(frame(), arrays()[1])
    with pytest.raises(kind, match=says) as caught:
        xgb.train(params(**FREE, dp_privacy_id=ids), d, 2)
    assert "SECRET" not in str(caught.value)
    assert "91" not in str(caught.value)
    assert "299" not in str(caught.value)


def test_slices_take_ids_of_their_own(params, matrix, codes_used):
    d = matrix()
    rows = list(range(0, N, 3))
    with pytest.raises(PrivacyParameterError, match="one id per row"):
        xgb.train(params(**FREE, dp_privacy_id=WHO), d.slice(rows), 2)
    ids = [WHO[i] for i in rows]
    xgb.train(params(**FREE, dp_privacy_id=ids), d.slice(rows), 2)
    assert same_partition(codes_used[0], ids)


@pytest.mark.parametrize("column", ["id", "patient_nbr", "customerID", "person"])
def test_a_feature_that_looks_like_an_id_is_warned_of(column, params, recwarn):
    X, y = frame(**{column: np.arange(N)}), arrays()[1]
    with pytest.warns(PrivacyWarning, match=f"'{column}'.*dp_privacy_id"):
        xgb.train(params(), xgb.DMatrix(X, y), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        names = ["patient_age", "paid", "households", "persons_in_household"]
        xgb.train(params(), xgb.DMatrix(X.set_axis([*names, "x"], axis=1), y), 1)
        few = X.assign(**{column: pd.Categorical(np.arange(N) % 3, categories=range(3))})
        d = xgb.DMatrix(few, y, enable_categorical=True)
        xgb.train(params(dp_categories={column: [0, 1, 2]}), d, 1)
