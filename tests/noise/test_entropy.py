"""Keys come from the operating system or training stops, and none is left in memory.

The calls to the operating system's generator are stood in for by a small library, which a child
process loads before all others. It can fail, answer bit by bit, or hand out a key that the parent
chose. The child searches its own memory; it knows what it looks for only masked, so it does not
find its own question, and it must find the key while a training runs, or the search is no test.
"""

import errno
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.children import LIGHT, ROOT, answer_of
from tests.reference import noise as reference

MASK = 0xA5
PIECE = 16
WORDS = 1 << 13  # of 64 bits, more than a small training draws
KEY = hashlib.sha256(b"a key that no text in memory resembles").digest()

SHIM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int calls, fails_from = -1, fails_with, in_bits, has_key;
static uint8_t masked_key[32];

void shim_fail(int from_call, int error) { calls = 0; fails_from = from_call; fails_with = error; }
void shim_in_bits(void) { in_bits = 1; }
void shim_key(uint8_t const* masked) { memcpy(masked_key, masked, 32); has_key = 1; }
int shim_calls(void) { return calls; }

ssize_t getrandom(void* out, size_t n, unsigned flags) {
  ++calls;
  if (fails_from >= 0 && calls > fails_from) {
    errno = fails_with;
    return -1;
  }
  if (in_bits) {
    if (calls % 2) {
      errno = EINTR;
      return -1;
    }
    if (n > 5) n = 5;
  }
  if (has_key && n == 32) {
    for (int i = 0; i < 32; ++i) ((uint8_t*)out)[i] = masked_key[i] ^ @MASK@;
    return 32;
  }
  return syscall(SYS_getrandom, out, n, flags);
}

int getentropy(void* out, size_t n) {
  return getrandom(out, n, 0) == (ssize_t)n ? 0 : -1;
}

static int32_t heads[1 << 16], others[1 << 16];

static uint32_t head_of(uint32_t word) { return word * 2654435761u >> 16; }

/*
 * Indices of the masked pieces, of 16 bytes each, that stand anywhere in writable memory. Nothing
 * is copied: a copy of what is found would be found by the next search.
 */
long shim_search(uint32_t const* masked, long n, int64_t* found, long most) {
  memset(heads, -1, sizeof(heads));
  for (long k = 0; k < n; ++k) {
    uint32_t h = head_of(masked[4 * k]);
    others[k] = heads[h];
    heads[h] = k;
  }
  FILE* maps = fopen("/proc/self/maps", "r");
  if (!maps) return -1;
  char line[512];
  long hits = 0;
  while (fgets(line, sizeof(line), maps)) {
    unsigned long begin, end;
    char mode[8] = "", name[256] = "";
    if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &begin, &end, mode, name) < 3) continue;
    if (mode[0] != 'r' || mode[1] != 'w' || strstr(name, "/dev/") || strstr(name, "[v")) continue;
    for (unsigned long at = begin; at + 16 <= end; at += 4) {
      uint32_t const volatile* p = (uint32_t*)at;
      for (int32_t k = heads[head_of(p[0] ^ @WORD@)]; k >= 0; k = others[k]) {
        int i = 0;
        while (i < 4 && (p[i] ^ @WORD@) == masked[4 * k + i]) ++i;
        if (i == 4 && hits < most) found[hits++] = k;
      }
    }
  }
  fclose(maps);
  return hits;
}
""".replace("@MASK@", f"{MASK}").replace("@WORD@", f"{MASK * 0x01010101}u")

CHILD = (
    LIGHT
    + r"""
import ctypes, json, sys
import numpy as np
import xgboost as xgb
from tests.noise import native

shim = ctypes.CDLL(None)
task = json.loads(sys.stdin.read())
pieces = bytes.fromhex("".join(task.get("pieces", [])))
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3)).astype(np.float32)
y = (X[:, 0] > 0).astype(np.float32)
d = xgb.DMatrix(X, y, nthread=1)
params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
          "dp_delta": 1e-6, "max_depth": 2, "nthread": 1, "verbosity": 0, **task.get("params", {})}

def draw(source, n):
    for _ in range(n):  # one word at a time: an array of them would be found
        source.next64(1)

