"""A budget file that is damaged, lost, swapped or rolled back is refused by all who saw it."""

import copy
import json
import math
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from xgb_dp import Budget, BudgetError
from xgb_dp.accounting import GaussianEvent
from xgb_dp.record import ledger

from ..mutations import mutations
from .test_budget import PARAMS, QUIET, budget, data

__all__ = ["budget"]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda raw: raw[: len(raw) // 2],
    "empty": lambda raw: b"",
    "binary": lambda raw: b"\xff\xfe\x00",
    "forgotten entry": lambda raw: json.dumps({**json.loads(raw), "entries": []}).encode(),
    "smaller charge": lambda raw: re.sub(rb'"mu2": [^,}]*', b'"mu2": 0.0', raw),
    "version": lambda raw: json.dumps({**json.loads(raw), "version": 99}).encode(),
    "list": lambda raw: b"[]",
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_refused(budget, kind):
    budget.reserve([QUIET])
    whole = budget.path.read_bytes()
    budget.path.write_bytes(DAMAGES[kind](whole))
    assert budget.path.read_bytes() != whole
    before = budget.path.read_bytes()
    for use in (lambda: Budget(budget.path), lambda: budget.reserve([QUIET]), budget.remaining):
        with pytest.raises(BudgetError, match=r"damaged|cannot be read"):
            use()
    with pytest.raises(BudgetError):
        budget.train(PARAMS, data(), 2)
    assert budget.path.read_bytes() == before


def test_a_changed_file_with_a_right_digest_is_refused_or_costs_as_much(budget, tmp_path):
    """Whatever field is changed, nothing is raised but our error: no entry becomes cheaper."""
    budget.train(PARAMS, data(), 1)
    budget.reserve([QUIET])
    content = ledger.load_checksummed(budget.path.read_text())
    for number, (what, changed) in enumerate(mutations(content)):
        path = tmp_path / f"{number}.json"
        with suppress(BudgetError, UnicodeEncodeError, ValueError):
            path.write_text(ledger.dump_checksummed(changed))
            budget = Budget(path)
            budget.verify()
            assert budget.statement() and budget.remaining() >= 0.0, what
            assert 0.0 < budget.epsilon < math.inf and 0.0 < budget.delta < 1.0, what
            assert 0.0 <= budget.selection_epsilon <= budget.epsilon, what


def test_a_lost_or_swapped_file_is_refused(budget, tmp_path):
    budget.reserve([QUIET])
    budget.path.rename(tmp_path / "away.json")
    for use in (lambda: budget.reserve([QUIET]), budget.remaining):
        with pytest.raises(BudgetError, match="is missing"):
            use()
    with pytest.raises(BudgetError, match="is missing"):  # what was spent is spent
        Budget(budget.path, epsilon=50.0, delta=1e-6)
    (tmp_path / "away.json").rename(budget.path)
    assert len(budget.entries) == 1


def test_another_budget_of_the_same_name_is_refused(budget):
    budget.path.unlink()
    Budget(budget.path, epsilon=50.0, delta=1e-6)
    with pytest.raises(BudgetError, match="replaced"):
        budget.reserve([QUIET])


def copies(budget: Budget) -> list[Any]:
    """Other ways to hold the same budget, all of which have to know what was seen."""
    return [
        lambda: budget,
        lambda: Budget(budget.path),
        lambda: Budget(budget.path, epsilon=2.0, delta=1e-6),
        lambda: pickle.loads(pickle.dumps(budget)),
        lambda: copy.deepcopy(budget),
    ]


@pytest.mark.parametrize("way", range(5))
@pytest.mark.parametrize("older", [0, 1])
def test_a_file_that_was_rolled_back_is_refused(budget, way, older):
    """By a sync tool, or `git checkout`: an older copy, of whatever age, lacks what was spent."""
    versions = [budget.path.read_bytes()]
    for _ in range(2):
        budget.reserve([QUIET])
        versions.append(budget.path.read_bytes())
    other = copies(budget)[way]
    budget.path.write_bytes(versions[older])
    for use in (lambda: other().reserve([QUIET]), lambda: other().remaining()):
        with pytest.raises(BudgetError, match=r"lacks an entry .* Restore the file"):
            use()
    assert budget.path.read_bytes() == versions[older]
    budget.path.write_bytes(versions[2])
    other().reserve([QUIET])
    assert len(budget.entries) == 3


def test_a_pickle_takes_what_was_seen_to_another_process(budget):
    empty = budget.path.read_bytes()
    budget.reserve([QUIET])
    held = pickle.dumps(budget)
    budget.path.write_bytes(empty)
    code = (
        "import pickle, sys; from xgb_dp import BudgetError\n"
        "book = pickle.loads(sys.stdin.buffer.read())\n"
        "try: book.entries\n"
        "except BudgetError as error: print(error)"
    )
    child = subprocess.run([sys.executable, "-c", code], input=held, capture_output=True)
    assert b"lacks an entry" in child.stdout, child


def test_a_forked_child_and_its_parent_know_what_each_has_booked(budget):
    empty = budget.path.read_bytes()
    if not hasattr(os, "fork"):
        pytest.skip("no fork")
    child = os.fork()
    if not child:
        budget.reserve([QUIET])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(budget.entries) == 1
    budget.path.write_bytes(empty)
    with pytest.raises(BudgetError, match="lacks an entry"):
        budget.reserve([QUIET])


def test_threads_that_book_at_once_do_not_take_each_other_for_a_rollback(budget):
    tiny = GaussianEvent("mean", 1, 1 << 50, 1, 1)

    def work(number: int) -> int:
        budget.reserve([tiny])
        return len(budget.entries)

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(work, range(40))) == 40
