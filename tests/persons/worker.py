"""One worker of a cluster: trains with the ids that it reads, and prints what came of it."""

import json
import sys
from typing import Any
from uuid import UUID

import numpy as np
import xgboost as xgb

from xgb_dp.engine import native, workers
from xgb_dp.errors import PrivacyError

PARAMS: dict[str, Any] = {
    "tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": float("inf"),
    "dp_delta": 1e-6, "max_depth": 2, "verbosity": 0, "nthread": 1,
}  # fmt: skip


def ids_of(kind: str, values: list[Any]) -> Any:
    """Ids that JSON has no word for."""
    if kind == "none":
        return None
    if kind == "missing":
        return [None for _ in values]
    make = {"whole": int, "uuid": lambda v: UUID(int=v), "bytes": lambda v: bytes([v])}
    return [make.get(kind, str)(v) for v in values]


def train(kind: str, values: list[Any]) -> str:
    """What the training says, or "trained"."""
    n = len(values)
    d = xgb.DMatrix(np.arange(n, dtype=float).reshape(n, 1), np.arange(n) % 2, nthread=1)
    try:
        xgb.train(PARAMS | {"dp_privacy_id": ids_of(kind, values)}, d, 1)
    except PrivacyError as error:
        return str(error)
    return "trained"


def main() -> None:
    """Reads the arguments of the communicator and the trainings of this worker."""
    job = json.loads(sys.stdin.read())
    sent: list[bytes] = []
    drawn: list[int] = []
    with xgb.collective.CommunicatorContext(**job["worker"]):
        broadcast, release = workers._collective_broadcast, native.release_before_trees

        def listen(data: bytes, root: int) -> bytes:
            sent_by_root = broadcast(data, root)
            sent.append(sent_by_root)
            return sent_by_root

        def draw(*args: Any) -> Any:
            drawn[-1] += 1
            return release(*args)

        workers._collective_broadcast, native.release_before_trees = listen, draw
        results = []
        for kind, values in job["trainings"]:
            drawn.append(0)
            results.append(train(kind, values))
    shown = b"".join(sent).decode("latin-1")
    print(json.dumps({"rank": job["rank"], "said": results, "drawn": drawn, "sent": shown}))
