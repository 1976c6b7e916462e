"""What is drawn, from which sums, and what is shown of it. Claims: docs/proofs/discovery.md."""

import ctypes
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from xgboost.core import XGBoostError

from tests.reference.candidates import private_cuts, walk
from tests.reference.draws import Noise
from tests.reference.noise import ChaCha20Source
from xgb_dp import noisy_sums
from xgb_dp.accounting import PERSON, ThresholdEvent, Unit
from xgb_dp.accounting.gaussian import failure_of
from xgb_dp.discovery.discover import compute_epsilon, plan_discovery
from xgb_dp.engine import native
from xgb_dp.errors import BudgetError, LedgerError, RowDomainError
from xgb_dp.noisy_sums import (
    LEVELS,
    ColumnPlan,
    numbers_request,
    release_numbers,
    release_strings,
    votes,
    weights,
)

KEY = "5a" * 32
STREAM = 1 << 30


def table(n: int = 400, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = np.stack(
        [rng.normal(size=n), rng.lognormal(3, 2, n), rng.integers(0, 3, n), np.zeros(n)]
    )
    columns[0, rng.random(n) < 0.3] = np.nan
    return columns.astype(np.float32)


def plan_of(columns: int, epsilon: float = 2.0, **changes) -> ColumnPlan:
    return replace(plan_discovery(1, columns, epsilon, 1e-6), **changes)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("persons", [False, True])
def test_trees_are_those_of_the_oracle(noisy, persons):
    columns = table()
    plan = plan_of(len(columns))
    codes = np.arange(columns.shape[1], dtype=np.uint32) // 3 if persons else None
    each = weights(codes, columns.shape[1], plan.number_shift)
    changes = {"test_key": KEY}
    if not noisy:
        changes = {"noise_free": True, "sigma2": 0}
    request = numbers_request(plan, **changes)
    released = native.discover_numbers(columns, each, request)["columns"]
    noise = Noise({"noise_free": not noisy, "test_key": KEY})
    noise.source = ChaCha20Source(bytes.fromhex(KEY), STREAM)
    trees = walk(list(columns), request, noise, each)
    unit = 1 << plan.number_shift
    for column, numbers, tree in zip(columns, released, trees, strict=True):
        assert [tuple(leaf[:2]) for leaf in numbers["leaves"]] == [c[:2] for c in tree.cells]
        counts = [leaf[2] for leaf in numbers["leaves"]]
        np.testing.assert_allclose(counts, [c.estimate for c in tree.cells], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(numbers["cuts"], private_cuts(tree)[:-1], rtol=1e-6, atol=1e-44)
        if not noisy:
            assert numbers["missing"] == pytest.approx(each[np.isnan(column)].sum() / unit)


def test_requests_have_noise_and_weights_in_range():
    columns = table(20)
    each = np.full(20, 1, dtype=np.int64)
    plan = plan_of(4, number_shift=0)
    with pytest.raises(XGBoostError, match="sigma2"):
        native.discover_numbers(columns, each, numbers_request(plan, sigma2=0))
    for wrong in (each * 2, -each):
        with pytest.raises(XGBoostError, match="out of range"):
            native.discover_numbers(columns, wrong, numbers_request(plan))


def test_more_rows_than_sums_can_hold_are_refused():
    """Before any of them is read: only their number is made up here."""
    request = json.dumps(numbers_request(plan_of(1, number_shift=26))).encode()
    cells, each = (ctypes.c_float * 1)(), (ctypes.c_int64 * 1)()
    rows, columns = ctypes.c_uint64(2**35 + 1), ctypes.c_uint64(1)
    with pytest.raises(XGBoostError, match="too many rows"):
        native.call_for_string("XGDPDiscoverNumbers", cells, each, rows, columns, request)


def test_tables_of_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(noisy_sums, "_FEWER_ROWS", 20)
    monkeypatch.setattr(noisy_sums, "discrete_gaussian", lambda *_: pytest.fail("drawn"))
    monkeypatch.setattr(native, "discover_numbers", lambda *_: pytest.fail("drawn"))
    codes = np.zeros(20, dtype=np.int64)
    block = noisy_sums.Block(np.ones((1, 1), dtype=np.int64))
    layout = noisy_sums.Layout((block,))
    for draw in (
        lambda: noisy_sums.release(layout, layout.events(1 << 20), [codes]),
        lambda: release_strings(plan_discovery(1, 0, 1.0, 1e-6), {"a": (codes, ["b"])}),
        lambda: release_numbers(plan_of(4), table(20)),
    ):
        with pytest.raises(RowDomainError, match="could overflow"):
            draw()


def changes_of(columns, weights, more_columns, more_weights, plan) -> float:
    """Squared length of what exact counts of a column change by, all nodes of all levels taken."""

    def sums(values, each):
        here = ~np.isnan(values)
        bits = values.copy()
        bits[bits == 0] = 0
        keys = bits[here].view(np.uint32).astype(np.int64)
        keys = np.where(keys >> 31, keys ^ 0xFFFFFFFF, keys | 1 << 31)
        released = {}
        for level in range(LEVELS):
            for cell, weight in zip(keys >> (32 - level), each[here], strict=True):
                released[level, int(cell)] = released.get((level, int(cell)), 0) + int(weight)
        released["missing"] = int(each[~here].sum())
        return released

    total = 0.0
    for a, b in zip(columns, more_columns, strict=True):
        one, other = sums(a, weights), sums(b, more_weights)
        total += sum((one.get(k, 0) - other.get(k, 0)) ** 2 for k in {*one, *other})
    return total


@pytest.mark.parametrize("rows_of_person", [1, 2, 7, 40])
def test_neighbours_differ_by_at_most_the_sensitivity(rows_of_person):
    rng = np.random.default_rng(rows_of_person)
    columns = table(60)
    plan = plan_of(len(columns), unit=PERSON)
    for _ in range(5):
        more = np.concatenate([columns, table(rows_of_person, int(rng.integers(1 << 30)))], axis=1)
        codes = np.concatenate([np.arange(60), np.full(rows_of_person, 60)]).astype(np.uint32)
        after = weights(codes, 60 + rows_of_person, plan.number_shift)
        before = weights(codes[:60], 60, plan.number_shift)
        assert after[60:].sum() <= 1 << plan.number_shift
        changed = changes_of(columns, before, more, after, plan)
        assert changed <= plan.events[0].sensitivity2


def test_one_row_attains_the_sensitivity():
    columns = table(60)
    plan = plan_of(len(columns))
    row = np.array([[3.0], [4.0], [1.0], [0.0]], dtype=np.float32)
    more = np.concatenate([columns, row], axis=1)
    each = weights(None, 61, plan.number_shift)
    assert changes_of(columns, each[:60], more, each, plan) == plan.events[0].sensitivity2


def test_votes_are_fair_and_one_for_each_person():
    codes = np.array([0, 1, 1, 1, 2, 2, 1], dtype=np.uint32)
    seen = np.zeros(len(codes))
    for _ in range(4000):
        rows = votes(codes)
        assert sorted(codes[rows]) == [0, 1, 2]
        seen[rows] += 1
    expected = 4000 / np.bincount(codes)[codes]
    # Six standard deviations of a binomial.
    assert np.all(np.abs(seen - expected) <= 6 * np.sqrt(expected) + 1e-9)
    assert seen[0] == 4000


def test_a_text_is_shown_by_its_noisy_count(monkeypatch):
    plan = ColumnPlan(1, 0, "row", text_shift=3, text_sigma2=64, threshold=80)
    codes = np.repeat([-1, 0, 1, 2], [5, 10, 9, 20])
    noise = np.array([8, 0, 8, -81])

    def drawn(sigma2, size):
        assert (sigma2, size) == (64, 4)
        return noise

    monkeypatch.setattr(noisy_sums, "discrete_gaussian", drawn)
    released = release_strings(plan, {"t": (codes, ["b", "a", "c"])})["t"]
    assert released.counts == {"a": 10.0, "b": 10.0}  # both at the threshold; sorted
    assert list(released.counts) == ["a", "b"]
    assert released.missing == 6.0


def test_a_text_without_a_vote_is_never_shown(monkeypatch):
    plan = ColumnPlan(1, 0, "row", text_shift=0, text_sigma2=1, threshold=1)
    monkeypatch.setattr(noisy_sums, "discrete_gaussian", lambda s, size: np.full(size, 10**9))
    columns = {"t": (np.array([0, 0, -1]), ["a", "only in other rows"])}
    released = release_strings(plan, columns)["t"]
    assert set(released.counts) == {"a"}


def test_a_single_unit_is_shown_no_more_often_than_claimed():
    """A large delta, so that it can be counted; and a little less noise would be found."""
    plan = plan_discovery(1, 0, 3.0, 0.04)
    failure = failure_of(next(e for e in plan.events if isinstance(e, ThresholdEvent)), 1)
    assert failure <= 0.01
    draws_of = 100_000
    noisy = native.discrete_gaussian(plan.text_sigma2, draws_of) + (1 << plan.text_shift)
    times = int((noisy >= plan.threshold).sum())
    expected = failure * draws_of
    assert abs(times - expected) < 6 * math.sqrt(expected) + 0.02 * expected


@pytest.mark.parametrize(("strings", "numbers"), [(1, 0), (0, 1), (5, 3), (200, 40)])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0])
@pytest.mark.parametrize(("persons", "group"), [(False, 1), (True, 1), (False, 4)])
def test_noise_meets_the_target_and_wastes_little(strings, numbers, epsilon, persons, group):
    unit = Unit("person" if persons else "row", group)
    plan = plan_discovery(strings, numbers, epsilon, 1e-6, unit)
    assert 0.97 * epsilon <= compute_epsilon(plan, 1e-6, group) <= epsilon
    assert {e.unit for e in plan.events} == {"person" if persons else "row"}


