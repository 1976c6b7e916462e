"""No file that holds a tree which its ledger has not seen grow is reported as private."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from xgboost.collective import CommunicatorContext
from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

import xgb_dp
from tests.callbacks import After
from tests.conftest import private
from tests.reference.plans import base_plan
from tests.stated import ranged
from tests.training.plans import from_plan, strings_of
from tests.upstream.stock import run_stock
from xgb_dp.engine import native
from xgb_dp.errors import LedgerError, PrivacyRefusal
from xgb_dp.record import ledger
from xgb_dp.record.claim import Drawn, completed
from xgb_dp.record.ledger_model import Ledger
from xgb_dp.training.run import LedgerCallback, Training

ROUNDS = 6
STOCK = """
import numpy as np, sys, xgboost
_, start, rows, out, rounds = sys.argv
rows = np.load(rows)
data = xgboost.DMatrix(rows["X"], rows["y"])
params = {"tree_method": "exact", "objective": "binary:logistic"}
model = xgboost.train(params, data, int(rounds), xgb_model=start)
model.save_model(out)
"""


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    return X, (X[:, 0] + X[:, 1] > 0).astype(float)


@pytest.fixture
def d(rows) -> xgb.DMatrix:
    return xgb.DMatrix(*rows, nthread=1)


def params(**changes: Any) -> dict[str, Any]:
    given = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1} | changes
    return private(dp_start="intercept", **given)


@pytest.fixture
def checkpoint(d, tmp_path) -> Path:
    """The file that XGBoost's own callback writes after the third round of six."""
    saver = xgb.callback.TrainingCheckPoint(tmp_path, interval=3, name="model")
    xgb.train(params(), d, ROUNDS, callbacks=[saver])
    [file] = [path for path in tmp_path.glob("model_*") if not path.stem.endswith("_6")]
    return file


def is_private(path: Path) -> bool:
    """Whether anything of ours calls a file private; all must agree."""
    report = xgb_dp.privacy_report(path)
    passed = xgb_dp.verify(path).verdict == "passed"
    assert passed == report.private == np.isfinite(report.epsilon)
    assert passed == ("NOT" not in report.statement())
    return passed


def test_a_checkpoint_is_not_private(checkpoint):
    assert not is_private(checkpoint)
    failed = [check for check in xgb_dp.verify(checkpoint).checks if not check.passed]
    assert [check.name for check in failed] == ["complete"]
    assert "unfinished training" in failed[0].detail
    assert "checkpoint" in xgb_dp.privacy_report(checkpoint).statement()


def test_no_book_holds_a_checkpoint(d, tmp_path):
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=2.0, delta=1e-5)
    saver = xgb.callback.TrainingCheckPoint(tmp_path, interval=3, name="model")
    model = budget.train(params(), d, ROUNDS, callbacks=[saver])
    assert not budget.missing(model)
    assert any("not ended" in what for what in budget.missing(tmp_path / "model_3.ubj"))


def test_a_checkpoint_that_stock_continues_is_not_private(checkpoint, rows, tmp_path):
    np.savez(tmp_path / "rows.npz", X=rows[0], y=rows[1])
    out = tmp_path / "stock.json"
    run_stock(STOCK, str(checkpoint), str(tmp_path / "rows.npz"), str(out), "3")
    assert xgb.Booster(model_file=out).num_boosted_rounds() >= ROUNDS
    assert not is_private(out)


def test_private_rounds_on_a_checkpoint_are_refused(checkpoint, d):
    with pytest.raises(PrivacyRefusal, match="interrupted"):
        xgb.train(params(), d, 2, xgb_model=checkpoint)


def test_the_file_of_a_continued_model_is_read_once(d, tmp_path, monkeypatch):
    """What is checked is what is continued, also where somebody replaces the file in between."""
    path = tmp_path / "model.json"
    xgb.train(params(), d, 2).save_model(path)
    expected, start = ledger.tree_names(xgb.Booster(model_file=path)), Training.start

    def replaced(*arguments: Any) -> Any:
        path.write_bytes(exact((np.zeros((9, 3)), np.zeros(9)), 2))
        return start(*arguments)

    monkeypatch.setattr(Training, "start", replaced)
    model = xgb.train(params(), d, 1, xgb_model=path)
    assert ledger.tree_names(model)[:2] == expected


