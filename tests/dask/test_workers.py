"""What workers tell each other before a training: nothing that is data."""

import json
import pickle
import sys
from typing import Any

import numpy as np
import pytest

from xgb_dp import errors
from xgb_dp.engine import workers
from xgb_dp.errors import PrivacyRefusal, RowDomainError
from xgb_dp.request.schema import Schema, common_schema


class Collective:
    """The root of a pair of workers, which notes what it sends."""

    class Op:
        MIN, MAX = 0, 1

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def get_rank(self) -> int:
        return 0

    def get_world_size(self) -> int:
        return 2

    def allreduce(self, data: np.ndarray, op: int) -> np.ndarray:
        return data

    def broadcast(self, data: bytes, root: int) -> bytes:
        self.sent.append(json.loads(data))
        return data


@pytest.fixture
def collective(monkeypatch: pytest.MonkeyPatch) -> Collective:
    fake = Collective()
    monkeypatch.setattr(workers, "_collective", lambda: fake)
    monkeypatch.setattr(workers, "_collective_broadcast", fake.broadcast)
    return fake


def test_categories_of_a_data_frame_are_not_sent(collective):
    """They may be those that occur; only the declared ones are public."""
    schema = Schema(["a"], True, frozenset({0}), {0: [b"flu", b"a rare disease"]}, True)
    assert common_schema(schema) == schema
    assert collective.sent == [[["a"], True, [0], True, None, 1]]


def test_messages_of_others_are_not_sent(collective):
    """An error of a library may quote a value."""

    def fail() -> None:
        raise ValueError("could not convert string to float: 'Ms Smith'")

    with pytest.raises(ValueError, match="Smith"):
        workers.check_together(fail)
    assert collective.sent == [["ValueError", "Its checks failed. Nothing was released."]]

    def refuse() -> None:
        raise RowDomainError("A row has an infinite feature.")

    with pytest.raises(RowDomainError):
        workers.check_together(refuse)
    assert collective.sent[1:] == [["RowDomainError", "A row has an infinite feature."]]


def hear(monkeypatch: pytest.MonkeyPatch, message: bytes) -> None:
    """Rank 0 has said something, and this is rank 1."""
    fake = Collective()
    monkeypatch.setattr(fake, "get_rank", lambda: 1)
    monkeypatch.setattr(fake, "allreduce", lambda data, op: np.zeros_like(data))
    monkeypatch.setattr(workers, "_collective", lambda: fake)
    monkeypatch.setattr(workers, "_collective_broadcast", lambda data, root: message)


def test_a_worker_without_columns_takes_those_of_the_others(monkeypatch):
    hear(monkeypatch, b'[["a", "b"], true, [1], true, null, 3]')
    schema = common_schema(Schema([], False, frozenset(), {}))
    assert schema == Schema(["a", "b"], True, frozenset({1}), {}, True, labels=3)


@pytest.mark.parametrize("kind", ["PrivacyRefusal", "PrivacyParameterError", "RowDomainError"])
def test_errors_of_others_keep_their_kind(kind, monkeypatch):
    hear(monkeypatch, json.dumps([kind, "so it is"]).encode())
    with pytest.raises(getattr(errors, kind), match="On another worker: so it is"):
        workers.check_together(lambda: None)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_worker_whose_check_fails_does_not_go_on_whatever_it_is_told(rank, monkeypatch):
    """Somebody on the network says that no worker has failed, and that all agree."""
    fake = Collective()
    monkeypatch.setattr(fake, "get_rank", lambda: rank)
    answer = [2]
    monkeypatch.setattr(fake, "allreduce", lambda data, op: np.full_like(data, answer[0]))
    monkeypatch.setattr(workers, "_collective", lambda: fake)
    monkeypatch.setattr(workers, "_collective_broadcast", lambda data, root: b'"another plan"')

    def refuse() -> None:
        raise PrivacyRefusal("worker 1 is not on the list of parties")

    with pytest.raises(PrivacyRefusal, match="not on the list of parties"):
        workers.check_together(refuse)
    answer[0] = 0
    with pytest.raises(errors.PrivacyParameterError, match="do not agree"):
        workers.check_agreement("a plan")


def test_no_class_is_made_of_what_others_say(monkeypatch):
    hear(monkeypatch, b'["SystemExit", "go"]')
    with pytest.raises(RowDomainError, match="go"):
        workers.check_together(lambda: None)


class Bomb:
    """Unpickled, it would end the process."""

    def __reduce__(self) -> Any:
        return (sys.exit, ("unpickled",))


@pytest.mark.parametrize(
    "message",
    [pickle.dumps(Bomb()), b"", b"\xff\xfe", b"[" * 100000, b'{"names": 3}', b"[1, 2, 3, 4]"],
)
def test_messages_of_strangers_are_refused_and_never_run(message, monkeypatch):
    hear(monkeypatch, message)
    with pytest.raises(PrivacyRefusal, match="not a message of xgb_dp"):
        common_schema(Schema([], False, frozenset(), {}))