def test_a_target_too_small():
    with pytest.raises(BudgetError):
        plan_discovery(1, 1, 1e-9, 1e-40)


@pytest.mark.parametrize("persons", [None, np.zeros(5, dtype=np.uint32)])
def test_more_than_the_plan_pays_for_is_not_drawn(persons, monkeypatch):
    """Another column, or rows where the plan is for persons and the other way round."""
    for name in ("discrete_gaussian", "draw_words"):
        monkeypatch.setattr(noisy_sums, name, lambda *_: pytest.fail("drawn"))
    monkeypatch.setattr(native, "discover_numbers", lambda *_: pytest.fail("drawn"))
    text, values = (np.zeros(5, dtype=np.int64), ["a"]), np.zeros((2, 5), dtype=np.float32)
    same, other = ("row", PERSON) if persons is None else (PERSON, "row")
    for unit, numbers, names in ((same, 1, "ab"), (other, 2, "a")):
        plan = ColumnPlan(1, numbers, unit, 3, 64, 80, 3, 64)
        with pytest.raises(LedgerError, match="exceed the charged events"):
            release_numbers(plan, values, persons)
        with pytest.raises(LedgerError, match="exceed the charged events"):
            release_strings(plan, dict.fromkeys(names, text), persons)


def test_nobody_counts_twice():
    plan, persons = ColumnPlan(1, 2, PERSON, 3, 64, 80, 3, 64), np.zeros(4, dtype=np.uint32)
    with pytest.raises(LedgerError, match="several times"):
        release_strings(plan, {"t": (np.zeros(5, dtype=np.int64), ["a"])}, persons)
    with pytest.raises(LedgerError, match="several times"):
        release_numbers(plan, np.zeros((2, 5), dtype=np.float32), persons)


def test_the_event_is_that_of_what_was_drawn(monkeypatch):
    drawn = native.discover_numbers
    monkeypatch.setattr(
        native,
        "discover_numbers",
        lambda values, each, request: drawn(
            values, each, {**request, "sigma2": request["sigma2"] + 1}
        ),
    )
    with pytest.raises(LedgerError, match="differs from its plan"):
        release_numbers(plan_of(4), table(20))
