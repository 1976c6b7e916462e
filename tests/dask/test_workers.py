"""What workers tell each other before a training: nothing that is data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xgb_dp.engine import workers
from xgb_dp.errors import RowDomainError
from xgb_dp.request.features import Schema


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

    def broadcast(self, data: Any, root: int) -> Any:
        self.sent.append(data)
        return data


@pytest.fixture
def collective(monkeypatch: pytest.MonkeyPatch) -> Collective:
    fake = Collective()
    monkeypatch.setattr(workers, "_collective", lambda: fake)
    return fake


def test_categories_of_a_data_frame_are_not_sent(collective: Collective) -> None:
    """They may be those that occur; only the declared ones are public."""
    mine = Schema(["a"], True, frozenset({0}), {0: [b"flu", b"a rare disease"]}, True)
    assert workers.common_schema(mine) == mine
    (sent,) = collective.sent
    assert sent.dictionaries == {}
    assert (sent.names, sent.categorical) == (mine.names, mine.categorical)


def test_messages_of_others_are_not_sent(collective: Collective) -> None:
    """An error of a library may quote a value."""

    def fail() -> None:
        raise ValueError("could not convert string to float: 'Ms Smith'")

    with pytest.raises(ValueError, match="Smith"):
        workers.check_together(fail)
    assert collective.sent == ["Its checks failed. Nothing was released."]

    def refuse() -> None:
        raise RowDomainError("A row has an infinite feature.")

    with pytest.raises(RowDomainError):
        workers.check_together(refuse)
    assert collective.sent[1:] == ["A row has an infinite feature."]
