"""The tracker outlives a worker that dies while it starts."""

import subprocess
import sys

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
