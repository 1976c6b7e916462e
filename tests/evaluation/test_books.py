"""Events, budgets and parts: what the books say, before anything is drawn."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.evaluation.tasks import PRIVATE, TARGET, refused, rows, stock
from xgb_dp.accounting import GaussianEvent, Unit, make_accountant
from xgb_dp.data.parts import Part, apart, mark, part_of, reading
from xgb_dp.evaluation import run
from xgb_dp.record.ledger import read_ledger
from xgb_dp.testing import fixed_noise
from xgb_dp.tuning import run as select_run


@pytest.fixture
def budget(tmp_path: Path) -> xgb_dp.Budget:
    return xgb_dp.Budget(tmp_path / "book.json", epsilon=2.0, delta=1e-5)


@pytest.fixture
def budget_of_persons(tmp_path: Path) -> xgb_dp.Budget:
    return xgb_dp.Budget(tmp_path / "persons.json", epsilon=20.0, delta=1e-5, unit="person")


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return rows(3000)


def test_the_book_has_the_event_before_anything_is_drawn(
    budget: xgb_dp.Budget, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*args: Any) -> None:
        raise KeyboardInterrupt

    model = stock(*data)
    monkeypatch.setattr(run, "release", die)
    with pytest.raises(KeyboardInterrupt):
        xgb_dp.evaluate(model, data, budget=budget, note="judge", **TARGET)
    (entry,) = budget.entries
    event = entry.events[0]
    assert (entry.note, entry.state, event.label, event.unit) == (
        "judge",
        "reserved",
        "evaluation",
        "row",
    )
    monkeypatch.undo()
    report = xgb_dp.evaluate(model, data, budget=budget, **TARGET)
    assert [e.state for e in budget.entries] == ["reserved", "spent"]
    assert budget.entries[1].events == report.cost.events
    budget.verify()


def test_what_exceeds_the_budget_releases_nothing(
    budget: xgb_dp.Budget, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "release", lambda *args: pytest.fail("released"))
    with pytest.raises(xgb_dp.BudgetError, match="exceed"):
        xgb_dp.evaluate(stock(*data), data, epsilon=3.0, delta=1e-6, budget=budget)
    assert budget.entries == []


def test_an_open_block_books_evaluations(budget: xgb_dp.Budget, data: Any) -> None:
    with budget.drawing("block"):
        xgb_dp.evaluate(stock(*data), data, **TARGET)
        with pytest.raises(xgb_dp.BudgetError, match="nest"):
            xgb_dp.evaluate(stock(*data), data, budget=budget, **TARGET)
    (entry,) = budget.entries
    assert (entry.note, entry.state, entry.events[0].label) == ("block", "spent", "evaluation")


def test_parts_of_a_split_cost_in_parallel(budget: xgb_dp.Budget, data: Any) -> None:
    parts = xgb_dp.split(xgb.DMatrix(*data), test=0.4)
    model = budget.train(PRIVATE, parts.train, 3)
    trained = budget.spent
    report = xgb_dp.evaluate(model, parts, epsilon=0.3, delta=1e-6, budget=budget)
    assert report.cost.parallel and "never for both" in report.statement()
    assert budget.spent == trained  # the larger of both
    assert "on the part 'test' of a split" in budget.statement()
    assert "the larger sum of releases counts" in budget.statement()
    assert [e.part for e in budget.entries] == [
        Part(parts.name, "train", "row"),
        Part(parts.name, "test", "row"),
    ]
    # On all rows it would have added up, and so does what reads all rows now.
    xgb_dp.evaluate(model, data, epsilon=0.1, delta=1e-6, budget=budget)
    assert budget.spent.mu2 > trained.mu2
    budget.verify()
    # The rows that trained have no room for as much again as the hold-out has.
    more = {"epsilon": 2.0, "delta": 1e-6, "budget": budget}
    with pytest.raises(xgb_dp.BudgetError, match="exceed"):
        xgb_dp.evaluate(model, parts.train, **more)
    xgb_dp.evaluate(model, parts.test, **more)
    budget.verify()


def test_without_knowledge_costs_add_up(budget: xgb_dp.Budget, data: Any) -> None:
    X, y = data
    model = budget.train(PRIVATE, xgb.DMatrix(X, y), 3)
    report = xgb_dp.evaluate(model, (X, y), budget=budget, epsilon=0.3, delta=1e-6)
    assert not report.cost.parallel and "add up" in report.statement()
    total = sum(e.charge.mu2 for e in budget.entries)
    assert budget.spent.mu2 == pytest.approx(total)
    parts = xgb_dp.split((X, y))
    other = xgb_dp.split((X, y))
    trained = xgb.train(PRIVATE, xgb.DMatrix(*parts.train), 3)  # of a matrix of somebody's own
    assert not xgb_dp.evaluate(trained, parts, **TARGET).cost.parallel
    estimator = xgb_dp.DPXGBClassifier(
        n_estimators=3, classes=2, feature_bounds=PRIVATE["dp_feature_bounds"], **TARGET
    )
    estimator.fit(*parts.train)
    assert xgb_dp.evaluate(estimator, parts, **TARGET).cost.parallel
    assert not xgb_dp.evaluate(estimator, other, **TARGET).cost.parallel
    assert not xgb_dp.evaluate(estimator, parts.train, **TARGET).cost.parallel
    copies = tuple(np.array(v) for v in parts.test)
    assert not xgb_dp.evaluate(estimator, copies, **TARGET).cost.parallel
    again = xgb.train(PRIVATE, xgb.DMatrix(X, y), 2, xgb_model=estimator.get_booster())
    assert not xgb_dp.evaluate(again, parts, **TARGET).cost.parallel


def test_figures_of_rows_for_a_model_of_persons_are_warned_of(data: Any) -> None:
    X, y = data
    ids = np.arange(len(y)) // 2
    model = xgb.train({**PRIVATE, "dp_privacy_id": ids}, xgb.DMatrix(X, y), 1)
    with pytest.warns(xgb_dp.PrivacyWarning, match="model is for persons"):
        xgb_dp.evaluate(model, data, **TARGET)
    with warnings.catch_warnings():
        warnings.simplefilter("error", xgb_dp.PrivacyWarning)
        report = xgb_dp.evaluate(model, data, privacy_id=ids, **TARGET)
    assert report.cost.unit.name == "person"


def test_a_model_without_a_ledger_is_said_to_have_none(data: Any) -> None:
    assert "no ledger" in xgb_dp.evaluate(stock(*data), data, **TARGET).statement()


def test_labels_of_other_rows_are_of_no_part(data: Any) -> None:
    parts = xgb_dp.split(data)
    X, y = parts.train

    def part(labels: Any) -> Any:
        model = xgb_dp.DPXGBClassifier(
            n_estimators=2, classes=2, feature_bounds=PRIVATE["dp_feature_bounds"],
            epsilon=2.0, delta=1e-6,
        )  # fmt: skip
        model.fit_select(X, labels, [{"max_depth": 2}, {"max_depth": 3}])
        return read_ledger(model.get_booster()).trainings[-1].public.get("part")

    assert part(y)["name"] == "train"
    assert part(np.array(y)) is None


def test_a_selection_on_a_part_is_known(budget: xgb_dp.Budget, data: Any) -> None:
    parts = xgb_dp.split(xgb.DMatrix(*data))
    common = {k: v for k, v in PRIVATE.items() if k not in ("dp_epsilon", "dp_delta")}
    found = xgb_dp.select(
        common, parts.train, [{}], epsilon=1.9, delta=1e-6, num_boost_round=2, budget=None
    )
    assert xgb_dp.evaluate(found.booster, parts, **TARGET).cost.parallel


def test_a_selection_on_a_split_reads_both_parts(budget: xgb_dp.Budget, data: Any) -> None:
    """Trained on one part and scored on the other: what is evaluated afterwards adds up."""
    parts = xgb_dp.split(xgb.DMatrix(*data), test=0.4)
    common = {k: v for k, v in PRIVATE.items() if k not in ("dp_epsilon", "dp_delta")}
    book = xgb_dp.Budget(budget.path.parent / "s.json", epsilon=4.0, delta=1e-5,
                         selection_epsilon=2.0)  # fmt: skip
    found = xgb_dp.select(
        common, parts, [{}, {"max_depth": 2}], epsilon=1.9, delta=1e-6, num_boost_round=2,
        budget=book,
    )  # fmt: skip
    assert found.report.epsilon <= 1.9
    assert "part" not in read_ledger(found.booster).trainings[-1].public
    assert book.entries[0].part is None
    assert not xgb_dp.evaluate(found.booster, parts, **TARGET).cost.parallel


def test_a_selection_takes_a_split_as_it_was_made_only(data: Any) -> None:
    """It counts a row for the training or for the score, which must be so."""
    X, y = data
    common = {k: v for k, v in PRIVATE.items() if k not in ("dp_epsilon", "dp_delta")}
    more = {"epsilon": 1.9, "delta": 1e-6, "num_boost_round": 1}
    parts = xgb_dp.split(xgb.DMatrix(X, y))
    again = xgb_dp.split(xgb.DMatrix(X, y))
    for wrong in (
        replace(parts, test=again.test),
        replace(parts, test=parts.train),
        replace(parts, train=xgb.DMatrix(X, y)),
    ):
        with pytest.raises(xgb_dp.PrivacyRefusal, match="as it was made"):
            xgb_dp.select(common, wrong, [{}], **more)
    xgb_dp.select(common, parts, [{}], **more)
    # Labels of a row that is scored on, in rows that are trained on.
    parts.train.set_label(np.full(parts.train.num_row(), parts.test.get_label()[0]))
    with (
        pytest.warns(xgb_dp.PrivacyWarning, match="changed in place"),
        pytest.raises(xgb_dp.PrivacyRefusal, match="as it was made"),
    ):
        xgb_dp.select(common, parts, [{}], **more)
    ids = pd.Series(np.arange(len(y)) // 3, name="patient")
    parts = xgb_dp.split(xgb.DMatrix(X, y), privacy_id=ids)
    with pytest.raises(xgb_dp.PrivacyParameterError, match="another column"):
        xgb_dp.select({**common, "dp_privacy_id": "hospital"}, parts, [{}], **more)
    found = xgb_dp.select({**common, "dp_privacy_id": "patient"}, parts, [{}], **more)
    assert found.report.unit.column == "patient"
    parts.test_ids[:] = parts.train_ids[0]
    with (
        pytest.warns(xgb_dp.PrivacyWarning, match="changed in place"),
        pytest.raises(xgb_dp.PrivacyRefusal, match="as it was made"),
    ):
        xgb_dp.select({**common, "dp_privacy_id": True}, parts, [{}], **more)


def test_a_calibrated_model_holds_sums_of_the_hold_out(data: Any) -> None:
    """Rows of the hold-out pay for the calibration, and again for what is judged afterwards."""
    parts = xgb_dp.split(xgb.DMatrix(*data), test=0.4)
    model = xgb.train(PRIVATE, parts.train, 2)
    report = xgb_dp.evaluate(model, parts, **TARGET)
    assert report.cost.parallel
    made = report.calibrated(model), report.calibrated(model, method="isotonic").booster
    for calibrated in made:
        again = xgb_dp.evaluate(calibrated, parts, **TARGET)
        assert not again.cost.parallel and "add up" in again.statement()
    assert not xgb_dp.evaluate([model, made[0]], parts, **TARGET).cost.parallel


def test_the_models_of_a_selection_see_their_part_alone(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, set[int]] = {"train": set(), "score": set()}
    train, predict = select_run._train, select_run._predict

    def training(trial: Any, plan: Any, expected: Any, fit: Any) -> Any:
        seen["train"].add(fit.matrix.num_row())
        return train(trial, plan, expected, fit)

    def scored(booster: Any, matrix: Any) -> Any:
        seen["score"].add(matrix.num_row())
        return predict(booster, matrix)

    monkeypatch.setattr(select_run, "_train", training)
    monkeypatch.setattr(select_run, "_predict", scored)
    X, y = data
    ids = np.arange(len(y)) // 3
    parts = xgb_dp.split(xgb.DMatrix(X, y), test=0.3, privacy_id=ids)
    common = {k: v for k, v in PRIVATE.items() if k not in ("dp_epsilon", "dp_delta")}
    more = {"epsilon": 1.9, "delta": 1e-6, "num_boost_round": 1}
    found = xgb_dp.select({**common, "dp_privacy_id": True}, parts, [{}], **more)
    assert seen == {"train": {parts.train.num_row()}, "score": {parts.test.num_row()}}
    assert found.report.unit.name == "person"
    with pytest.raises(xgb_dp.PrivacyParameterError, match="dp_privacy_id=True"):
        xgb_dp.select({**common, "dp_privacy_id": ids}, parts, [{}], **more)
    rows_only = xgb_dp.split(xgb.DMatrix(X, y))
    with pytest.raises(xgb_dp.PrivacyParameterError, match="privacy_id=ids"):
        xgb_dp.select({**common, "dp_privacy_id": True}, rows_only, [{}], **more)
    with pytest.raises(xgb_dp.PrivacyParameterError, match="DMatrix"):
        xgb_dp.select(common, xgb_dp.split((X, y)), [{}], **more)


def test_coins_of_rows_do_not_divide_persons() -> None:
    row, other = (Part("1f", name, "row") for name in ("train", "test"))
    assert apart(row, other, "row") and not apart(row, other, "person")
    person, second = (Part("2f", name, "person") for name in ("train", "test"))
    assert apart(person, second, "person") and apart(person, second, "row")
    assert (
        not apart(row, second, "row") and not apart(row, row, "row") and not apart(None, row, "row")
    )


def charge(budget: xgb_dp.Budget, part: Part | None, unit: str = "row") -> None:
    budget.reserve([GaussianEvent("x", 1 << 20, 400 << 20, 1, 1, unit=unit)], part=part)


def test_the_book_takes_the_larger_of_two_parts(tmp_path: Path) -> None:
    budget = xgb_dp.Budget(tmp_path / "b.json", epsilon=3.0, delta=1e-5)
    one = 1 / 400
    a, b = (Part("aa", name, "row") for name in ("train", "test"))
    c, d = (Part("cc", name, "row") for name in ("train", "test"))
    for part, expected in ((a, 1), (b, 1), (b, 2), (a, 2), (None, 3), (c, 4), (d, 4), (d, 5)):
        charge(budget, part)
        assert budget.spent.mu2 == pytest.approx(expected * one, rel=1e-2)
    stored = json.loads(Path(budget.path).read_text())
    assert stored["entries"][0]["part"] == {"split": "aa", "name": "train", "unit": "row"}
    # A part that is damaged is refused, not taken for all rows or none.
    with pytest.raises(ValueError, match="part"):
        Part.from_json({"split": "aa", "name": "both", "unit": "row"})


def test_coins_of_rows_add_up_for_persons_in_the_book(tmp_path: Path) -> None:
    budget = xgb_dp.Budget(tmp_path / "b.json", epsilon=3.0, delta=1e-5, unit="person")
    for name in ("train", "test"):
        charge(budget, Part("aa", name, "row"), "person")
    assert budget.spent.mu2 == pytest.approx(2 / 400, rel=1e-2)


def test_objects_are_known_as_they_are() -> None:
    X, y = rows(200)
    parts = xgb_dp.split((X, y))
    part = part_of(parts.test)
    assert part == Part(parts.name, "test", "row")
    assert part_of((parts.test[0], parts.train[1])) is None
    assert part_of(parts.test[0][:]) is None and part_of((X, y)) is None
    name = id(parts.test[0])
    held = parts.test[0]
    assert part_of(held) == part
    del parts, held
    thing = type("Thing", (), {})()
    assert part_of(thing) is None or id(thing) != name
    mark(3, Part("aa", "test", "row"))  # what cannot be watched is not known
    assert part_of(3) is None


def other_number(parts: Any) -> None:
    parts.test[0][3, 1] = 7.0


def other_cell(parts: Any) -> None:
    parts.test[0].iloc[3, 1] = 7.0


def other_labels(parts: Any) -> None:
    parts.test.set_label(1.0 - parts.test.get_label())


def other_weights(parts: Any) -> None:
    parts.test.set_weight(np.ones(parts.test.num_row()))


def other_bounds(parts: Any) -> None:
    parts.test.set_info(label_upper_bound=np.ones(parts.test.num_row()))


def other_column(parts: Any) -> None:
    parts.test[0]["more"] = 1.0


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("numpy", other_number), ("pandas", other_cell), ("pandas", other_column),
        ("texts", other_cell), ("sparse", other_number), ("matrix", other_labels),
        ("matrix", other_weights), ("matrix", other_bounds),
    ],
)  # fmt: skip
def test_what_was_changed_in_place_is_no_part(kind: str, change: Any) -> None:
    from scipy.sparse import csr_matrix

    X, y = rows(300)
    frame = pd.DataFrame(X, columns=list("abcde"))
    data: Any = {
        "numpy": (X, y), "pandas": (frame, y), "sparse": (csr_matrix(X), y),
        "texts": (frame.astype(str).astype(object), y), "matrix": xgb.DMatrix(X, y),
    }[kind]  # fmt: skip
    parts = xgb_dp.split(data, test=0.5)
    held = parts.test if kind == "matrix" else parts.test[0]
    assert part_of(held) == part_of(held) == Part(parts.name, "test", "row")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        change(parts)
    with pytest.warns(xgb_dp.PrivacyWarning, match="changed in place"):
        assert part_of(held) is None
    assert part_of(held) is None


def test_weights_of_other_rows_are_of_no_part(data: Any) -> None:
    parts = xgb_dp.split(data)
    X, y = parts.train
    common = {"classes": 2, "feature_bounds": PRIVATE["dp_feature_bounds"], "max_weight": 1.0}

    def part(weight: Any, *, select: bool) -> Any:
        model = xgb_dp.DPXGBClassifier(n_estimators=2, **common, epsilon=2.0, delta=1e-6)
        if select:
            model.fit_select(X, y, [{}], sample_weight=weight)
        else:
            model.fit(X, y, sample_weight=weight)
        return read_ledger(model.get_booster()).trainings[-1].public.get("part")

    for select in (False, True):
        assert part(None, select=select)["name"] == "train"
        assert part(np.ones(len(y)), select=select) is None


@pytest.mark.parametrize("kind", ["pandas", "numpy", "matrix"])
def test_both_parts_together_are_all_rows(kind: str) -> None:
    import pandas as pd

    X, y = rows(1000)
    X[:, 0] = np.arange(1000)
    data: Any = {
        "numpy": (X, y),
        "pandas": (pd.DataFrame(X, columns=list("abcde")), pd.Series(y)),
        "matrix": xgb.DMatrix(X, y),
    }[kind]
    parts = xgb_dp.split(data, test=0.3)
    seen, labels = [], []
    for part in (parts.train, parts.test):
        if kind == "matrix":
            seen.append(part.get_data().toarray()[:, 0])
            labels.append(part.get_label())
        else:
            seen.append(np.asarray(part[0])[:, 0])
            labels.append(part[1])
    numbers = np.concatenate(seen)
    np.testing.assert_array_equal(np.sort(numbers), np.arange(1000))
    np.testing.assert_array_equal(np.concatenate(labels), y[numbers.astype(int)])
    assert 200 < len(seen[1]) < 400  # eleven deviations
    assert repr(parts) == f"Split(name={parts.name!r}, unit='row')"  # no numbers of rows


@pytest.mark.parametrize("kind", ["int64", "Int64", "int64[pyarrow]", "uint64", "UUID"])
def test_ids_of_a_division_are_exact(kind: str) -> None:
    """Two ids that one 64-bit float stands for are two persons in both parts."""
    X, y = rows(40)
    numbers = [2**53 + i for i in range(40)]
    plain = pd.Series(np.array(numbers))  # pandas itself reads lists by way of floats
    ids = [UUID(int=i) for i in numbers] if kind == "UUID" else plain.astype(kind)
    parts = xgb_dp.split((X, y), test=0.5, privacy_id=ids)
    seen = [*parts.train_ids.tolist(), *parts.test_ids.tolist()]
    assert sorted(seen) == (list(ids) if kind == "UUID" else numbers)


def test_coins_of_persons_keep_their_rows_together() -> None:
    X, y = rows(1200)
    ids = np.repeat(np.arange(300), 4)
    parts = xgb_dp.split((X, y), test=0.5, privacy_id=ids)
    train, test = set(parts.train_ids), set(parts.test_ids)
    assert train.isdisjoint(test) and train | test == set(range(300))
    assert parts.unit == "person" and len(parts.test_ids) == len(parts.test[1])
    report = xgb_dp.evaluate(stock(X, y), parts, **TARGET)
    assert report.cost.unit.name == "person"
    assert "all rows of any one person" in report.statement()
    # People and not rows, of which there are four times as many.
    assert abs(float(report.rows) - len(test)) < 6.0 * report.rows.noise
    assert float(report.rows) + 6.0 * report.rows.noise < len(parts.test_ids)


def test_groups_of_a_budget(tmp_path: Path) -> None:
    X, y = rows(1200)
    ids = pd.Series(np.repeat(np.arange(300), 4), name="patient")
    book = xgb_dp.Budget(tmp_path / "b.json", epsilon=2.0, delta=1e-5, unit="person", group=3)
    parts = xgb_dp.split((X, y), test=0.5, privacy_id=ids)
    report = xgb_dp.evaluate(
        stock(X, y), parts, privacy_id=ids[np.isin(ids, parts.test_ids)], budget=book, **TARGET
    )
    assert report.cost.unit == Unit("person", 3, "patient") and not report.cost.parallel
    assert "all rows of any 3 persons" in report.statement()
    assert json.loads(report.to_json())["group"] == 3
    exact = make_accountant("exact", report.cost.events)
    assert 0.95 <= exact.get_epsilon(1e-6, 3) <= 1.0 and exact.get_epsilon(1e-6) < 0.4
    (entry,) = book.entries
    assert entry.charged == 3 and entry.unit == report.cost.unit
    book.verify()
    refused(xgb_dp.BudgetError, "group=3", stock(X, y), (X, y), privacy_id=ids, budget=book,
            group=1)  # fmt: skip


def test_other_persons_than_those_of_the_coins_add_up(budget_of_persons: xgb_dp.Budget) -> None:
    """A hospital has rows on both sides of a division by patients."""
    X, y = rows(1200)
    patients = pd.Series(np.repeat(np.arange(300), 4), name="patient")
    hospitals = np.repeat(np.arange(30), 40)
    parts = xgb_dp.split((X, y), test=0.5, privacy_id=patients)
    here = np.isin(patients, parts.test_ids)
    model, book = stock(X, y), budget_of_persons

    def judge(ids: Any) -> Part | None:
        xgb_dp.evaluate(model, parts.test, privacy_id=ids, budget=book, **TARGET)
        return book.entries[-1].part

    own = part_of(parts.test)
    assert own is not None and judge(parts.test_ids) == own
    assert judge(hospitals[here]) is None and judge(np.array(parts.test_ids)) is None
    assert judge(patients[here]) == own  # by the name of the column
    others = "'patient', and this one identifies them by 'ward'"
    with pytest.raises(xgb_dp.BudgetError, match=others):
        judge(pd.Series(hospitals[here], name="ward"))
    book.verify()


def test_trainings_of_other_persons_name_no_part() -> None:
    X, y = rows(400)
    ids = np.arange(400) // 2
    parts = xgb_dp.split(xgb.DMatrix(X, y), privacy_id=ids)

    def part(ids: Any) -> Any:
        model = xgb.train({**PRIVATE, "dp_privacy_id": ids}, parts.train, 1)
        return read_ledger(model).trainings[-1].public.get("part")

    assert part(parts.train_ids) == {"split": parts.name, "name": "train", "unit": "person"}
    assert part(np.array(parts.train_ids) // 2) is None
    common = {k: v for k, v in PRIVATE.items() if k not in ("dp_epsilon", "dp_delta")}

    def selected(ids: Any) -> Any:
        found = xgb_dp.select(
            {**common, "dp_privacy_id": ids}, parts.train, [{}], epsilon=1.9, delta=1e-6,
            num_boost_round=1,
        )  # fmt: skip
        return read_ledger(found.booster).trainings[-1].public.get("part")

    assert selected(parts.train_ids)["name"] == "train"
    assert selected(np.array(parts.train_ids) // 2) is None


def test_what_a_callback_trains_is_not_known_to_read_the_part(data: Any) -> None:
    parts = xgb_dp.split(data)
    inner: list[Any] = []

    class Trains(xgb.callback.TrainingCallback):
        def before_training(self, model: Any) -> Any:
            own = xgb.train(PRIVATE, xgb.DMatrix(*data), 1)
            inner.append(read_ledger(own).trainings[-1].public.get("part"))
            return model

    with reading(part_of(parts.train)):
        outer = xgb.train(PRIVATE, xgb.DMatrix(*parts.train), 1, callbacks=[Trains()])
    assert read_ledger(outer).trainings[-1].public["part"]["name"] == "train"
    assert inner == [None]


def test_a_fixed_key_is_refused(data: Any) -> None:
    model = stock(*data)
    with fixed_noise(1), pytest.raises(xgb_dp.PrivacyRefusal, match="fixed key"):
        xgb_dp.evaluate(model, data, **TARGET)
