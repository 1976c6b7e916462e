"""The judge of mistakes can tell a false claim, and mistakes do not end in one."""

import json
import random
from pathlib import Path

import pytest

from .__main__ import PACKAGE, in_process, modules
from .battery import DELTA
from .judge import verdict
from .plant import mistakes_of


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("trained")
    in_process(None, folder)
    return folder


def test_without_a_mistake_all_claims_hold(trained: Path) -> None:
    for path in sorted(trained.glob("*.json")):
        answer, claimed, least = verdict(path, DELTA)
        assert answer == "holds"
        assert 0.3 * claimed < least < claimed


def test_draws_with_less_noise_than_claimed_are_told(trained: Path, tmp_path: Path) -> None:
    content = json.loads((trained / "regression.json").read_text())
    for draw in content["draws"]:
        if "sigma2" in draw:
            draw["sigma2"] //= 2
    path = tmp_path / "louder.json"
    path.write_text(json.dumps(content))
    assert verdict(path, DELTA)[0] == "FALSE"


DIVISION = ("def noise_of_total(", "def _amplification(")
"""Where a client divides the budget, and what follows it."""


@pytest.mark.parametrize("kind", ["half", "operator"])
def test_wrong_noise_is_refused_or_claimed(kind: str, tmp_path: Path) -> None:
    """A mistake where a client turns a part of the budget into the noise of leaves."""
    path = PACKAGE / "calibrate.py"
    source = path.read_text().splitlines()
    lines = range(
        *(next(i for i, line in enumerate(source) if line.startswith(d)) for d in DIVISION)
    )
    mistakes = [m for m in mistakes_of("xgb_dp.calibrate", path, lines) if m.kind == kind]
    mistake = random.Random(1).choice(mistakes)
    in_process(mistake, tmp_path, modules())
    verdicts = [verdict(path, DELTA)[0] for path in sorted(tmp_path.glob("*.json"))]
    assert verdicts and "FALSE" not in verdicts
