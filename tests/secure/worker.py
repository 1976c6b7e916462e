"""One worker of a cluster: does the tasks that it reads, and prints what came out."""

import contextlib
import ctypes
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from tests.secure.cluster import WORLD
from xgb_dp import privacy_report
from xgb_dp.engine import native
from xgb_dp.record.ledger import read_ledger
from xgb_dp.request import masking
from xgb_dp.testing import fixed_noise

N = 900
CLASSES = 3000  # of the release whose traffic is looked at
CATEGORIES = 4
FOLDER: list[str] = []  # of the keys of the parties


def rows(kind: str) -> tuple[Any, Any]:
    """All rows, the last column a category."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 10, size=(N, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, CATEGORIES, N)
    signal = np.nan_to_num(X[:, 0]) + X[:, 3] + rng.normal(size=N)
    if kind == "regression":
        return X, signal.astype(np.float32)
    if kind == "targets":
        return X, np.stack([signal, 50 - 3 * X[:, 3]], axis=1).astype(np.float32)
    if kind == "multiclass":
        return X, np.digitize(signal, [4.0, 8.0]).astype(np.float32)
    return X, (signal > 6).astype(np.float32)


def part(rank: int | None, kind: str) -> xgb.DMatrix:
    """The rows of a worker, 100, 300 and 500 of them; all of them for None."""
    ends = [0, 100, 400, N]
    X, y = (v if rank is None else v[ends[rank] : ends[rank + 1]] for v in rows(kind))
    return xgb.DMatrix(X, y, feature_types=["q", "q", "q", "c"], nthread=1)


def labels(rank: int) -> Any:
    """Labels of the release whose traffic is looked at: every class, 1 to 8 times."""
    return np.repeat(np.arange(CLASSES), 1 + (np.arange(CLASSES) * (rank + 3)) % 8)


def own_files(rank: int) -> dict[str, str]:
    """The parameters that say who this worker is."""
    return {"dp_secure_key": f"{FOLDER[0]}/{rank}", "dp_secure_parties": f"{FOLDER[0]}/parties"}


def agree(task: dict[str, Any], rank: int) -> None:
    masking.agree_on_pads("a release", "what is agreed", tuple(own_files(rank).values()))


def release(task: dict[str, Any], rank: int) -> list[int]:
    """Noisy sums of labels; counts of classes, or of nothing."""
    y = labels(rank) if task.get("rows") else np.zeros(0)
    classes = CLASSES if task.get("rows") else task["classes"]
    workers = WORLD if task["masked"] else 0
    request = {
        "unit": "row",
        "kind": "multiclass",
        "num_class": classes,
        "sigma2": task["sigma2"],
        "shift": 10,
        "noise_free": task["sigma2"] == 0,
        "plan_id": "a release",
        "masking": {"workers": workers, "colluders": task.get("colluders", 0)},
    }
    if task.get("key"):
        request["test_key"] = task["key"]
    d = xgb.DMatrix(np.zeros((len(y), 1)), y, nthread=1)
    sums: list[int] = native.release_before_trees(d, request)["sums"]
    return sums


def train(task: dict[str, Any], rank: int) -> dict[str, Any]:
    key, secrets = task.get("key"), []

    def discovery(name: str, *args: Any) -> None:
        if name == "XGDPKeepPads":
            secrets.append(bytes(args[3]))
        call(name, *args)

    call, native.call = native.call, discovery
    try:
        with fixed_noise(key) if key else contextlib.nullcontext():
            params = task["params"] | own_files(rank)
            model = xgb.train(params, part(rank, task["kind"]), task["rounds"])
    finally:
        native.call = call
    seeds = [secrets[0][32 * i : 32 * i + 32] for i in range(WORLD) if i != rank]
    kept = [bytes(model.save_raw("ubj")), model.save_config().encode(), pickle.dumps(model)]
    secrets_of_party = Path(own_files(rank)["dp_secure_key"]).read_bytes().splitlines()[1:-1]
    leaks = sum(word in text for word in (b"dp_secure_key", *secrets_of_party) for text in kept)
    leaks += sum(s in text or s.hex().encode() in text for s in seeds for text in kept)
    return {
        "model": model.save_raw("json").decode(),
        "seeds": len(set(seeds)),
        "leaks": leaks,
        "statement": privacy_report(model).statement(),
        "epsilon": min(privacy_report(model).epsilon, 1e9),
    }


class Die(xgb.callback.TrainingCallback):
    """Ends the process of rank 1 after the second round, and shows the model to the others."""

    def __init__(self) -> None:
        self.model: Any = None

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self.model = model
        if epoch == 1 and xgb.collective.get_rank() == 1:
            os._exit(1)
        return False


def die(task: dict[str, Any], rank: int) -> dict[str, Any]:
    callback, rows_of_worker = Die(), part(rank, "binary")
    try:
        params = task["params"] | own_files(rank)
        xgb.train(params, rows_of_worker, 6, callbacks=[callback])
    except xgb.core.XGBoostError as error:
        message = str(error)
    try:
        callback.model.update(rows_of_worker, 3)
    except xgb.core.XGBoostError as error:
        again = str(error)
    ledger = read_ledger(callback.model)
    return {
        "message": message,
        "again": again,
        "rounds": callback.model.num_boosted_rounds(),
        "training": ledger.trainings[0].to_json(),
    }


def out_of_step(task: dict[str, Any], rank: int) -> str:
    """A release to which rank 0 comes with pads that it shares with nobody."""
    agree(task, rank)
    if rank == 0:
        seeds = (ctypes.c_uint8 * (32 * WORLD)).from_buffer_copy(os.urandom(32 * WORLD))
        native.call("XGDPKeepPads", ctypes.c_char_p(b"a release"), rank, WORLD, seeds, bytes(32))
    try:
        release(task, rank)
    except xgb.core.XGBoostError as error:
        return str(error)
    return "it was released"


def sent() -> int:
    """Bytes that this process has sent, where they are recorded."""
    path = os.environ.get("SENT")
    return os.path.getsize(path) if path and os.path.exists(path) else 0


TASKS = {"release": release, "train": train, "die": die, "out of step": out_of_step}


def do(task: dict[str, Any], rank: int) -> Any:
    if task["do"] == "agree":
        return agree(task, rank)
    before = sent()
    out = TASKS[task["do"]](task, rank)
    return {"out": out, "sent": [before, sent()]}


def main() -> None:
    job = json.loads(sys.stdin.read())
    FOLDER.append(job["parties"])
    with xgb.collective.CommunicatorContext(**job["worker"]):
        rank = xgb.collective.get_rank()
        answers = [do(task, rank) for task in job["tasks"]]
        out = {"rank": rank, "answers": answers, "file": os.environ.get("SENT")}
        print(json.dumps(out), flush=True)
        if job["tasks"][-1]["do"] == "die":
            os._exit(0)  # there is nobody left to say goodbye to


if __name__ == "__main__":
    main()
