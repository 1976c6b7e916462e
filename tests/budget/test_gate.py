"""Blocks of a budget against threads, tasks, generators and processes: nothing passes by unseen."""

import asyncio
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import joblib
import pytest
import xgboost as xgb

from tests.callbacks import After
from tests.conftest import private
from xgb_dp import Budget, BudgetError, DPXGBClassifier, select
from xgb_dp.accounting import GaussianEvent, Unit
from xgb_dp.record import authorization

from ..conftest import arrays

PARAMS = private(objective="binary:logistic", dp_epsilon=0.3, dp_delta=1e-7, max_depth=2, nthread=1)
PATIENCE = 600.0  # seconds, until a thread waits for another one in vain


def train() -> str:
    xgb.train(PARAMS, xgb.DMatrix(*arrays()), 1)
    return "trained"


def refused() -> str:
    with pytest.raises(BudgetError, match="Nothing was released"):
        train()
    return "refused"


@pytest.fixture
def budget(tmp_path: Path) -> Iterator[Budget]:
    yield Budget(tmp_path / "budget.json", epsilon=3.0, delta=1e-6)
    # Whatever a test did, nothing is left open.
    assert not authorization._blocks
    assert authorization.VARIABLE not in os.environ
    assert train() == "trained"


def states(budget: Budget) -> list[str]:
    return [e.state for e in budget.entries]


def test_a_thread_of_the_block_is_refused_without_its_context(budget):
    with budget.drawing(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(refused).result() == "refused"
        train()
    assert states(budget) == ["spent"]


def test_a_thread_with_the_context_of_the_block_is_booked(budget):
    with budget.drawing() as names, ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(copy_context().run, train) for _ in range(4)]
        assert [f.result() for f in futures] == ["trained"] * 4
        assert sorted(names) == sorted(e.id for e in budget.entries)
    assert states(budget) == ["spent"] * 4


def test_a_thread_that_was_there_before_is_refused_while_the_block_is_open(budget):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(train).result() == "trained"
        with budget.drawing():
            train()
            assert pool.submit(refused).result() == "refused"
        assert pool.submit(train).result() == "trained"
    assert len(budget.entries) == 1


def test_threads_with_a_budget_of_their_own_go_on(budget, tmp_path):
    other = Budget(tmp_path / "other.json", epsilon=3.0, delta=1e-6)
    X, y = arrays()

    def by_hand() -> None:
        with other.drawing():
            train()

    uses: list[Callable[[], Any]] = [
        by_hand,
        lambda: other.train(PARAMS, xgb.DMatrix(X, y), 1),
        lambda: DPXGBClassifier(
            epsilon=0.3, delta=1e-7, classes=[0, 1], n_estimators=1, budget=other
        ).fit(X, y),
    ]
    with budget.drawing(), ThreadPoolExecutor(1) as pool:
        for use in uses:
            pool.submit(use).result()
        train()
    assert (len(budget.entries), len(other.entries)) == (1, 3)


def test_a_selection_elsewhere_needs_a_budget(budget):
    params = {k: v for k, v in PARAMS.items() if k not in ("dp_epsilon", "dp_delta")}

    def choose() -> None:
        select(params, xgb.DMatrix(*arrays()), [{}], epsilon=1.0, delta=1e-6, num_boost_round=1)

    with budget.drawing(), ThreadPoolExecutor(1) as pool:
        with pytest.raises(BudgetError, match="elsewhere"):
            pool.submit(choose).result()
        train()


def test_one_training_with_a_budget_leaves_other_threads_alone(budget):
    trained = []

    def meanwhile(model: xgb.Booster) -> None:
        thread = threading.Thread(target=lambda: trained.append(train()))
        thread.start()
        thread.join()

    budget.train(PARAMS, xgb.DMatrix(*arrays()), 2, callbacks=[After(meanwhile)])
    assert trained == ["trained"] * 2
    assert len(budget.entries) == 1


def test_two_blocks_in_two_threads(budget, tmp_path):
    """Each books its own; one that ends does not open the gate of the other."""
    other = Budget(tmp_path / "other.json", epsilon=3.0, delta=1e-6)
    inside, go_on = threading.Barrier(2), threading.Event()

    def second() -> None:
        with other.drawing():
            train()
            inside.wait(PATIENCE)
            go_on.wait(PATIENCE)

    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(second)
        with budget.drawing():
            train()
            inside.wait(PATIENCE)
            assert os.environ[authorization.VARIABLE] in (str(budget.path), str(other.path))
        assert os.environ[authorization.VARIABLE] == str(other.path)
        assert refused() == "refused"  # the other block is open still
        go_on.set()
        running.result()
    assert (states(budget), states(other)) == (["spent"], ["spent"])


