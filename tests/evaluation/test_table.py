"""What is released: against a second derivation, what one row or person changes, and the noise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from xgb_dp import noisy_sums
from xgb_dp.accounting import GaussianEvent, make_accountant
from xgb_dp.errors import BudgetError, LedgerError
from xgb_dp.evaluation.classification import Binary
from xgb_dp.evaluation.counts import BINS, CELLS, UNIT, ScoreGrid, counts_matrix
from xgb_dp.evaluation.rows import Groups, Rows, events_for
from xgb_dp.noisy_sums import Block, Later, Layout, NoisySums, release, weights

EXAMPLES = settings(max_examples=100, deadline=None)
SURE = 1e-7


def one_row(grid: ScoreGrid, margin: float, label: int) -> np.ndarray:
    """What a row adds, from the page of the proof and without matrices."""
    cell = sum(margin >= edge for edge in grid.edges)
    out = []
    levels = int(math.log2(CELLS))
    shares = [0.5 ** (level / 2) for level in range(levels)]
    for side in (0, 1):
        tree = [math.sqrt(0.1)]
        for level in range(levels):
            weight = math.sqrt(0.5 * shares[level] / sum(shares))
            for node in range(2**level):
                half = CELLS >> (level + 1)
                place = cell - 2 * half * node
                tree.append(weight * (1 if place < half else -1) if 0 <= place < 2 * half else 0.0)
        out += [value if side == label else 0.0 for value in tree]
    ends = [grid.low, *grid.edges, grid.high]
    p = 1.0 / (1.0 + math.exp(-0.5 * (ends[cell] + ends[cell + 1])))
    bin_of = min(int(p * BINS), BINS - 1)
    out += [math.sqrt(0.4) * (label - p) if b == bin_of else 0.0 for b in range(BINS)]
    whole = np.rint(np.array(out) * UNIT)
    return np.rint(whole * math.sqrt(0.65)).astype(np.int64)  # the rest is for the second step


def binary(grid: ScoreGrid, groups: Groups | None = None) -> Binary:
    return Binary(ScoreGrid.within(grid.low, grid.high), groups)


@EXAMPLES
@given(st.floats(-8.0, 7.0), st.floats(0.1, 16.0))
@example(-0.001, 8.0)
def test_no_cell_spans_the_bound_of_a_calibration_bin(low, width):
    """The threshold of 0.5 is one of these bounds, also where it is close to the end of a grid."""
    grid = ScoreGrid.within(low, low + width)
    share = np.arange(1, BINS) / BINS
    bounds = np.log(share) - np.log1p(-share)
    assert np.isin(bounds[(bounds > grid.low) & (bounds < grid.high)], grid.edges).all()
    assert (np.diff(grid.ends) > 0).all()


@EXAMPLES
@given(
    st.floats(-8.0, 7.0),
    st.floats(0.1, 16.0),
    st.lists(st.tuples(st.floats(-40.0, 40.0), st.integers(0, 1)), max_size=6),
)
def test_sums_are_those_of_the_rows(low, width, rows):
    grid = ScoreGrid.within(low, low + width)
    plan = binary(grid)
    margins = np.array([m for m, _ in rows])
    labels = np.array([y for _, y in rows], dtype=np.float64)
    (cells,) = plan.cells(Rows(margins, labels))
    sums = plan.blocks[0].sums(cells)[0]
    expected = sum((one_row(grid, m, y) for m, y in rows), np.zeros(len(sums), dtype=np.int64))
    np.testing.assert_array_equal(sums, expected)


@EXAMPLES
@given(
    st.floats(-8.0, 8.0),
    st.floats(0.0, 16.0),
    st.lists(
        st.tuples(st.floats(width=32), st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=5
    ),
)
def test_one_row_moves_no_more_than_the_event_says(low, width, rows):
    """Any margin at all, NaN and infinities among them; the last row is the one that is added."""
    groups = Groups("g", ("a", "b"))
    plan = binary(ScoreGrid.within(low, low + width), groups)
    layout = Layout(plan.blocks)
    margins, labels, codes = (np.array(v) for v in zip(*rows, strict=True))
    sums = []
    for n in (len(rows), len(rows) - 1):
        cells = plan.cells(Rows(margins[:n], labels[:n], codes[:n]))
        sums.append([b.sums(c) for b, c in zip(plan.blocks, cells, strict=True)])
    moved = sum(int(((a - b) ** 2).sum()) for a, b in zip(*sums, strict=True))
    assert 0 < moved <= layout.sensitivity2


def test_the_bound_is_attained():
    plan = binary(ScoreGrid())
    norms = [(column.astype(object) ** 2).sum() for column in plan.blocks[0].matrix.T]
    assert max(norms) == Layout(plan.blocks).sensitivity2
    assert max(norms) == pytest.approx(0.65 * UNIT**2, rel=2e-2)
    assert max(norms) + plan.later.norm2 == pytest.approx(UNIT**2, rel=2e-2)


@EXAMPLES
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.floats(-9, 9), st.integers(0, 1)), min_size=1, max_size=12
    ),
    st.sampled_from([1, 2, 3, 7, 256]),
)
def test_one_person_moves_no_more_than_the_event_says(rows, most):
    ids, margins, labels = (np.array(v) for v in zip(*rows, strict=True))
    plan = binary(ScoreGrid())
    layout = Layout(plan.blocks, 16, "person")
    (cells,) = plan.cells(Rows(margins, labels))
    codes = ids.astype(np.uint32)
    whole = plan.blocks[0].sums(cells, codes, 16, most)
    for person in np.unique(ids):
        left = ids != person
        # Without the person nothing changes for the others: their weights are their own.
        others = weights(codes[left], int(left.sum()), 16, most)
        np.testing.assert_array_equal(others, weights(codes, len(codes), 16, most)[left])
        moved = whole - plan.blocks[0].sums(cells[left], codes[left], 16, most)
        assert int((moved.astype(object) ** 2).sum()) <= layout.sensitivity2


@pytest.mark.parametrize("most, count", [(1, 1), (1, 4), (4, 4), (4, 8), (256, 256)])
def test_a_person_attains_the_bound(most, count):
    plan = binary(ScoreGrid())
    block = plan.blocks[0]
    worst = int((block.matrix.astype(object) ** 2).sum(axis=0).argmax())
    moved = block.sums(np.full(count, worst), np.zeros(count, dtype=np.uint32), 8, most)
    assert (moved.astype(object) ** 2).sum() == Layout(plan.blocks, 8, "person").sensitivity2


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("shift", [8, 16])
@pytest.mark.parametrize("most", [1, 3, 100])
def test_sums_are_in_units_of_the_rows_of_a_person(most, shift):
    """Persons with at most this many rows count exactly; others as this many rows."""
    plan = binary(ScoreGrid())
    layout = Layout((Block(np.eye(3, dtype=np.int64)),), shift, "person", most)
    cells = np.repeat([0, 1, 2], [most, 1, 4 * most])
    (event,) = layout.events(1)
    released = release(layout, (event,), [cells], cells.astype(np.uint32))
    unit = most * ((1 << shift) // most)
    crowd = 4 * most * ((1 << shift) // (4 * most)) / unit
    np.testing.assert_allclose(released.sums[0][0], [1.0, 1.0 / most, crowd])
    assert released.noise == 1.0 / unit and crowd <= 1.0
    assert plan.layout(1.0, 1e-6, 1, persons=True, max_rows=most).max_rows == most


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("rows", [0.0, 1.0, 300.0, 1e6])
def test_one_row_moves_the_second_step_within_its_room(seed, rows):
    """Whatever the first step has released; and one person no more than one row."""
    rng = np.random.default_rng(seed)
    plan = binary(ScoreGrid.within(-3.0, 5.0), Groups("g", ("a", "b")))
    first = tuple(
        rng.normal(0.0, 3000.0, (b.copies, len(b.matrix)))
        + rng.exponential(rows, (b.copies, 2 * CELLS)) @ b.matrix.T
        for b in plan.blocks
    )
    blocks = plan.plan_second_step(NoisySums(Layout(plan.blocks), first, 2000.0))
    for shift in range(17):
        second = Layout(blocks, shift, "person")
        assert second.sensitivity2 <= plan.later.norm2 << (2 * shift)
        assert second.coordinates == plan.later.sums
    # The second derivation: a row in each cell, alone and in each group.
    moved = [
        [int((b.sums(np.array([p])).astype(object) ** 2).sum()) for p in range(b.cells)]
        for b in blocks
    ]
    assert [len(of_block) for of_block in moved] == [2 * CELLS, 3 * 2 * CELLS]
    assert (np.reshape(moved[1], (3, 2 * CELLS)) + moved[0]).max() <= plan.later.norm2


def test_a_second_step_beyond_its_room_is_not_released(monkeypatch):
    block = Block(np.full((1, 2), 10))
    layout = Layout((block,), later=Later(50, 1))
    events = events_for(layout, 1.0, 1e-6)
    assert [e.sensitivity2 for e in events] == [100, 50] and len({e.sigma2 for e in events}) == 1
    drawn: list[int] = []

    def noise(sigma2: int, size: int) -> np.ndarray:
        drawn.append(size)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(noisy_sums, "discrete_gaussian", noise)
    cells = [np.array([0, 1])]
    small = Block(np.full((1, 2), 7))
    sums = release(layout, events, cells, None, lambda first: (small,))
    assert sums.second_step is not None and float(sums.second_step.sums[0][0, 0]) == 14.0
    for wide in (Block(np.full((1, 2), 8)), Block(np.full((2, 2), 5))):
        drawn.clear()
        with pytest.raises(LedgerError, match="exceed the charged events"):
            release(layout, events, cells, None, lambda first, block=wide: (block,))
        assert drawn == [1]


def test_both_steps_together_meet_the_target():
    plan = binary(ScoreGrid(), Groups("g", ("a", "b")))
    layout = Layout(plan.blocks, later=plan.later)
    events = events_for(layout, 0.5, 1e-6)
    assert len(events) == 2
    assert 0.499 <= make_accountant("exact", events).get_epsilon(1e-6) <= 0.5


def test_cells_out_of_range_add_nothing():
    block = Block(np.ones((2, 3), dtype=np.int64))
    np.testing.assert_array_equal(block.sums(np.array([-1, 0, 2, 3, 99])), [[2, 2]])


@pytest.mark.parametrize("epsilon, delta", [(0.5, 1e-6), (0.05, 1e-9), (8.0, 1e-5), (60.0, 0.1)])
def test_noise_is_the_least_that_meets_the_target(epsilon, delta):
    layout = Layout((Block(counts_matrix(ScoreGrid())),))
    (event,) = events_for(layout, epsilon, delta)
    assert make_accountant("exact", [event]).get_epsilon(delta) <= epsilon
    less = GaussianEvent(
        "evaluation", event.sensitivity2, int(event.sigma2 * 0.998), event.coordinates, 1
    )
    assert make_accountant("exact", [less]).get_epsilon(delta) > epsilon


def test_noise_that_fits_no_grid_is_refused():
    layout = Layout((Block(counts_matrix(ScoreGrid())),), 16)
    with pytest.raises(BudgetError, match="epsilon"):
        events_for(layout, 1e-3, 1e-6)


def test_released_sums_have_the_noise_that_the_event_says():
    layout = Layout((Block(counts_matrix(ScoreGrid())),), 3, "person")
    (event,) = events_for(layout, 1.0, 1e-6)
    cells, persons = np.full(8, 20), np.repeat(np.arange(2, dtype=np.uint32), 4)
    draws = [
        release(layout, [event], [cells], persons).sums[0] * 8 - layout.blocks[0].matrix[:, 20] * 16
        for _ in range(20)
    ]
    noise = np.concatenate(draws).ravel()
    assert np.all(noise == np.rint(noise))
    total = float((noise**2).sum()) / event.sigma2
    assert chi2.ppf(SURE, noise.size) < total < chi2.isf(SURE, noise.size)


def test_less_than_is_drawn_cannot_be_booked():
    """Whatever a caller books and hands in: rows of nobody, a smaller norm, another release."""
    layout = Layout((Block(np.full((1, 2), 10)),))
    [event] = layout.events(400)
    cells, persons = [np.array([0, 1])], np.array([0, 0], dtype=np.uint32)
    assert release(layout, [event], cells).events == (event,)
    for wrong in (
        replace(event, sensitivity2=99),
        replace(event, coordinates=0),
        replace(event, unit="person"),
        replace(event, release="score"),
        replace(event, count=0),
    ):
        with pytest.raises(LedgerError, match="exceed the charged events"):
            release(layout, [wrong], cells)
    with pytest.raises(LedgerError, match="exceed the charged events"):
        release(layout, [event], cells, persons)
    of_persons = Layout(layout.blocks, 3, "person")
    with pytest.raises(LedgerError, match="exceed the charged events"):
        release(of_persons, of_persons.events(400), cells)
    with pytest.raises(LedgerError, match="several times"):
        release(of_persons, of_persons.events(400), cells, persons[:1])
    with pytest.raises(LedgerError, match="several times"):
        release(layout, [event], [np.array([[0, 1], [1, 0]])])
    with pytest.raises(LedgerError, match="must be 64-bit integers"):
        Block(np.full((1, 2), 10.9))
    with pytest.raises(ValueError, match="read-only"):
        layout.blocks[0].matrix[0, 0] = 11
