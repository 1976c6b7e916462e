"""Lemmas of docs/proofs/persons.md."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import z3

from tests.lemmas import Query, lemma
from xgb_dp.accounting.sensitivity import RowBound, feature_cells, range_int

BOUND = RowBound("clip", 0.5, 0.25, 1.0, max_rows_per_person=2.5, of_person=True)
BALL = RowBound("prediction", 0.5, 0.25, max_rows_per_person=2.5, of_person=True)


@lemma
def rows_after_the_cut() -> Iterator[Query]:
    """Norms that sum to T at most, each times P / T or less, sum to P: a step over rows."""
    P, T, before, after, norm, cut = z3.Reals("P T before after norm cut")
    given = [P > 0, T > P, before >= 0, norm >= 0, cut >= 0, before + norm <= T]
    given += [after * T <= P * before, cut * T <= P * norm]
    claim = z3.And((after + cut) * T <= P * (before + norm), after + cut <= P)
    at = [P == 16, T == 32, before == 16, norm == 16, after == 8, cut == 8]
    yield Query(given, claim, after + cut <= P - 1, at)


@lemma
def norm_of_a_sum() -> Iterator[Query]:
    """A sum of vectors is no longer than their norms together: a step in the plane of both."""
    length, norm, x, y, total = z3.Reals("length norm x y total")
    given = [length >= 0, norm >= 0, total >= 0, x * x + y * y <= norm * norm]
    given += [total * total == (length + x) * (length + x) + y * y]
    at = [length == 3, norm == 2, x == 2, y == 0]
    yield Query(given, total <= length + norm, total <= length + norm - 1, at)


@lemma
def hessians_of_a_person() -> Iterator[Query]:
    """The Hessians of a person are an integer of at most P Hmax / B, and so at most its floor."""
    total = z3.Int("total")
    for bits in (4, 12, 18):
        b, P, h_max = BOUND.unit(bits), BOUND.most_gradient(bits), BOUND.max_hessian(bits)
        most = BOUND.most_hessian(bits)
        yield Query([total * b <= P * h_max], total <= most, total <= most - 1)
        T = RowBound("prediction", 0.5, 0.25, max_rows_per_person=2.5, output_gradient=0.3)
        given = [total * b <= P * -(-3 * b // 10)]
        most = T.most_gradient_of_output(bits)
        yield Query(given, total <= most, total <= most - 1)


@lemma
def floors_of_cells() -> Iterator[Query]:
    """A floor moves by less than one more than its number: 2 for each cell, shown for 1 to 4."""
    P = BALL.most_gradient(4)
    for depth in (0, 1, 2):
        span = range_int("l1", BALL, 4, joint=True, depth=depth)
        # The cells of two candidates, with the person and without.
        cells = [z3.Reals([f"{name}{i}" for i in range(1 << depth)]) for name in "abcd"]
        exact = [sum(part) for part in cells]
        floors = [sum(z3.ToInt(v) for v in part) for part in cells]
        change = floors[0] - floors[1] - (floors[2] - floors[3])
        given = [exact[0] - exact[1] - (exact[2] - exact[3]) <= 2 * P]
        given += [v >= 0 for part in cells for v in part]
        yield Query(given, change <= span, change <= span - 2)


@lemma
def thirds_of_the_sums() -> Iterator[Query]:
    """Thirds that are rounded down differ by at most a third of the difference, and one."""
    x, d, third, n, root, wide = z3.Ints("x d third n root wide")
    change = (x + d) / 3 - x / 3
    claim = z3.And(3 * change <= z3.If(d >= 0, d, -d) + 3, -3 * change <= z3.If(d >= 0, d, -d) + 3)
    yield Query([], claim, 3 * change <= z3.If(d >= 0, d, -d) + 1, [x == 2, d == 1])
    # The norm S / 3 + root(2 n), against floor(floor(S) / 3) + 2 n + 1, of which S2 is the square.
    S, norm, roots = z3.Reals("S norm roots")
    floor = z3.ToInt(S)
    given = [S >= 0, third == floor / 3, n >= 1, roots * roots == 2 * n, roots >= 0]
    given += [norm <= S / 3 + roots]
    most = z3.ToReal(third + 2 * n + 1)
    at = [n == 2, roots == 2, 3 - Fraction(1, 100) == S]
    yield Query([*given, root == n, wide == n], norm <= most, norm <= most - 3, at)


@lemma
def spread_leaves() -> Iterator[Query]:
    """Leaves of one or of several rows and the root: the squares of both parts add up."""
    g, h, root = z3.Reals("g h root")
    for bound in (BALL, BOUND):
        P, P_l = bound.most_gradient(4), bound.most_leaf_hessian(4)
        s2 = bound.round_sens2(4)
        sens2 = bound.spread_sens2(4)
        part = sens2 - max(s2, P * P + P_l * P_l)
        several = z3.And(g <= P, h <= P_l)
        given = [g >= 0, h >= 0, root >= 0, root * root <= part]
        given.append(z3.Or(several, g * g + h * h <= s2))
        total = g * g + h * h + root * root
        at = [root * root == part, g == P, h == P_l]
        yield Query(given, total <= sens2, total <= sens2 - 1, at)


@lemma
def cuts_of_a_tree() -> Iterator[Query]:
    """Cuts of a quantile tree: one for each target of light mass, and those of heavy cells."""
    bins, light, heavy, n_heavy = z3.Reals("bins light heavy n_heavy")
    for max_bin in (2, 64, 256):
        given = [bins == max_bin, light >= 0, n_heavy >= 0, 2 * heavy >= 3 * n_heavy]
        given += [light + heavy <= bins]
        cuts = light + 2 * n_heavy + heavy + 97
        at = [light == 0, heavy == bins, 3 * n_heavy == 2 * bins]
        sharp = 7 * bins <= 3 * (4 * bins)
        most = bins * Fraction(7, 3) + 97
        cells = feature_cells([("private", 0)], max_bin, tree=True)
        claim = z3.And(sharp, cuts <= most, cuts + 2 <= cells)
        yield Query(given, claim, cuts <= most - 1, at)
