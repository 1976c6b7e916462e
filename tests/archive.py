"""Command ``python -m tests.archive FILE``: digests of models and ledgers under known noise.

Two builds that are meant to compute the same write the same file: ``diff`` shows every model that
a change of structure has changed. A case is a preset, or one value of one parameter, for labels of
one kind; a layout of the rows; or a case of the fuzz, which varies containers, weights and margins.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

import xgb_dp
from xgb_dp.presets import PRESETS
from xgb_dp.testing import fixed_noise

from .conftest import OBJECTIVE, arrays
from .fuzz.cases import BOUNDS, OBJECTIVES, VALID, make

PARSER = argparse.ArgumentParser(prog="python -m tests.archive", description=__doc__)
PARSER.add_argument("file", type=Path, help="what is written: a line for each case")
PARSER.add_argument("--fuzz", type=int, default=1000, help="how many cases of the fuzz (1,000)")

Call = Callable[[], Any]
_FEATURES = dict.fromkeys(range(4), (-4.0, 4.0))


def _asked(kind: str, **changes: Any) -> dict[str, Any]:
    params = {"tree_method": "dp_hist", "dp_epsilon": 2.0, "dp_delta": 1e-6, "max_depth": 2}
    return params | OBJECTIVE[kind] | {"nthread": 1, "verbosity": 0} | changes


def _trained(kind: str, rounds: int = 3, data: dict[str, Any] | None = None, **changes: Any) -> Any:
    X, y = arrays(kind)
    return xgb.train(_asked(kind, **changes), xgb.DMatrix(X, y, **(data or {})), rounds)


def _presets() -> Iterator[tuple[str, Call]]:
    for name, preset in PRESETS.items():
        pure = preset.params.get("dp_accountant") == "pure"
        more: dict[str, Any] = {"dp_preset": name, "dp_epsilon": 8.0, "dp_public_num_rows": 300}
        more |= {"dp_feature_bounds": _FEATURES, "dp_delta": 0.0 if pure else 1e-6}
        for kind in OBJECTIVE:
            for rounds in (1, 4):
                yield f"preset {name} {kind} {rounds}", partial(_trained, kind, rounds, **more)


def _parameters() -> Iterator[tuple[str, Call]]:
    for kind in OBJECTIVE:
        for key, values in VALID.items():
            for value in values:
                yield f"{kind} {key}={value!r}", partial(_trained, kind, **{key: value})
        for objective in sorted(set(OBJECTIVES[kind])):
            more: dict[str, Any] = {"objective": objective}
            if objective in BOUNDS:
                more["dp_target_bounds"] = BOUNDS[objective]
            yield f"{kind} {objective}", partial(_trained, kind, **more)


def _layouts() -> Iterator[tuple[str, Call]]:
    weight = np.linspace(0.0, 1.0, 300)
    ids = np.arange(300) // 7
    for kind in OBJECTIVE:
        columns = 3 if kind == "multiclass" else 1
        margin = np.linspace(-1, 1, 300 * columns).reshape(300, columns)
        yield f"weights {kind}", partial(_trained, kind, data={"weight": weight})
        margins = {"base_margin": margin}
        yield f"margins {kind}", partial(_trained, kind, data=margins, dp_base_margin=True)
        yield f"persons {kind}", partial(_trained, kind, dp_privacy_id=ids)
        three = {"dp_privacy_id": ids, "dp_max_rows_per_person": 3}
        yield f"three rows a person {kind}", partial(_trained, kind, **three)
        yield f"threads {kind}", partial(_trained, kind, nthread=2)
        yield f"open rounds {kind}", partial(_open, kind)
        yield f"continued {kind}", partial(_continued, kind)
        yield f"selected {kind}", partial(_selected, kind)


def _open(kind: str) -> Any:
    X, y = arrays(kind)
    return xgb.train(_asked(kind), xgb.DMatrix(X, y))


def _continued(kind: str) -> Any:
    X, y = arrays(kind)
    first = _trained(kind)
    return xgb.train(_asked(kind), xgb.DMatrix(X, y), 2, xgb_model=first)


def _selected(kind: str) -> Any:
    X, y = arrays(kind)
    config = {k: v for k, v in _asked(kind).items() if k not in ("dp_epsilon", "dp_delta")}
    depths = [{"max_depth": 1}, {"max_depth": 2}]
    data = xgb.DMatrix(X, y)
    return xgb_dp.select(config, data, depths, epsilon=4.0, delta=1e-6, num_boost_round=2).booster


def _fuzz(cases: int, folder: Path) -> Iterator[tuple[str, Call]]:
    for number in range(cases):
        yield f"fuzz {number}", partial(_made, number, folder)


def _made(number: int, folder: Path) -> Any:
    return make(1, number, folder).call()


def _line(name: str, call: Call) -> str:
    """How a case ends: digests of model and ledger and the epsilon, or the class of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with fixed_noise(7):
                model = call()
            if not isinstance(model, xgb.Booster):
                return f"{name}: no model"
            content = json.loads(model.save_raw("json"))
            ledger = json.loads(content["learner"]["attributes"].pop("dp_ledger", "null"))
            # Known noise has no epsilon: that of the same call with noise that nobody knows.
            epsilon = "none" if ledger is None else xgb_dp.privacy_report(call()).epsilon
        except Exception as error:
            return f"{name}: {type(error).__name__}"
    digests = (_digest(part) for part in (content, ledger))
    return f"{name}: {' '.join(digests)} {epsilon}"


def _digest(content: Any) -> str:
    """Of JSON, in whichever order its keys stand."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def main() -> int:
    """Write the file, and say how many cases have trained."""
    config = PARSER.parse_args()
    trained = 0
    with tempfile.TemporaryDirectory() as folder, config.file.open("w") as out:
        cases = (*_presets(), *_parameters(), *_layouts(), *_fuzz(config.fuzz, Path(folder)))
        for name, call in cases:
            line = _line(name, call)
            trained += len(line.split(": ")[-1].split()) == 3
            print(ascii(line)[1:-1], file=out, flush=True)
    print(f"{len(cases)} cases, {trained} models")
    return 0


if __name__ == "__main__":
    sys.exit(main())
