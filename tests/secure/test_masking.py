"""Pads, shares and refusals: docs/proofs/masked-sums.md without a cluster."""

import itertools
import json
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chisquare
from xgboost.core import XGBoostError

from tests.reference.plans import base_plan
from tests.secure.messages import Words, sum_up, workers
from tests.stated import describe_plan
from xgb_dp.engine import native
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal
from xgb_dp.parameters import config
from xgb_dp.request import masking
from xgb_dp.request.names import Request
from xgb_dp.request.schema import Schema
from xgb_dp.training import hook

ALARM = 1e-7  # chance that a correct mask fails one test; there are 6 of them


def masks(world: int, n_sums: int, size: int) -> npt.NDArray[np.uint64]:
    """What each worker adds to its sums, as (worker, sum, number)."""
    nothing = np.zeros((world, size), np.uint64)
    out = np.empty((world, n_sums, size), np.uint64)
    parties = workers(world)

    for number in range(n_sums):

        def discovery(rank: int, words: Words, number: int = number) -> Words:
            out[:, number] = words[:, :size]
            return words

        for sums in sum_up(parties, nothing, discovery):
            assert not sums.any()
    return out


def uniform(words: npt.NDArray[np.uint64]) -> float:
    """p-value of a chi-square test of bytes."""
    counts = np.bincount(np.ascontiguousarray(words).view(np.uint8).ravel(), minlength=256)
    return float(chisquare(counts).pvalue)


@pytest.mark.parametrize("world", [2, 3, 7])
def test_pads_cancel_are_uniform_and_never_used_twice(world):
    pads = masks(world, 2, 5000)
    with np.errstate(over="ignore"):
        assert not pads.sum(axis=0, dtype=np.uint64).any()
        again = pads[0, 0] - pads[0, 1]
    assert uniform(pads[0]) > ALARM
    assert uniform(again) > ALARM
    assert len(np.unique(pads[0])) == pads[0].size
    # Without any one worker the rest is as uniform as a mask, not zero.
    with np.errstate(over="ignore"):
        assert pads[1:].sum(axis=0, dtype=np.uint64).all()


def gaussian(sigma2: int, size: int) -> list[Any]:
    weights = [mpmath.exp(-mpmath.mpf(k * k) / (2 * sigma2)) for k in range(-size, size + 1)]
    total = mpmath.fsum(weights)
    return [w / total for w in weights]


def convolve(p: list[Any], q: list[Any]) -> list[Any]:
    return [
        mpmath.fsum(p[i] * q[k - i] for i in range(max(0, k - len(q) + 1), min(k + 1, len(p))))
        for k in range(len(p) + len(q) - 1)
    ]


@pytest.mark.parametrize("sigma2, n", [(1, 2), (1, 4), (2, 3), (3, 2)])
def test_a_sum_of_shares_is_nearly_discrete_gaussian_at_every_point(sigma2, n):
    """Lemma 1, with the stated bound, and close to it: a third of it would be false."""
    with mpmath.workdps(60):
        share = gaussian(sigma2, 16 * sigma2)
        p = share
        for _ in range(n - 1):
            p = convolve(p, share)
        middle = len(p) // 2
        q = gaussian(n * sigma2, middle)
        reach = 6 * sigma2  # far from where the share was cut off
        worst = max(abs(mpmath.log(p[k] / q[k])) for k in range(middle - reach, middle + reach + 1))
        bound = 5 * (n - 1) * mpmath.exp(-(mpmath.pi**2) * sigma2)
        assert worst <= bound
        assert n > 2 or worst > bound / 3


