"""Coins of samples and parts are a person's: all of its rows take part, or none."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb

from tests.models import trees
from tests.reference.comparison import LOGISTIC, MIXED, make_data, make_plan, trees_of, types
from xgb_dp.engine import native
from xgb_dp.testing import train_with_plan

ROUNDS = 400
PERSONS, EACH = 300, 5
SIZES = (1, 2, 9)  # of the person who is looked at


def rows_read(
    who: npt.NDArray[np.int64], discovered: int, rounds: int = ROUNDS, **changes: Any
) -> npt.NDArray[np.int64]:
    """In each round, how many rows of one person are read, and how many of the others.

    A stump parts that person from the others, the first of two splits that are at least as good as
    none. Every row has a Hessian of one, within the bound.
    """
    plan = make_plan(
        LOGISTIC, True, [{"kind": "cuts", "cuts": [0.5]}], unit="person", rounds=rounds, depth=1,
        grid_bits=10, leaf={"eta": "0.0000001"},
        row_bound={"mode": "row_weight", "unit_hessian": True, "gradient_bound": "2.0",
                   "max_rows_per_person": "64.0"}, **changes,
    )  # fmt: skip
    x = (who == discovered).astype(np.float32)[:, None]
    d = xgb.DMatrix(x, np.arange(len(who)) % 2, nthread=1)
    native.set_persons(d, who)
    out = np.zeros((rounds, 2))
    for t, tree in enumerate(trees(train_with_plan(plan, d))):
        out[t] = [tree["sum_hessian"][2], tree["sum_hessian"][1]]
    assert np.allclose(out, np.rint(out), atol=1e-3)
    return np.rint(out).astype(np.int64)


def crowd(size: int) -> npt.NDArray[np.int64]:
    """Persons with five rows each and one with `size`, whose rows are anywhere."""
    who = np.append(np.repeat(np.arange(PERSONS), EACH), np.full(size, PERSONS))
    return np.random.default_rng(size).permutation(who)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_all_rows_of_a_person_share_a_assignment(rate, size):
    """Its rate is that of the plan, for the person and over all others."""
    num = int(rate * 2**32)
    read = rows_read(crowd(size), PERSONS, sampling_num=num)
    assert set(read[:, 0]) == {0, size}
    assert np.all(read[:, 1] % EACH == 0)
    deviation = np.sqrt(rate * (1 - rate) / ROUNDS)
    assert abs((read[:, 0] > 0).mean() - rate) < 4.5 * deviation
    others = read[:, 1] / EACH
    assert abs(others.mean() / PERSONS - rate) < 4.5 * deviation / np.sqrt(PERSONS)
    # Coins of different persons are independent: the number of those read has binomial spread.
    spread = others.std() / np.sqrt(PERSONS * rate * (1 - rate))
    assert 0.84 < spread < 1.16  # 4.5 deviations


def test_all_rows_of_a_person_are_in_one_part():
    """Of each ensemble one round reads the person, and each other person one round too."""
    parts, size = 4, 9
    read = rows_read(crowd(size), PERSONS, ensemble=parts)
    rounds = read.reshape(-1, parts, 2)
    assert np.all(np.sort(rounds[:, :, 0], axis=1) == [0, 0, 0, size])
    assert np.all(rounds[:, :, 1] % EACH == 0)
    assert np.all(rounds[:, :, 1].sum(axis=1) == PERSONS * EACH)
    shares = (rounds[:, :, 0] > 0).mean(axis=0)
    assert np.all(np.abs(shares - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / len(rounds)))


@pytest.mark.parametrize("changes", [{"sampling_num": 1 << 31}, {"ensemble": 3}], ids=str)
def test_one_row_each_in_order_is_the_sample_of_rows(changes):
    X, y = make_data(LOGISTIC, 150)
    plan = make_plan(LOGISTIC, False, MIXED, **changes)
    d = xgb.DMatrix(X, y, feature_types=types(MIXED), enable_categorical=True)
    of_rows = trees_of(train_with_plan(plan, d, nthread=1))
    native.set_persons(d, np.arange(150))
    of_persons = trees_of(train_with_plan(plan | {"unit": "person"}, d, nthread=1))
    assert str(of_rows) == str(of_persons)
    native.set_persons(d, np.arange(150)[::-1].copy())  # codes are drawn for, not rows
    assert str(of_rows) != str(trees_of(train_with_plan(plan | {"unit": "person"}, d, nthread=1)))
