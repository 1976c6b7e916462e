"""Private training through ``xgboost.dask``, as its users call it, on real worker processes."""

import time
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
import xgboost as xgb
from distributed import Client, LocalCluster
from xgboost import dask as dxgb
from xgboost.collective import Config

import xgb_dp
from tests.conftest import private
from xgb_dp.errors import BudgetError, PrivacyParameterError, PrivacyRefusal, RowDomainError

N = 1800
PATIENCE = 300  # seconds, for what takes one or two on an idle machine
PARAMS = private(objective="binary:logistic", dp_epsilon=8.0, max_depth=3, verbosity=0)
ESTIMATOR = private(
    dp_epsilon=8.0,
    dp_categories={"c": ["x", "y", "z"]},
    enable_categorical=True,
    n_estimators=8,
    verbosity=0,
)


def table(labels: Any = None) -> tuple[Any, Any]:
    """A dask frame with a categorical column, and labels."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["u", "v", "w"])
    codes = rng.integers(0, 3, N)
    frame["c"] = pd.Categorical.from_codes(codes, categories=["x", "y", "z"])
    y = (frame["u"] + codes > 1).astype(int) if labels is None else pd.Series(labels)
    return dd.from_pandas(frame, npartitions=3), dd.from_pandas(y, npartitions=3)


def arrays(client: Client, y: Any = None, n: int = N) -> dxgb.DaskDMatrix:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = X[:, 0] > 0 if y is None else y
    return dxgb.DaskDMatrix(
        client,
        da.from_array(X, chunks=(max(n // 3, 1), 3)),
        da.from_array(y, chunks=max(n // 3, 1)),
    )


def test_a_public_model_is_the_start(client):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 3)).astype(np.float32)
    plain = {"objective": "binary:logistic", "max_depth": 2}
    public = xgb.train(plain, xgb.DMatrix(X, X[:, 0] > 0), 3)
    config = PARAMS | {"dp_public_model": True}
    model = dxgb.train(client, config, arrays(client), 2, xgb_model=public)["booster"]
    report = xgb_dp.privacy_report(model)
    assert model.num_boosted_rounds() == 5
    assert report.ledger["trainings"][0]["start"]["rounds"] == 3
    assert 7.9 < report.epsilon <= 8.0
    with pytest.raises(PrivacyRefusal, match="dp_public_model"):
        dxgb.train(client, PARAMS, arrays(client), 2, xgb_model=public)


def test_workers_do_not_train_past_a_budget(client, tmp_path):
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=1.0, delta=1e-5)
    X, y = table()
    model = dxgb.DaskXGBClassifier(**ESTIMATOR, dp_classes=2)
    model.client = client
    with pytest.raises(BudgetError, match="workers of a cluster"), budget.drawing():
        dxgb.train(client, PARAMS, arrays(client), 2)
    with pytest.raises(BudgetError, match="workers of a cluster"), budget.one_training():
        model.fit(X, y)
    assert not budget.entries


def test_pairs_that_are_read_once_are_refused(client):
    with pytest.raises((TypeError, AttributeError)):
        dxgb.train(client, iter(PARAMS.items()), arrays(client), 2)


def test_classes_are_declared(client):
    X, y = table(np.zeros(N, dtype=int))
    model = dxgb.DaskXGBClassifier(**ESTIMATOR, dp_classes=3)
    model.client = client
    model.fit(X, y)
    assert model.predict_proba(X).compute().shape == (N, 3)
    assert list(model.classes_) == [0, 1, 2]
    report = xgb_dp.privacy_report(model)
    assert 7.5 < report.epsilon <= 8.0
    assert report.ledger["trainings"][0]["complete"]
    undeclared = dxgb.DaskXGBClassifier(**ESTIMATOR)
    undeclared.client = client
    with pytest.raises(PrivacyParameterError, match="dp_classes"):
        undeclared.fit(X, y)


def test_a_row_outside_the_domain_ends_all_workers(client):
    """With one message, which says what is wrong and shows neither value nor row."""
    y = np.zeros(N)
    y[N - 1] = 7
    start = time.monotonic()
    with pytest.raises(RowDomainError, match="outside the declared classes"):
        dxgb.train(client, PARAMS, arrays(client, y), 4)
    # Nobody waits for a worker that has gone, which would take the 30 minutes of an exchange.
    assert time.monotonic() - start < 600


def test_evaluation_sets_are_plain_matrices(client):
    """`ref` would bin public rows by exact quantiles of the training rows."""
    params = PARAMS | {"dp_public_evals": True}
    d, public = arrays(client), arrays(client, n=300)
    X, y = da.random.random((300, 3), chunks=(100, 3)), da.zeros(300, chunks=100)
    for data in (dxgb.DaskQuantileDMatrix(client, X, y, ref=d), d):
        with pytest.raises(PrivacyRefusal, match="evals"):
            dxgb.train(client, params, d, 2, evals=[(data, "v")])
    result = dxgb.train(client, params, d, 2, evals=[(public, "v")], verbose_eval=False)
    assert len(result["history"]["v"]["logloss"]) == 2
    other = dxgb.DaskDMatrix(client, X[:, :2], y)
    with pytest.raises((PrivacyParameterError, RowDomainError), match="columns"):
        dxgb.train(client, params, d, 2, evals=[(other, "v")])
    numbers = {k: v for k, v in ESTIMATOR.items() if k != "dp_categories"}
    model = dxgb.DaskXGBClassifier(**numbers, dp_classes=2, dp_public_evals=True)
    model.client = client
    model.fit(X, y, eval_set=[(X + 1, y)], verbose=False)
    assert len(model.evals_result()["validation_0"]["logloss"]) == 8


def test_a_set_of_several_targets_on_one_worker(client):
    """The part of a worker without rows of the set has no labels to count."""
    X = np.random.default_rng(1).normal(size=(N, 3)).astype(np.float32)
    table, labels = (da.from_array(v, chunks=(N // 3, v.shape[1])) for v in (X, X[:, :2]))
    params = PARAMS | {"objective": "reg:squarederror", "dp_target_bounds": (-4, 4)}
    params |= {"dp_public_evals": True}
    d = dxgb.DaskDMatrix(client, table, labels)
    first = dxgb.DaskDMatrix(client, table[:50], labels[:50])
    result = dxgb.train(client, params, d, 3, evals=[(first, "public")])
    assert len(result["history"]["public"]["rmse"]) == 3
    fewer = dxgb.DaskDMatrix(client, table, labels[:, 0])
    with pytest.raises(PrivacyParameterError, match="as many labels per row"):
        dxgb.train(client, params, d, 3, evals=[(fewer, "public")])


class Die(xgb.callback.TrainingCallback):
    """Ends the process of one worker after the second round."""

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        import os

        if epoch == 1 and xgb.collective.get_rank() == 1:
            os._exit(1)
        return False


def worker_ids(dask_scheduler: Any) -> set[str]:
    """Of all workers that the scheduler knows; none that comes later has one of them."""
    return {worker.server_id for worker in dask_scheduler.workers.values()}


def wait_for_another_worker(client: Client, before: set[str]) -> None:
    """Until one of two workers has been replaced: the scheduler may still count the dead one."""
    end = time.monotonic() + PATIENCE
    while len(now := client.run_on_scheduler(worker_ids)) < 2 or now == before:
        assert time.monotonic() < end, f"no other worker within {PATIENCE} s"
        time.sleep(0.1)


def test_workers_listen_on_the_network_of_the_cluster_alone(client, tmp_path):
    """Scheduler and workers of this cluster are on the loopback interface."""

    class Listens(xgb.callback.TrainingCallback):
        def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            worker = psutil.Process()
            listens = {s for s in worker.net_connections("inet") if s.status == psutil.CONN_LISTEN}
            (tmp_path / str(worker.pid)).write_text(" ".join({s.laddr.ip for s in listens}))
            return False

    for config in (None, Config(timeout=PATIENCE)):
        dxgb.train(client, PARAMS, arrays(client), 1, callbacks=[Listens()], coll_cfg=config)
        files = list(tmp_path.iterdir())
        assert [file.read_text() for file in files] == ["127.0.0.1"] * 3
        for file in files:
            file.unlink()


def test_the_user_names_the_address_of_the_tracker(client, monkeypatch):
    requests: list[Any] = []
    run = Client.run_on_scheduler

    def spy(self: Client, function: Any, *arguments: Any) -> Any:
        requests.append(arguments)
        return run(self, function, *arguments)

    monkeypatch.setattr(Client, "run_on_scheduler", spy)
    named = Config(tracker_host_ip="127.0.0.2")
    dxgb.train(client, PARAMS, arrays(client), 1, coll_cfg=named)
    with dask.config.set({"xgboost.scheduler_address": "127.0.0.3"}), pytest.warns(FutureWarning):
        dxgb.train(client, PARAMS, arrays(client), 1)
    hosts = [a[2][0] for a in requests if a]
    assert hosts == ["127.0.0.2", "127.0.0.3"]


@pytest.mark.slow
def test_a_dead_worker_fails_the_training_and_a_new_one_draws_anew():
    """As with stock XGBoost the job fails. What is started again has noise and books of its own."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        before = client.run_on_scheduler(worker_ids)
        with pytest.raises(Exception):  # noqa: B017, PT011 (of the scheduler or of the other worker)
            dxgb.train(client, PARAMS, arrays(client), 4, callbacks=[Die()])
        wait_for_another_worker(client, before)
        one, two = (dxgb.train(client, PARAMS, arrays(client), 4)["booster"] for _ in range(2))
    assert bytes(one.save_raw("json")) != bytes(two.save_raw("json"))
    for model in (one, two):
        assert 7.5 < xgb_dp.privacy_report(model).epsilon <= 8.0
