"""The page that follows one training call names functions that a training passes, in its order."""

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import xgboost as xgb

import xgb_dp

ROOT = Path(__file__).resolve().parents[2]
HOP = re.compile(r"^\d+\. \[`(\S+)`\]\(\.\./(\S+)\)\s+`([\w.]+)`", re.MULTILINE)


def hops() -> list[tuple[str, str]]:
    links = HOP.findall((ROOT / "docs/training-call.md").read_text(encoding="utf-8"))
    assert all(shown == link for shown, link, _ in links)
    return [(path, function) for path, _, function in links]


def calls() -> list[tuple[str, str]]:
    """Functions of the package in the order of their first calls in a training."""
    package = Path(xgb_dp.__file__).parent
    seen: dict[tuple[str, str], None] = {}

    def record(frame: FrameType, event: str, argument: Any) -> None:
        del argument
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(package)):
            owner = frame.f_locals.get("self", frame.f_locals.get("cls"))
            kind = owner if isinstance(owner, type) else type(owner)
            name = frame.f_code.co_name
            path = f"xgb_dp/{Path(file).relative_to(package).as_posix()}"
            for qualified in (name, f"{kind.__name__}.{name}"):
                seen.setdefault((path, qualified))

    x = np.random.default_rng(0).normal(size=(500, 3))
    d = xgb.DMatrix(x, (x[:, 0] > 0).astype(int))
    params = {"tree_method": "dp_hist", "objective": "binary:logistic"}
    sys.setprofile(record)
    try:  # the epsilon of no other test: a cached calibration calls no mechanism
        xgb.train({**params, "dp_epsilon": 1.0625, "dp_delta": 1e-6}, d, 3)
    finally:
        sys.setprofile(None)
    return list(seen)


def test_a_training_passes_the_python_hops_in_order():
    passed = {call: position for position, call in enumerate(calls())}
    listed = [hop for hop in hops() if hop[0].endswith(".py")]
    assert len(listed) > 15
    assert not [hop for hop in listed if hop not in passed]
    positions = [passed[hop] for hop in listed]
    assert positions == sorted(positions)


def test_the_cpp_hops_exist():
    listed = [hop for hop in hops() if not hop[0].endswith(".py")]
    assert len(listed) > 5
    for path, function in listed:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^[\w ].*\b{function}\(", text, re.MULTILINE), (path, function)
