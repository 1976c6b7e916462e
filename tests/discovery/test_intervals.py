"""The summary of a discovery: intervals, dates, and columns of 0 and 1."""

import math
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import xgb_dp
from tests.cli.calls import run
from xgb_dp.discovery.discover import plan_discovery
from xgb_dp.discovery.result import (
    QUANTILES,
    _percent,
    _share_interval,
    summarize_number,
    summarize_text,
)
from xgb_dp.noisy_sums import CountTree, Strings

DELTA = 1e-6
ROWS = 4000
RUNS = 60


def table() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, ROWS),
            "income": np.where(rng.random(ROWS) < 0.1, np.nan, rng.lognormal(10, 1, ROWS)),
            "smoker": rng.random(ROWS) < 0.3,
            "zero": 0,
            "joined": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 900, ROWS), "D"),
            "city": rng.choice(["Rome", "Oslo", None], ROWS, p=[0.6, 0.35, 0.05]),
        }
    )


DATA = table()
SINCE = "2014-01-01"


def test_intervals_contain_the_exact_figures():
    """Each figure at least as often as a level of 95% allows, in independent runs."""
    covered = defaultdict(list)
    for _ in range(RUNS):
        discovery = xgb_dp.discover(DATA, list(DATA), epsilon=1.5, delta=DELTA, since=SINCE)
        covered["rows"].append(abs(discovery.units - ROWS) <= 1.96 * discovery.units_noise)
        for name, column in discovery.columns.items():
            cells = DATA[name]
            exact = {"missing": cells.isna().mean()}
            if column.kind == "datetime":
                cells = (cells - pd.Timestamp(SINCE)).dt.days
            if column.categories is not None:
                exact["other"] = 1 - cells.isin(list(column.categories)).mean() - exact["missing"]
                for text, count in column.categories.items():
                    near = abs(count - (cells == text).sum()) <= 1.96 * column.noise
                    covered[name, text].append(near)
            elif column.quantiles is not None:
                present = np.sort(cells.dropna().astype(float))
                exact |= {q: present[math.ceil(q * len(present)) - 1] for q in QUANTILES}
            for figure, value in exact.items():
                low, high = column.intervals.get(figure, (0, 1))
                covered[name, figure].append(low - 1e-9 <= value <= high + 1e-9)
            for value, (low, high) in (column.values or {}).items():
                covered[name, value].append(low <= (cells == value).mean() <= high)
    assert len(covered) > 35
    for figure, hits in covered.items():
        assert sum(hits) >= binom.ppf(1e-6, len(hits), 0.95), (figure, len(hits), sum(hits))


def test_the_noise_is_no_smaller_than_stated():
    """The exact level of a share, by the distribution of the noise alone."""
    rng = np.random.default_rng(0)
    part, rest, noise = 300.0, 2700.0, 40.0
    hits = []
    for a, b in rng.normal((part, rest), noise, (4000, 2)):
        low, high = _share_interval(a, a + b, noise**2, 2 * noise**2, noise**2)
        hits.append(low <= part / (part + rest) <= high)
    assert abs(np.mean(hits) - 0.95) < 0.015
    assert _share_interval(3.0, 10.0, 100.0, 100.0) == (0.0, 1.0)
    assert _share_interval(-500.0, 1000.0, 1.0, 1.0) == (0.0, 0.0)


def tree_of(counts: dict[tuple[float, float], float], missing: float) -> CountTree:
    """A released tree over all floats with these counts, in cells from low to high."""
    keys = {}
    for (low, high), count in counts.items():
        first, last = (int(np.float32(v).view(np.uint32)) | 1 << 31 for v in (low, high))
        keys[first, last] = count
    ends = sorted({0, 1 << 32, *(end for cell in keys for end in cell)})
    leaves = [(a, b, keys.get((a, b), 0.0)) for a, b in pairwise(ends)]
    return CountTree(tuple(leaves), (), missing)


def test_columns_of_zeros_and_ones():
    plan = plan_discovery(0, 1, 1.0, DELTA)
    zero, one, two = (0.0, 1e-38), (1.0, 1.125), (2.0, 2.25)
    both = summarize_number(tree_of({zero: 7000.0, one: 3000.0}, 0.0), "number", plan)
    assert both.range == (0.0, 1.0)
    for value, share in ((0.0, 0.7), (1.0, 0.3)):
        low, high = both.values[value]
        assert low < share < high and high - low < 0.05
    constant = summarize_number(tree_of({zero: 10_000.0}, 0.0), "number", plan)
    assert list(constant.values) == [0.0] and constant.values[0.0][1] == 1.0
    for others in ({zero: 4000.0, one: 3000.0, two: 3000.0}, {one: 9000.0}, {two: 9000.0}):
        assert summarize_number(tree_of(others, 0.0), "number", plan).values is None
    assert summarize_number(tree_of({zero: 7000.0, one: 3000.0}, 0.0), "date", plan).values is None


def test_without_numbers_shares_are_unknown():
    plan = plan_discovery(1, 0, 1.0, DELTA)
    column = summarize_text(Strings({"Rome": 900.0}, 3.0), None, 0.0, plan)
    assert column.intervals == {} and column.missing is None and column.noise > 0


@pytest.mark.parametrize(
    ("ends", "text"),
    [((0.0, 0.077), "0 to 8%"), ((0.0012, 0.0031), "0.1 to 0.4%"), ((0.0, 0.0), "0 to 0%"),
     ((0.952, 1.0), "95 to 100%"), ((0.9912, 0.9993), "99.1 to 100%")],
)  # fmt: skip
def test_percentages_are_rounded_outwards(ends, text):
    assert _percent(*ends) == text


def test_what_a_user_sees(tmp_path):
    path = tmp_path / "rows.parquet"
    DATA.to_parquet(path)
    shown = run("discover", path, "--epsilon", "3", "--delta", "1e-6").stderr
    lines = {line.split(" ")[0]: line for line in shown.splitlines()}
    assert "with level 95%" in shown
    assert " ± " in lines["About"] and lines["About"].endswith(" rows.")
    assert "0 in " in lines["smoker"] and "1 in " in lines["smoker"]
    assert "nearly all" not in lines["smoker"]
    assert "missing 0 to " in lines["age"] and "0 in 9" in lines["zero"]
    assert "(each ± " in lines["city"]
    dates = lines["joined"].split("; ")
    assert dates[0].count("20") >= 2 and all(part.count("-") == 4 for part in dates[:2])
