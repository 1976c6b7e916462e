"""The Flower app of ``docs/howto/federated.md``: a SuperLink and three SuperNodes on loopback."""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")
pytest.importorskip("cryptography")

from tests.children import light_environment
from tests.secure.cluster import make_parties
from tests.secure.test_hosts import PAGE, PARTIES
from xgb_dp import Budget, privacy_report, verify

TEXT = PAGE.read_text(encoding="utf-8")
SECTION = TEXT.split("\n## With Flower\n")[1].split("\n## ")[0]
pytestmark = pytest.mark.slow

# A party leaves after three trees: with its SuperNode, or by an error that quotes a row.
LEAVE = """
import os, signal
class Leave(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, log):
        if epoch == 3:
            {how}
"""


FAILS = "raise ValueError('the secret cell 4711')"


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def write_programs(folder: Path, text: str, changes: dict[str, str]) -> list[list[str]]:
    """Write the files of a part of the page; return its commands."""
    commands = []
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S):
        for old, new in changes.items():
            block = block.replace(old, new)
        if name := re.match(r"# (\S+\.\w+)\n", block):
            (folder / name[1]).write_text(block)
        elif language == "bash":
            commands += [shlex.split(line) for line in block.splitlines()]
    return commands


def program(folder: Path, leaving: str | None = None) -> None:
    """Write the party's program of the page; `leaving`: what east does after three trees."""
    write_programs(folder, TEXT.split("## With Flower")[0], {})
    if leaving is not None:
        path = folder / "party.py"
        train = "xgb.DMatrix(X, y), 30"
        code = path.read_text()
        assert code.count(train) == 1
        code = code.replace(train, f'{train}, [Leave()] if name == "east" else []')
        head, rest = code.split("\n\n\ndef prepare", 1)
        path.write_text(f"{head}\n{LEAVE.format(how=leaving)}\n\ndef prepare{rest}")


@contextlib.contextmanager
def running(
    commands: list[list[str]], folder: Path, environments: list[dict[str, str]]
) -> Iterator[list[Path]]:
    """Run servers, each in a process group that ends with the block; yield their logs."""
    logs = [folder / f"log{number}" for number in range(len(commands))]
    processes = []
    try:
        for words, log, env in zip(commands, logs, environments, strict=True):
            with log.open("w") as out:
                processes.append(
                    subprocess.Popen(
                        words, cwd=folder, env=env, stdout=out, stderr=out, start_new_session=True
                    )
                )
        yield logs
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def train(folder: Path, leaving: str | None = None) -> dict[str, Any]:
    """Follow the page; return what the run and each node printed."""
    make_parties(folder, PARTIES)
    app, light = folder / "app", folder / "light"
    app.mkdir()
    light.mkdir()
    program(app, leaving)
    api, tracker = str(free_port()), str(free_port())
    changes = {"10.77.0.1": "127.0.0.1", "8000": api, "9091": tracker}
    commands = [c for c in write_programs(app, SECTION, changes) if c[0] != "pip"]
    assert [c[0] for c in commands] == ["flower-superlink", *3 * ["flower-supernode"], "flwr"]
    link, *nodes, run = [[str(Path(sys.executable).with_name(c[0])), *c[1:]] for c in commands]
    # On one host, each SuperNode needs a port and a home folder of its own.
    link, nodes = [*link, "--port", api], [[*n, "--port", str(free_port())] for n in nodes]
    homes = [folder / f"home{number}" for number in range(4)]
    for home in homes:
        home.mkdir()
    (app / "config.toml").rename(homes[0] / "config.toml")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    common = light_environment(light) | {
        "PATH": path, "FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1"
    }  # fmt: skip
    environments = [{**common, "FLWR_HOME": str(home)} for home in homes]
    with running([link, *nodes], folder, environments) as logs:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(api))):
                break
            time.sleep(0.1)
        done = subprocess.run(
            run, cwd=folder, env=environments[0], capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        time.sleep(8)  # longer than SuperNodes wait between two questions for work
        return {"run": done.stdout + done.stderr, "nodes": [log.read_text() for log in logs[1:]]}


def check_model(model: Path, said: object) -> None:
    """All parties trained it together, and its claim holds."""
    assert model.exists(), said
    report = privacy_report(model)
    assert 1.0 < report.epsilon <= 2.0
    (training,) = report.ledger["trainings"]
    assert training["public"]["masked_sums"] == {"workers": 3, "colluders": 1}
    assert verify(model).verdict == "passed"


def check_budgets(folder: Path) -> None:
    """Each party has paid for one training, and for no second one."""
    for name in PARTIES:
        assert len(Budget(folder / f"{name}.budget.json", epsilon=4.0, delta=4e-6).entries) == 1


def test_three_clients_train_one_model_with_one_ledger(tmp_path):
    said = train(tmp_path)
    check_model(tmp_path / "model.json", said)
    check_budgets(tmp_path)


@pytest.mark.parametrize(
    "how", ["os.killpg(0, signal.SIGKILL)", FAILS], ids=["its node is killed", "its program fails"]
)
def test_a_client_that_leaves_ends_the_run(how, tmp_path):
    said = train(tmp_path, how)
    assert "PartyError" in said["run"], said
    assert "A party left, or this party's program failed" in said["run"]
    assert "a new training costs its full epsilon" in said["run"]
    assert "4711" not in said["run"]
    assert not (tmp_path / "model.json").exists()
    assert [log.count("Receiving: train message") for log in said["nodes"]] == [1, 1, 1]
    check_budgets(tmp_path)
