"""A cluster does not begin a training again by itself: that would be noise that no ledger has."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from distributed import Client, LocalCluster
from xgboost import dask as dxgb

from tests.conftest import private
from xgb_dp.clusters import SingleRun
from xgb_dp.errors import PrivacyRefusal

PATIENCE = 300  # seconds, for what takes one or two on an idle machine
PARAMS = private(objective="binary:logistic", max_depth=2, verbosity=0)


class Fail(xgb.callback.TrainingCallback):
    """Notes every round that has released something, and fails in the second one."""

    def __init__(self, file: Path, dies: bool) -> None:
        super().__init__()
        self.file, self.dies = file, dies

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        with self.file.open("a") as file:
            file.write(f"{os.getpid()} {epoch}\n")
        if epoch == 1 and len(self.file.read_text().splitlines()) == 2:
            if self.dies:
                os._exit(9)
            raise RuntimeError("the second round fails")
        return False


def one_part(client: Client) -> dxgb.DaskDMatrix:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.random(200), "y": rng.integers(0, 2, 200)})
    spread = dd.from_pandas(rows, npartitions=1)
    return dxgb.DaskDMatrix(client, spread[["a"]], spread["y"])


def check_begun_once(file: Path) -> None:
    """One process has released two rounds, and nobody has released another one."""
    noted = [line.split() for line in file.read_text().splitlines()]
    assert [epoch for _, epoch in noted] == ["0", "1"]
    assert len({process for process, _ in noted}) == 1


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[Client]:
    """A cluster of one worker that comes back at the same address after its process has died."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster, Client(cluster) as client:
        place = ["--host", "127.0.0.1", "--worker-port", str(port), "--no-dashboard", "--nanny"]
        worker = subprocess.Popen(
            [sys.executable, "-m", "dask", "worker", cluster.scheduler_address, *place],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
            yield client
        finally:
            worker.terminate()
            worker.wait(timeout=PATIENCE)


@pytest.mark.slow
def test_a_worker_that_is_started_anew_at_its_address(restarted, tmp_path):
    """Its task is run again, on rows that are read again; nothing is drawn for it."""
    before = restarted.sync(SingleRun.start, restarted).workers
    d, file = one_part(restarted), tmp_path / "rounds"
    with pytest.raises(PrivacyRefusal, match="run this training again"):
        dxgb.train(restarted, PARAMS, d, 4, callbacks=[Fail(file, dies=True)])
    check_begun_once(file)
    now = restarted.sync(SingleRun.start, restarted).workers
    assert len(before) == len(now) == 1
    assert before != now


@pytest.mark.filterwarnings("ignore:Dask annotations")
def test_a_task_that_is_retried(client, tmp_path):
    """In the same process, after an error of a callback."""
    file = tmp_path / "rounds"
    with dask.annotate(retries=2), pytest.raises(PrivacyRefusal, match="run this training again"):
        dxgb.train(client, PARAMS, one_part(client), 4, callbacks=[Fail(file, dies=False)])
    check_begun_once(file)
    model = dxgb.train(client, PARAMS, one_part(client), 4)["booster"]  # one of its own
    assert model.num_boosted_rounds() == 4


def test_a_worker_begins_a_training_once(monkeypatch):
    def begin(once: SingleRun, worker: str) -> None:
        monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(id=worker))
        once.begin()

    one, other = (SingleRun(frozenset({"Worker-1", "Worker-2"})) for _ in range(2))
    for once in (one, other):
        for worker in ("Worker-1", "Worker-2"):
            begin(once, worker)
            with pytest.raises(PrivacyRefusal, match="Count `dp_epsilon`"):
                begin(once, worker)
        with pytest.raises(PrivacyRefusal, match="start a new training"):
            begin(once, "Worker-3")
