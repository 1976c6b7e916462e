"""Real worker processes on this machine, which train together with masked sums."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.children import run_workers

WORLD = 3


def make_key(path: Path) -> str:
    """Write a private key as ssh-keygen does; its name is that of the file."""
    key = Ed25519PrivateKey.generate()
    kind = serialization.PrivateFormat.OpenSSH
    plain = serialization.NoEncryption()
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, kind, plain))
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return f"{public.decode()} {path.name}\n"


def make_parties(folder: Path, names: Sequence[str]) -> Path:
    """A private key for each name, and the list of all, ``parties``, which is returned."""
    listed = folder / "parties"
    listed.write_text("# who may take part\n\n" + "".join(make_key(folder / n) for n in names))
    return listed


def preloaded(folder: Path, **what: str) -> dict[str, str]:
    """The environment of a process with ``between.c`` between it and the network."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library, path = folder / "between.so", Path(__file__).with_name("between.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, path, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), **what}


def run(tasks: list[dict[str, Any]], env: dict[str, str] | None = None) -> list[Any]:
    """What ``tests/secure/worker.py`` answers to the tasks on each worker, by rank."""
    code = "from tests.secure.worker import main; main()"
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        make_parties(Path(folder), [str(rank) for rank in range(WORLD)])
        finished = run_workers(code, [{"tasks": tasks, "parties": folder}] * WORLD, env)
    for number, done in enumerate(finished):
        # XGBoost tells the rank first.
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if lines:
            answers.append(json.loads(lines[-1]))
            continue
        assert done.returncode != 0, done.stderr
        answers.append({"rank": number, "dead": True, "stderr": done.stderr})
    return sorted(answers, key=lambda a: a["rank"])
