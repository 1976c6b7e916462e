"""Products of the weights of a person: what one person can change, and the intervals from them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from tests.evaluation.tasks import stock
from xgb_dp.errors import LedgerError
from xgb_dp.evaluation.classification import Binary
from xgb_dp.evaluation.counts import CELLS, ScoreGrid, sampling_covariance
from xgb_dp.evaluation.measure import plan_evaluation
from xgb_dp.evaluation.rows import Groups, events_for, read_evaluated_model
from xgb_dp.noisy_sums import Block, Layout, Pairs, release, weights

EXAMPLES = settings(max_examples=100, deadline=None)
SURE = 1e-7
ENTRY, WIDTH = 37, 3
MATRIX = ENTRY * np.eye(WIDTH**2, dtype=np.int64)[:, :: WIDTH + 1]


def by_hand(cells: Any, ids: Any, shift: int, most: int, copies: int) -> np.ndarray:
    """The sums from the definition, person by person."""
    out = np.zeros((copies, WIDTH, WIDTH), dtype=object)
    for person in np.unique(ids):
        own = cells[ids == person]
        weight = (1 << shift) // max(len(own), most)
        for copy in range(copies):
            w = [weight * int((own == copy * WIDTH + c).sum()) for c in range(WIDTH)]
            for a in range(WIDTH):
                for b in range(WIDTH):
                    out[copy, a, b] += ENTRY * w[a] * w[b] // (1 << shift)
    return out.reshape(copies, -1)


@EXAMPLES
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 6)), min_size=1, max_size=14),
    st.sampled_from([1, 2, 3, 7, 256]),
    st.sampled_from([8, 16]),
)
def test_one_person_moves_no_more_than_the_event_says(rows, most, shift):
    """Also with a copy for each of two groups, and rows in no cell."""
    ids, cells = (np.array(v) for v in zip(*rows, strict=True))
    codes, block = ids.astype(np.uint32), Pairs(MATRIX, 2)
    layout = Layout((), shift, "person", most, pairs=(block,))
    whole = block.sums(cells, codes, shift, most)
    np.testing.assert_array_equal(whole, by_hand(cells, ids, shift, most, 2))
    assert layout.sensitivity2 == (ENTRY << shift) ** 2 and layout.coordinates == 2 * WIDTH**2
    for person in np.unique(ids):
        left = ids != person
        moved = whole - block.sums(cells[left], codes[left], shift, most)
        assert int((moved.astype(object) ** 2).sum()) <= layout.sensitivity2


@pytest.mark.parametrize("most, count", [(1, 1), (1, 4), (4, 4), (4, 8), (256, 256)])
def test_a_person_attains_the_bound(most, count):
    moved = Pairs(MATRIX).sums(np.full(count, 1), np.zeros(count, dtype=np.uint32), 8, most)
    assert moved[0, WIDTH + 1] == ENTRY << 8 and np.count_nonzero(moved) == 1


def test_rows_without_persons_have_no_pairs():
    layout = Layout((), pairs=(Pairs(MATRIX),))
    with pytest.raises(LedgerError, match="charged events"):
        layout.pairs[0].sums(np.zeros(3, dtype=np.int64))


def binary(groups: Groups | None = None) -> Binary:
    return Binary(ScoreGrid.within(-3.0, 3.0), groups)


def test_pairs_are_part_of_the_event():
    """An event of the blocks alone does not cover them, and they have their share of the norm."""
    for groups, most in ((None, 2), (None, 8), (Groups("g", ("a", "b")), 8)):
        plan = binary(groups)
        layout = plan.layout(1.0, 1e-6, 1, persons=True, max_rows=most)
        alone = replace(layout, pairs=())
        added = layout.steps[0][0] - alone.steps[0][0]
        total = sum(norm2 for norm2, _ in alone.steps)
        assert added == pytest.approx(0.05 * total, rel=0.05)
        sums = 1 if groups is None else 1 + len(groups.names)
        assert layout.coordinates == alone.coordinates + sums * plan.coarse**2
        cells = plan.cells(np.zeros(4), np.ones(4), None if groups is None else np.arange(4) % 3)
        persons = np.array([0, 0, 1, 1], dtype=np.uint32)
        with pytest.raises(LedgerError, match="exceed the charged events"):
            release(layout, events_for(alone, 1.0, 1e-6), cells, persons)
        assert not plan.layout(1.0, 1e-6, 1, persons=True, max_rows=1).pairs


def test_pairs_have_the_noise_that_the_event_says():
    blocks, pairs = (Block(np.eye(21, dtype=np.int64)),), (Pairs(MATRIX, 7),)
    layout = Layout(blocks, 3, "person", pairs=pairs)
    (event,) = events_for(layout, 1.0, 1e-6)
    cells, persons = np.arange(21), np.repeat(np.arange(7, dtype=np.uint32), 3)
    exact = pairs[0].sums(cells, persons, 3)
    draws = [release(layout, [event], [cells], persons).pairs[0] * 8 - exact for _ in range(20)]
    noise = np.concatenate(draws).ravel()
    assert np.all(noise == np.rint(noise))
    total = float((noise**2).sum()) / event.sigma2
    assert chi2.ppf(SURE, noise.size) < total < chi2.isf(SURE, noise.size)


def persons_of(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and labels of 1 to 5 similar rows of each person, and the person of each row."""
    count = rng.integers(1, 6, n)
    ids = np.repeat(np.arange(n), count)
    score, taste = rng.normal(size=n)[ids], rng.normal(size=n)[ids]
    score = score + 0.5 * rng.normal(size=len(ids))
    labels = (rng.random(len(ids)) < 1.0 / (1.0 + np.exp(-score - taste))).astype(float)
    return score, labels, ids.astype(np.uint32)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("most", [2, 5])
