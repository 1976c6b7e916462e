"""Attacks on the messages of masked sums, after the exchange of keys: docs/proofs/masked-sums.md"""

import ctypes
import hashlib
import hmac

import numpy as np
import pytest
from xgboost.core import XGBoostError

from tests.noise.native import _check
from tests.reference.noise import ChaCha20Source
from tests.secure.messages import TAG, Words, Worker, pair_keys, sum_up, workers
from xgb_dp.engine import native

WORLD, SIZE = 3, 50
VALUES = np.arange(WORLD * SIZE, dtype=np.uint64).reshape(WORLD, SIZE)
SUMS = VALUES.sum(axis=0).astype(np.int64).tolist()
CHANGED = "cannot be authenticated"
DIFFERS = "does not confirm that it received the same messages"
USED_UP = "used up"


def refused(results: list[object], *reasons: str) -> None:
    """Every worker ends with an error; an empty reason is any."""
    for result, reason in zip(results, reasons, strict=True):
        assert isinstance(result, str)
        assert reason in result


def read(results: list[object]) -> None:
    """Every worker has the right sums."""
    for result in results:
        assert isinstance(result, np.ndarray)
        assert result.tolist() == SUMS


@pytest.mark.parametrize("size", [0, 1, 3, 55, 56, 63, 64, 65, 119, 120, 1000])
def test_the_hash_is_that_of_the_standard(size):
    text = np.random.default_rng(size).bytes(size)
    key = bytes(range(32))
    out = (ctypes.c_uint8 * 32)()
    for given, expected in (
        (None, hashlib.sha256(text).digest()),
        (key, hmac.digest(key, text, "sha256")),
    ):
        _check(native.lib().XGDPTestHash(given, text, ctypes.c_size_t(size), out))
        assert bytes(out) == expected


def test_a_message_is_that_of_the_proof():
    """The pads and the tags, from the keys of pairs, in a second implementation."""
    keys, what = pair_keys(WORLD), "leaves"
    message = Worker(1, keys, b"these" + bytes(27)).send_shares(VALUES[1], what)
    sizes = [n.to_bytes(8, "little") for n in (len(what), SIZE)]
    start = b"these" + bytes(27) + sizes[0] + what.encode() + sizes[1]
    context = hashlib.sha256(start).digest()
    masked = VALUES[1].tolist()
    for peer, sign in ((0, -1), (2, 1)):
        key = hmac.digest(
            keys[1, peer].tobytes(), b"dp-pads." + bytes(4) + context + bytes(32), "sha256"
        )
        pads = ChaCha20Source(key, 0)
        masked = [(v + sign * pads.next64()) % 2**64 for v in masked]
    assert message[:SIZE].tolist() == masked
    digest = hashlib.sha256(message[:SIZE].tobytes()).digest()
    text = b"dp-sums." + (1).to_bytes(4, "little") + context + digest
    for peer in range(WORLD):
        tag = hmac.digest(keys[1, peer].tobytes(), text, "sha256")[:16] if peer != 1 else bytes(16)
        assert message[SIZE + TAG * peer :][:TAG].tobytes() == tag


def test_honest_workers_read_their_sums_one_after_the_other():
    parties = workers()
    for _ in range(3):
        read(sum_up(parties, VALUES))


@pytest.mark.parametrize("word", [0, SIZE - 1], ids=["first number", "last number"])
@pytest.mark.parametrize("bit", [0, 63])
def test_an_altered_number_ends_the_training_on_all(word, bit):
    """Worker 1 is told another number as that of worker 0. All notice, and none goes on."""

    def alter(rank: int, words: Words) -> Words:
        words[0, word] ^= np.uint64(1 << bit) if rank == 1 else np.uint64(0)
        return words

    parties = workers()
    refused(sum_up(parties, VALUES, alter), DIFFERS, "worker 0 " + CHANGED, DIFFERS)
    with pytest.raises(XGBoostError, match=USED_UP):
        parties[1].send_shares(VALUES[1])


def test_the_same_number_altered_for_all_is_found_too():
    """Added on one link, it would have been in the sum of all."""

    def add(rank: int, words: Words) -> Words:
        words[0, 7] += np.uint64(1000)
        return words

    refused(sum_up(workers(), VALUES, add), *["worker 0 " + CHANGED] * 3)


@pytest.mark.parametrize("reader", [0, 1, 2])
@pytest.mark.parametrize("word", range(TAG))
def test_an_altered_tag_is_refused_by_its_reader(reader, word):
    def alter(rank: int, words: Words) -> Words:
        words[1, SIZE + TAG * reader + word] ^= np.uint64(1)
        return words

    results = sum_up(workers(), VALUES, alter)
    assert "worker 1 " + CHANGED in str(results[reader])
    assert all(isinstance(f, str) for f in results)


