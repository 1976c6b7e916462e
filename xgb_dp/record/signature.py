"""Signatures of model files by SSH keys, which OpenSSH makes and checks.

A signature is a file beside the model, in the form of ``ssh-keygen -Y sign``, so that anybody can
check it without this package. It is of the whole file, ledger and entries of a book included.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ..errors import PrivacyParameterError

# Namespaces: what the signer says of a model.
BOOKED, SIGNED = "booked@xgb-dp", "signed@xgb-dp"
_SAYS = {
    BOOKED: "whose book held every release of it",
    SIGNED: "who says nothing of a book",
}
_LIMITS = "that its ledger is true is the signer's word"
_ENDING = ".sig"


def beside(model: str | os.PathLike[str]) -> Path:
    """Where the signature of a model file lies."""
    return Path(f"{os.fspath(model)}{_ENDING}")


def sign(data: bytes, key: Path, *, booked: bool) -> bytes:
    """The signature of a model file's content by a private key, or by the public one of a key that
    an agent holds.
    """
    name = BOOKED if booked else SIGNED
    process = _ssh_keygen("-Y", "sign", "-f", key.resolve(), "-n", name, data=data)
    if process.returncode != 0:
        raise PrivacyParameterError(
            f"OpenSSH did not sign with {key}: {_reason(process)}. Give a private key that OpenSSH "
            "reads, such as ~/.ssh/id_ed25519, or the public key of one that its agent holds."
        )
    return process.stdout


def signer(model: Path, data: bytes, signers: str | os.PathLike[str]) -> tuple[bool, str]:
    """Whether one of the signers has signed the content of a model file, and what that says."""
    allowed, signature = Path(signers).resolve(), beside(model).resolve()
    if not allowed.is_file():
        raise PrivacyParameterError(
            f"There is no file of signers {os.fspath(signers)!r}. A line of it is a name and a "
            "public key: `holder@hospital ssh-ed25519 AAAA...` (man ssh-keygen, ALLOWED SIGNERS)."
        )
    if not signature.is_file():
        return False, f"there is no signature {signature.name} beside the model"
    of_file = ("-s", signature, "-f", allowed)
    who = _ssh_keygen("-Y", "find-principals", *of_file).stdout.decode(errors="replace")
    for name in who.splitlines():
        for says, meaning in _SAYS.items():
            checked = _ssh_keygen("-Y", "verify", *of_file, "-I", name, "-n", says, data=data)
            if checked.returncode == 0:
                return True, f"signed by {name}, {meaning}; {_LIMITS}"
    return False, f"{signature.name} is not a signature of this file by one of the signers"


def _ssh_keygen(
    *arguments: str | os.PathLike[str], data: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *arguments], input=data, capture_output=True)
    except FileNotFoundError:
        raise PrivacyParameterError(
            "Signatures are made and checked by ssh-keygen of OpenSSH 8.2 or later, which was not "
            "found. Install OpenSSH's client."
        ) from None


def _reason(process: subprocess.CompletedProcess[bytes]) -> str:
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {process.returncode}"
