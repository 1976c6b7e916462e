"""Write the test vectors of the ledger format: valid ledgers with their epsilon, and invalid ones.

Usage: ``python -m tests.reports.make_ledgers``. It trains small models with noise of the operating
system, so every run writes other ledgers. ``docs/ledger.md`` describes the format.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

import xgb_dp
from tests.conftest import OBJECTIVE, arrays
from xgb_dp.record.ledger import dump_checksummed

LEDGERS = Path(__file__).with_name("ledgers")
DELTA = 1e-6
BOUNDS = dict.fromkeys(range(4), (-4.0, 4.0))
VALID: dict[str, tuple[str, dict[str, Any], int | None]] = {
    "rows": ("binary", {}, 2),
    "persons": ("binary", {"dp_privacy_id": np.arange(300) // 2}, 2),
    "group": ("binary", {"dp_group_size": 3}, 2),
    "regression": ("regression", {}, 2),
    "classes": ("multiclass", {}, 2),
    "choice": ("binary", {}, None),
    "sample": ("binary", {"subsample": 0.5}, 2),
    "ensemble": ("binary", {"dp_ensemble": 2}, 4),
    "histograms": ("binary", {"dp_split": "histogram", "dp_feature_bounds": BOUNDS}, 2),
    "laplace": ("binary", {"dp_leaf_noise": "laplace"}, 2),
}
Change = Callable[[dict[str, Any]], Any]


def _training(change: Change) -> Change:
    return lambda ledger: change(ledger["trainings"][0])


INVALID: dict[str, Change] = {
    "another version": lambda ledger: ledger.update(version=2),
    "no trainings": lambda ledger: ledger.pop("trainings"),
    "an unknown field": lambda ledger: ledger.update(more=1),
    "no events": _training(lambda t: t.pop("events")),
    "an unknown mechanism": _training(lambda t: t["events"][0].update(mechanism="free")),
    "an unknown field of an event": _training(lambda t: t["events"][0].update(more=1)),
    "a smaller sensitivity": _training(lambda t: t["events"][0].update(sensitivity2=1)),
    "a negative count": _training(lambda t: t["events"][0].update(count=-1)),
    "an event left out": _training(lambda t: t["events"].pop()),
    "another unit": _training(lambda t: t["events"][0].update(unit="person")),
    "no mechanisms": _training(lambda t: t.update(mechanisms=[])),
    "a smaller range": _training(
        lambda t: t["mechanisms"][0]["mechanisms"]["splits"].update(range=1)
    ),
    "no plan": _training(lambda t: t.update(plans=[])),
    "a tree too few": _training(lambda t: t["trees"].pop()),
    "an infinite delta": _training(lambda t: t["target"].update(delta=float(10**9))),
}


def train(name: str) -> xgb.Booster:
    """A small model with noise of the operating system."""
    labels, changes, rounds = VALID[name]
    params = {"tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": DELTA, "nthread": 1}
    params |= OBJECTIVE[labels] | {"verbosity": 0} | changes
    if rounds is not None:
        params |= {"max_depth": 2}
    return xgb.train(params, xgb.DMatrix(*arrays(labels)), *([] if rounds is None else [rounds]))


def main() -> None:
    for folder in ("valid", "invalid"):
        (LEDGERS / folder).mkdir(parents=True, exist_ok=True)
    for name in VALID:
        model = train(name)
        text = model.attr("dp_ledger")
        vector = {"delta": DELTA, "epsilon": xgb_dp.privacy_report(model).epsilon, "text": text}
        path = LEDGERS / "valid" / f"{name}.json"
        path.write_text(json.dumps(vector, indent=1) + "\n", encoding="utf-8")
    sound = json.loads(json.loads((LEDGERS / "valid" / "rows.json").read_text())["text"])
    del sound["digest"]
    for name, change in INVALID.items():
        content = deepcopy(sound)
        change(content)
        path = LEDGERS / "invalid" / f"{name.replace(' ', '-')}.json"
        path.write_text(json.dumps({"text": dump_checksummed(content)}, indent=1) + "\n")
    damaged = {"a damaged digit": ('"private":true', '"private":false'),
               "a key twice": ('"version":1', '"version":1,"version":1')}  # fmt: skip
    for name, (old, new) in damaged.items():
        text = dump_checksummed(sound)
        assert old in text
        path = LEDGERS / "invalid" / f"{name.replace(' ', '-')}.json"
        path.write_text(json.dumps({"text": text.replace(old, new)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
