"""Training with masked sums inside Flower (``flower``) and NVIDIA FLARE (``nvflare``).

The framework starts each party's function, identifies the parties, and returns their models. Rows
stay in the party's process; only masked sums, public messages and the released model leave it.

See docs/howto/federated.md for what travels where, and docs/proofs/masked-sums.md for the claim.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xgboost import Booster
from xgboost.collective import CommunicatorContext, get_world_size

from ..engine.model_json import ModelJson, loads
from ..errors import PrivacyError, PrivacyRefusal

Train = Callable[[Mapping[str, Any]], Booster]
"""A party's function: from its settings to the model that it trained on its rows."""
ENDED = (
    "The training has ended without a model. What it released before still counts, and a new "
    "training costs its full epsilon."
)


class PartyError(RuntimeError):
    """An error of one party; safe to send, because its text contains no value of the data."""


def train_party(train: Train, settings: Mapping[str, Any], group: Mapping[str, Any]) -> bytes:
    """Join the other parties, train once, and return the model for the server.

    Args:
        train: The party's function.
        settings: Passed to `train`; chosen by the party.
        group: Arguments of ``xgboost.collective.CommunicatorContext``.

    Raises:
        PartyError: The training failed. The cause could quote a cell, so it is only printed to
            standard error: frameworks may send logs to the server.
    """
    try:
        with CommunicatorContext(**group):
            return _released(train(settings), get_world_size())
    except PrivacyError as error:
        raise PartyError(f"{type(error).__name__}: {error}") from None
    except Exception:
        traceback.print_exc()
        raise PartyError(
            "A party left, or this party's program failed; its standard error has the cause. "
            + ENDED
        ) from None


def _released(model: Booster, world: int) -> bytes:
    """Refuse to send a model that was not trained by all parties with masked sums."""
    trainings = json.loads(model.attr("dp_ledger") or '{"trainings": []}')["trainings"]
    masked = trainings[-1]["public"].get("masked_sums", {}) if trainings else {}
    if masked.get("workers") != world:
        raise PrivacyRefusal(
            "The party's function returned a model that all parties did not train together with "
            "masked sums. It was not sent. Train with `dp_secure_aggregation`."
        )
    return bytes(model.save_raw("json"))


def one_model(models: Sequence[bytes]) -> bytes:
    """Return the first party's model, after checking that all parties have the same.

    The models differ only in the entry of each party's own budget file.
    """
    if len({json.dumps(_without_entries(model), sort_keys=True) for model in models}) != 1:
        raise PartyError(f"The parties returned different models. {ENDED}")
    return models[0]


def _without_entries(model: bytes) -> Any:
    parsed = ModelJson(loads(model))
    ledger = json.loads(parsed.attributes.pop("dp_ledger"))
    del ledger["digest"]  # of the entries, too
    for training in ledger["trainings"]:
        training.pop("entry", None)
    return [parsed.part(()), ledger]
