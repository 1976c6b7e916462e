"""Other libraries from PyPI, each in its own environment under ``build/peers``.

They are started as programs of their own (:mod:`experiments.workers`) and get arrays; nothing of
them is imported here. What they spend is what they claim: docs/peers.md lists where the claims
fail. Own trainings whose memory is measured go the same way, in this environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .datasets import as_codes

if TYPE_CHECKING:
    from .train import Split

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "peers"
HERE = "here"
# Old releases need old companions: dp-xgboost fails on NumPy 2, diffprivlib on scikit-learn 1.6.
REQUIREMENTS = {
    "dp-xgboost": ("dp-xgboost==0.2.10", "numpy<2", "scipy"),
    "interpret-core": ("interpret-core==0.7.8",),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.6", "numpy>=2,<2.3"),
    "opacus": ("opacus==1.6.0",),
    "smartnoise-synth": ("smartnoise-synth==1.0.8", "xgboost-cpu==3.2.0"),
}
# What is on no package index, and what to do about it.
BY_HAND = {
    "sbdt": "S-BDT is on no package index: build its module sbdt (github.com/kirschte/sbdt) and "
    "put it into an environment build/peers/sbdt with numpy, scikit-learn and py",
}


class PeerError(RuntimeError):
    """Another library could not be installed or failed."""


@dataclass(frozen=True)
class Request:
    """What a worker is asked; arrays travel beside it.

    Attributes:
        method: One of those that experiments/workers knows.
        settings: Parameters of each training; all share the process and the data.
        epsilon: Budget of each.
        delta: Failure probability of each.
        rounds: Boosting rounds, where the method has any.
        seed: Number of the split.
        binary: Whether labels are 0 and 1.
        target: Bounds of the labels.
        nominal: Which columns are codes of categories.
        columns: Names of the columns.
        categories: Names of the codes of categorical columns.
    """

    method: str
    settings: list[dict[str, Any]]
    epsilon: float
    delta: float
    rounds: int | None
    seed: int
    binary: bool
    target: tuple[float, float]
    nominal: list[bool]
    columns: list[str]
    categories: dict[str, list[str]]


def python(name: str) -> Path:
    """The interpreter of a peer's environment."""
    return Path(sys.executable) if name == HERE else FOLDER / name / "bin" / "python"


def install(name: str) -> None:
    """Make the environment of a peer, if there is none.

    Raises:
        PeerError: If it cannot be installed; the message has the last line of pip, or what to do.
    """
    if python(name).exists():
        return
    if name in BY_HAND:
        raise PeerError(BY_HAND[name])
    place = FOLDER / name
    pip = [str(python(name)), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(place)], [*pip, *REQUIREMENTS[name]]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            python(name).unlink(missing_ok=True)  # so that the next run tries again
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            raise PeerError(f"{name} does not install on this Python: {lines[-1]}")


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    """Features as numbers, codes for categories."""
    return as_codes(frame).to_numpy(dtype=np.float64)


def _last_error(text: str) -> str:
    """The last line that names an error: a message of several lines may end in a native stack."""
    named = re.findall(r"^[\w.]*(?:Error|Exception|Interrupt|Exit)\b.*", text, flags=re.MULTILINE)
    return str(named[-1]) if named else ""


def predict(
    peer: str, request: Request, parts: Split, limit_s: float
) -> tuple[np.ndarray, dict[str, Any]]:
    """Predictions for the test rows, one row for each setting, and what the worker says.

    Args:
        peer: Name of an environment.
        request: What to train.
        parts: Data.
        limit_s: Seconds after which the worker is stopped.

    Returns:
        Predictions, and a dictionary of ``seconds`` of each setting (of CPU time, in one thread),
        ``peak_mib`` and ``spent``.

    Raises:
        PeerError: If it is not installed, fails, or takes too long.
    """
    if not python(peer).exists():
        raise PeerError(f"{peer} is not installed; see the message above the run")
    bounds = [parts.bounds.get(str(c), (np.nan, np.nan)) for c in parts.x_train.columns]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # XLA takes a thread for each core that it may run on, whatever it is told.
    threads["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.savez(
            place / "in.npz",
            x_train=_numbers(parts.x_train),
            y_train=parts.y_train.astype(np.float64),
            x_test=_numbers(parts.x_test),
            bounds=np.array(bounds),
        )
        (place / "request.json").write_text(json.dumps(asdict(request)), encoding="utf-8")
        command = [str(python(peer)), "-m", "experiments.workers", folder]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=limit_s,
                check=False,
                cwd=ROOT,
                env=os.environ | threads,
            )
        except subprocess.TimeoutExpired as late:
            raise PeerError(f"not finished within {limit_s / 60:g} minutes") from late
        if done.returncode:
            raise PeerError(_last_error(done.stderr) or f"exit status {done.returncode}")
        answer: dict[str, Any] = json.loads((place / "out.json").read_text(encoding="utf-8"))
        return np.load(place / "out.npy"), answer
