"""Containers of cells: which are read, and that no cell decides what is known of one."""

import math

import numpy as np
import pandas as pd
import pytest

from tests.pairs import HIDDEN, Converted, masked
from xgb_dp.data.arrays import as_cells, as_numbers
from xgb_dp.data.matrices import private_matrix
from xgb_dp.errors import PrivacyParameterError


def test_masked_cells_are_missing():
    for kind, cell in ((object, "1"), ("U9", "1"), (np.float64, "1"), (np.int64, "1")):
        assert math.isnan(as_numbers(masked([cell, HIDDEN], kind).ravel(), "label")[1])
    dates = np.ma.masked_array(np.array(["2020-01-01"] * 2, "M8[D]"), [False, True])
    assert np.isnat(as_cells(dates, "date")).tolist() == [False, True]


def test_dates_beside_other_labels_are_refused():
    dates = pd.to_datetime(["2020-01-01"]).astype("datetime64[ns]")
    with pytest.raises(PrivacyParameterError, match="dates"):
        as_numbers(pd.DataFrame({"a": [1.0], "b": dates}), "label")


@pytest.mark.parametrize("table", [{"columns": ["a"]}, {"column_names": ["a"]}], ids=str)
def test_tables_of_unknown_libraries_are_refused(table):
    """What such a table makes of its cells, and of its dictionaries, is not known."""
    strange = type("Table", (Converted,), table)([[1.0]])
    with pytest.raises(PrivacyParameterError, match="Unknown table type"):
        private_matrix(strange)
    for strange in ({"a": [1.0]}, iter([[1.0]]), {1.0}, "1", b"1", 1.0):
        with pytest.raises(PrivacyParameterError, match="expected"):
            private_matrix(strange)
