"""Who may take part in masked sums: files of keys, and attacks on the exchange."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tests.children import run_workers
from tests.secure.cluster import make_key, make_parties
from xgb_dp.engine import workers as network
from xgb_dp.engine.key_exchange import Handshake, load_party
from xgb_dp.errors import PrivacyError, PrivacyParameterError, PrivacyRefusal
from xgb_dp.request import masking

NAMES = ["north", "east", "south"]
Tamper = Callable[[int, list[str]], list[str]]
"""Changes what a worker, by rank, is told."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    make_parties(tmp_path, NAMES)
    return tmp_path


def handshakes(files: Path, agreed: str = "plan") -> list[Handshake]:
    parties = [load_party(files / name, files / "parties") for name in NAMES]
    return [Handshake(me, agreed, rank, len(NAMES)) for rank, me in enumerate(parties)]


def as_it_is(rank: int, messages: list[str]) -> list[str]:
    del rank
    return messages


def exchange(
    workers: list[Handshake], hellos: Tamper = as_it_is, signatures: Tamper = as_it_is
) -> list[bytearray | PrivacyError]:
    """What each worker comes to, its secrets or its error, with somebody on the network."""
    hello_of_all = [w.hello for w in workers]
    signed: list[str] = []
    out: list[Any] = [None] * len(workers)
    for rank, worker in enumerate(workers):
        try:
            signed.append(worker.sign(hellos(rank, list(hello_of_all))))
        except PrivacyError as error:
            out[rank] = error
            signed.append("")
    for rank, worker in enumerate(workers):
        try:
            out[rank] = out[rank] or worker.secrets(signatures(rank, list(signed)))
        except PrivacyError as error:
            out[rank] = error
    return out


def pair(secrets: list[Any], i: int, j: int) -> bytes:
    return bytes(secrets[i][32 * j : 32 * j + 32])


def test_a_worker_that_has_refused_has_no_secrets(files):
    """It would have had zeros, which everybody knows, after the signatures of nobody."""
    worker = handshakes(files)[0]
    with pytest.raises(PrivacyRefusal, match="did not send its public keys"):
        worker.sign([worker.hello, "", ""])
    with pytest.raises(PrivacyRefusal, match="has not signed"):
        worker.secrets(["", "", ""])


@pytest.mark.parametrize("what", ["hellos", "signatures"])
def test_nobody_on_the_network_can_say_that_no_worker_refuses(what, files, monkeypatch):
    """They change a hello or a signature, and then the answer to whether somebody has failed."""
    sent: list[str] = []

    def tell(text: str) -> list[str]:
        sent.append(text)
        changed = "hello" if what == "hellos" else "signature"
        now = "hello" if len(sent) == 1 else "signature"
        others = [w.hello for w in handshakes(files)[1:]] if now == "hello" else ["00", "00"]
        return [text, "none", others[1]] if changed == now else [text, *others]

    kept: list[Any] = []
    monkeypatch.setattr(network, "this_worker", lambda: (0, 3))
    monkeypatch.setattr(masking, "this_worker", lambda: (0, 3))
    monkeypatch.setattr(masking, "all_gather", tell)
    monkeypatch.setattr(masking.native, "call", lambda *args: kept.append(args))
    nobody = SimpleNamespace(
        allreduce=lambda data, op: np.full_like(data, 3), Op=SimpleNamespace(MIN=0)
    )
    monkeypatch.setattr(network, "_collective", lambda: nobody)
    with pytest.raises(PrivacyRefusal):
        masking.agree_on_pads("plan", "agreed", (files / "north", files / "parties"))
    assert not kept


def test_parties_that_are_who_they_are_share_secrets_by_pairs(files):
    once, again = exchange(handshakes(files)), exchange(handshakes(files))
    pairs = [(0, 1), (0, 2), (1, 2)]
    for secrets in (once, again):
        assert all(pair(secrets, i, j) == pair(secrets, j, i) for i, j in pairs)
        assert all(pair(secrets, i, i) == bytes(32) for i in range(3))
    assert len({pair(secrets, i, j) for secrets in (once, again) for i, j in pairs}) == 6


