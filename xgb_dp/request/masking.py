"""Masked sums: their parameters and rules, and the workers' key agreement.

Each worker adds its share of the noise to its sums and masks them with pads that it shares pairwise
with the other workers; the pads cancel in the total. C++ computes the sums
(``plugin_cpp/release/``). This module establishes the keys of the pads: every worker authenticates
itself (``engine/key_exchange.py``), and each pair of workers derives a secret for the pads and for
message authentication. Secrets are passed to C++ only, and never to the plan, the model, a message
or a pickle.

Proof: docs/proofs/masked-sums.md
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..engine import key_exchange, native
from ..engine.workers import all_gather, check_together, this_worker
from ..errors import PrivacyRefusal
from ..parameters.config import Config
from ..parameters.parameter import PUBLIC, SPENDS, Parameter, Rule, Table
from ..parameters.parse import FileName, Flag, Integer


def _masked(name: str, broken: Callable[[Config], bool], message: str) -> Rule:
    return Rule(
        f"masked sums {name}",
        lambda s: s["dp_secure_aggregation"] and broken(s),
        f"`dp_secure_aggregation` is refused with {message}",
        PrivacyRefusal,
    )


_GAUSSIAN_SHARES = "only Gaussian noise shares add up to the claimed noise. Use 'gaussian'."


# fmt: off
PARAMETERS = (
    Parameter("dp_secure_aggregation", "Masks the sums of the workers, so that none sees another's "
                                       "sums or the exact total.",
              Flag(), False, PUBLIC, "masked-sums", Table.MASKED_SUMS,
              values="bool; requires at least two workers",
              shown="False: workers trust each other", recorded=False),
    Parameter("dp_secure_colluders", "Number of workers that may collude. The noise of the "
                                     "others guarantees dp_epsilon.",
              lambda name, value, s: Integer(0, max(s.workers - 1, 0))(name, value), 1,
              SPENDS, "masked-sums", Table.MASKED_SUMS, unit="workers",
              values="0 (all workers are trusted) to workers - 1",
              shown="1: workers do not collude", recorded=False),
    Parameter("dp_secure_key", "File with this worker's private key (ssh-keygen -t ed25519).",
              FileName(), None,
              PUBLIC, "masked-sums", Table.MASKED_SUMS, unit="file",
              shown="none; required with dp_secure_aggregation", recorded=False),
    Parameter("dp_secure_parties", "File with the public keys of all workers, one per line.",
              FileName(), None, PUBLIC, "masked-sums",
              Table.MASKED_SUMS, unit="file", shown="none; required with dp_secure_aggregation",
              recorded=False),
)
RULES = (
    Rule("dp_secure_colluders needs masked sums",
         lambda s: "dp_secure_colluders" in s.given and not s["dp_secure_aggregation"],
         "`dp_secure_colluders` requires dp_secure_aggregation=True. Remove it."),
    Rule("key files need masked sums",
         lambda s: (not s["dp_secure_aggregation"]
                    and ("dp_secure_key" in s.given or "dp_secure_parties" in s.given)),
         "`dp_secure_key` and `dp_secure_parties` require dp_secure_aggregation=True. Remove "
         "them."),
    Rule("masked sums need several workers",
         lambda s: s["dp_secure_aggregation"] and s.workers < 2,
         "`dp_secure_aggregation` requires at least two workers. Connect them with "
         "xgboost.collective.CommunicatorContext or Dask, or remove it."),
    _masked("need rows as units", lambda s: s.unit == "person",
            "{`dp_privacy_id`}: workers that do not trust each other cannot compare their ids, "
            "so a person with rows on two workers would count twice. Limit the rows per person in "
            "advance, and set {`dp_group_size`} to that limit."),
    _masked("without selections",
            lambda s: s["dp_split"] == "exponential",
            "dp_split='exponential': the exponential mechanism needs the exact sums on one "
            "worker. Use dp_split='random', 'partial' or 'histogram'."),
    _masked("need Gaussian leaves",
            lambda s: s["dp_leaf_noise"] != "gaussian",
            "dp_leaf_noise={dp_leaf_noise!r}: " + _GAUSSIAN_SHARES),
    _masked("need Gaussian candidates",
            lambda s: s["dp_candidate_noise"] != "gaussian",
            "dp_candidate_noise='laplace': " + _GAUSSIAN_SHARES),
    _masked("without subsample",
            lambda s: s["subsample"] != 1.0,
            "`subsample` below 1: amplification by sampling is not proved for masked sums. "
            "Remove it."),
    _masked("without column start",
            lambda s: s.starts_from_columns,
            "dp_start={dp_start!r}, because its sums are not masked. Remove it."),
    Rule("masked sums need key files",
         lambda s: (s["dp_secure_aggregation"]
                    and None in (s["dp_secure_key"], s["dp_secure_parties"])),
         "`dp_secure_aggregation` requires `dp_secure_key` and `dp_secure_parties`, so that nobody "
         "can impersonate a worker. Each party creates a key with `ssh-keygen -t ed25519 -N '' -C "
         "NAME -f FILE`, keeps FILE, and sends FILE.pub to the others."),
)
# fmt: on


@dataclass(frozen=True)
class Masking:
    """Public division of the noise among the workers."""

    # number of workers W that each add a share of the noise; 0 for unmasked sums
    workers: int = 0
    colluders: int = 0  # number of workers that may collude, 0 to W - 1

    def to_json(self) -> dict[str, int]:
        """The entry in the plan."""
        return {"workers": self.workers, "colluders": self.colluders}


def agree_on_pads(plan_id: str, agreed: str, files: tuple[Any, Any]) -> None:
    """Agree on a secret with every other worker, and pass the secrets to C++.

    Privacy: reads no data. A man in the middle, or a party that is not on the list, learns nothing
    about the secrets; every worker that detects an attack stops the training.
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
