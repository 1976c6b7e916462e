"""A group of XGBoost on one host that stands for parties elsewhere.

XGBoost's workers exchange bytes over connections between each pair. Here, the party's worker has
these connections with this module, which hands the bytes to the framework and back. Nothing reads
them: all sums in them are masked, and a changed byte ends the training.

The start follows XGBoost's ``src/collective/comm.cc``: the tracker tells the worker the port of the
next rank, the ring of all ranks tells it the ports of the others, and it connects to higher ranks
and waits for lower ones.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import struct
import sys
from collections import defaultdict
from collections.abc import Callable
from threading import Thread
from typing import Any

_HOST = "127.0.0.1"
_MAGIC = 0xFF99
_START, _SHUTDOWN, _PRINT = 1, 2, 4
_HOST_NAME = 64 if sys.platform.startswith("linux") else 256
"""Bytes of a host name: HOST_NAME_MAX."""
_CHUNK = 1 << 20

Send = Callable[[int, bytes], None]
"""Sends bytes to a rank, in order; no bytes mean the end. Raises an error if it cannot."""


class Relay:
    """The other members of the group, as this party's worker sees them.

    Pass what arrives to :meth:`receive`, also before :meth:`open`.
    """

    def __init__(self) -> None:
        self._received: dict[int, queue.SimpleQueue[bytes]] = defaultdict(queue.SimpleQueue)
        self._threads: list[Thread] = []
        self._links: list[socket.socket] = []
        self._ended = False

    def receive(self, rank: int, data: bytes) -> None:
        """Take bytes that the worker of a rank has sent to this party."""
        self._received[rank].put(data)

    def abort(self) -> None:
        """End all connections of the worker, whichever it waits for, so that its training fails."""
        self._ended = True
        for link in self._links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def open(self, rank: int, world: int, send: Send) -> dict[str, Any]:
        """Wait for the worker; return its arguments of ``CommunicatorContext``."""
        tracker = socket.create_server((_HOST, 0))
        self._run(self._serve, tracker, rank, world, send)
        return {
            "dmlc_tracker_uri": _HOST,
            "dmlc_tracker_port": tracker.getsockname()[1],
            "dmlc_task_id": str(rank),
        }

    def close(self, timeout: float) -> None:
        """Wait until everything that the worker has sent is sent on."""
        for thread in list(self._threads):
            thread.join(timeout)

    def _run(self, target: Callable[..., None], *args: Any) -> None:
        thread = Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, tracker: socket.socket, rank: int, world: int, send: Send) -> None:
        """Answer the worker as its tracker, until it shuts down."""
        with tracker:
            while True:
                worker, _ = tracker.accept()
                with worker:
                    worker.sendall(struct.pack("=i", _MAGIC))
                    _read(worker, 4)
                    _read_json(worker)  # its task id
                    message = _read_json(worker)
                    if message["cmd"] == _START:
                        self._connect(worker, message["port"], rank, world, send)
                    elif message["cmd"] != _PRINT:
                        return

    def _connect(self, worker: socket.socket, port: int, rank: int, world: int, send: Send) -> None:
        """Give the worker a connection to each of the others."""
        others = [peer for peer in range(world) if peer != rank]
        listeners = {peer: socket.create_server((_HOST, 0)) for peer in others}
        ports = [listeners[r].getsockname()[1] if r != rank else port for r in range(world)]
        following = (rank + 1) % world
        _send_json(worker, {"world_size": world})
        _send_json(worker, {"host": _HOST, "port": ports[following], "rank": following})
        after, _ = listeners[following].accept()
        with after, socket.create_connection((_HOST, port)) as before:
            # Each rank sends where to find the next one; the worker's own part comes back last.
            host = _HOST.encode().ljust(_HOST_NAME, b"\0")
            before.sendall(host * world)
            for back in range(1, world + 1):
                before.sendall(struct.pack("=i", ports[(rank - back + 1) % world]))
            _read(after, world * (_HOST_NAME + 4))
        for peer in others:
            if peer > rank:
                link, _ = listeners[peer].accept()
                _read(link, 4)  # the worker's rank
            else:
                link = socket.create_connection((_HOST, port))
                link.sendall(struct.pack("=i", peer))
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links.append(link)
            self._run(self._forward, link, peer, send)
            Thread(target=_deliver, args=(link, self._received[peer]), daemon=True).start()
            listeners[peer].close()
        if self._ended:
            self.abort()

    def _forward(self, link: socket.socket, peer: int, send: Send) -> None:
        """Send what the worker writes."""
        data = b"more"
        while data:
            try:
                data = link.recv(_CHUNK)
            except OSError:
                data = b""
            try:
                send(peer, data)
            except Exception:
                self.abort()
                return


def _deliver(link: socket.socket, received: queue.SimpleQueue[bytes]) -> None:
    """Write what has arrived to the worker."""
    with contextlib.suppress(OSError):
        while data := received.get():
            link.sendall(data)
        link.shutdown(socket.SHUT_WR)


def _read(connection: socket.socket, size: int) -> bytes:
    data = connection.recv(size, socket.MSG_WAITALL)
    if len(data) < size:
        raise ConnectionError("The worker has closed its connection.")
    return data


def _read_json(connection: socket.socket) -> Any:
    (size,) = struct.unpack("=i", _read(connection, 4))
    return json.loads(_read(connection, size))


def _send_json(connection: socket.socket, value: Any) -> None:
    text = json.dumps(value).encode()
    connection.sendall(struct.pack("=i", len(text)) + text)
