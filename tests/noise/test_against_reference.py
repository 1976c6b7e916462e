"""C++ and exact Python integers agree draw by draw, so also in how much of the stream they use."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.noise import native
from tests.reference import noise as reference

EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)
STREAMS = st.integers(0, 2**32 - 1)
KEYS = st.binary(min_size=32, max_size=32)


def magnitudes(largest_exponent: int, smallest: int = 1) -> st.SearchStrategy[int]:
    """Integers of every order of magnitude up to 2^largest_exponent, the powers of two included."""
    edges = [2**k + d for k in range(largest_exponent) for d in (-1, 0, 1)]
    edges.append(2**largest_exponent)
    return st.one_of(
        st.sampled_from([e for e in edges if smallest <= e <= 2**largest_exponent]),
        st.integers(0, largest_exponent).flatmap(
            lambda k: st.integers(smallest, max(smallest, 2**k))
        ),
    )


# The oracle of each sampler with one parameter, bits of the largest one, and draws.
SAMPLERS = {
    "uniform": (reference.uniform_below, 63, 40),
    "uniform128": (reference.uniform_below, 126, 40),
    "discrete_laplace": (reference.discrete_laplace, 48, 25),
    "discrete_gaussian": (reference.discrete_gaussian, 56, 25),
}


@pytest.mark.parametrize("name", SAMPLERS)
@EXAMPLES
@given(KEYS, STREAMS, st.data())
def test_one_parameter(name, key, stream, data):
    oracle, bits, n = SAMPLERS[name]
    parameter = data.draw(magnitudes(bits))
    rng = reference.ChaCha20Source(key, stream)
    drawn = getattr(native, name)(key, stream, parameter, n)
    assert list(drawn) == [oracle(rng, parameter) for _ in range(n)]


@EXAMPLES
@given(KEYS, STREAMS, st.one_of(st.integers(0, 3), magnitudes(63)), magnitudes(126), st.data())
def test_bernoulli_exp(key, stream, q, b, data):
    a = data.draw(st.one_of(st.sampled_from([0, b]), st.integers(0, b)))
    rng = reference.ChaCha20Source(key, stream)
    assert native.bernoulli_exp(key, stream, q, a, b, 60).tolist() == [
        reference.bernoulli_exp(rng, q, a, b) for _ in range(60)
    ]


@EXAMPLES
@given(
    KEYS,
    STREAMS,
    st.lists(
        st.one_of(st.integers(-10, 10), st.integers(1 - 2**62, 2**62 - 1)), min_size=1, max_size=30
    ),
    st.one_of(st.just(0), magnitudes(46)),
    magnitudes(62),
)
def test_select(key, stream, utilities, eps_num, den):
    rng = reference.ChaCha20Source(key, stream)
    assert native.select(key, stream, utilities, eps_num, den, 15).tolist() == [
        reference.select_exponential(rng, utilities, eps_num, den) for _ in range(15)
    ]


@st.composite
def groups(draw):
    """Utilities of groups of one size, and bounds of them, some of which are reached."""
    size = draw(st.integers(1, 4))
    width = draw(st.sampled_from([3, 1000, 2**61]))
    numbers = st.integers(-width, width)
    rows = st.lists(numbers, min_size=size, max_size=size)
    utilities = draw(st.lists(rows, min_size=1, max_size=9))
    loose = st.one_of(st.just(0), st.integers(0, width))
    return utilities, [max(row) + draw(loose) for row in utilities]


@EXAMPLES
@given(KEYS, STREAMS, groups(), st.one_of(st.just(0), magnitudes(46)), magnitudes(62))
def test_select_among_groups_with_bounds(key, stream, candidates, eps_num, den):
    utilities, bounds = candidates
    rng = reference.ChaCha20Source(key, stream)
    drawn, largest = native.select_grouped(key, stream, utilities, bounds, eps_num, den, 10)
    assert drawn.tolist() == [
        reference.select_grouped(rng, utilities, bounds, eps_num, den) for _ in range(10)
    ]
    flat = [u for row in utilities for u in row]
    assert largest == flat.index(max(flat))


@pytest.mark.parametrize("bounds", [[5, 5, 5], [5, 7, 6], [5, 6, 9]])
def test_the_largest_of_groups_is_the_first_of_equals(bounds):
    """A group whose bound is the best so far may have an equal of a lower index, and no better."""
    utilities = [[1, 5], [5, 5], [5, 0]]
    largest = native.select_grouped(native.TEST_KEY, 1, utilities, bounds, 1, 2**40, 0)[1]
    assert largest == native.argmax([u for row in utilities for u in row]) == 1


@settings(max_examples=300, deadline=None, derandomize=True)
@given(magnitudes(32, smallest=0), st.sampled_from([-1, 0, 1]))
def test_integer_sqrt_next_to_squares(root, offset):
    x = min(max(root * root + offset, 0), 2**64 - 1)
    assert native.integer_sqrt(x) == math.isqrt(x)


@pytest.mark.parametrize("offset", [-1, 0, 1])
@pytest.mark.parametrize("bits", [0, 1, 31, 32, 47, 48, 49, 52, 53, 54, 60, 62])
def test_integer_sqrt128_next_to_squares(bits, offset):
    for root in (1 << bits, (1 << bits) + 1, (3 << bits) // 2, (1 << (bits + 1)) - 1):
        x = max(root * root + offset, 0)
        assert native.integer_sqrt128(x) == math.isqrt(x)


def test_integer_sqrt_at_the_end_of_its_range():
    for x in (2**64 - 1, 2**64 - 2**32, (2**32 - 1) ** 2, (2**32 - 1) ** 2 - 1, 2**53 + 1):
        assert native.integer_sqrt(x) == math.isqrt(x)


@given(st.lists(st.integers(-3, 3), min_size=1))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_argmax_is_the_first_of_the_largest(utilities):
    assert native.argmax(utilities) == utilities.index(max(utilities))
    assert reference.select_argmax(utilities) == utilities.index(max(utilities))
