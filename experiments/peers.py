"""Other libraries from PyPI, each in its own environment under ``build/peers``.

They are started as programs of their own and get arrays; nothing of them is imported here. What
they spend is what they claim: docs/peers.md lists where the claims fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .core import LARGE

if TYPE_CHECKING:
    from .core import Cell, System
    from .datasets import Dataset
    from .train import Split

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "peers"
WORKER = Path(__file__).with_name("peer_worker.py")
TIMEOUT_S = 900
# Old releases need old companions: dp-xgboost fails on NumPy 2, diffprivlib on scikit-learn 1.6.
REQUIREMENTS = {
    "dp-xgboost": ("dp-xgboost==0.2.10", "numpy<2", "scipy"),
    "interpret-core": ("interpret-core==0.7.8",),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.6", "numpy>=2,<2.3"),
}


class PeerError(RuntimeError):
    """Another library could not be installed or failed."""


@dataclass(frozen=True)
class Request:
    """What a worker is asked; arrays travel beside it."""

    peer: str
    epsilon: float
    delta: float
    rounds: int | None
    seed: int
    binary: bool
    target: tuple[float, float]
    nominal: list[bool]
    min_child_weight: float


def python(name: str) -> Path:
    """The interpreter of a peer's environment."""
    return FOLDER / name / "bin" / "python"


def install(name: str) -> None:
    """Make the environment of a peer, if there is none.

    Raises:
        PeerError: If it cannot be installed; the message has the last line of pip.
    """
    if python(name).exists():
        return
    place = FOLDER / name
    pip = [str(python(name)), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(place)], [*pip, *REQUIREMENTS[name]]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            python(name).unlink(missing_ok=True)  # so that the next run tries again
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            raise PeerError(f"{name} does not install on this Python: {lines[-1]}")


def predict(
    system: System, cell: Cell, parts: Split, data: Dataset, rounds: int | None, delta: float
) -> tuple[np.ndarray, dict[str, Any]]:
    """Predictions for the test rows by another library, and what it claims to spend.

    Raises:
        PeerError: If it is not installed or fails.
    """
    if not python(system.peer).exists():
        raise PeerError(f"{system.peer} is not installed; see the message above the run")
    y = np.concatenate([parts.y_train, parts.y_test])
    binary = data.objective != "reg:squarederror"
    params = dict(system.params) | (dict(system.large) if len(y) >= LARGE else {})
    request = Request(
        peer=system.peer,
        epsilon=cell.epsilon,
        delta=delta,
        rounds=rounds,
        seed=cell.seed,
        binary=binary,
        target=(0.0, 1.0) if binary else data.bounds or (float(y.min()), float(y.max())),
        nominal=[str(c) in parts.nominal for c in parts.x_train.columns],
        min_child_weight=float(params.get("min_child_weight", 50.0)),
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.savez(
            place / "in.npz",
            x_train=parts.x_train.to_numpy(dtype=np.float64),
            y_train=parts.y_train.astype(np.float64),
            x_test=parts.x_test.to_numpy(dtype=np.float64),
            bounds=np.array([parts.bounds[c] for c in parts.x_train.columns]),
        )
        (place / "request.json").write_text(json.dumps(asdict(request)), encoding="utf-8")
        command = [str(python(system.peer)), str(WORKER), folder]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise PeerError(f"{system.peer}: {lines[-1]}")
        predicted = np.load(place / "out.npy")
    return predicted, {"releases": f"as {system.peer} claims; not checked"}