def test_a_thread_that_outlives_its_block_is_refused(budget):
    ended = threading.Event()

    def late() -> str:
        ended.wait(PATIENCE)
        with pytest.raises(BudgetError, match="has ended"):
            train()
        with budget.drawing("its own"):
            train()
        return "done"

    with ThreadPoolExecutor(1) as pool:
        with budget.drawing():
            train()
            running = pool.submit(copy_context().run, late)
        ended.set()
        assert running.result() == "done"
    assert [e.note for e in budget.entries] == ["training", "its own"]


def test_a_training_that_outlives_its_block_was_booked_before(budget):
    started, ended = threading.Event(), threading.Event()

    def wait(model: xgb.Booster) -> None:
        started.set()
        ended.wait(PATIENCE)

    def slow() -> None:
        xgb.train(PARAMS, xgb.DMatrix(*arrays()), 2, callbacks=[After(wait)])

    with ThreadPoolExecutor(1) as pool:
        with budget.drawing():
            running = pool.submit(copy_context().run, slow)
            started.wait(PATIENCE)
        ended.set()
        running.result()
    assert len(budget.entries) == 1


def test_a_block_that_fails_is_closed(budget):
    def fail() -> None:
        with budget.drawing():
            train()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert states(budget) == ["reserved"]


def test_tasks(budget):
    async def before(opened: asyncio.Event, closed: asyncio.Event) -> str:
        await opened.wait()
        answer = refused()  # it was started without the block
        closed.set()
        return answer

    async def main() -> None:
        opened, closed = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(before(opened, closed))
        with budget.drawing():
            opened.set()
            await closed.wait()
            assert await asyncio.to_thread(train) == "trained"
            assert await asyncio.create_task(asyncio.to_thread(train)) == "trained"
            loop = asyncio.get_running_loop()
            assert await loop.run_in_executor(None, refused) == "refused"
        assert await task == "refused"

    asyncio.run(main())
    assert states(budget) == ["spent"] * 2


def test_generators(budget):
    def steps() -> Iterator[str]:
        with budget.drawing():
            yield train()
            yield train()

    running = steps()
    next(running)
    train()  # the caller shares the context of the generator
    next(running)
    assert list(running) == []
    assert states(budget) == ["spent"] * 3


def test_a_generator_that_is_closed_in_another_context(budget):
    def steps() -> Iterator[str]:
        with budget.drawing():
            yield train()

    def start() -> Iterator[str]:
        running = steps()
        next(running)
        return running

    running = copy_context().run(start)
    assert refused() == "refused"
    del running
    gc.collect()
    assert train() == "trained"
    assert states(budget) == ["reserved"]

    # Here the context that stays behind is ours: it is told, and may open blocks again.
    def own_context() -> None:
        running = start()
        copy_context().run(running.close)
        with pytest.raises(BudgetError, match="has ended"):
            train()
        with budget.drawing():
            train()

    copy_context().run(own_context)
    assert states(budget) == ["reserved", "reserved", "spent"]


# ------------------------------------------------------------------------------------- processes


def own_block(path: str) -> str:
    with Budget(path).drawing("a process"):
        return train()


def trains() -> str:
    try:
        return train()
    except BudgetError as error:
        return str(error)


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_forked_process_is_booked(budget):
    with budget.drawing():
        pid = os.fork()
        if pid == 0:
            try:  # not a training: OpenMP does not survive a fork
                events = (GaussianEvent("mean", 1, 1 << 10, 1, 1),)
                request = authorization.ReleaseRequest(events, True, Unit())
                authorization.Context.current().authorize(request)
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
    assert states(budget) == ["spent"]


@pytest.mark.parametrize("method", ["spawn", "forkserver", "loky"])
def test_a_process_that_is_started_in_a_block_draws_by_itself_or_not_at_all(budget, method):
    with budget.drawing():
        train()
        if method == "loky":
            parallel = joblib.Parallel(2, backend="loky")
            message = parallel([joblib.delayed(trains)()])
            assert parallel([joblib.delayed(own_block)(str(budget.path))]) == ["trained"]
        else:
            with multiprocessing.get_context(method).Pool(1) as pool:
                message = [pool.apply(trains)]
                assert pool.apply(own_block, (str(budget.path),)) == "trained"
    assert "was started inside a block" in message[0]
    assert str(budget.path) in message[0]
    assert sorted(e.note for e in budget.entries) == ["a process", "training"]
    if method == "loky":  # the workers live on, with the variable
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)


def test_a_program_that_is_started_in_a_block(budget):
    code = "from tests.budget.test_gate import trains; print(trains())"
    with budget.drawing():
        train()
        program = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    assert "was started inside a block" in program.stdout