def search():
    found = (ctypes.c_int64 * 4096)()
    n = shim.shim_search(pieces, ctypes.c_long(len(pieces) // 16), found, ctypes.c_long(4096))
    assert n >= 0
    return list(found[:n])

class After(xgb.callback.TrainingCallback):
    def __init__(self, act):
        super().__init__()
        self.act = act
    def after_iteration(self, model, epoch, evals_log):
        self.act()
        return False

answer = {}
exec(task["code"])
print(json.dumps(answer))
"""
)


@cache
def shim() -> Path:
    """The library that stands in for the operating system's generator."""
    compilers = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    compiler = next((c for c in compilers if c and shutil.which(c)), None)
    if not sys.platform.startswith("linux") or compiler is None:
        pytest.skip("needs Linux and a C compiler")
    build = ROOT / "build" / "tests"
    build.mkdir(parents=True, exist_ok=True)
    source, library = build / f"entropy-{os.getpid()}.c", build / f"entropy-{os.getpid()}.so"
    source.write_text(SHIM)
    flags = ["-shared", "-fPIC", "-O2", "-o", str(library), str(source)]
    subprocess.run([compiler, *flags], check=True)
    source.unlink()
    return library


@pytest.fixture(scope="module", autouse=True)
def remove_library() -> Any:
    yield
    if shim.cache_info().currsize:
        shim().unlink()
        shim.cache_clear()


def child(code: str, **task: Any) -> dict[str, Any]:
    """Run `code` in a process of its own, whose getrandom is the shim's; gives its `answer`."""
    given = json.dumps({"code": code, **task})
    return json.loads(answer_of("-c", CHILD, given=given, LD_PRELOAD=str(shim())))


# ------------------------------------------------------------------------------- failure
FAIL = """
shim.shim_fail(-1, 0)
xgb.train(params, d, 2)
calls = shim.shim_calls()
trees = []
class Keep(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        trees.append(epoch)
answer["errors"] = []
for after, error in task.get("fails") or [(after, task["errno"]) for after in range(calls)]:
    shim.shim_fail(after, error)
    try:
        xgb.train(params, d, 2, callbacks=[Keep()])
        answer["errors"].append("none")
    except xgb.core.XGBoostError as error:
        answer["errors"].append(str(error).split("Stack trace")[0])
answer["trees"] = len(trees)
shim.shim_fail(-1, 0)
answer["rounds"] = xgb.train(params, d, 2).num_boosted_rounds()
"""


def test_no_entropy_no_training():
    """No weaker generator is fallen back to; when the system works again, so does training.

    The error says which call failed, that no model was trained, and what usually forbids the call.
    """
    errors = (errno.EIO, errno.ENOSYS, errno.EAGAIN, errno.EPERM)
    answer = child(FAIL, fails=[(0, error) for error in errors])
    for error, message in zip(errors, answer["errors"], strict=True):
        assert "No random key for private noise" in message
        assert os.strerror(error) in message
        assert error != errno.ENOSYS or all(
            part in message for part in ("getrandom", "Nothing was trained", "sandbox")
        )
    assert answer["trees"] == 0
    assert answer["rounds"] == 2


@pytest.mark.parametrize("sampled", [False, True], ids=["all rows", "subsample"])
def test_entropy_that_fails_later(sampled):
    """Intercept, trees and sample have keys of their own: whichever fails ends the training."""
    answer = child(FAIL, errno=errno.EIO, params={"subsample": 0.5} if sampled else {})
    assert len(answer["errors"]) >= (3 if sampled else 2)
    assert all("No random key" in error for error in answer["errors"])
    assert answer["trees"] == 0


def test_a_key_in_parts_and_interrupted_calls():
    """A short answer is no key: the rest is asked for, until all 32 bytes are random."""
    code = """
shim.shim_in_bits()
shim.shim_fail(-1, 0)
answer["keys"] = [native.system_key().hex() for _ in range(50)]
answer["calls"] = shim.shim_calls()
"""
    answer = child(code)
    keys = [bytes.fromhex(k) for k in answer["keys"]]
    assert answer["calls"] == 50 * 2 * 7  # an interrupt and five bytes, in turn
    for place in range(32):  # a byte that was never filled would be the same in all keys
        assert len({key[place] for key in keys}) > 10


# ------------------------------------------------------------------------------- memory
@cache
def secrets() -> dict[str, list[bytes]]:
    """What a source holds or computes, in pieces of 16 bytes, by name."""
    words = struct.unpack("<8I", KEY)
    out = {
        "key": [KEY[:16], KEY[16:]],
        # a word of the key as a vector instruction reads it, once for each of four blocks
        "key word": [struct.pack("<4I", w, w, w, w) for w in words],
    }
    for stream in range(4):
        source = reference.ChaCha20Source(KEY, stream)
        data = struct.pack(f"<{WORDS}Q", *(source.next64() for _ in range(WORDS)))
        blocks = list(struct.iter_unpack("<16I", data))
        out[f"stream {stream}"] = [data[i : i + PIECE] for i in range(0, len(data), PIECE)]
        out[f"stream {stream}, four blocks at a time"] = [
            struct.pack("<4I", *(b[i] for b in blocks[first : first + 4]))
            for first in range(0, len(blocks), 4)
            for i in range(16)
        ]
    return out


def named() -> list[tuple[str, bytes]]:
    """Every piece, with its name."""
    return [(name, piece) for name, pieces in secrets().items() for piece in pieces]


# What is held while it is needed; all else that is found was forgotten on the stack.
HELD = {"key", *(f"stream {i}" for i in range(4))}


def searched(code: str, **task: Any) -> dict[str, Counter[str]]:
    """Run `code`, which stores the results of `search()`; gives names and how often each was found.

    The stream counts once; a key counts as often as it stands in memory.
    """
    start = 'shim.shim_key(bytes.fromhex(task["key"]))\n'
    masked = bytes(b ^ MASK for b in KEY).hex()
    names, pieces = zip(*named(), strict=True)
    hidden = [bytes(b ^ MASK for b in piece).hex() for piece in pieces]
    answer = child(start + code, pieces=hidden, key=masked, **task)
    out = {}
    for when, hits in answer.items():
        assert hits.count(0) == hits.count(1), "half a key"
        out[when] = Counter({names[i]: 1 for i in hits if i > 1})
        out[when]["key"] = hits.count(0)
        out[when] = +out[when]
    return out


NOTHING: Counter[str] = Counter()


def test_keys_are_wiped_when_a_training_ends():
    """Or breaks off."""
    code = """
import gc
def fail():
    answer["broken"] = search()
    raise KeyboardInterrupt
answer["before"] = search()
model = xgb.train(params, d, 4, callbacks=[After(lambda: answer.update(during=search()))])
answer["after"] = search()
model.save_raw("json"), model.copy(), model.predict(d)
answer["used"] = search()
del model
answer["deleted"] = search()
params["subsample"] = 0.5
xgb.train(params, d, 4, callbacks=[After(lambda: answer.update(sampled=search()))])
answer["after a sample"] = search()
try:
    xgb.train(params, d, 4, callbacks=[After(fail)])
except KeyboardInterrupt:
    pass
gc.collect()
answer["after a break"] = search()
"""
    hits = searched(code)
    # Teeth: in mid-training the search finds the key and the noise that comes next.
    during, sampled, broken = (hits.pop(when) for when in ("during", "sampled", "broken"))
    assert during["key"] and during["stream 1"]
    assert sampled["key"] == 1 + during["key"]  # the coins have a source of their own
    assert broken["key"] and broken["stream 1"]
    wiped = ("before", "after", "used", "deleted", "after a sample", "after a break")
    assert hits == dict.fromkeys(wiped, NOTHING)


def test_nothing_is_left_on_the_stack():
    """Vector registers that a compiler parks on the stack hold key and noise too."""
    code = """
import xgb_dp.engine.native
def look(state):
    answer[f"{state} {len(answer)}"] = search()
xgb.train(params, d, 4, callbacks=[After(lambda: look("drawing"))])
look("idle")
for n in (1, 300, 600):
    source = native.Source(None, 1)
    draw(source, n)
    look("drawing")
    del source
    look("idle")
    native.discrete_gaussian(None, 0, 1 << 40, n)
    look("idle")
for kind in ("binary", "multiclass"):
    request = {"kind": kind, "num_class": 40, "sigma2": 1 << 40, "shift": 20, "unit": "row",
               "noise_free": False, "plan_id": "",
               "masking": {"workers": 0, "colluders": 0}}
    xgb_dp.engine.native.release_before_trees(d, request)
    look("idle")
"""
    for when, names in searched(code).items():
        assert set(names) <= (HELD if when.startswith("drawing") else set()), when
