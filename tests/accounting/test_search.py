"""The one root finder: what it calls safe was found to be safe."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgb_dp.accounting.curve import doubled, narrow, root_above

EDGES = st.floats(1e-6, 1e6)


@given(EDGES)
def test_doubling_encloses_the_edge(edge):
    last, next_ = doubled(lambda x: x < edge)
    assert last < edge <= next_
    assert next_ in (1.0, 2.0 * last)


def test_doubling_ends_without_asking():
    points = []

    def holds(x: float) -> bool:
        points.append(x)
        return True

    assert doubled(holds, 700.0) == (512.0, 1024.0)
    assert max(points) == 512.0


@given(EDGES, st.booleans(), st.integers(0, 80))
def test_the_safe_end_is_safe_and_near(edge, up, steps):
    def is_safe(x: float) -> bool:
        return x >= edge if up else x <= edge

    top, bottom = 1.1e6, 0.0
    safe, unsafe = narrow(is_safe, *((top, bottom) if up else (bottom, top)), steps)
    assert is_safe(safe)
    assert not is_safe(unsafe)
    # Half a unit of rounding more, where there is no double in between.
    assert abs(safe - unsafe) <= (top - bottom) * 2.0**-steps * 1.01 + math.ulp(edge)


@given(st.lists(st.floats(0.0, 1.0), max_size=5))
def test_nothing_is_assumed_of_the_condition(safe_points):
    """Whatever changes how often: only what was asked, or given, is returned as safe."""
    known = {0.0}

    def is_safe(x: float) -> bool:
        ok = any(abs(x - p) < 0.05 for p in safe_points)
        if ok:
            known.add(x)
        return ok

    assert narrow(is_safe, 0.0, 1.0, 30)[0] in known


@pytest.mark.parametrize("late", [0.0, 1e-9, 1e-6, 1e-3])
@given(edge=st.floats(0.01, 100.0))
def test_a_root_is_moved_until_it_is_safe(late, edge):
    """The condition begins to hold later than the function says, as rounding may have it."""
    root = root_above(
        lambda x: edge - x, lambda x: x >= edge + late, 0.0, 200.0, xtol=1e-12, rtol=1e-9
    )
    assert edge + late <= root <= edge * (1.0 + 4e-9) + 2.0 * late + 1e-10
