"""A book that cannot be written: before a release it refuses, afterwards nothing is lost."""

import errno
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.budget import file as budget_file

PARAMS = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1}
SPENT = {"dp_epsilon": 0.3, "dp_delta": 1e-7}
X = np.random.default_rng(0).normal(size=(300, 3)).astype("float32")
Y = (X[:, 0] > 0).astype(int)
DATA = xgb.DMatrix(X, Y)


@pytest.fixture
def budget(tmp_path: Path) -> xgb_dp.Budget:
    return xgb_dp.Budget(tmp_path / "b.json", epsilon=3.0, delta=1e-5, selection_epsilon=1.5)


def fails_at(monkeypatch: Any, call: int, number: int, name: str = "_replace") -> None:
    """Have a function of the book fail from the n-th call on."""
    whole, calls = getattr(budget_file, name), [0]

    def run(*args: Any) -> Any:
        calls[0] += 1
        if calls[0] >= call:
            raise OSError(number, os.strerror(number))
        return whole(*args)

    monkeypatch.setattr(budget_file, name, run)


def in_a_block(budget: xgb_dp.Budget) -> Any:
    with budget.drawing("block"):
        return xgb.train({**PARAMS, **SPENT}, DATA, 2)


def estimator(budget: xgb_dp.Budget) -> Any:
    fitted = xgb_dp.DPXGBClassifier(
        epsilon=0.3, delta=1e-7, classes=[0, 1], n_estimators=2, n_jobs=1, budget=budget
    )
    return fitted.fit(X, Y).get_booster()


STOCK = xgb.train({"objective": "binary:logistic", "nthread": 1}, DATA, 2)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
WAYS = {
    "train": lambda budget: budget.train({**PARAMS, **SPENT}, DATA, 2),
    "block": in_a_block,
    "estimator": estimator,
    "discover": lambda budget: xgb_dp.discover(FRAME, epsilon=0.3, delta=1e-7, budget=budget),
    "evaluate": lambda budget: xgb_dp.evaluate(
        STOCK, DATA, epsilon=0.3, delta=1e-7, budget=budget
    ),
    "select": lambda budget: xgb_dp.select(
        PARAMS, DATA, [{}], epsilon=1.0, delta=1e-7, num_boost_round=2, budget=budget
    ),
}  # fmt: skip
NUMBERS = [errno.EIO, errno.EMFILE, errno.ENOLCK, errno.EACCES, errno.ENOSPC]


@pytest.mark.parametrize("way", WAYS)
def test_what_was_released_is_returned(budget, monkeypatch, way):
    fails_at(monkeypatch, 2, errno.ENOSPC)
    with pytest.warns(xgb_dp.PrivacyWarning, match="charged in full") as caught:
        result = WAYS[way](budget)
    (text,) = (str(w.message) for w in caught if "charged in full" in str(w.message))
    assert "No space left on device" in text and "Free disk space" in text
    assert "othing was released" not in text and "othing was charged" not in text
    assert result is not None
    (entry,) = budget.entries
    assert entry.state == "reserved"
    if isinstance(result, xgb.Booster):
        assert result.num_boosted_rounds() == 2 and budget.missing(result) == []
    monkeypatch.undo()
    assert xgb_dp.Budget(budget.path).spent == budget.spent
    budget.verify()


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", ["_replace", "_sync", "_lock_on"])
def test_any_failure_after_a_training_gives_the_model(budget, monkeypatch, number, name):
    fails_at(monkeypatch, 3 if name == "_lock_on" else 2, number, name)
    with pytest.warns(xgb_dp.PrivacyWarning, match="charged in full"):
        assert budget.train({**PARAMS, **SPENT}, DATA, 2).num_boosted_rounds() == 2


def test_the_model_is_returned_where_warnings_are_errors(budget, monkeypatch, capsys):
    fails_at(monkeypatch, 2, errno.EIO)
    with warnings.catch_warnings():
        warnings.simplefilter("error", xgb_dp.PrivacyWarning)
        assert budget.train({**PARAMS, **SPENT}, DATA, 2).num_boosted_rounds() == 2
    assert "charged in full" in capsys.readouterr().err


@pytest.mark.parametrize("way", WAYS)
def test_before_a_release_a_failure_refuses(budget, monkeypatch, way):
    fails_at(monkeypatch, 1, errno.ENOSPC)
    with pytest.raises(xgb_dp.BudgetError, match="nothing was charged, and nothing was released"):
        WAYS[way](budget)
    assert budget.entries == []


def test_a_disk_that_does_not_confirm_may_have_booked(budget, monkeypatch):
    fails_at(monkeypatch, 1, errno.EIO, "_sync")
    with pytest.raises(xgb_dp.BudgetError, match="the charge may have been recorded"):
        budget.train({**PARAMS, **SPENT}, DATA, 2)
    assert [entry.state for entry in budget.entries] == ["reserved"]


def test_a_book_that_is_gone_after_a_training_does_not_take_the_model(budget):
    class Removes(xgb.callback.TrainingCallback):
        def after_training(self, model: Any) -> Any:
            budget.path.unlink()
            return model

    with pytest.warns(xgb_dp.PrivacyWarning, match="is missing.*Restore the file"):
        model = budget.train({**PARAMS, **SPENT}, DATA, 2, callbacks=[Removes()])
    assert model.num_boosted_rounds() == 2


def test_a_commit_by_hand_says_that_the_entry_counts(budget, monkeypatch):
    name = budget.reserve(
        xgb_dp.privacy_report(budget.train({**PARAMS, **SPENT}, DATA, 2)).record.events
    )
    fails_at(monkeypatch, 1, errno.EIO)
    with pytest.raises(xgb_dp.BudgetError, match="counts in full"):
        budget.commit(name)


def test_new_files_of_killed_processes_are_removed(tmp_path):
    path = tmp_path / "b.json"
    old = [".b.json.abcdefg1.new", ".b.json.abcdefgh.new.new", ".b.json.more.abcdefgh.new",
           ".b.json.abcdefg2.new", ".b.json.abcdefgh", "b.json.abcdefgh.new"]  # fmt: skip
    for name in old:
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (0, 0) if name != old[3] else (time.time(), time.time()))
    budget = xgb_dp.Budget(path, epsilon=1.0, delta=1e-6)
    assert {p.name for p in tmp_path.iterdir()} == {"b.json", "b.json.lock", *old[1:]}
    assert budget.entries == []


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_links_that_lead_round_are_refused(tmp_path):
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(xgb_dp.PrivacyError):
        xgb_dp.Budget(tmp_path / "one", epsilon=1.0, delta=1e-6)