def test_a_finished_model_that_stock_continues_is_refused(rows, d, tmp_path):
    np.savez(tmp_path / "rows.npz", X=rows[0], y=rows[1])
    xgb.train(params(), d, 3).save_model(tmp_path / "model.json")
    out = tmp_path / "stock.json"
    run_stock(STOCK, str(tmp_path / "model.json"), str(tmp_path / "rows.npz"), str(out), "1")
    with pytest.raises(LedgerError, match="does not account"):
        xgb_dp.privacy_report(out)
    assert xgb_dp.verify(out).verdict == "unknown"


@pytest.mark.parametrize("noise", ["as calibrated", "none", "known"])
def test_a_claim_is_used_once(checkpoint, d, noise):
    """No other booster takes the plan up again, whatever the plan says of its noise."""
    seen: list[tuple[str, str]] = []
    raw: list[bytearray] = []

    def keep(model: xgb.Booster) -> None:
        seen.append(strings_of(model))
        raw.append(model.save_raw("json"))

    xgb.train(params(), d, ROUNDS, callbacks=[After(keep, 2)])
    text, state = seen[0]
    plan = json.loads(text)
    if noise == "none":
        plan |= {"noise_free": True}
        for part in ("candidates", "leaf", "correction", "histogram"):
            plan[part] = {**plan[part], "sigma2": 0}
        plan["candidates"] |= {"scale": 0}
        plan["leaf"] |= {"scale": 0, "shrinkage": False}
        plan["selection"] = {**plan["selection"], "eps_num": 0}
    elif noise == "known":
        plan |= {"test_key": "0" * 64}
    settings = {"tree_method": "dp_hist", "objective": "binary:logistic"}
    if noise != "as calibrated":
        text = json.dumps(plan)
    settings |= {"dp_plan": text, "dp_state": state}
    again = xgb.Booster(settings, [d], model_file=raw[0])
    expected = "checkpoint or a copy" if noise == "as calibrated" else "does not account"
    with pytest.raises(XGBoostError, match=expected):
        again.update(d, 3)


def error_of(act: Callable[[], object]) -> str:
    """The message with which XGBoost refuses; empty where it does not."""
    try:
        act()
    except XGBoostError as error:
        return str(error).split("Stack trace")[0]
    return ""


def in_child(act: Callable[[], object]) -> str:
    """The error of the same in a forked process."""
    reader, writer = os.pipe()
    if (process := os.fork()) == 0:
        try:
            os.write(writer, error_of(act).encode())
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    os.close(writer)
    with os.fdopen(reader) as output:
        return output.read()


def on_workers(*acts: Callable[[], object]) -> list[str]:
    """The errors of the workers of one training, each of which is a thread of this process."""
    tracker = RabitTracker(host_ip="127.0.0.1", n_workers=len(acts))
    tracker.start()

    def work(act: Callable[[], object]) -> str:
        with CommunicatorContext(**tracker.worker_args()):
            return error_of(act)

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(work, acts))


@pytest.fixture
def plan() -> dict[str, Any]:
    """A plan without noise: no process refuses its draws for want of a key."""
    return ranged(base_plan([{"kind": "cuts", "cuts": [0.0]}] * 3, id="one", split="random"))


