"""Two trainings never share noise: not in one second, thread, process, fork or model.

The matrices have no rows, so what a model shows is noise alone: 49 numbers of 32 bits. Two of
independent trainings are equal with a probability of about 2^-22, so two trainings have three
coincidences with a probability below 10^-9. Up to two are allowed for.
"""

import json
import os
import pickle
import random
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from tests.callbacks import After
from tests.children import LIGHT, answer_of
from tests.models import starts, trees
from xgb_dp.testing import fixed_noise

PARAMS = {
    "tree_method": "dp_hist",
    "objective": "binary:logistic",
    "dp_epsilon": 1.0,
    "dp_delta": 1e-6,
    "dp_shrinkage": False,
    "max_delta_step": 0,
    "dp_public_num_rows": 100,  # wide enough that the intercept is not clipped
    "max_depth": 4,
    "nthread": 1,
    "verbosity": 0,
    "seed": 5,
}

CHILD = (
    LIGHT
    + r"""
import json, os, sys
import numpy as np
import xgboost as xgb
from tests.noise.test_streams import PARAMS, empty, noise_of

def send(action):
    # What a forked process answers, over a pipe.
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(action()).encode())
        finally:
            os._exit(0)
    os.close(write)
    return read, child

def receive(read, child):
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)

answer = None
exec(sys.stdin.read())
print(json.dumps(answer))
"""
)


def empty() -> xgb.DMatrix:
    return xgb.DMatrix(np.zeros((0, 3), np.float32), np.zeros(0), nthread=1)


def noise_of(model: xgb.Booster) -> list[float]:
    """The intercept and the values of all leaves: noise alone, for a matrix without rows."""
    out = starts(model)
    for tree in trees(model):
        values = zip(tree["split_conditions"], tree["left_children"], strict=True)
        out += [value for value, left in values if left == -1]
    return out


def train(**changes: Any) -> list[float]:
    return noise_of(xgb.train(PARAMS | changes, empty(), 3))


def process(code: str) -> Any:
    """What `code` stores as `answer` in a process of its own."""
    return json.loads(answer_of("-W", "ignore", "-c", CHILD, given=code))


def assert_unrelated(noises: list[list[float]]) -> None:
    """Neither intercepts nor leaves repeat."""
    for one, other in combinations(noises, 2):
        assert len(one) == len(other) == 1 + 3 * 16
        assert (one[0] == other[0]) + len(set(one[1:]) & set(other[1:])) <= 2


def test_the_check_notices_shared_noise():
    """Teeth: trainings with one known key have all noise in common."""
    with fixed_noise(8):
        noises = [train(), train()]
    assert noises[0] == noises[1]
    with pytest.raises(AssertionError):
        assert_unrelated(noises)


def test_one_second_one_seed():
    """The clock, the parameter `seed` and the generators of Python and NumPy are no source."""
    noises, seconds = [], []
    while len(noises) < 12 or len(seconds) == len(set(seconds)):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        seconds.append(int(time.time()))
        noises.append(train())
    assert_unrelated(noises)


def test_another_second_same_key():
    """And with a known key nothing else decides, neither time nor seed nor state of a generator."""
    with fixed_noise(8):
        one = train(seed=1)
        random.random()
        np.random.normal()  # noqa: NPY002
        time.sleep(1.01)
        assert train(seed=2) == one


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_processes_and_forks():
    """Two processes, to which a constant seed would give the same noise, and children of one.

    The children train at the same time as their parent, from the same memory.
    """
    forks = """
d = empty()
first = noise_of(xgb.train(PARAMS, d, 3))
children = [send(lambda: noise_of(xgb.train(PARAMS, d, 3))) for _ in range(3)]
answer = [first, noise_of(xgb.train(PARAMS, d, 3)), *(receive(*c) for c in children)]
"""
    alone = "answer = [noise_of(xgb.train(PARAMS, empty(), 3))]"
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(process, [forks, alone])
    assert_unrelated(first + second)


def test_threads():
    with ThreadPoolExecutor(4) as pool:
        assert_unrelated(list(pool.map(lambda _: train(), range(8))))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_in_the_middle_of_a_training():
    """The child can neither grow the parent's next tree nor any other; the parent goes on."""
    code = """
said = []
def child_of(model):
    def grow():
        out = []
        for _ in range(2):
            try:
                model.update(d, model.num_boosted_rounds())
                out.append("grown")
            except xgb.core.XGBoostError as error:
                out.append(str(error).split("Stack trace")[0])
        return out, model.num_boosted_rounds()
    return grow

class Fork(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        said.append((epoch, *receive(*send(child_of(model)))))

d = xgb.DMatrix(np.ones((9, 3), np.float32), np.ones(9), nthread=1)
models = [xgb.train(PARAMS | more, d, 3, callbacks=[Fork()]) for more in ({}, {"subsample": 0.5})]
answer = [said, [model.num_boosted_rounds() for model in models]]
"""
    results, rounds = process(code)
    assert rounds == [3, 3] and len(results) == 6
    for epoch, errors, grown in results:
        if epoch < 2:  # after the last round there is no tree left to grow
            assert "forked process" in errors[0]
        assert "grown" not in errors
        assert grown == epoch + 1


def test_continued_trainings():
    """Continuing a model draws anew, also twice from the same model."""
    model = xgb.train(PARAMS, empty(), 3)
    longer = [noise_of(xgb.train(PARAMS, empty(), 3, xgb_model=model)) for _ in range(3)]
    start = noise_of(model)
    for noise in longer:
        assert noise[: len(start)] == start
    # An intercept of its own for each, because continued models have the first one's.
    assert_unrelated([start, *([k, *noise[len(start) :]] for k, noise in enumerate(longer))])


def test_copies_in_the_middle_of_a_training_have_none_either():
    """Nothing that a callback can keep of a training draws the noise of its next tree."""
    d = empty()
    tried = []

    def copy(model: xgb.Booster) -> None:
        loaded = xgb.Booster(model_file=bytearray(model.save_raw("ubj")))
        loaded.load_config(model.save_config())
        for other in (model.copy(), pickle.loads(pickle.dumps(model)), model[:1], loaded):
            with pytest.raises(xgb.core.XGBoostError, match=r"finished|ledger|plan"):
                other.update(d, model.num_boosted_rounds())
            tried.append(other)

    assert xgb.train(PARAMS, d, 3, callbacks=[After(copy)]).num_boosted_rounds() == 3
    assert len(tried) == 12
