"""Hosts on one machine: a network namespace for each, with an address of its own, on one bridge.

``python -m tests.secure.hosts`` reads commands as JSON and prints what came of them. The namespaces
are those of child processes, and vanish with them; the machine's own network is not touched.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NETWORK = "10.77.0."


def refusal() -> str | None:
    """Why there can be no such hosts here; None if there can."""
    missing = [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)} (iproute2, util-linux)"
    trial = "ip link add try0 type veth peer name try1 && ip link add try2 type bridge"
    done = subprocess.run(["unshare", "-n", "sh", "-c", trial], capture_output=True, check=False)
    return None if done.returncode == 0 else "needs the right to make network namespaces"


def run(commands: list[tuple[int, list[str]]], folder: Path) -> list[dict[str, Any]]:
    """Run commands at the same time, each on a host."""
    job = json.dumps({"commands": commands, "folder": str(folder)})
    words = ["unshare", "-n", sys.executable, "-m", "tests.secure.hosts"]
    done = subprocess.run(words, input=job, capture_output=True, text=True, cwd=ROOT, check=True)
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


def _ip(*words: str, host: int | None = None) -> None:
    inside = [] if host is None else ["nsenter", "-t", str(host), "-n"]
    subprocess.run([*inside, "ip", *words], check=True)


def _make_host(number: int) -> subprocess.Popen[bytes]:
    """A process in a namespace of its own, which is connected to the bridge."""
    process = subprocess.Popen(["unshare", "-n", "sleep", "600"])
    here = os.readlink("/proc/self/ns/net")
    while os.readlink(f"/proc/{process.pid}/ns/net") == here:
        time.sleep(0.01)
    pid, name = process.pid, f"host{number}"
    _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    _ip("link", "set", name, "master", "bridge0", "up")
    _ip("addr", "add", f"{NETWORK}{number}/24", "dev", "eth0", host=pid)
    _ip("link", "set", "eth0", "up", host=pid)
    _ip("link", "set", "lo", "up", host=pid)
    return process


def main() -> None:
    """Make the hosts, run the commands, print what they said."""
    job = json.loads(sys.stdin.read())
    _ip("link", "add", "bridge0", "type", "bridge")
    _ip("link", "set", "bridge0", "up")
    hosts: dict[int, subprocess.Popen[bytes]] = {}

    def go(command: tuple[int, list[str]]) -> dict[str, Any]:
        number, words = command
        done = subprocess.run(
            ["nsenter", "-t", str(hosts[number].pid), "-n", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=job["folder"],
            timeout=300,
            check=False,
        )
        return {"code": done.returncode, "said": done.stdout}

    try:
        for number in sorted({number for number, _ in job["commands"]}):
            hosts[number] = _make_host(number)
        with ThreadPoolExecutor(len(job["commands"])) as pool:
            print(json.dumps(list(pool.map(go, job["commands"]))))
    finally:
        for process in hosts.values():
            process.terminate()


if __name__ == "__main__":
    main()