def test_messages_in_another_order_are_refused():
    """Somebody changes places of two workers, also in what is said of the results."""

    def swap(rank: int, words: Words) -> Words:
        return words[[0, 2, 1]] if rank == 0 else words

    refused(sum_up(workers(), VALUES, swap, swap), "worker 1 " + CHANGED, DIFFERS, DIFFERS)
    refused(sum_up(workers(), VALUES, heard=swap)[:1], DIFFERS)


@pytest.mark.parametrize("what", ["said", "heard"])
def test_a_message_or_answer_of_an_earlier_sum_is_refused(what):
    """The same numbers, of the same worker, in the same training."""
    parties, kept = workers(), []

    def keep(rank: int, words: Words) -> Words:
        kept.append(words[2].copy())
        return words

    def replay(rank: int, words: Words) -> Words:
        words[2] = kept[0] if (rank != 2 if what == "said" else rank == 0) else words[2]
        return words

    read(sum_up(parties, VALUES, **{what: keep}))
    results = sum_up(parties, VALUES, **{what: replay})
    if what == "said":
        refused(results, "worker 2 " + CHANGED, "worker 2 " + CHANGED, DIFFERS)
    else:
        refused(results[:1], "worker 2 " + DIFFERS)


def test_a_message_of_another_training_is_refused():
    """With the same keys even, which no two trainings have."""
    other = [
        w.send_shares(v) for w, v in zip(workers(session=b"other" + bytes(27)), VALUES, strict=True)
    ]

    def insert(rank: int, words: Words) -> Words:
        words[2] = other[2] if rank != 2 else words[2]
        return words

    results = sum_up(workers(), VALUES, insert)
    refused(results, "worker 2 " + CHANGED, "worker 2 " + CHANGED, DIFFERS)


def test_ones_own_words_do_not_come_back_as_anothers():
    def reflect(rank: int, words: Words) -> Words:
        words[1] = words[0] if rank == 0 else words[1]
        return words

    assert "worker 1 " + CHANGED in str(sum_up(workers(), VALUES, reflect)[0])


def test_a_worker_cannot_speak_for_another():
    """Worker 2 knows its keys with 0 and 1. It tells 0 numbers in the name of 1."""
    keys = pair_keys(WORLD)
    stolen = keys.copy()
    stolen[1] = 0
    stolen[1, 2] = keys[2, 1]  # all that 2 has of the secrets of 1
    forged = Worker(1, stolen).send_shares(VALUES[1])

    def insert(rank: int, words: Words) -> Words:
        words[1] = forged if rank == 0 else words[1]
        return words

    assert "worker 1 " + CHANGED in str(sum_up(workers(), VALUES, insert)[0])


def test_a_party_that_tells_two_others_two_things_ends_the_training():
    """Worker 2 deviates: what it tells 0 and what it tells 1 are both properly tagged."""
    keys = pair_keys(WORLD)
    parties = [Worker(rank, keys) for rank in range(WORLD)]
    second = Worker(2, keys).send_shares(VALUES[2] + np.uint64(5))

    def equivocate(rank: int, words: Words) -> Words:
        words[2] = second if rank == 1 else words[2]
        return words

    assert all(DIFFERS in str(f) for f in sum_up(parties, VALUES, equivocate)[:2])


@pytest.mark.parametrize("what", ["session", "release"])
def test_pads_do_not_cancel_between_workers_that_have_seen_different_things(what):
    """Even somebody who checks no tag learns nothing from the sum of the two."""
    keys = pair_keys(2)
    total = {}
    for other in (False, True):
        session = b"other" if other and what == "session" else b"these"
        release = "other" if other and what == "release" else "sums"
        nothing = np.zeros(SIZE, np.uint64)
        one = Worker(0, keys, b"these" + bytes(27)).send_shares(nothing)[:SIZE]
        two = Worker(1, keys, session + bytes(27)).send_shares(nothing, release)[:SIZE]
        with np.errstate(over="ignore"):
            total[other] = one + two
    assert not total[False].any()
    assert total[True].all()


def test_another_release_shares_no_pads():
    """Worker 1 takes it for one with less noise."""
    parties = workers()
    results = sum_up(parties, VALUES, what=lambda rank: "leaves 4" if rank == 1 else "leaves 9")
    refused(results, "worker 1 " + CHANGED, "worker 0 " + CHANGED, "worker 1 " + CHANGED)


def test_sums_that_no_rows_make_are_refused():
    """From a party that deviates; elsewhere they would overflow."""
    values = VALUES.copy()
    values[0, 0] = np.uint64(2**63 - 1)
    refused(sum_up(workers(), values), *["exceeds any possible sum"] * 3)


def test_steps_come_in_their_order_and_once():
    worker = workers()[0]
    with pytest.raises(XGBoostError, match=USED_UP):
        worker.unmask(np.zeros(0, np.uint64))
    worker.send_shares(VALUES[0])
    with pytest.raises(XGBoostError, match=USED_UP):
        worker.send_shares(VALUES[0])