def grow(plan: dict[str, Any], d: xgb.DMatrix) -> None:
    from_plan(plan, d, nthread=1).update(d, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_claim_is_for_one_matrix_in_one_process(plan, rows, d):
    booster, other = from_plan(plan, d, nthread=1), xgb.DMatrix(*rows, nthread=1)
    assert "checkpoint or a copy" in in_child(lambda: booster.update(d, 0))
    assert "checkpoint or a copy" in error_of(lambda: booster.update(other, 0))
    booster.update(d, 0)
    twin = from_plan(plan, other, nthread=1)
    assert "checkpoint or a copy" in error_of(lambda: twin.update(d, 0))


@pytest.mark.parametrize("unit", ["row", "person"])
def test_a_claim_is_for_the_persons_of_its_rows(plan, d, unit):
    """Other ids with the same ledger: a person would have more rows than were bounded together."""
    if unit == "person":
        native.set_persons(d, np.arange(500) // 2)
    booster = from_plan({**plan, "unit": unit}, d, nthread=1)
    native.set_persons(d, np.arange(500))
    assert "other privacy ids" in error_of(lambda: booster.update(d, 0))


def test_a_claim_is_for_one_worker(plan, d):
    boosters = [from_plan(plan, d, nthread=1) for _ in range(2)]
    refused = on_workers(*(lambda booster=booster: booster.update(d, 0) for booster in boosters))
    assert all("checkpoint or a copy" in error for error in refused), refused
    assert on_workers(*[lambda: grow(plan, d)] * 2) == ["", ""]


def test_workers_with_different_plans_release_nothing(plan, d):
    """Also not the first one, whose plan the others would follow."""
    refused = on_workers(lambda: grow(plan, d), lambda: grow({**plan, "id": "two"}, d))
    assert all("have different plans" in error for error in refused), refused


def test_a_callback_pays_for_one_model(d, monkeypatch):
    stored, prepare = [], LedgerCallback.prepare

    def note(callback: LedgerCallback, model: xgb.Booster) -> None:
        stored.append(callback)
        prepare(callback, model)

    monkeypatch.setattr(LedgerCallback, "prepare", note)
    model = xgb.train(params(), d, 2)
    with pytest.raises(PrivacyRefusal, match="already started"):
        stored[-1].before_training(model)


def test_a_ledger_does_not_change_in_the_middle(d):
    def clear(model: xgb.Booster) -> None:
        model.set_attr(dp_ledger=model.attr("dp_ledger") + " ")

    with pytest.raises(XGBoostError, match="was changed during its training"):
        xgb.train(params(), d, ROUNDS, callbacks=[After(clear, 2)])


def exact(rows: tuple[np.ndarray, np.ndarray], rounds: int) -> bytearray:
    stock = {"tree_method": "exact", "objective": "binary:logistic", "base_score": 0.5}
    return xgb.train(stock, xgb.DMatrix(*rows), rounds).save_raw("json")


def test_a_callback_cannot_load_other_trees(rows, d):
    """Not even with the configuration, and with it the record, of the private training."""

    def load(model: xgb.Booster) -> None:
        config, claim = model.save_config(), model.attr("dp_ledger")
        model.load_model(exact(rows, ROUNDS))
        model.load_config(config)
        model.set_attr(dp_ledger=claim)

    with pytest.raises(LedgerError, match="did not grow the private trees"):
        xgb.train(params(), d, ROUNDS, callbacks=[After(load, ROUNDS - 1)])


def test_numbers_changed_by_a_callback_are_noticed(d):
    class Last(xgb.callback.TrainingCallback):
        def after_training(self, model: xgb.Booster) -> xgb.Booster:
            twin = json.loads(model.save_raw("json"))
            tree = twin["learner"]["gradient_booster"]["model"]["trees"][0]
            tree["split_conditions"] = [0.25] * len(tree["split_conditions"])
            return xgb.Booster(model_file=bytearray(json.dumps(twin).encode()))

    model = xgb.train(params(), d, 3, callbacks=[Last()])
    with pytest.raises(LedgerError, match="does not account"):
        xgb_dp.privacy_report(model)


def test_a_ledger_names_each_training_once(d):
    model = xgb.train(params(), d, 2)
    record = xgb_dp.privacy_report(xgb.train(params(), d, 2, xgb_model=model)).ledger
    record["trainings"][1]["id"] = record["trainings"][0]["id"]
    with pytest.raises(LedgerError, match="the same id"):
        Ledger.from_json(record)


@pytest.mark.parametrize("drawn", ["os", "fixed", "none"])
@pytest.mark.parametrize("claimed", ["os", "fixed", "none"])
def test_neither_the_claim_nor_the_draws_alone_are_private(d, claimed, drawn):
    """The library refuses to draw where they differ; a ledger of both would say so, too."""
    [record] = ledger.read_ledger(xgb.train(params(), d, 2)).trainings
    claim = Ledger(claimed == "os", claimed, (record,))
    drawing = Drawn(drawn == "os", drawn, record.events, record.trees)
    whole = completed(claim, drawing, record.rounds)
    assert whole.private == (whole.noise == "os") == (claimed == drawn == "os")
