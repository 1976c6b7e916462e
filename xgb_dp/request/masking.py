"""Masked sums: what they go with, and the keys that the workers agree on.

Every worker adds its own share of the noise to its sums and masks them with pads that it shares
with each of the others; the pads cancel in the sum of all. The sums are made in C++
(``plugin_cpp/release/``). Here is the agreement on the keys of the pads: one fresh
X25519 key for each worker and training, from which each pair derives a secret by HKDF. Secrets go
to C++ and nowhere else: not into the plan, the model, a message or a pickle.

Proof: docs/proofs/masked-sums.md
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from ..engine import native
from ..engine.workers import tell_all, this_worker
from ..errors import PrivacyParameterError, PrivacyRefusal

__all__ = ["Masking", "agree_on_pads", "drop_pads", "require_cryptography"]

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