def refused(results: list[Any], *reasons: str) -> None:
    """No worker got a secret, each for its reason; an empty one: any."""
    for result, reason in zip(results, reasons, strict=True):
        assert isinstance(result, PrivacyRefusal)
        assert reason in str(result)
        assert "Nothing was released" in str(result)


def test_a_key_put_in_place_of_anothers_is_refused(files):
    """The man in the middle of a key exchange: to worker 0, his keys stand for those of 1."""
    public = X25519PrivateKey.generate().public_key().public_bytes_raw().hex()

    def in_the_middle(rank: int, messages: list[str]) -> list[str]:
        other = 1 if rank == 0 else 0 if rank == 1 else None
        if other is not None:
            messages[other] = f"{messages[other].split(' ')[0]} {public}"
        return messages

    refused(
        exchange(handshakes(files), in_the_middle),
        "received different messages",
        "received different messages",
        "",
    )


def test_a_stranger_is_refused(files):
    """A worker whose key is on no list but its own."""
    other = files / "other"
    other.mkdir()
    lines = (files / "parties").read_text() + make_key(other / "stranger")
    (other / "parties").write_text(lines)
    workers = handshakes(files)
    workers[2] = Handshake(load_party(other / "stranger", other / "parties"), "plan", 2, 3)
    reason = "worker 2 is not on the list"
    refused(exchange(workers), reason, reason, "its signature is invalid")


def test_the_name_of_a_party_without_its_key_is_refused(files):
    """A stranger who says that he is one of the list can not sign for it."""
    workers = handshakes(files)
    stranger = files / "stranger"
    public = make_key(stranger)
    (files / "more").write_text((files / "parties").read_text() + public)
    impostor = Handshake(load_party(stranger, files / "more"), "plan", 2, 3)
    claimed = workers[2].hello.split(" ")[0]
    lie_of_two = f"{claimed} {impostor.hello.split(' ')[1]}"

    def lie(rank: int, messages: list[str]) -> list[str]:
        messages[2] = lie_of_two if rank != 2 else messages[2]
        return messages

    workers[2] = impostor
    results = exchange(workers, lie)
    refused(
        results[:2],
        "'south', but its signature is invalid",
        "'south', but its signature is invalid",
    )


def test_an_old_exchange_played_back_is_refused(files):
    """All that worker 1 ever said, with its signature of then."""
    old = handshakes(files)
    hellos = [w.hello for w in old]
    signatures = [w.sign(hellos) for w in old]

    def hello(rank: int, messages: list[str]) -> list[str]:
        messages[1] = hellos[1] if rank != 1 else messages[1]
        return messages

    def signature(rank: int, messages: list[str]) -> list[str]:
        messages[1] = signatures[1] if rank != 1 else messages[1]
        return messages

    results = exchange(handshakes(files), hello, signature)
    refused(
        results, "'east', but its signature is invalid", "", "'east', but its signature is invalid"
    )


def test_workers_in_another_order_are_refused(files):
    """Whoever gives out the ranks tells worker 0 that 1 and 2 are each other."""

    def swap(rank: int, messages: list[str]) -> list[str]:
        return [messages[0], messages[2], messages[1]] if rank == 0 else messages

    refused(exchange(handshakes(files), swap, swap), *["signature is invalid"] * 3)


def test_another_training_is_refused(files):
    workers = handshakes(files)
    workers[1] = handshakes(files, "another plan")[1]
    refused(exchange(workers), *["received different messages"] * 3)


def test_one_party_twice_is_refused(files):
    """It would count twice among those who do not collude."""
    workers = handshakes(files)
    me = load_party(files / "east", files / "parties")
    workers[2] = Handshake(me, "plan", 2, 3)
    refused(exchange(workers), *["two workers have the same party key"] * 3)


def test_a_copy_of_a_process_is_refused(files):
    workers = handshakes(files)
    workers[2]._secret = workers[0]._secret
    refused(exchange(workers), *["the same training key"] * 3)


