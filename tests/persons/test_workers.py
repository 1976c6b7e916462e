"""A person on two workers is refused on all of them, and workers tell each other no id."""

import json
from typing import Any

import pytest

from tests.children import run_workers

SECRET = "SECRET-91-"
NAMES = [f"{SECRET}{i}" for i in range(8)]
TOGETHER = "rows on two workers"
KINDS = "mixed kinds"
# What each worker has, and what all of them say.
CASES: dict[str, tuple[tuple[str, list[Any]], tuple[str, list[Any]], str]] = {
    "apart": (("text", [*NAMES[:4], *NAMES[:3]]), ("text", [*NAMES[4:], NAMES[5]]), "trained"),
    "one person on both": (("text", NAMES[:4]), ("text", NAMES[3:]), TOGETHER),
    "on both, among numbers": (("whole", [2**70, 5, 5]), ("whole", [7, 5, 2**70 + 1]), TOGETHER),
    "numbers that are near": (
        ("whole", [2**70, 2**53]),
        ("whole", [2**53 + 1, 2**70 + 1]),
        "trained",
    ),
    "UUIDs": (("uuid", [1, 1, 2]), ("uuid", [2, 3]), TOGETHER),
    "bytes": (("bytes", [1, 1, 2]), ("bytes", [0, 3]), "trained"),
    "mixed kinds": (("text", ["1", "2"]), ("whole", [3, 4]), KINDS),
    "a worker without rows": (("text", NAMES), ("text", []), "trained"),
    "ids on one worker alone": (("text", NAMES), ("none", [1, 2]), "do not agree"),
    "an id is missing on one": (("text", NAMES[:2]), ("missing", [1, 2]), "no id"),
}


@pytest.fixture(scope="module")
def answers() -> list[dict[str, Any]]:
    """What both workers say of all cases, one after the other."""
    jobs = [
        {"rank": number, "trainings": [case[number] for case in CASES.values()]}
        for number in range(2)
    ]
    results = []
    for done in run_workers("from tests.persons.worker import main; main()", jobs):
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout + done.stderr
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return results


@pytest.mark.parametrize("name", CASES)
def test_all_workers_say_the_same(name, answers):
    number = list(CASES).index(name)
    for answer in answers:
        assert CASES[name][2] in answer["said"][number]
        assert answer["drawn"][number] == (CASES[name][2] == "trained")


def test_a_refusal_says_how_to_fix_it(answers):
    number = list(CASES).index("one person on both")
    for answer in answers:
        assert "shuffle(on=column)" in answer["said"][number]
        assert not any(name in answer["said"][number] for name in NAMES)


def test_workers_tell_each_other_no_id(answers):
    """Keyed hashes alone."""
    for answer in answers:
        assert len(answer["sent"]) > 1000
        assert SECRET not in answer["sent"]
