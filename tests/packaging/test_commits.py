"""Messages of commits are read before they are shared."""

import os
import subprocess

import pytest

from ..scripts import script

check = script("tools/check_commits.py")

GOOD = "Check the indices in the trees of a model file\n\nA flipped bit ended the process."


def test_a_sound_message():
    assert check.faults(GOOD) == []
    assert check.faults("Seed every test by its name") == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("Check " + "x" * 67, "73 characters"),
        ("Check the indices.", "full stop"),
        ("check the indices", "not imperative"),
        ("Checked the indices", "not imperative"),
        ("Checks the indices", "not imperative"),
        ("Checking the indices", "not imperative"),
        ("Check the indices\nof trees", "no empty line"),
        ("Check the indices\n\nSeen in /home/somebody/xgb.", "local path"),
        ("Check the indices\n\nSeen in /tmp/x.", "local path"),
        ("Check the indices\n\nSeen in C:\\xgb.", "local path"),
    ],
)
def test_each_fault(message, fault):
    (reason,) = check.faults(message)
    assert fault in reason


def test_commits_since_the_first_one(tmp_path, capsys, monkeypatch):
    def git(*arguments: str) -> str:
        who = {f"GIT_{kind}_{what}": "a" for kind in ("AUTHOR", "COMMITTER") for what in
               ("NAME", "EMAIL")}  # fmt: skip
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *arguments],
            env=os.environ | who,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "whatever stood before.")
    assert check.main(tmp_path) == 0  # the fixed commit is not in this clone
    monkeypatch.setattr(check.commits, "__defaults__", (git("rev-parse", "HEAD"),))
    git("commit", "-q", "--allow-empty", "-m", GOOD)
    assert check.main(tmp_path) == 0
    git("commit", "-q", "--allow-empty", "-m", "Add a\n\nbody")
    git("commit", "-q", "--allow-empty", "-m", "Added more.")
    assert check.main(tmp_path) == 1
    output = capsys.readouterr().out
    assert output.count("Added more.") == 2
    assert "CONTRIBUTING.md" in output
