"""An NVIDIA FLARE job: the server starts one training of all parties and receives one model.

All messages of the training, with the masked sums, are FLARE's: parties connect to nobody but its
server, which passes on what they send to each other. The function that trains is the party's own;
no job names it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from pkgutil import resolve_name
from threading import Event, Thread
from typing import Any

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from . import ENDED, PartyError, one_model, train_party
from .relay import Relay

PARTY = "XGB_DP_PARTY"
"""Environment variable that names a party's function, such as ``party:prepare``."""
_READY, _TRAIN = "xgb_dp_ready", "xgb_dp_train"
_TOPIC = "xgb_dp_relay"
_BYTES, _PING, _FAILED = "bytes", "ping", "failed"


class Party(Executor):
    """Component of a client: trains once with the function that `XGB_DP_PARTY` names.

    Args:
        timeout: Seconds that a message to another party may take.

    The function receives the settings ``{"name": ...}`` with the name of the site. Only the model,
    or an error without values of the data, is sent to the server.
    """

    def __init__(self, timeout: float = 60.0) -> None:
        super().__init__()
        self.timeout = timeout
        self._relay = Relay()

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Receive messages of the other parties from the start, before this one trains."""
        if event_type == EventType.START_RUN:
            fl_ctx.get_engine().register_aux_message_handler(_TOPIC, self._receive)

    def _receive(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
        if request["kind"] == _FAILED:
            self._relay.abort()
        elif request["kind"] == _BYTES:
            self._relay.receive(int(request["rank"]), request["data"])
        return make_reply(ReturnCode.OK)

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Train once; a second request of the same job is refused."""
        if task_name != _TRAIN:
            return make_reply(ReturnCode.OK)
        names, name = list(shareable["names"]), fl_ctx.get_identity_name()
        engine, rank, done = fl_ctx.get_engine(), names.index(name), Event()
        others = [other for other in names if other != name]

        def send(targets: list[str], kind: str, timeout: float, data: bytes = b"") -> None:
            message = Shareable({"rank": rank, "kind": kind, "data": data})
            with engine.new_context() as context:
                answers = engine.send_aux_request(
                    targets, _TOPIC, message, timeout, context, optional=True
                )
            for target in targets if timeout else ():
                if target not in answers or answers[target].get_return_code() != ReturnCode.OK:
                    raise PartyError(f"Party {target} cannot be reached. {ENDED}")

        def watch() -> None:
            """Notice a party that has left while nobody sends it anything."""
            with contextlib.suppress(PartyError):
                while not done.wait(self.timeout / 4):
                    send(others, _PING, self.timeout)
            if not done.is_set():
                self._relay.abort()

        try:
            _once(fl_ctx)
            prepare = os.environ.get(PARTY)
            if prepare is None:
                raise PartyError(f"Set `{PARTY}` to the party's function, such as party:prepare.")
            group = self._relay.open(
                rank, len(names), lambda to, data: send([names[to]], _BYTES, self.timeout, data)
            )
            Thread(target=watch, daemon=True).start()
            model = train_party(lambda s: resolve_name(prepare)(s), {"name": name}, group)
        except PartyError as error:
            send(others, _FAILED, 0.0)
            return make_reply(ReturnCode.EXECUTION_EXCEPTION, {"error": str(error)})
        finally:
            done.set()
        self._relay.close(self.timeout)
        reply = make_reply(ReturnCode.OK)
        reply["model"] = model
        return reply


def _run_folder(fl_ctx: FLContext) -> str:
    return str(fl_ctx.get_engine().get_workspace().get_run_dir(fl_ctx.get_job_id()))


def _once(fl_ctx: FLContext) -> None:
    """Refuse a task that FLARE sends again, for example after a restart of this client."""
    try:
        Path(_run_folder(fl_ctx), "xgb_dp_started").touch(exist_ok=False)
    except FileExistsError:
        raise PartyError(f"This job has already started training here. {ENDED}") from None


class Server(Controller):
    """Component of the server: starts one training, and saves the model that all parties return.

    Args:
        model: Path of the model; FLARE returns files in the folder of the job with its result.

    If a party fails or leaves, the job fails with its error, and nothing is tried again.
    """

    def __init__(self, model: str = "model.json") -> None:
        super().__init__()
        self.model = model
        self._models: dict[str, bytes] = {}
        self._error: str | None = None

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing; FLARE calls this before the training."""

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing; FLARE calls this at the end."""

    def process_result_of_unknown_task(self, *args: Any, **kwargs: Any) -> None:
        """Ignore a result that nobody asked for."""

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Train once."""
        names = sorted(client.name for client in fl_ctx.get_engine().get_clients())
        ready = Task(_READY, Shareable())  # until every party can receive messages
        task = Task(_TRAIN, Shareable({"names": names}), result_received_cb=self._take)
        for each in (ready, task):
            self.broadcast_and_wait(each, fl_ctx, names, len(names), abort_signal=abort_signal)
        if self._error is None and len(self._models) == len(names):
            try:
                model = one_model([self._models[name] for name in names])
                Path(_run_folder(fl_ctx), self.model).write_bytes(model)
                return
            except PartyError as error:
                self._error = str(error)
        self.system_panic(self._error or f"A party did not answer. {ENDED}", fl_ctx)

    def _take(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        result, name = client_task.result, client_task.client.name
        if result.get_return_code() == ReturnCode.OK:
            self._models[name] = result["model"]
        elif self._error is None:
            self._error = f"Party {name}: {result.get_header('error', ENDED)}"
            self.cancel_task(client_task.task, fl_ctx=fl_ctx)
