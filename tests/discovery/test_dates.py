"""Dates become numbers by a rule that looks at one cell at a time."""

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from xgb_dp.data.arrays import PARTS, split_dates
from xgb_dp.domain.columns import PUBLIC_CUTS, read_day
from xgb_dp.errors import PrivacyParameterError, RowDomainError


def test_parts_are_those_of_the_calendar():
    start = datetime(1899, 12, 28, 5)
    days = [start + timedelta(hours=31 * i) for i in range(60_000)]
    parts = split_dates([d.isoformat() for d in days[:2000]], PARTS)
    typed = split_dates(pd.Series(days), PARTS)
    for part, of in {
        "days": lambda d: d.date().toordinal() - date(1970, 1, 1).toordinal(),
        "month": lambda d: d.month,
        "weekday": lambda d: d.weekday(),
        "hour": lambda d: d.hour,
    }.items():
        assert np.array_equal(parts[part], [of(d) for d in days[:2000]])
        assert np.array_equal(typed[part], [of(d) for d in days])


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-29", "2024-02-29T13:45", "2024-02-29 13:45:07", "2024-02-29T13:45:07.25Z",
        "2024-02-29 13:45:07+01:00", " 2024-02-29 13:45:07-0530 ",
    ],
)  # fmt: skip
def test_forms_of_strings(text):
    parts = split_dates([text], PARTS, since="2024-01-01")
    assert parts["days"][0] == 59
    assert parts["hour"][0] == (13 if ":" in text else 0)


def test_containers_agree():
    cells = [datetime(2024, 2, 29, 23, 30), datetime(1960, 1, 1), None]
    zone = timezone(timedelta(hours=5))
    lists = [
        cells,
        np.array(cells, dtype="datetime64[ns]"),
        pd.Series(cells),
        pd.Series(["2024-02-29 23:30", "1960-01-01", None]),
        pd.Series(["2024-02-29T23:30+05:00", "1960-01-01", ""]),
        [datetime(2024, 2, 29, 23, 30, tzinfo=zone), date(1960, 1, 1), pd.NaT],
        pd.Series(cells).dt.tz_localize("Asia/Tokyo"),
        pa.array(pd.Series(cells).dt.tz_localize("Asia/Tokyo")),
    ]
    expected = split_dates(lists[0], PARTS)
    assert expected["days"][1] == -3653 and np.isnan(expected["hour"][2])
    for each in lists[1:]:
        parts = split_dates(each, PARTS, missing=("",))
        for part in PARTS:
            np.testing.assert_array_equal(parts[part], expected[part])


@pytest.mark.parametrize(
    "cell", ["29.2.2024", "2023-02-29", "SECRET", "2024-02-29T25:00", 20240229, [1], "2024"]
)
def test_what_is_no_date_is_not_shown(cell):
    with pytest.raises(RowDomainError) as error:
        split_dates(np.array([cell, None], dtype=object), PARTS)
    assert "SECRET" not in str(error.value) and error.value.__context__ is None


def test_a_cell_counts_by_itself():
    cells = ["2024-02-29 10:00", "0001-01-01", "9999-12-31T23:59:59Z"]
    together = split_dates(cells, PARTS)
    for i, cell in enumerate(cells):
        alone = split_dates([cell], PARTS)
        assert all(alone[part][0] == together[part][i] for part in PARTS)


def test_public_cuts_part_all_values():
    for part, values in {"month": range(1, 13), "weekday": range(7), "hour": range(24)}.items():
        bins = np.searchsorted(PUBLIC_CUTS[part], list(values), side="right")
        assert len(set(bins)) == len(values)


def test_days_that_are_declared():
    assert read_day("since", "2000-01-31") == "2000-01-31"
    assert read_day("since", date(2000, 1, 31)) == "2000-01-31"
    for wrong in ("31.1.2000", "2000-02-30", 5, None):
        with pytest.raises(PrivacyParameterError, match="since"):
            read_day("since", wrong)