@pytest.mark.parametrize("messages", ["", "00", "zz zz", "00 00 00", f"{'0' * 64} {'0' * 64}"])
def test_garbage_is_refused(messages, files):
    def garbage(rank: int, all_said: list[str]) -> list[str]:
        all_said[1] = messages if rank != 1 else all_said[1]
        return all_said

    refused(exchange(handshakes(files), garbage)[::2], "worker 1", "worker 1")
    unsigned = exchange(handshakes(files), signatures=garbage)
    refused(unsigned[::2], "its signature is invalid", "its signature is invalid")
    assert isinstance(unsigned[1], bytearray)  # it was told the truth, and shares no secret


def test_what_a_worker_said_comes_back_to_it_unchanged(files):
    def change(rank: int, messages: list[str]) -> list[str]:
        return [*messages[:1], *messages[:1], *messages[2:]] if rank == 1 else messages

    assert "changed in transit" in str(exchange(handshakes(files), change)[1])


def test_a_public_key_that_hides_nothing_is_refused(files):
    """From a party of the list, which deviates: zero times every secret is zero."""
    workers = handshakes(files)

    class Zero:
        def public_bytes_raw(self) -> bytes:
            return bytes(32)

    class Broken:
        def public_key(self) -> Zero:
            return Zero()

        def exchange(self, peer: Any) -> bytes:
            del peer
            return bytes(32)

    workers[1]._secret = Broken()  # type: ignore[assignment]
    assert "insecure key" in str(exchange(workers[:])[0])


# ------------------------------------------------------------------------------------ files
def test_keys_of_ssh_keygen(tmp_path):
    program = shutil.which("ssh-keygen")
    if program is None:
        pytest.skip("needs ssh-keygen")
    lines = []
    for name in NAMES:
        words = ["-q", "-t", "ed25519", "-N", "", "-C", f"{name} hospital", "-f", name]
        subprocess.run([program, *words], cwd=tmp_path, check=True)
        lines.append((tmp_path / f"{name}.pub").read_text())
    (tmp_path / "parties").write_text("".join(lines))
    party = load_party(tmp_path / "east", tmp_path / "parties")
    assert party.name == "east hospital"
    assert list(party.accepted.values()) == [f"{name} hospital" for name in NAMES]

    locked = ["-q", "-t", "ed25519", "-N", "a secret", "-f", "locked"]
    subprocess.run([program, *locked], cwd=tmp_path, check=True)
    subprocess.run(
        [program, "-q", "-t", "ecdsa", "-N", "", "-f", "curve"], cwd=tmp_path, check=True
    )
    for name in ("locked", "curve", "east.pub"):
        (tmp_path / name).chmod(0o600)
        with pytest.raises(PrivacyParameterError, match="without a passphrase"):
            load_party(tmp_path / name, tmp_path / "parties")
    (tmp_path / "parties").write_text((tmp_path / "curve.pub").read_text())
    with pytest.raises(PrivacyParameterError, match="line 1: expected 'ssh-ed25519"):
        load_party(tmp_path / "east", tmp_path / "parties")


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_may_read_is_refused(mode, files):
    (files / "east").chmod(mode)
    with pytest.raises(PrivacyParameterError, match="chmod 600"):
        load_party(files / "east", files / "parties")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda lines: lines[:-1], "this party's own key is not in the list"),
        (lambda lines: [*lines, lines[2]], "line 6: duplicate key or name"),
        (lambda lines: [*lines, "ssh-ed25519 AAAA x\n"], "line 6: not a public"),
        (lambda lines: [*lines, " ".join(lines[2].split()[:2]) + "\n"], "line 6: expected"),
        (lambda lines: [*lines, "name\n"], "line 6: expected"),
    ],
)
def test_lists_that_are_none(change, message, files):
    listed = files / "parties"
    listed.write_text("".join(change(listed.read_text().splitlines(keepends=True))))
    with pytest.raises(PrivacyParameterError, match=message):
        load_party(files / "south", listed)


