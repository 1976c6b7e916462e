"""Rooms of a total for both parts of a secret split: by quadrature, and for adaptive choices."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.accounting.oracle import stick
from tests.accounting.test_secret import num, one_answer, sticks
from xgb_dp.accounting import LaplaceEvent
from xgb_dp.accounting.filter import Capacity, Charge, Filter, Secret, charge_of

TOTAL = Filter(1.2, 1e-2, 0.3, Secret(num(0.6), 0.4))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("part", "selection"), [(0.1, 0.2), (0.25, 0.0), (1.0, 0.0)])
def test_rooms_meet_the_total(epsilon, part, selection):
    for share, delta in ((0.3, 1e-3), (0.7, 1e-9)):
        rest = (1.0 - selection) * epsilon
        total = Filter(epsilon, delta, selection * epsilon, Secret(num(share), part * rest))
        rooms = [total.room(Charge(), name) for name in ("train", "test")]
        law = one_answer(share, *(math.sqrt(room.mu2) for room in rooms))
        assert rooms[0].extra == rooms[1].extra and rooms[0].shift == rooms[1].shift
        spent = max(sticks(*law, rest)) + rooms[0].extra
        assert 0.99 * delta < spent <= delta * (1 + 1e-4)
        today = Capacity.of(epsilon, delta, selection * epsilon)
        assert rooms[0].mu2 >= today.mu2 * (1 - 1e-6) and rooms[1].mu2 <= today.mu2 * (1 + 1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-1.0, 1.0))
def test_an_adversary_that_looks_before_choosing_a_part(seed, taste):
    """Releases of both parts and of all rows in turn, each chosen by what came before.

    Of the two coins and of the data without the row the chances of every ending are known exactly.
    """
    rng = np.random.default_rng(seed)
    paths: list[tuple[float, float, float]] = []  # chances: in the first part, second, not there
    secret = TOTAL.secret
    assert secret is not None

    def fits(name: str, charge: Charge, spent: dict[str, Charge]) -> bool:
        sides = ("train", "test") if name == "all" else (name,)
        return all(
            TOTAL.room(Charge(), side).holds(Charge.total([spent[side], charge])) for side in sides
        )

    def walk(chances: tuple[float, float, float], spent: dict[str, Charge], left: int) -> None:
        loss = math.log((0.6 * chances[0] + 0.4 * chances[1]) / chances[2])
        bold = taste * loss + 0.3 * rng.normal() > 0.0
        options = list(product(sorted((0.1, 0.3, 0.6), reverse=bold), ("train", "test", "all")))
        rng.shuffle(options)
        for epsilon, name in options if left else ():
            charge = Charge(0.0, epsilon, 0.0) if rng.random() < 0.3 else response(epsilon)
            if not fits(name, charge, spent):
                continue
            yes, flip = 1.0 / (1.0 + math.exp(-epsilon)), bool(rng.random() < 0.5)
            sides = [name in ("all", side) for side in ("train", "test")]
            after = {
                side: Charge.total([spent[side], charge]) if touched else spent[side]
                for side, touched in zip(("train", "test"), sides, strict=True)
            }
            for up in (yes, 1.0 - yes):
                with_row, without = (1.0 - up, up) if flip else (up, 1.0 - up)
                moved = [with_row if touched else without for touched in sides]
                ended = (chances[0] * moved[0], chances[1] * moved[1], chances[2] * without)
                walk(ended, after, left - 1)
            return
        paths.append(chances)

    walk((1.0, 1.0, 1.0), {"train": Charge(), "test": Charge()}, 6)
    one, other, without = np.array(paths).T
    law = secret.share * one + (1.0 - secret.share) * other
    assert law.sum() == pytest.approx(1.0) and without.sum() == pytest.approx(1.0)
    for a, b in ((law, without), (without, law)):
        assert stick(a, b, TOTAL.epsilon) <= TOTAL.delta


@cache
def response(epsilon: float) -> Charge:
    return charge_of((LaplaceEvent("answer", round(epsilon * 1000), 1000, 1),), TOTAL.delta)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 30.0, 900.0])
def test_plain_rooms_meet_the_total(epsilon):
    total = Filter(epsilon, 1e-6, 0.0, Secret(num(0.7), 0.2 * epsilon))
    spent = Charge(0.0, 1e-9 * epsilon, 0.0)
    train, test = (total.room(spent, name) for name in ("train", "test"))
    share = 1.0 - num(0.7) / 2**32
    reached = epsilon + math.log(
        share * math.exp(train.shift - epsilon) + (1 - share) * math.exp(test.shift - epsilon)
    )
    assert reached <= epsilon and reached == pytest.approx(epsilon)
    assert total.remaining(Charge(), 1e-6) > epsilon
