"""The tracker outlives a worker that dies at the start; workers listen only where it sees them."""

import json
import subprocess
import sys
import time

import psutil
import pytest
from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from tests.children import LIGHT

from .stock import ROOT

# Two workers as far as their first words; the first one resets its connection before the other
# comes, so that the tracker cannot tell it who its neighbour is.
DIES = """
import json, socket, struct
from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

def connect(port):
    worker = socket.create_connection(("127.0.0.1", port), timeout=60)
    worker.sendall(struct.pack("<i", 0xFF99))
    worker.recv(4)
    for words in ({"world_size": -1, "rank": -1, "task_id": "0"},
                  {"cmd": 1, "port": 1, "error_port": 1}):
        text = json.dumps(words).encode()
        worker.sendall(struct.pack("<i", len(text)) + text)
    length, = struct.unpack("<i", worker.recv(4, socket.MSG_WAITALL))
    worker.recv(length, socket.MSG_WAITALL)  # all of the answer: it was counted in
    return worker

tracker = RabitTracker(2, "127.0.0.1")
tracker.start()
port = tracker.worker_args()["dmlc_tracker_port"]
first = connect(port)
first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
first.close()
second = connect(port)
try:
    tracker.wait_for(60)
except XGBoostError as error:
    print("refused" if "send system error" in str(error) else error, flush=True)
"""


def test_a_worker_that_dies_at_the_start_is_an_error():
    done = subprocess.run(
        [sys.executable, "-c", LIGHT + DIES], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["refused"]


# A worker from its start to its end.
JOINS = """
import json, sys
from xgboost import collective

with collective.CommunicatorContext(**json.loads(sys.argv[1])):
    collective.broadcast("connected", root=0)
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", None])
def test_workers_listen_only_where_the_tracker_sees_them(host):
    """They exchange exact sums in the clear, and another interface may be public."""
    try:
        tracker = RabitTracker(2, host)  # without an address, at one that XGBoost guesses
    except XGBoostError:
        pytest.skip("this machine has no such address")
    tracker.start()
    arguments = tracker.worker_args()

    def start(task: str) -> subprocess.Popen[str]:
        worker = json.dumps({**arguments, "dmlc_task_id": task})
        return subprocess.Popen(
            [sys.executable, "-c", LIGHT + JOINS, worker],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    workers = [start("0")]
    listens: list[str] = []
    seen: set[str] = set()
    while len(listens) < 2 and workers[0].poll() is None:  # for its peers, and for errors
        time.sleep(0.05)
        sockets = psutil.Process(workers[0].pid).net_connections("inet")
        listens = [s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN]
        port = arguments["dmlc_tracker_port"]
        seen = {s.laddr.ip for s in sockets if s.raddr and s.raddr.port == port}
    workers.append(start("1"))
    for worker in workers:
        _, output = worker.communicate(timeout=300)
        assert worker.returncode == 0, output[-2000:]
    tracker.wait_for(60)
    assert set(listens) == seen
    assert len(seen) == 1