def test_missing_files(files):
    with pytest.raises(PrivacyParameterError, match=r"`dp_secure_key`: .* No such file"):
        load_party(files / "nobody", files / "parties")
    with pytest.raises(PrivacyParameterError, match=r"`dp_secure_parties`: .* No such file"):
        load_party(files / "east", files / "nothing")
    with pytest.raises(PrivacyParameterError, match="`dp_secure_key`"):
        load_party("a\0b", files / "parties")


# ---------------------------------------------------------------------- workers on a network
WORKER = """
import json, sys
import numpy as np
import xgboost as xgb
from xgb_dp.engine import native
from xgb_dp.errors import PrivacyError

job = json.loads(sys.stdin.read())
drawn, said = [], []
native.release_before_trees = lambda *_: drawn.append(1)
with xgb.collective.CommunicatorContext(**job["worker"]):
    d = xgb.DMatrix(np.arange(20.0).reshape(10, 2), np.arange(10) % 2)
    for files in job["files"]:
        try:
            xgb.train(job["params"] | files, d, 2)
            said.append("trained")
        except PrivacyError as error:
            said.append(f"{type(error).__name__}: {error}")
    print(json.dumps({"said": said, "drawn": drawn}), flush=True)
"""
PARAMS = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 4.0,
          "dp_delta": 1e-6, "dp_secure_aggregation": True, "dp_split": "random", "verbosity": 0,
          "nthread": 1}  # fmt: skip


def files_of(folder: Path, name: str) -> dict[str, str]:
    return {"dp_secure_key": str(folder / name), "dp_secure_parties": str(folder / "parties")}


def test_a_key_that_is_not_listed_or_missing_ends_the_training_on_all(files):
    """With nothing drawn."""
    other = files / "other"
    other.mkdir()
    (other / "parties").write_text((files / "parties").read_text() + make_key(other / "new"))
    jobs = [
        {"params": PARAMS, "files": [files_of(folder, name), files_of(files, named)]}
        for folder, name, named in (
            (files, "north", "north"), (files, "east", "east"), (other, "new", "nobody")
        )
    ]  # fmt: skip
    for done in run_workers(WORKER, jobs):
        answer = json.loads(done.stdout.splitlines()[-1])
        unlisted, missing = answer["said"]
        assert answer["drawn"] == []
        assert unlisted.startswith("PrivacyRefusal")
        assert "is not on the list of parties" in unlisted
        assert "`dp_secure_key`: the file cannot be read" in missing
        assert str(files) not in missing


BUDGETS = """
import json, sys
import numpy as np
import xgboost as xgb
from xgb_dp import Budget
from xgb_dp.errors import PrivacyError

job = json.loads(sys.stdin.read())
answers = []
with xgb.collective.CommunicatorContext(**job["worker"]):
    d = xgb.DMatrix(np.arange(20.0).reshape(10, 2), np.arange(10) % 2)
    for file, epsilon in job["books"]:
        book, said = Budget(file, epsilon=epsilon, delta=1e-5), []
        try:
            book.train(job["params"], d, 2)
        except PrivacyError as error:
            said = [type(error).__name__, str(error), str(error.__cause__)]
        answers.append((said, len(book.entries)))
    print(json.dumps(answers), flush=True)
"""


def test_a_book_without_room_ends_the_training_before_any_party_has_booked(files):
    """With room in all of them, each party books it."""
    jobs = [
        {
            "params": PARAMS | files_of(files, name),
            "books": [
                (str(files / f"{name}.{kind}.json"), room if name == "east" else 9.0)
                for kind, room in (("small", 0.5), ("large", 9.0))
            ],
        }
        for name in NAMES
    ]
    for name, done in zip(NAMES, run_workers(BUDGETS, jobs), strict=True):
        ((kind, text, cause), charged), with_room = json.loads(done.stdout.splitlines()[-1])
        assert kind == "PrivacyRefusal" and "budget of a party refuses" in text
        assert charged == 0
        assert ("would exceed" in cause) == (name == "east")
        assert str(files) not in text
        assert with_room == [[], 1]
