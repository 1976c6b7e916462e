"""Budgets with rooms for the parts of a split whose coins stay secret."""

import json
from pathlib import Path

import pytest

import xgb_dp
from xgb_dp.accounting import GaussianEvent, LaplaceEvent
from xgb_dp.accounting.gaussian import gaussian_mu
from xgb_dp.data.parts import Part
from xgb_dp.record import sealed

TOTAL = {"epsilon": 1.0, "delta": 1e-6}
SECRET = {"secret_test": 0.3, "test_epsilon": 0.2}
NUM = round(0.3 * 2**32)
TRAIN, TEST = (Part("aa", name, "row", NUM) for name in ("train", "test"))


def release(epsilon: float, delta: float = 1e-6) -> list[GaussianEvent]:
    mu = gaussian_mu(epsilon, delta) / 1.001
    return [GaussianEvent("leaves", 1 << 40, int((1 << 40) / mu**2) + 1, 2, 1)]


def book(path: Path, **changes: object) -> xgb_dp.Budget:
    return xgb_dp.Budget(path / "b.json", **{**TOTAL, **SECRET, **changes})


def refused(budget: xgb_dp.Budget, epsilon: float, part: Part | None) -> None:
    before = len(budget.entries)
    with pytest.raises(xgb_dp.BudgetError, match="exceed"):
        budget.reserve(release(epsilon), part=part)
    assert len(budget.entries) == before


def test_the_first_part_may_cost_more_than_the_total(tmp_path):
    budget = book(tmp_path)
    assert 1.19 < budget.remaining() < 1.25 and budget.remaining(part="test") == 0.2
    assert xgb_dp.Budget(tmp_path / "plain.json", **TOTAL).remaining() == 1.0
    budget.reserve(release(0.15), part=TEST)
    budget.reserve(release(1.19), part=TRAIN)
    refused(budget, 0.3, TRAIN)
    refused(budget, 0.15, TEST)
    budget.verify()
    assert "rests on a promise" in budget.statement()
    assert [entry.part for entry in budget.entries] == [TEST, TRAIN]
    other = xgb_dp.Budget(budget.path, **SECRET)
    assert other.secret == budget.secret and other.remaining() == budget.remaining()


@pytest.mark.parametrize(
    "part",
    [
        None,  # all rows, or a copy of a part
        Part("bb", "train", "row", NUM),  # another split
        Part("cc", "train", "row", NUM + 1),  # another share than the book's
        Part("dd", "train", "row"),  # nobody promised anything
        Part("ee", "train", "person", NUM),  # the other rows of a person have the coin, too
    ],
)
def test_everything_else_needs_room_in_both_parts(tmp_path, part):
    budget = book(tmp_path)
    budget.reserve(release(0.05), part=TRAIN)
    refused(budget, 0.25, part)
    budget.reserve(release(0.17), part=part)
    left = budget.remaining(part="test"), budget.remaining()
    refused(budget, 0.17, part)
    refused(budget, 0.17, TEST)
    budget.reserve(release(1.0), part=TRAIN)
    assert left[0] < 0.17 < 1.0 < left[1]
    budget.verify()


def test_epsilons_that_add_up_have_rooms_too(tmp_path):
    budget = book(tmp_path, delta=1e-100)  # no Gaussian has room here

    def reserve(num: int, part: Part | None) -> None:
        budget.reserve([LaplaceEvent("leaves", num, 1000, 1)], part=part)

    for num, part in ((1100, TRAIN), (190, TEST), (40, TRAIN)):
        reserve(num, part)
    for num, part in ((100, TRAIN), (20, TEST), (20, None)):
        with pytest.raises(xgb_dp.BudgetError, match="exceed"):
            reserve(num, part)
    reserve(5, None)
    budget.verify()


def test_coins_of_persons_for_a_total_of_persons(tmp_path):
    budget = book(tmp_path, unit="person")
    events = [GaussianEvent("x", 1 << 40, 1 << 51, 2, 1, unit="person")]
    budget.reserve(events, part=Part("aa", "test", "person", NUM))
    left = budget.remaining()
    assert left > 1.19 and budget.remaining(part="test") < 0.2
    budget.reserve(events, part=Part("aa", "test", "row", NUM))  # rows of persons, torn apart
    assert budget.remaining() < left


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"group": 2}, "group"),
        ({"secret_test": None}, "secret_test"),
        ({"secret_test": 1.0}, "secret_test"),
        ({"test_epsilon": 1.5}, "test_epsilon"),
        ({"test_epsilon": 0.0}, "test_epsilon"),
        ({"selection_epsilon": 0.9}, "test_epsilon"),
    ],
)
def test_rooms_that_there_cannot_be(tmp_path, changes, match):
    with pytest.raises(xgb_dp.PrivacyParameterError, match=match):
        book(tmp_path, **changes)
    assert not (tmp_path / "b.json").exists()


def test_rooms_cannot_be_changed(tmp_path):
    budget = book(tmp_path)
    for changes in ({"secret_test": 0.4}, {"test_epsilon": 0.3}):
        with pytest.raises(xgb_dp.PrivacyParameterError, match="cannot be changed"):
            xgb_dp.Budget(budget.path, **changes)
    plain = xgb_dp.Budget(tmp_path / "plain.json", **TOTAL)
    assert "secret" not in json.loads(plain.path.read_text())
    with pytest.raises(xgb_dp.PrivacyParameterError, match="cannot be changed"):
        xgb_dp.Budget(plain.path, secret_test=0.3)
    content = sealed.loads(budget.path.read_text())
    changed = {**content, "secret": {**content["secret"], "test_epsilon": 0.1}}
    budget.path.write_text(sealed.dumps(changed))
    with pytest.raises(xgb_dp.BudgetError, match="replaced by another"):
        budget.remaining()


@pytest.mark.parametrize(
    "secret", [None, {}, {"test_num": 0, "test_epsilon": 0.2}, {"test_num": 1, "test_epsilon": 2.0},
               {"test_num": True, "test_epsilon": 0.2}, {"test_num": 1.5, "test_epsilon": 0.2}]
)  # fmt: skip
def test_damaged_rooms_are_refused(tmp_path, secret):
    budget = book(tmp_path)
    content = {**sealed.loads(budget.path.read_text()), "secret": secret}
    budget.path.write_text(sealed.dumps(content))
    with pytest.raises(xgb_dp.BudgetError, match="damaged"):
        xgb_dp.Budget(budget.path)


def test_a_book_that_holds_too_much_is_found(tmp_path):
    budget = book(tmp_path)
    name = budget.reserve(release(0.9), part=TRAIN)
    content = sealed.loads(budget.path.read_text())
    (line,) = content["entries"]
    line["part"] = TEST.to_json()
    budget.path.write_text(sealed.dumps(content))
    assert name == budget.entries[0].id
    with pytest.raises(xgb_dp.BudgetError, match="exceed"):
        budget.verify()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("part", [0.1, 0.25, 1.0])
def test_the_plan_fits(tmp_path, epsilon, part):
    budget = book(tmp_path, epsilon=epsilon, test_epsilon=part * epsilon)
    plan = budget.plan()
    read = {"discover": None, "train": TRAIN, "evaluate": TEST}
    for name, step in plan.items():
        budget.reserve(release(step["epsilon"], step["delta"]), part=read[name])
    budget.verify()
    usual = xgb_dp.Budget(tmp_path / "plain.json", epsilon=epsilon, delta=1e-6).plan()
    if part <= 0.25:
        assert plan["train"]["epsilon"] > 1.05 * usual["train"]["epsilon"]
