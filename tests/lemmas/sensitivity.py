"""Lemmas of docs/proofs/sensitivity.md.

Sensitivities are those that `xgb_dp/accounting/sensitivity.py` computes, where a query has numbers
in it. Where a query is about all numbers, `test_formulas.py` compares its formula with the code.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import z3

from tests.lemmas import Query, lemma, within
from xgb_dp.accounting import sensitivity
from xgb_dp.accounting.sensitivity import RowBound
from xgb_dp.mechanisms.splits import finest_grid

SHIFT = 3
UNIT = 1 << SHIFT
LITTLE = Fraction(1, 1000)  # by which a real bound is lowered


def size(v: z3.ArithRef) -> z3.ArithRef:
    return z3.If(v >= 0, v, -v)


@lemma
def row_of_one_tree() -> Iterator[Query]:
    """A row moves the two sums of one leaf, by a pair within its bound."""
    g, h = z3.Reals("g h")
    for mode, bits in itertools.product(("prediction", "row_weight", "clip", "filter"), (4, 18)):
        bound = RowBound(mode, 0.5, 0.25, 1.0)
        b, most = bound.unit(bits), bound.max_hessian(bits)
        row = [*within(b, g), h >= 0, h <= most]
        row += [g * g + h * h <= b * b] if bound.ball else []
        sens2 = bound.tree_sens2(bits)
        worst = [g == b, h == (0 if bound.ball else most)]
        yield Query(row, g * g + h * h <= sens2, g * g + h * h <= sens2 - 1, worst)


@lemma
def class_before_the_clip() -> Iterator[Query]:
    """p^2 + r (2 p (1 - p))^2 <= p^2 (1 + 4 r), the norm of a class that is not the label."""
    p, r = z3.Reals("p r")
    h = 2 * p * (1 - p)
    norm2, most = p * p + r * h * h, p * p * (1 + 4 * r)
    given = [p >= 0, p <= 1, r >= 0]
    yield Query(
        given, norm2 <= most, norm2 <= most * (1 - LITTLE), [r == 1, p == Fraction(1, 10000)]
    )


@lemma
def classes_on_the_grid() -> Iterator[Query]:
    """The squares of the classes of a round, for up to 5 classes: a sum has no open length."""
    b, a, root2 = z3.Reals("b a root2")
    for n_class in (2, 3, 5):
        xs = z3.Reals(" ".join(f"x{k}" for k in range(1, n_class)))
        ends = z3.Reals(" ".join(f"y{k}" for k in range(1, n_class)))
        given = [b >= 16, a >= 0, root2 >= Fraction(14142, 10000), root2 * 10000 <= 14143]
        given += [sum(xs) <= a * b]
        for x, end in zip(xs, ends, strict=True):  # a square after rounding, and x^2 <= B x
            given += [x >= 0, x <= b, end <= b * x + root2 * x + Fraction(1, 2)]
        most = b * b + n_class + a * (b * b + Fraction(3, 2) * b)
        total = b * b + sum(ends)
        tight = b * b + (n_class - 1) * Fraction(1, 2) + a * (b * b + root2 * b)
        at = [b == 16, a == 1, xs[0] == 16, *[x == 0 for x in xs[1:]]]
        yield Query(given, z3.And(total <= most, total <= tight), total <= tight - 1, at)


@lemma
def l1_of_cells() -> Iterator[Query]:
    """|G| summed over the cells of a candidate, of which a row is in one: 2, 4 or 8 cells."""
    b, q = z3.Ints("b q")
    given = [b >= 1, *within(b, q)]
    for n_cells in (2, 4, 8):
        moved, unmoved = [], []
        sides = [z3.Ints(" ".join(f"g{c}_{i}" for i in range(n_cells))) for c in (0, 1)]
        for g in sides:  # two candidates, with the row in the first cell of each
            moved.append(sum(size(v) for v in (g[0] + q, *g[1:])))
            unmoved.append(sum(size(v) for v in g))
        change = moved[0] - unmoved[0] - (moved[1] - unmoved[1])
        at = [b == 16, q == 16, sides[0][0] == 0, sides[1][0] == -20]
        yield Query(given, change <= 2 * b, change <= 2 * b - 1, at)
    for bits in range(4, 19):
        most = sensitivity.range_int("l1", RowBound("prediction", 0.5, 0.25), bits)
        yield Query([*given, b == 1 << bits], most == 2 * b, most == 2 * b - 1)


@lemma
def norm_of_a_cell() -> Iterator[Query]:
    """The norm of sums moves by at most that of the row.

    Two dimensions are enough: the plane of both vectors, turned so that the sums are on an axis.
    """
    b, before, after = z3.Reals("b before after")
    g1, g2, q1, q2 = z3.Reals("g1 g2 q1 q2")
    given = [b >= 0, before >= 0, after >= 0, q1 * q1 + q2 * q2 <= b * b, g2 == 0, g1 >= 0]
    given += [before == g1, after * after == (g1 + q1) * (g1 + q1) + q2 * q2]
    change = [after - before, before - after]
    at = [b == 16, q1 == 16, q2 == 0, g1 == 0]
    yield Query(given, z3.And(*[c <= b for c in change]), change[0] <= b - 1, at)


@lemma
def floors_of_near_numbers() -> Iterator[Query]:
    """Floors of two numbers that differ by at most the integer B differ by at most B."""
    b = z3.Int("b")
    x, y = z3.Reals("x y")
    change = z3.ToInt(x) - z3.ToInt(y)
    yield Query([b >= 0, x - y <= b], change <= b, change <= b - 1, [b == 16, x == 16, y == 0])


@lemma
def part_of_an_ordered_norm() -> Iterator[Query]:
    """max(|G_L + G_R|, G_L - G_R) moves by at most what the row adds to either side."""
    left, right, q = z3.Reals("left right q")

    def part(a: z3.ArithRef, b: z3.ArithRef) -> z3.ArithRef:
        return z3.If(size(a + b) >= a - b, size(a + b), a - b)

    for after in (part(left + q, right), part(left, right - q)):
        change = after - part(left, right)
        at = [left == 5, right == -5, q == 3]
        yield Query([], z3.And(*within(size(q), change)), change <= size(q) - 1, at)


def _width(g: z3.ArithRef, h: z3.ArithRef, u: z3.ArithRef, v: z3.ArithRef) -> z3.ArithRef:
    """What a row adds at the weight u less what it adds at v, in units of the clip tau."""
    return -(2 * u * g + h * u * u) + (2 * v * g + h * v * v)


@lemma
def newton_of_a_box() -> Iterator[Query]:
    """|g| <= a and 0 <= h <= e: 4 tau a if tau e <= a, else (a + tau e)^2 / e.

    In units of tau and a, which leaves e alone.
    """
    g, h, u, v, e = z3.Reals("g h u v e")
    row = [*within(1, g, u, v), h >= 0, h <= e]
    width = _width(g, h, u, v)
    at = [g == 1, u == -1, v == 1, h == 0, e == 1]
    yield Query([*row, e <= 1], width <= 4, width <= 4 - LITTLE, at)
    at = [g == 1, h == 2, e == 2, u == Fraction(-1, 2), v == 1]
    most = (1 + e) * (1 + e)
    yield Query([*row, e >= 1], width * e <= most, width * e <= most * (1 - LITTLE), at)


@lemma
def newton_of_a_ball() -> Iterator[Query]:
    """g^2 + r h^2 <= 1 and |g| = tau h s: the width tau^2 h (1 + s)^2, squared, in tau^2 = 1.

    r is s0 (1 - s0) / 2 where the width has its inner maximum at s0, and at least 1/8 where not.
    """
    s, s0, r = z3.Reals("s s0 r")
    rise, top = (1 + s) * (1 + s), (1 + s0) * (1 + s0)
    inside = [s >= 0, s <= 1]
    claim = rise * rise <= 16 * (s * s + r)
    at = [r == Fraction(1, 8), s == 1]
    yield Query([*inside, r * 8 >= 1], claim, rise * rise <= 14 * (s * s + r), at)
    given = [*inside, s0 >= 0, 2 * s0 <= 1, 2 * r == s0 * (1 - s0)]
    square, most = rise * rise * (s0 * s0 + r), top * top * (s * s + r)
    at = [s0 == Fraction(1, 20), s == s0]
    too_much = z3.Or(claim, square <= most * (1 - LITTLE))
    yield Query(given, z3.Or(claim, square <= most), too_much, at)


@lemma
def gain_of_a_row() -> Iterator[Query]:
    """S^2 / m moves by between -3 and 1 where |S| <= n <= m and a row adds 1 to n."""
    S, g, n, m = z3.Reals("S g n m")
    given = [n >= 0, m >= n, m > 0, *within(n, S), *within(1, g)]
    change = (S + g) * (S + g) * m - S * S * (m + 1)  # times m (m + 1)
    whole = m * (m + 1)
    at = [S == 0, g == 1, n == 0, m == Fraction(1, 2000)]
    yield Query(given, change <= whole, change <= whole * (1 - LITTLE), [m == S, g == 1, n == 1])
    at = [n == 100000, m == n, n == S, g == -1]
    yield Query(given, change >= -3 * whole, change >= -3 * whole * (1 - LITTLE), at)


@lemma
def rounded_utilities() -> Iterator[Query]:
    """Utilities that are off by at most 16 each enlarge a range by at most 64, the slack."""
    span = z3.Real("span")
    offs = z3.Reals("a b c d")  # two candidates under two data sets
    first, second = z3.Reals("first second")
    given = [*within(16, *offs), first - second <= span]
    change = first + offs[0] - offs[1] - (second + offs[2] - offs[3])
    most = span + sensitivity.UTILITY_SLACK
    yield Query(given, change <= most, change <= most - 1, [span == 4])


@lemma
def largest_range_of_a_grid() -> Iterator[Query]:
    """What is below the largest range fits the denominator, on every grid that is chosen."""
    for tau in (0.25, 1.0, 8.0):
        bound = RowBound("prediction", 0.5, 0.25)
        bits = finest_grid("newton", bound, tau)
        span = z3.Int("span")
        chosen = [span == sensitivity.range_int("newton", bound, bits, tau)]
        finer = [span == sensitivity.range_int("newton", bound, 23, tau)]
        fits = span * 2**40 < 2**63
        yield Query(chosen, fits, fits, relaxed=finer)


@lemma
def share_of_columns() -> Iterator[Query]:
    """A row adds the largest a with k a^2 <= 4^shift to k sums, or to fewer of them."""
    k, n, a = z3.Reals("k n a")
    most = sensitivity.columns_sens2(SHIFT)
    given = [k >= 1, n >= 0, n <= k, a >= 0, k * a * a <= 4**SHIFT]
    yield Query(given, n * a * a <= most, n * a * a <= most - 1, [k == 4, n == 4, a == UNIT // 2])


@lemma
def sums_of_labels() -> Iterator[Query]:
    """Every sum of an intercept moves by at most a unit, for up to 3 targets."""
    flags = itertools.product((False, True), repeat=3)
    for (public_num_rows, presence, exposures), k in itertools.product(flags, (1, 3)):
        kind = "targets" if k > 1 else "binary"
        extra = {"k": k, "presence": presence, "exposures": exposures}
        sens2 = sensitivity.intercept_sens2(kind, SHIFT, public_num_rows=public_num_rows, **extra)
        moved = z3.Reals(
            " ".join(f"v{i}" for i in range(k + (not public_num_rows) + presence + exposures))
        )
        total = sum(v * v for v in moved)
        at = [v == UNIT for v in moved]
        yield Query(within(UNIT, *moved), total <= sens2, total <= sens2 - 1, at)


@lemma
def cells_of_labels() -> Iterator[Query]:
    """Counts of classes or of cells, to which a unit adds at most one in all: a step over cells.

    Part of a unit is in the cells so far, and v in the next one. So the squares stay below the
    square of the sum, for any number of cells, 64 among them.
    """
    part, squares, v = z3.Reals("part squares v")
    given = [part >= 0, v >= 0, squares <= part * part, part + v <= UNIT]
    total = squares + v * v
    step = z3.And(total <= (part + v) * (part + v), total <= UNIT * UNIT)
    for kind in ("cells", "range", "multiclass", "rows"):
        sens2 = sensitivity.intercept_sens2(kind, SHIFT, public_num_rows=False)
        claim = z3.And(step, total <= sens2)
        yield Query(given, claim, total <= sens2 - 1, [part == 0, v == UNIT])


@lemma
def mean_of_a_person() -> Iterator[Query]:
    """trunc(S / m) is at most what one row adds, where |S| is at most m times that."""
    m, S, cut = z3.Reals("m S cut")
    given = [m >= 1, *within(m * UNIT, S), size(cut) * m <= size(S)]
    claim = z3.And(*within(UNIT, cut))
    yield Query(given, claim, cut <= UNIT - 1, [m == 3, S == 3 * UNIT, cut == UNIT])


@lemma
def sums_of_a_correction() -> Iterator[Query]:
    """2^18 of the residual and 2^16 of the prediction."""
    q_r, q_1 = z3.Ints("q_r q_1")
    given = [*within(2**18, q_r), q_1 >= 0, q_1 <= 2**16]
    sens2, total = sensitivity.correction_sens2(), q_r * q_r + q_1 * q_1
    yield Query(given, total <= sens2, total <= sens2 - 1, [q_r == -(2**18), q_1 == 2**16])


@lemma
def cells_of_features() -> Iterator[Query]:
    """A row is in one cell of each of k features of a level: k times the square of its pair."""
    k, g, h, b = z3.Reals("k g h b")
    given = [k >= 1, b >= 0, g * g + h * h <= b * b]
    total = k * (g * g + h * h)
    yield Query(given, total <= k * b * b, total <= k * b * b - 1, [k == 3, b == 16, g == 16])
