"""The key stream is RFC 8439's, keys are fresh, and a fork cannot repeat its parent's noise."""

import os
import struct

import pytest

from tests.children import LIGHT, answer_of
from tests.noise import native
from tests.reference import noise as reference

# RFC 8439, section 2.3.2.
RFC_KEY = bytes(range(32))
RFC_STATE = [
    *(0x61707865, 0x3320646E, 0x79622D32, 0x6B206574),
    *struct.unpack("<8I", RFC_KEY),
    *(0x00000001, 0x09000000, 0x4A000000, 0x00000000),
]
RFC_BLOCK = bytes.fromhex(
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)
# RFC 8439, appendix A.1, test vectors 1 and 2: zero key, zero nonce, counters 0 and 1.
ZERO_KEY_STREAM = bytes.fromhex(
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
    "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
)


def test_block_is_the_one_of_the_standard():
    blocks = reference.chacha20_blocks(RFC_STATE[:12], RFC_STATE[12], RFC_STATE[13:], 4)
    assert struct.pack("<16I", *blocks[0].tolist()) == RFC_BLOCK
    assert native.four_blocks(RFC_STATE) == struct.pack("<64I", *blocks.ravel().tolist())


def test_key_stream_is_the_one_of_the_standard():
    words = native.Source(bytes(32), 0).next64(16)
    assert struct.pack("<16Q", *words) == ZERO_KEY_STREAM


@pytest.mark.parametrize("stream_id", [0, 1, 2**32 - 1])
def test_key_stream_equals_the_reference(stream_id):
    n = 1500  # several refills of the buffer
    expected = reference.ChaCha20Source(native.TEST_KEY, stream_id)
    words = native.Source(native.TEST_KEY, stream_id).next64(n)
    assert words == [expected.next64() for _ in range(n)]


def test_streams_of_one_key_differ():
    first, second = (native.Source(native.TEST_KEY, i).next64(1000) for i in (0, 1))
    assert not set(first) & set(second)


def test_every_key_is_fresh():
    keys = {native.system_key() for _ in range(100)}
    assert len(keys) == 100
    assert bytes(32) not in keys
    # Two sources without a key of their own do not share one.
    assert native.Source(None, 0).next64(4) != native.Source(None, 0).next64(4)


# In a process of its own: one with threads, such as a client of a cluster, cannot fork safely.
FORKS = (
    LIGHT
    + r"""
import os, sys
from xgboost.core import XGBoostError
from tests.noise import native

def status_of_child(action):
    child = os.fork()
    if child == 0:
        status = 2
        try:
            status = 0 if action() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def first_draw_fails():
    try:
        source.next64(1)
    except XGBoostError as error:
        return "forked process" in str(error)
    return False

for before in sys.argv[1:]:
    source = native.Source(native.TEST_KEY, 7)
    source.next64(int(before))
    assert status_of_child(first_draw_fails) == 0
    # The parent goes on where it was, and a child may have a source of its own.
    print(source.next64(1)[0])
assert status_of_child(lambda: len(native.Source(None, 7).next64(600)) == 600) == 0
"""
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_cannot_draw_the_noise_of_its_parent():
    drawn_before = (0, 1, 511, 512)
    drawn = answer_of("-c", FORKS, *drawn_before)
    expected = reference.ChaCha20Source(native.TEST_KEY, 7)
    words = [expected.next64() for _ in range(513)]
    assert list(map(int, drawn.split())) == [words[n] for n in drawn_before]
