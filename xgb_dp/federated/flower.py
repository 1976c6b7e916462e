"""A Flower app: the server starts one training of all parties and receives one model.

Flower carries the start, the errors and the models. The masked sums take XGBoost's own connections
between the parties, because a Flower client answers each message in a new process, seconds later,
and a training exchanges hundreds.
"""

from __future__ import annotations

import time
from pathlib import Path

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from xgboost.tracker import RabitTracker

from . import ENDED, PartyError, Prepare, one_model, train_party

_FAILED = 1000
"""Error code of a party; Flower's own are smaller."""
_POLL = 1.0
"""Seconds between two looks at the replies."""


def client_app(prepare: Prepare) -> ClientApp:
    """Return the app of a party, which trains once for each request of the server.

    Args:
        prepare: Function from the node's configuration (``flower-supernode --node-config``) to
            this party's rows, budget and parameters.

    Only the model, or an error without values of the data, is sent to the server.
    """
    app = ClientApp()

    @app.train()
    def run(message: Message, context: Context) -> Message:
        group = dict(message.content["group"]) | {"dmlc_task_id": str(context.node_id)}
        try:
            model = train_party(prepare, context.node_config, group)
        except PartyError as error:
            return Message(Error(_FAILED, str(error)), reply_to=message)
        return Message(RecordDict({"model": ConfigRecord({"json": model})}), reply_to=message)

    return app


def server_app() -> ServerApp:
    """Return the app of the server, which sees no rows and no sums.

    Its run configuration: `parties` (number), `host` and `port` on which the parties find each
    other, `timeout` in seconds for the whole training, and `model`, the path of the result.

    If a party fails or leaves, the run fails with its error, and nothing is tried again.
    """
    app = ServerApp()

    @app.main()
    def run(grid: Grid, context: Context) -> None:
        config = context.run_config
        parties, timeout = int(config["parties"]), int(config["timeout"])
        deadline = time.monotonic() + timeout
        nodes = _nodes(grid, parties, deadline)
        tracker = RabitTracker(
            parties, host_ip=str(config["host"]), port=int(config["port"]), timeout=timeout
        )
        tracker.start()
        group = ConfigRecord({**tracker.worker_args(), "dmlc_timeout": timeout})
        content = RecordDict({"group": group})
        messages = [Message(content, node, "train", ttl=float(timeout)) for node in nodes]
        models = _replies(grid, set(grid.push_messages(messages)), deadline)
        Path(str(config["model"])).write_bytes(one_model(models))

    return app


def _nodes(grid: Grid, parties: int, deadline: float) -> list[int]:
    """Wait until all parties are connected."""
    while len(nodes := list(grid.get_node_ids())) != parties:
        if len(nodes) > parties or time.monotonic() > deadline:
            raise PartyError(
                f"{len(nodes)} nodes are connected, but `parties` is {parties}. Nothing was "
                "released. Start one SuperNode per party."
            )
        time.sleep(_POLL)
    return nodes


def _replies(grid: Grid, requests: set[str], deadline: float) -> list[bytes]:
    """Collect the models; the first error ends the run, and with it the tracker."""
    models: list[bytes] = []
    while requests:
        for reply in grid.pull_messages(requests):
            if reply.has_error():
                raise PartyError(f"Party {reply.metadata.src_node_id}: {reply.error.reason}")
            models.append(reply.content["model"]["json"])
            requests.discard(reply.metadata.reply_to_message_id)
        if time.monotonic() > deadline:
            raise PartyError("A party did not answer within `timeout`. " + ENDED)
        time.sleep(_POLL)
    return models
