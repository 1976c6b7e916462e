"""Training with masked sums inside Flower (``flower``) and NVIDIA FLARE (``nvflare``).

The framework starts each party's function, identifies the parties, and returns their models. Rows
stay in the party's process; only masked sums, public messages and the released model leave it.

See docs/howto/federated.md for what travels where, and docs/proofs/masked-sums.md for the claim.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xgboost import DMatrix
from xgboost.callback import TrainingCallback
from xgboost.collective import CommunicatorContext

from ..budget.budget import Budget
from ..engine.model_json import ModelJson, loads
from ..errors import PrivacyError, PrivacyRefusal
from ..request.names import read_one

ENDED = (
    "The training has ended without a model. What it released before still counts, and a new "
    "training costs its full epsilon."
)


class PartyError(RuntimeError):
    """An error of one party; safe to send, because its text contains no value of the data."""


@dataclass(frozen=True)
class PartyTraining:
    """One party's share of a training: arguments of :meth:`xgb_dp.Budget.train`.

    The budget limits how often others can start trainings on these rows.
    """

    budget: Budget
    params: Mapping[str, Any]
    dtrain: DMatrix
    num_boost_round: int
    callbacks: Sequence[TrainingCallback] = ()


Prepare = Callable[[Mapping[str, Any]], PartyTraining]
"""A party's function: from its settings to its rows and parameters."""


def train_party(prepare: Prepare, settings: Mapping[str, Any], group: Mapping[str, Any]) -> bytes:
    """Join the other parties, train once, and return the model for the server.

    The party's function runs before it joins, so what it computes from rows cannot be exchanged.

    Args:
        prepare: The party's function.
        settings: Passed to `prepare`; chosen by the party.
        group: Arguments of ``xgboost.collective.CommunicatorContext``.

    Raises:
        PartyError: The parameters do not mask the sums that leave the party, or the training
            failed. The cause of a failure could quote a cell, so it is only printed to
            standard error: frameworks may send logs to the server.
    """
    try:
        training = prepare(settings)
        if not read_one(training.params, "dp_secure_aggregation"):
            raise PrivacyRefusal(
                "Without `dp_secure_aggregation` the other parties would see exact sums. Nothing "
                "was sent. Set dp_secure_aggregation=True."
            )
        with CommunicatorContext(**group):
            model = training.budget.train(
                training.params,
                training.dtrain,
                training.num_boost_round,
                callbacks=list(training.callbacks),
            )
        return bytes(model.save_raw("json"))
    except PrivacyError as error:
        raise PartyError(f"{type(error).__name__}: {error}") from None
    except Exception:
        traceback.print_exc()
        raise PartyError(
            "A party left, or this party's program failed; its standard error has the cause. "
            + ENDED
        ) from None


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