def test_without_noise_intervals_are_as_wide_as_figures_vary(most):
    """Twice as narrow as those that allow for the largest number of equal rows."""
    rng, plan = np.random.default_rng(0), binary()
    layout = plan.layout(8.0, 1e-6, 1, persons=True, max_rows=most)
    events = layout.events(1)
    figures = []
    for _ in range(100):
        score, labels, ids = persons_of(rng, 2000)
        weight = weights(ids, len(ids), 16, most).astype(float)
        figures.append(
            [
                np.average(labels, weights=weight),
                np.average((labels > 0.5) == (score > 0.0), weights=weight),
                np.average((labels - 1.0 / (1.0 + np.exp(-score))) ** 2, weights=weight),
            ]
        )
    cells = plan.cells(score, labels)
    released = release(layout, events, cells, ids, plan.plan_second_step)
    view = plan.views(released, 0.95)[0]
    for one, drawn in zip(
        (view.base_rate, view.accuracy(), view.brier), np.transpose(figures), strict=True
    ):
        ratio = (one.high - one.low) / 3.92 / float(np.std(drawn))
        assert 0.8 < ratio < 1.3
    alone = plan.views(replace(released, layout=replace(layout, pairs=()), pairs=()), 0.95)[0]
    share = (view.accuracy().high - view.accuracy().low) / (
        alone.accuracy().high - alone.accuracy().low
    )
    assert share < {2: 0.9, 5: 0.7}[most]


@pytest.mark.parametrize("persons", [300, 3000])
def test_equal_rows_of_persons_count_as_one(persons, known):
    """The variance is that of independent persons, never more; noise hardly makes it less."""
    plan, rng = binary(), np.random.default_rng(0)
    layout = plan.layout(1.0, 1e-6, 1, persons=True, max_rows=2)
    events = events_for(layout, 1.0, 1e-6)
    ids = np.repeat(np.arange(persons, dtype=np.uint32), 2)
    score = rng.normal(size=persons)[ids]
    labels = (rng.random(persons) < 0.4).astype(float)[ids]
    released = release(layout, events, plan.cells(score, labels), ids, plan.plan_second_step)
    (one,) = plan._posteriors(released, draws=1)
    counts = one.by_class.ravel()
    of_persons = sampling_covariance(counts, one.pairs)
    values = np.linalg.eigvalsh(of_persons / np.sqrt(np.outer(counts, counts)))
    assert values.min() > -1e-9 and values.max() < 1.0 + 1e-9
    assert values.sum() > 0.8 * 2 * CELLS
    np.testing.assert_array_equal(sampling_covariance(counts, None), np.diag(counts))


@pytest.mark.usefixtures("quiet")
def test_other_kinds_count_persons_of_the_mean_size():
    """Persons with two or eight equal rows: sums vary as those of persons of a row's mean size."""
    rng = np.random.default_rng(0)
    count = rng.choice([2, 8], 3000)
    ids = np.repeat(np.arange(3000), count).astype(np.uint32)
    X, labels = rng.normal(size=(3000, 2))[ids], rng.normal(size=3000)[ids]
    model = read_evaluated_model(stock(X, labels, objective="reg:squarederror"))
    plan = plan_evaluation((model,), None, None, (-5.0, 5.0))
    layout = plan.layout(8.0, 1e-6, 1, persons=True, max_rows=8)
    released = release(layout, layout.events(1), plan.cells(0.0 * labels, labels), ids)
    size = float((count**2).sum() / count.sum())
    view, _ = plan.views(released, 0.95)
    assert view.scale == pytest.approx(size, rel=0.01)
    assert float(view.figures()["rows"]) == pytest.approx(len(ids), rel=0.01)
    spread = float(np.std(labels)) * np.sqrt(size / len(ids))
    assert (view.bias.high - view.bias.low) / 3.92 == pytest.approx(spread, rel=0.05)
