"""Parties of a training with masked sums: their keys, and an authenticated key exchange.

Every party has a signing key (Ed25519) and a list of the public keys of all accepted parties. Each
worker draws a fresh X25519 key for each training. Workers accept the X25519 keys of the others only
with signatures over all exchanged messages and the agreed settings, so nobody in between can
replace these keys, and parties that are not on the list are refused. Signing keys are generated
with ``ssh-keygen -t ed25519`` and stored in its formats.

Proof: docs/proofs/masked-sums.md
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PrivacyParameterError, PrivacyRefusal

_LABEL = b"xgb-dp masked sums 3"
_SECRET_BYTES = 32
_KIND = "ssh-ed25519"
_FORMATS = "generate one with `ssh-keygen -t ed25519 -N '' -C NAME -f FILE`"


@dataclass(frozen=True)
class Party:
    """A worker's signing key, and the parties that it accepts."""

    key: Any  # private: never written to a file, message or model
    name: str  # its own name in the list
    accepted: Mapping[bytes, str]  # names of all parties by public key; public


def load_party(key_file: str | os.PathLike[str], parties_file: str | os.PathLike[str]) -> Party:
    """Read the key and the list of a party; error messages show no key and no path."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_ssh_private_key
    except ImportError:
        raise PrivacyParameterError(
            "`dp_secure_aggregation` needs the package `cryptography` on every worker: "
            "pip install 'xgb-dp[federated]'."
        ) from None
    path = Path(key_file)
    text = _read(path, "dp_secure_key")
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise PrivacyParameterError(
            "`dp_secure_key`: the file is accessible to users other than its owner. Run "
            "`chmod 600 FILE`; if somebody may have read it, generate a new key."
        )
    try:
        key = load_ssh_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise PrivacyParameterError(
            "`dp_secure_key` must be the path of a private Ed25519 key in OpenSSH format without "
            f"a passphrase: {_FORMATS}."
        )
    accepted = _parties(_read(Path(parties_file), "dp_secure_parties"))
    public = key.public_key().public_bytes_raw()
    if public not in accepted:
        raise PrivacyParameterError(
            "`dp_secure_parties`: this party's own key is not in the list. Add the public key of "
            "`dp_secure_key`, and use the same list at all parties."
        )
    return Party(key, accepted[public], accepted)


def _read(path: Path, parameter: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a valid path"
        raise PrivacyParameterError(
            f"`{parameter}`: the file cannot be read: {reason}. Pass the path of a readable file."
        ) from None


def _parties(text: bytes) -> dict[bytes, str]:
    """Return the names by public key, in the order of the file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    parties: dict[bytes, str] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        words = line.split(maxsplit=2)
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 3 or words[0] != _KIND or not words[2].strip().isprintable():
            raise PrivacyParameterError(
                f"`dp_secure_parties`, line {number}: expected '{_KIND} KEY NAME', as in a .pub "
                f"file; {_FORMATS}."
            )
        try:
            key = load_ssh_public_key(" ".join(words[:2]).encode())
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            raise PrivacyParameterError(
                f"`dp_secure_parties`, line {number}: not a public Ed25519 key. Copy the line "
                "from the .pub file."
            )
        raw, name = key.public_bytes_raw(), words[2].strip()
        if raw in parties or name in parties.values():
            raise PrivacyParameterError(
                f"`dp_secure_parties`, line {number}: duplicate key or name. Every party must have "
                "its own key and name."
            )
        parties[raw] = name
    return parties


class Handshake:
    """One worker's side of the key exchange, in three steps.

    All workers exchange :attr:`hello`, then the signatures from :meth:`sign`; finally
    :meth:`secrets` verifies the signatures. No message depends on data.
    """

    def __init__(self, me: Party, agreed: str, rank: int, world: int) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self.me, self.rank, self.world = me, rank, world
        self._agreed = hashlib.sha256(agreed.encode()).hexdigest()
        self._secret = X25519PrivateKey.generate()
        self._keys: list[tuple[bytes, bytes]] = []
        self.transcript = b""  # hash of all that was agreed; public, and different in each training

    @property
    def hello(self) -> str:
        """Public keys of the party and of this training."""
        keys = self.me.key.public_key(), self._secret.public_key()
        return " ".join(key.public_bytes_raw().hex() for key in keys)

    def sign(self, hellos: Sequence[str]) -> str:
        """Sign the hellos of all workers and the settings of this worker's training."""
        keys = []
        for rank, hello in enumerate(hellos):
            words = [_bytes(word) for word in hello.split(" ")]
            if [len(word) for word in words] != [32, 32]:
                raise _refusal(f"worker {rank} did not send its public keys")
            if words[0] not in self.me.accepted:
                raise _refusal(f"worker {rank} is not on the list of parties")
            keys.append((words[0], words[1]))
        if len(keys) != self.world or hellos[self.rank] != self.hello:
            raise _refusal("this worker's message was changed in transit")
        for column, what in enumerate(("the same party key", "the same training key")):
            if len({pair[column] for pair in keys}) != self.world:
                raise _refusal(
                    f"two workers have {what}. Start one worker per party, on machines with "
                    "separate random generators"
                )
        self._keys = keys
        agreed = json.dumps([self._agreed, self.world, list(hellos)])
        self.transcript = hashlib.sha256(_LABEL + agreed.encode()).digest()
        return str(self.me.key.sign(self._signed(self.rank)).hex())

    def _signed(self, rank: int) -> bytes:
        return _LABEL + b" signature " + self.transcript + rank.to_bytes(4, "big")

    def secrets(self, signatures: Sequence[str]) -> bytearray:
        """Return the secret shared with each worker, 32 bytes each by rank; zeros for its own."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        if not self._keys:
            raise _refusal("this worker has not signed yet")
        if len(signatures) != self.world:
            raise _refusal("a worker has not signed")
        for rank, (party, _) in enumerate(self._keys):
            try:
                Ed25519PublicKey.from_public_bytes(party).verify(
                    _bytes(signatures[rank]), self._signed(rank)
                )
            except InvalidSignature:
                raise _refusal(
                    f"worker {rank} claims to be {self.me.accepted[party]!r}, but its signature is "
                    "invalid, or the two workers received different messages"
                ) from None
        seeds = bytearray(_SECRET_BYTES * self.world)
        for peer, (_, public) in enumerate(self._keys):
            if peer == self.rank:
                continue
            low, high = sorted((self.rank, peer))
            try:
                shared = self._secret.exchange(X25519PublicKey.from_public_bytes(public))
            except ValueError:
                raise _refusal(f"worker {peer} sent an insecure key") from None
            # Derive a separate secret for each pair of workers and each training.
            context = _LABEL + b" pair %d %d" % (low, high)
            seed = HKDF(SHA256(), _SECRET_BYTES, salt=self.transcript, info=context).derive(shared)
            seeds[_SECRET_BYTES * peer : _SECRET_BYTES * (peer + 1)] = seed
        return seeds


def _bytes(word: str) -> bytes:
    """Decode hexadecimal digits; return no bytes for invalid ones."""
    try:
        return bytes.fromhex(word)
    except ValueError:
        return b""


def _refusal(reason: str) -> PrivacyRefusal:
    return PrivacyRefusal(
        f"`dp_secure_parties`: {reason}. Nothing was released. Check who starts the workers, and "
        "the lists and keys of all parties."
    )
