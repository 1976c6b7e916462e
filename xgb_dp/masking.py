"""Masked sums: what they go with, and the keys that the workers agree on.

Every worker adds its own share of the noise to its sums and masks them with pads that it shares
with each of the others; the pads cancel in the sum of all. The sums are made in C++
(``plugin_cpp/release/``). Here are the checks, and the agreement on the keys of the pads: one fresh
X25519 key for each worker and training, from which each pair derives a secret by HKDF. Secrets go
to C++ and nowhere else: not into the plan, the model, a message or a pickle.

Proof: docs/proofs/masked-sums.md
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import native, parse
from .errors import PrivacyParameterError, PrivacyRefusal
from .workers import tell_all, this_worker

if TYPE_CHECKING:
    from .components import Components

__all__ = ["Masking", "agree_on_pads", "drop_pads", "require_cryptography", "resolve_masking"]

_KEY_BYTES = 32
_LABEL = b"xgb-dp masked sums 1"


@dataclass(frozen=True)
class Masking:
    """How the noise is divided; public.

    Attributes:
        workers: Workers W that each add a share of the noise; 0 where sums travel in the clear.
        colluders: How many of them may put together what they know, 0 to W - 1.
    """

    workers: int = 0
    colluders: int = 0

    def to_json(self) -> dict[str, int]:
        """As the plan has it."""
        return {"workers": self.workers, "colluders": self.colluders}


def resolve_masking(p: Mapping[str, Any], components: Components) -> Masking:
    """Check ``dp_secure_sum`` and what it is combined with.

    Args:
        p: Flat parameters.
        components: How the training releases what it releases.

    Raises:
        PrivacyParameterError: A value is out of range, or there are no other workers.
        PrivacyRefusal: A release that is not a sum with Gaussian noise.
    """
    on = parse.parse_flag("dp_secure_sum", p.get("dp_secure_sum", False))
    if not on:
        if "dp_secure_colluders" in p:
            raise PrivacyParameterError(
                "`dp_secure_colluders` has an effect with dp_secure_sum=True only."
            )
        return Masking()
    _, workers = this_worker()
    if workers < 2:
        raise PrivacyParameterError(
            "`dp_secure_sum` needs at least two workers that train together: join them with "
            "xgboost.collective.CommunicatorContext or Dask, or leave it out."
        )
    _refuse(p, components)
    colluders = parse.parse_int(
        "dp_secure_colluders", p.get("dp_secure_colluders", 1), 0, workers - 1
    )
    return Masking(workers, colluders)


def _refuse(p: Mapping[str, Any], components: Components) -> None:
    if components.split == "exponential":
        raise PrivacyRefusal(
            "`dp_secure_sum` is refused with dp_split='exponential': the exponential mechanism "
            "needs the exact sums at one worker. Use dp_split='random', 'partial' or 'histogram'."
        )
    if components.leaf_noise != "gaussian":
        raise PrivacyRefusal(
            f"`dp_secure_sum` is refused with dp_leaf_noise={components.leaf_noise!r}: shares of "
            "noise add up to what is claimed for 'gaussian' only."
        )
    if components.candidate_noise != "gaussian":
        raise PrivacyRefusal(
            "`dp_secure_sum` is refused with dp_candidate_noise='laplace': shares of noise add up "
            "to what is claimed for 'gaussian' only."
        )
    if components.local:
        raise PrivacyRefusal(
            "`dp_secure_sum` is refused with dp_local, whose rows report by themselves."
        )
    if parse.parse_number("subsample", p.get("subsample", 1.0), low=0, high=1) != 1.0:
        raise PrivacyRefusal(
            "`dp_secure_sum` is refused with `subsample` below 1: amplification by sampling is not "
            "proved for masked sums. Leave it out."
        )


def require_cryptography() -> None:
    """Look for the package that the agreement on keys needs.

    Raises:
        PrivacyParameterError: It is missing.
    """
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise PrivacyParameterError(
            "`dp_secure_sum` needs the package `cryptography` on every worker: "
            "pip install 'xgb-dp[federated]'."
        ) from None


def agree_on_pads(plan_id: str) -> None:
    """Agree with every other worker on a secret of the two, and hand these to C++.

    Privacy: reads no data. Public keys may pass through anybody who follows the protocol.

    Args:
        plan_id: Names the plan of the training, on which all workers agree.

    Raises:
        PrivacyRefusal: Two workers have the same key: a copy of a process, or of a machine.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    rank, world = this_worker()
    own = X25519PrivateKey.generate()
    public = tell_all(own.public_key().public_bytes_raw().hex())
    if len(set(public)) != world:
        raise PrivacyRefusal(
            "`dp_secure_sum`: two workers have the same key. Start every worker as a process of "
            "its own, on a machine with a random generator of its own. Nothing was released."
        )
    seeds = bytearray(_KEY_BYTES * world)
    for peer in range(world):
        if peer == rank:
            continue
        low, high = sorted((rank, peer))
        # All keys and the plan, so that every pair and every training has a secret of its own.
        context = f"{plan_id} {low} {high} {' '.join(public)}".encode()
        shared = own.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(public[peer])))
        seed = HKDF(SHA256(), _KEY_BYTES, salt=None, info=_LABEL + context).derive(shared)
        seeds[_KEY_BYTES * peer : _KEY_BYTES * (peer + 1)] = seed
    buffer = (ctypes.c_uint8 * len(seeds)).from_buffer(seeds)
    try:
        native.call("XGDPKeepPads", ctypes.c_char_p(plan_id.encode()), rank, world, buffer)
    finally:
        ctypes.memset(buffer, 0, len(seeds))


def drop_pads() -> None:
    """Wipe the secrets of a training that does not take place."""
    native.call("XGDPDropPads")
