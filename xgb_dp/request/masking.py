"""Masked sums: their parameters, and the workers' key agreement.

Every worker adds its own share of the noise to its sums and masks them with pads that it shares
with each of the others; the pads cancel in the sum of all. The sums are made in C++
(``plugin_cpp/release/``). Here is the agreement on the keys of the pads: every party proves who it
is (``engine/key_exchange.py``), and each pair derives a secret, for the pads and to prove who says
what. Secrets go to C++ and nowhere else: not into the plan, the model, a message or a pickle.

Proof: docs/proofs/masked-sums.md
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from ..engine import key_exchange, native
from ..engine.workers import all_gather, check_together, this_worker
from ..parameters.parameter import PUBLIC, SPENDS, Parameter, Table
from ..parameters.parse import FileName, Flag, Integer

# fmt: off
PARAMETERS = (
    Parameter("dp_secure_aggregation", "workers add shares of the noise to their own sums and "
              "mask them, so that no worker sees the sums of another or the total", Flag(), False,
              PUBLIC, "masked-sums", Table.MASKED_SUMS, values="bool; with at least two workers",
              shown="False: workers trust each other", recorded=False),
    Parameter("dp_secure_colluders", "how many workers may put together what they know. The noise "
              "of the others alone then makes dp_epsilon",
              lambda name, value, s: Integer(0, max(s.workers - 1, 0))(name, value), 1, SPENDS,
              "masked-sums", Table.MASKED_SUMS, unit="workers",
              values="0 (nobody who trains is curious) to workers - 1", shown="1: each on its own",
              recorded=False),
    Parameter("dp_secure_key", "the private key with which this worker proves to the others who it "
              "is. ssh-keygen -t ed25519 makes it", FileName(), None,
              PUBLIC, "masked-sums", Table.MASKED_SUMS, unit="file",
              shown="none; needed with dp_secure_aggregation", recorded=False),
    Parameter("dp_secure_parties", "the public keys of all workers that may take part, one in each "
              "line, as ssh-keygen writes them", FileName(), None, PUBLIC, "masked-sums",
              Table.MASKED_SUMS, unit="file", shown="none; needed with dp_secure_aggregation",
              recorded=False),
)
# fmt: on


@dataclass(frozen=True)
class Masking:
    """The public division of the noise."""

    # number of workers W that each add a share of the noise; 0 for sums in the clear
    workers: int = 0
    colluders: int = 0  # number of workers that may collude, 0 to W - 1

    def to_json(self) -> dict[str, int]:
        """The entry in the plan."""
        return {"workers": self.workers, "colluders": self.colluders}


def agree_on_pads(plan_id: str, agreed: str, files: tuple[Any, Any]) -> None:
    """Agree on a secret with every other worker, and pass the secrets to C++.

    Privacy: reads no data. An attacker in between, or one who is not on the list of parties, learns
    nothing about the secrets and ends the training on all workers that notice.
    """
    rank, world = this_worker()
    me = check_together(lambda: key_exchange.load_party(*files))
    handshake = key_exchange.Handshake(me, agreed, rank, world)
    hellos = all_gather(handshake.hello)
    signatures = all_gather(check_together(lambda: handshake.sign(hellos)))
    seeds = check_together(lambda: handshake.secrets(signatures))
    buffer = (ctypes.c_uint8 * len(seeds)).from_buffer(seeds)
    name, session = plan_id.encode(), handshake.transcript
    try:
        native.call("XGDPKeepPads", ctypes.c_char_p(name), rank, world, buffer, session)
    finally:
        ctypes.memset(buffer, 0, len(seeds))


def drop_pads() -> None:
    """Wipe the secrets of a training that will not run."""
    native.call("XGDPDropPads")
