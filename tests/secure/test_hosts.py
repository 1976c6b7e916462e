"""The recipe of ``docs/howto/federated.md``, as three hospitals on three hosts follow it."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")

from tests.children import light_environment
from tests.secure import hosts
from tests.secure.cluster import make_key, preloaded
from xgb_dp import Budget, privacy_report, verify

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "federated.md"
PROGRAMS, FRAMEWORKS = PAGE.read_text(encoding="utf-8").split("## With Flower")
PARTIES = ["north", "east", "south"]
HOST = {"north": 1, "east": 2, "south": 3}


def follow(folder: Path) -> list[tuple[int, list[str]]]:
    """Write the programs of the page, make the keys as it says."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen")
    commands = []
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", PROGRAMS, re.M | re.S):
        name = re.match(r"# (\S+\.py)\n", text)
        if name:
            (folder / name[1]).write_text(text)
        for line in text.splitlines() if language == "bash" else ():
            words = shlex.split(line, comments=True)
            if words[0] == "python":
                commands.append((HOST.get(words[2], 1), [sys.executable, *words[1:]]))
            elif words[0] != "pip":
                subprocess.run(line, shell=True, cwd=folder, check=True)
    assert len(commands) == 4
    return commands


def loopback(commands: list[tuple[int, list[str]]], folder: Path) -> list[dict[str, Any]]:
    """The same on one host, where the machine lends no others, at a port that is free."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = str(listening.getsockname()[1])
    for name in ("tracker.py", "party.py"):
        path = folder / name
        path.write_text(path.read_text().replace("9091", port))

    def go(command: tuple[int, list[str]]) -> dict[str, Any]:
        words = ["127.0.0.1" if word.startswith(hosts.NETWORK) else word for word in command[1]]
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=300, check=False
        )
        return {"code": done.returncode, "said": done.stdout + done.stderr}

    with ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(go, commands))


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Any:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    light = light_environment(tmp_path_factory.mktemp("light"))
    monkeypatch.setenv("PYTHONPATH", light["PYTHONPATH"])
    return loopback if hosts.refusal() else hosts.run


@pytest.mark.slow
def test_three_hospitals_train_one_model_with_one_ledger(network, tmp_path):
    for result in network(follow(tmp_path), tmp_path):
        assert result["code"] == 0, result["said"]
    models = [json.loads((tmp_path / f"{name}.json").read_text()) for name in PARTIES]
    ledgers = [json.loads(m["learner"]["attributes"].pop("dp_ledger")) for m in models]
    entries = [ledger["trainings"][0].pop("entry") for ledger in ledgers]
    for ledger in ledgers:
        del ledger["digest"]  # of the entry, too
    assert all(model == models[0] for model in models)
    assert all(ledger == ledgers[0] for ledger in ledgers)
    report = privacy_report(tmp_path / "north.json")
    assert 1.0 < report.epsilon <= 2.0
    assert report.ledger["trainings"][0]["public"]["masked_sums"] == {"workers": 3, "colluders": 1}
    for name, entry in zip(PARTIES, entries, strict=True):  # each has charged it
        assert verify(tmp_path / f"{name}.json").verdict == "passed"
        budget = Budget(tmp_path / f"{name}.budget.json", epsilon=4.0, delta=4e-6)
        assert [line.id for line in budget.entries] == [entry]
        assert 2.9 < budget.remaining() < 3.5  # of 4, and the training has up to 2
    assert all(os.stat(tmp_path / name).st_mode & 0o077 == 0 for name in PARTIES)


@pytest.mark.slow
def test_a_stranger_in_the_place_of_a_hospital_is_refused(network, tmp_path):
    """It has a list with its own key on it, and the name and the host of a party."""
    tracker, *parties = follow(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    known = (tmp_path / "parties").read_text().splitlines(keepends=True)
    (other / "parties").write_text("".join([*known[:2], make_key(other / "south")]))
    host, words = parties[2]
    parties[2] = (host, ["env", "-C", str(other), *words[:1], "../party.py", *words[2:]])
    _, *results = network([tracker, *parties], tmp_path)
    for result in results:
        assert result["code"] == 1
        assert "PrivacyRefusal" in result["said"], result["said"]
    assert all("not on the list of parties" in result["said"] for result in results)
    assert {path.name for path in tmp_path.rglob("*.json")} <= {f"{n}.budget.json" for n in PARTIES}
    for name in ("north", "east"):
        assert Budget(tmp_path / f"{name}.budget.json", epsilon=4.0, delta=4e-6).entries == []


@pytest.mark.slow
def test_somebody_on_a_link_ends_the_training_on_all_hosts(network, tmp_path):
    """One bit of one message of a masked sum changes between two hosts, in mid-training."""
    tracker, *parties = follow(tmp_path)
    log = tmp_path / "log"
    # Of 30 trees, three messages each.
    link = preloaded(tmp_path, ALTER_LOG=str(log), ALTER_SIZE="128", ALTER_NTH="60")
    host, words = parties[1]
    parties[1] = (host, ["env", *(f"{name}={value}" for name, value in link.items()), *words])
    _, *results = network([tracker, *parties], tmp_path)
    assert log.read_text() == "x"
    texts = [result["said"] for result in results]
    assert all(result["code"] == 1 for result in results), texts
    assert any("was changed in transit" in text for text in texts), texts
    assert all("Masked sums: " in text for text in texts), texts
    for name in PARTIES:
        assert not (tmp_path / f"{name}.json").exists()
        budget = Budget(tmp_path / f"{name}.budget.json", epsilon=4.0, delta=4e-6)
        assert 2.9 < budget.remaining() < 3.5  # what was released before has been paid for
