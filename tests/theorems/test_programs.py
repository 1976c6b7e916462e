"""The programs whose laws are proved make the draws that the code makes, one for one.

`tests/noise/test_against_reference.py` holds that `tests/reference/noise.py` and the library agree
draw by draw. Here that reference draws, what it has drawn is written down, and Coq runs its own
program on these numbers. Numbers are small, because Coq counts in ones. Without Coq this is
skipped; `make prove` has it.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.reference import noise

HERE = Path(__file__).parent
PROVED = "vm_compute; reflexivity. Qed."
pytestmark = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")


def coq(folder: Path, name: str) -> str:
    done = subprocess.run(
        ["coqc", "-Q", ".", "XgbDp", f"{name}.v"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def drawn(
    monkeypatch: pytest.MonkeyPatch, draw: Callable[..., Any], *args: Any
) -> tuple[Any, list]:
    """What the reference returns, and the uniform integers that it has drawn for it."""
    rng = random.Random(repr((draw.__name__, args)))
    tape: list[int] = []

    def uniform_below(_: object, n: int) -> int:
        tape.append(rng.randrange(n))
        return tape[-1]

    monkeypatch.setattr(noise, "uniform_below", uniform_below)
    return draw(None, *args), tape


def cases(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, list[int]]]:
    """Calls in Coq, what each should return, and its draws."""
    rng, goals = random.Random(1), []
    for _ in range(60):
        q, b = rng.randrange(3), rng.randrange(1, 60)
        a = rng.randrange(b + 1)
        got, tape = drawn(monkeypatch, noise.bernoulli_exp, q, a, b)
        goals.append((f"coins {q} {a} {b}", str(got).lower(), tape))
        t = rng.randrange(1, 40)
        got, tape = drawn(monkeypatch, noise.discrete_laplace, t)
        goals.append((f"laplace_of_tape {t}", f"({got})%Z", tape))
        sigma2 = rng.randrange(1, 9)
        got, tape = drawn(monkeypatch, noise.discrete_gaussian, sigma2)
        goals.append((f"gaussian_of_tape {sigma2}", f"({got})%Z", tape))
        us, e, D = [rng.randrange(-9, 10) for _ in range(rng.randrange(1, 6))], rng.randrange(9), 7
        got, tape = drawn(monkeypatch, noise.select_exponential, us, e, D)
        missing = "; ".join(str(max(us) - u) for u in us)
        goals.append((f"select_of_tape {e} {D} [{missing}]", str(got), tape))
    return goals


def test_programs_make_the_draws_of_the_code(monkeypatch, tmp_path):
    shutil.copy(HERE / "programs.v", tmp_path)
    coq(tmp_path, "programs")
    # Coq returns the result and what is left of the tape, which must be nothing.
    lines = [
        f"Goal {call} [{'; '.join(map(str, tape))}] = Some ({result}, []). {PROVED}"
        for call, result, tape in cases(monkeypatch)
    ]
    head = (
        "Require Import List ZArith.\nFrom XgbDp Require Import programs.\nImport ListNotations.\n"
    )
    (tmp_path / "draws.v").write_text(head + "\n".join(lines))
    coq(tmp_path, "draws")
    wrong = re.sub(r"Some \((\w+), \[\]\)", r"Some (\1, [7])", lines[0])
    (tmp_path / "wrong.v").write_text(head + wrong)
    with pytest.raises(subprocess.CalledProcessError):
        coq(tmp_path, "wrong")


@pytest.mark.parametrize("page", sorted(HERE.glob("*.v")), ids=lambda p: p.stem)
def test_nothing_is_taken_on_trust(page):
    text = re.sub(r"\(\*.*?\*\)", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture)\b", text)
