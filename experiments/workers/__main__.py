"""Trains as asked: ``python -m experiments.workers FOLDER``.

Reads in.npz and request.json from the folder; writes out.npy, with the predictions of each setting,
and out.json, with its seconds and the peak memory of the process.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

# Module and function of each method.
METHODS = {
    "booster": ("booster", "predict"),
    "adassp": ("adassp", "predict"),
    "descent": ("descent", "predict"),
    "dp-xgboost": ("libraries", "sarus"),
    "interpret-core": ("libraries", "ebm"),
    "diffprivlib": ("libraries", "diffprivlib"),
    "logistic": ("libraries", "logistic"),
    "sbdt": ("libraries", "sbdt"),
    "network": ("network", "predict"),
    "mst": ("synthesis", "mst"),
    "aim": ("synthesis", "aim"),
}


def peak_mib() -> float:
    """Largest resident memory of this process so far.

    Not of getrusage: that counts the process that started this one until it was replaced.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no VmHWM")


def main(place: Path) -> None:
    """Train each of the settings that are asked for, one after the other."""
    request: dict[str, Any] = json.loads((place / "request.json").read_text(encoding="utf-8"))
    module, name = METHODS[request["method"]]
    trainer = importlib.import_module(f".{module}", __package__)
    if hasattr(trainer, "warm_up"):
        trainer.warm_up()  # imports are not part of the time
    predictions, seconds, spent = [], [], {}
    with np.load(place / "in.npz") as file:
        data = dict(file)
    for params in request["settings"]:
        start = time.process_time()
        answer = getattr(trainer, name)(request | {"params": params}, data)
        used_s = time.process_time() - start
        predicted, spent = answer if isinstance(answer, tuple) else (answer, {})
        seconds.append(used_s + spent.pop("shared_s", 0.0))
        predictions.append(np.asarray(predicted, dtype=np.float64))
    np.save(place / "out.npy", np.stack(predictions))
    out = {"seconds": seconds, "peak_mib": peak_mib(), "spent": spent}
    (place / "out.json").write_text(json.dumps(out), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
