"""The parties of a training with masked sums: their keys, and the exchange that proves them.

Every party has a key to sign with (Ed25519), and a list of the public keys of all that may take
part. Each training draws a fresh X25519 key at every worker. A worker accepts those of the others
only with signatures over everything that was said and agreed on. So nobody in between can replace
them, and a party that is not on the list is refused. Keys are made by ``ssh-keygen -t ed25519`` and
kept in its formats.

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
_FORMATS = "make one with `ssh-keygen -t ed25519 -N '' -C NAME -f FILE`"


@dataclass(frozen=True)
class Party:
    """What a worker proves itself with, and whom it accepts."""

    key: Any  # private: it leaves this object for no file, message or model
    name: str  # its own on the list
    accepted: Mapping[bytes, str]  # names of all parties by their public keys; public


def load_party(key_file: str | os.PathLike[str], parties_file: str | os.PathLike[str]) -> Party:
    """Read the files of a party. They hold no data; messages show no part of a key and no path."""
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
            "`dp_secure_key`: others than its owner may read or change the file. Take that from "
            "them with `chmod 600 FILE`; if somebody may have read it, make a new key."
        )
    try:
        key = load_ssh_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise PrivacyParameterError(
            "`dp_secure_key` must name the file of a private Ed25519 key in the format of OpenSSH, "
            f"without a passphrase: {_FORMATS}."
        )
    accepted = _parties(_read(Path(parties_file), "dp_secure_parties"))
    public = key.public_key().public_bytes_raw()
    if public not in accepted:
        raise PrivacyParameterError(
            "`dp_secure_parties`: the list does not have this party's own key. It must contain "
            "the public key of `dp_secure_key` as well, and be the same at all parties."
        )
    return Party(key, accepted[public], accepted)


def _read(path: Path, parameter: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not the name of a file"
        raise PrivacyParameterError(
            f"`{parameter}`: the file cannot be read: {reason}. Give the path of a file that you "
            "may read."
        ) from None


def _parties(text: bytes) -> dict[bytes, str]:
    """Names by public key, in the order of the file."""
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
                f"`dp_secure_parties`, line {number}: expected '{_KIND} KEY NAME', as in the file "
                f"that ends in .pub; {_FORMATS}."
            )
        try:
            key = load_ssh_public_key(" ".join(words[:2]).encode())
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            raise PrivacyParameterError(
                f"`dp_secure_parties`, line {number}: this is not a public Ed25519 key. Copy the "
                "line from the file that ends in .pub."
            )
        raw, name = key.public_bytes_raw(), words[2].strip()
        if raw in parties or name in parties.values():
            raise PrivacyParameterError(
                f"`dp_secure_parties`, line {number}: the key or the name is on the list already. "
                "Every party needs a key and a name of its own."
            )
        parties[raw] = name
    return parties


class Handshake:
    """One worker's part of the exchange: three steps, in this order.

    Everybody tells :attr:`hello`; then what :meth:`sign` makes of the hellos of all; then
    :meth:`secrets` checks the signatures of all. Nothing that is told depends on data.
    """

    def __init__(self, me: Party, agreed: str, rank: int, world: int) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self.me, self.rank, self.world = me, rank, world
        self._agreed = hashlib.sha256(agreed.encode()).hexdigest()
        self._secret = X25519PrivateKey.generate()
        self._keys: list[tuple[bytes, bytes]] = []
        self.transcript = b""  # hash of all that was agreed on; public, anew in each training

    @property
    def hello(self) -> str:
        """Public keys of the party and of this training."""
        keys = self.me.key.public_key(), self._secret.public_key()
        return " ".join(key.public_bytes_raw().hex() for key in keys)

    def sign(self, hellos: Sequence[str]) -> str:
        """A signature over what all have said, and over what this worker trains."""
        keys = []
        for rank, hello in enumerate(hellos):
            words = [_bytes(word) for word in hello.split(" ")]
            if [len(word) for word in words] != [32, 32]:
                raise _refusal(f"worker {rank} has not said who it is")
            if words[0] not in self.me.accepted:
                raise _refusal(f"worker {rank} is none of the parties on the list")
            keys.append((words[0], words[1]))
        if len(keys) != self.world or hellos[self.rank] != self.hello:
            raise _refusal("what this worker has said was changed on its way")
        for column, what in enumerate(("the key of one party", "the same key of a training")):
            if len({pair[column] for pair in keys}) != self.world:
                raise _refusal(
                    f"two workers have {what}. Start one worker for each party, on a machine with "
                    "a random generator of its own"
                )
        self._keys = keys
        agreed = json.dumps([self._agreed, self.world, list(hellos)])
        self.transcript = hashlib.sha256(_LABEL + agreed.encode()).digest()
        return str(self.me.key.sign(self._signed(self.rank)).hex())

    def _signed(self, rank: int) -> bytes:
        return _LABEL + b" signature " + self.transcript + rank.to_bytes(4, "big")

    def secrets(self, signatures: Sequence[str]) -> bytearray:
        """A secret with each of the other workers, 32 bytes each, by rank; zeros for its own."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        if not self._keys:
            raise _refusal("this worker itself has not signed")
        if len(signatures) != self.world:
            raise _refusal("not every worker has signed")
        for rank, (party, _) in enumerate(self._keys):
            try:
                Ed25519PublicKey.from_public_bytes(party).verify(
                    _bytes(signatures[rank]), self._signed(rank)
                )
            except InvalidSignature:
                raise _refusal(
                    f"worker {rank} says that it is {self.me.accepted[party]!r} but does not prove "
                    "it, or what the two were told differs"
                ) from None
        seeds = bytearray(_SECRET_BYTES * self.world)
        for peer, (_, public) in enumerate(self._keys):
            if peer == self.rank:
                continue
            low, high = sorted((self.rank, peer))
            try:
                shared = self._secret.exchange(X25519PublicKey.from_public_bytes(public))
            except ValueError:
                raise _refusal(f"worker {peer} has sent a key that hides nothing") from None
            # Each pair and each training has a secret of its own.
            context = _LABEL + b" pair %d %d" % (low, high)
            seed = HKDF(SHA256(), _SECRET_BYTES, salt=self.transcript, info=context).derive(shared)
            seeds[_SECRET_BYTES * peer : _SECRET_BYTES * (peer + 1)] = seed
        return seeds


def _bytes(word: str) -> bytes:
    """Bytes of their hexadecimal digits; none for anything else."""
    try:
        return bytes.fromhex(word)
    except ValueError:
        return b""


def _refusal(reason: str) -> PrivacyRefusal:
    return PrivacyRefusal(
        f"`dp_secure_parties`: {reason}. Nothing was released. Look at who starts the workers, and "
        "at the lists and keys of all parties."
    )