@pytest.mark.parametrize("sigma2, n", [(32, 2), (42, 3)])
def test_moments_are_those_of_the_claimed_noise(sigma2, n):
    """Lemma 2: the variance that is added beyond the claim pays for what lemma 1 leaves."""
    share = -(-sigma2 // n) + 1
    with mpmath.workdps(120):
        one = gaussian(share, 130)
        p = one
        for _ in range(n - 1):
            p = convolve(p, one)
        for v, order in itertools.product((1, 3), (1.001, 1.5, 2, 8)):
            a = mpmath.mpf(order)
            inside = range(v + 80, len(p) - 80)
            k = mpmath.log(mpmath.fsum(p[i - v] ** a * p[i] ** (1 - a) for i in inside))
            assert k <= a * (a - 1) * v * v / (2 * sigma2)


# --------------------------------------------------------------------- what the plan refuses
def plan(**changes: Any) -> str:
    base = base_plan([{"kind": "cuts", "cuts": [0.0]}], split="random", **changes)
    return json.dumps({"id": "x", **base})


def masked(workers: int, colluders: int) -> dict[str, Any]:
    return {"masking": {"workers": workers, "colluders": colluders}}


COSTLY = {"noise_free": False, "selection": {"eps_num": 1}}


def test_plans_that_are_masked():
    describe_plan(plan(**masked(2, 0)))
    describe_plan(plan(**masked(3, 2), **COSTLY, leaf={"sigma2": 1 << 20}))
    describe_plan(plan(**masked(1 << 10, 0), **COSTLY, leaf={"sigma2": 1 << 20}))


@pytest.mark.parametrize(
    "changes, message",
    [
        (masked(1, 0), "at least two workers"),
        (masked(3, 3), "colluders"),
        (masked(2, 0) | {"split": "exponential"}, "masked sums require"),
        (masked(2, 0) | {"leaf": {"noise": "laplace"}}, "Gaussian noise"),
        (masked(2, 0) | {"sampling_num": 1 << 31}, "masked sums require"),
        (masked(1 << 11, 0) | COSTLY | {"leaf": {"sigma2": 1 << 20}}, "too small"),
        (masked(2, 1) | COSTLY | {"leaf": {"sigma2": 1 << 56}}, "too large"),
    ],
)
def test_plans_that_the_cpp_refuses(changes, message):
    base = base_plan([{"kind": "cuts", "cuts": [0.0]}], **({"split": "random"} | changes))
    with pytest.raises(XGBoostError, match=message):
        describe_plan(json.dumps({"id": "x", **base}))


# --------------------------------------------------------------------- what Python refuses
def resolve(p: dict[str, Any]) -> masking.Masking:
    full = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_split": "random"}
    full |= {"dp_epsilon": 1.0, "dp_delta": 1e-6, "dp_feature_cuts": {0: [0.0]}}
    if p.get("dp_secure_aggregation"):
        full |= {"dp_secure_key": "key", "dp_secure_parties": "parties"}
    schema = Schema(["x"], named=True, categorical=frozenset(), dictionaries={})
    return hook.checked(Request.parse(full | p, 5), schema, None).masking


@pytest.fixture()
def three_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "this_worker", lambda: (0, 3))


@pytest.mark.usefixtures("three_workers")
def test_defaults():
    assert resolve({}) == masking.Masking(0, 0)
    assert resolve({"dp_secure_aggregation": True}) == masking.Masking(3, 1)
    assert resolve({"dp_secure_aggregation": True, "dp_secure_colluders": 0}) == masking.Masking(
        3, 0
    )


@pytest.mark.usefixtures("three_workers")
@pytest.mark.parametrize(
    "p, error, message",
    [
        (
            {"dp_leaf_noise": "output", "dp_leaf": "gradient"},
            PrivacyRefusal,
            "dp_leaf_noise='output'",
        ),
        ({"dp_secure_colluders": 3}, PrivacyParameterError, "dp_secure_colluders"),
        ({"dp_secure_parties": None}, PrivacyParameterError, "impersonate a worker"),
        ({"dp_secure_key": 7}, PrivacyParameterError, "`dp_secure_key` must be a file name"),
        ({"dp_secure_aggregation": False, "dp_secure_key": "x"}, PrivacyParameterError, "require"),
    ],
)
def test_refused(p, error, message):
    """The other refusals are rows of `tests/parameters/test_rules.py`."""
    with pytest.raises(error, match=message):
        resolve({"dp_secure_aggregation": True} | p)


def test_no_release_without_keys():
    request = {"kind": "multiclass", "num_class": 2, "sigma2": 1 << 20, "shift": 0,
               "unit": "row", "noise_free": False, "plan_id": "x",
               **masked(2, 0)}  # fmt: skip
    import xgboost as xgb

    with pytest.raises(XGBoostError, match="not agreed on keys"):
        native.release_before_trees(xgb.DMatrix(np.zeros((1, 1)), np.zeros(1)), request)
