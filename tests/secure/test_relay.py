"""A group of XGBoost whose connections are messages."""

import json

import pytest

from tests.children import child

# Each worker is a thread, which has a group of its own.
CODE = """
import json, sys, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from xgboost import collective
from xgb_dp.federated.relay import Relay

world, leaving = int(sys.argv[1]), sys.argv[2] == "leaving"
relays = [Relay() for _ in range(world)]
before = threading.Barrier(world)

def work(rank):
    def send(to, data):
        if leaving and left.is_set():
            raise OSError
        relays[to].receive(rank, data)

    group = relays[rank].open(rank, world, send)
    try:
        with collective.CommunicatorContext(**group, dmlc_timeout=30):
            assert (collective.get_rank(), collective.get_world_size()) == (rank, world)
            say = lambda r: collective.broadcast(f"of {r}" if r == rank else None, r)
            texts = [say(r) for r in range(world)]
            many = np.arange(300_000) + rank  # more than a chunk
            total = collective.allreduce(many, collective.Op.SUM)
            before.wait()
            left.set()
            collective.allreduce(many, collective.Op.SUM)
    except Exception:
        return "failed"
    relays[rank].close(30)
    return [texts, int(total[0]), int(total[-1])]

left = threading.Event()
with ThreadPoolExecutor(world) as pool:
    print("\\n" + json.dumps(list(pool.map(work, range(world)))), flush=True)
"""


@pytest.mark.parametrize("world", [2, 3, 5])
def test_workers_exchange_what_they_would_over_connections(world):
    done = child(CODE, world, "staying")
    assert done.returncode == 0, done.stderr
    first = sum(range(world))
    texts = [f"of {rank}" for rank in range(world)]
    each = [texts, first, 299_999 * world + first]
    assert json.loads(done.stdout.splitlines()[-1]) == [each] * world


def test_a_message_that_cannot_be_sent_ends_the_group():
    done = child(CODE, 3, "leaving")
    assert json.loads(done.stdout.splitlines()[-1]) == ["failed"] * 3
