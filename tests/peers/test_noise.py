"""Noise: fresh for every number, of the size that is accounted, on integers, in everything."""

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb
from scipy import stats

from tests.models import event, events, trees
from tests.peers.recover import KINDS, PLAIN, Leaf, leaves, make_rows, structure
from tests.reference.noise import ChaCha20Source, discrete_gaussian
from xgb_dp.engine import native
from xgb_dp.testing import fixed_noise

pytestmark = pytest.mark.filterwarnings("ignore:Epsilon is above 10")

Floats = npt.NDArray[np.float64]


def assert_scale(noise: Floats, sigma: float) -> None:
    """Mean zero and deviation sigma, each within five standard errors."""
    n = len(noise)
    assert n > 150
    assert abs(noise.mean()) < 5 * sigma / np.sqrt(n)
    assert abs(noise.std() / sigma - 1) < 5 / np.sqrt(2 * n)


@pytest.fixture(scope="module", params=["binary", "regression"])
def recovered(request: pytest.FixtureRequest) -> tuple[list[Leaf], dict[str, Any]]:
    """Leaves of a training with a known key, and the ledger's event of their release."""
    X, y = make_rows(request.param, 4000)
    with fixed_noise(12):
        few = {"eta": 0.05, "dp_mean_correction": False}  # leaves follow from their own sums
        model = xgb.train(KINDS[request.param] | few, xgb.DMatrix(X, y), 80)
    return leaves(model, X, y), event(model, "leaves")


def test_leaf_noise_is_the_accounted_one(recovered):
    """Gradient and Hessian sums of every leaf: neither is exact, and neither has half the noise."""
    sums, event = recovered
    sigma = np.sqrt(event["sigma2"])
    # A Hessian near the noise shows only its floor. Chosen by the exact sum, so not selective.
    whole = [leaf.noise for leaf in sums if leaf.exact[1] > 8 * sigma]
    gradient, hessian = np.array(whole).T
    assert_scale(gradient, sigma)
    assert_scale(hessian, sigma)
    assert abs(np.corrcoef(gradient, hessian)[0, 1]) < 5 / np.sqrt(len(whole))
    with pytest.raises(AssertionError):  # teeth
        assert_scale(0.5 * hessian, sigma)


def test_leaf_noise_of_no_two_trees_is_alike(recovered):
    sums, event = recovered
    sigma = np.sqrt(event["sigma2"])
    by_tree = [np.array([x.noise for x in sums if x.tree == t])[:, 0] for t in range(80)]
    for one, other in combinations(by_tree, 2):
        assert np.abs(one - other).max() > 0.05 * sigma
    # nor does it follow the tree before, as one stream drawn twice with an offset would
    flat = np.concatenate(by_tree)
    for lag in range(1, 13):
        assert abs(np.corrcoef(flat[lag:], flat[:-lag])[0, 1]) < 5 / np.sqrt(len(flat) - lag)


def uniform_model(rounds: int) -> xgb.Booster:
    """Without rows all candidates are equal: what wins is the mechanism's choice alone."""
    params = PLAIN | {"objective": "binary:logistic", "base_score": 0.5, "max_bin": 4}
    params |= {
        "dp_tree_shape": "per_node",
        "dp_feature_bounds": dict.fromkeys((0, 1), (0.0, 1.0, "even")),
    }
    d = xgb.DMatrix(np.zeros((0, 2), np.float32), np.zeros(0))
    return xgb.train(params, d, rounds)


def test_every_candidate_can_win_whatever_its_children_hold():
    """Uniform over all (feature, cut, direction): none is dropped for an empty child."""
    with fixed_noise(5):
        model = uniform_model(400)
    counts = Counter(split for split in structure(model) if split != ("leaf",))
    assert {split[0] for split in counts} == {0, 1}
    assert {split[2] for split in counts} == {0, 1}
    assert len(counts) >= 2 * 2 * 3
    per_feature = Counter(split[0] for split in counts)
    assert per_feature[0] == per_feature[1]
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6


def test_intercept_noise_is_the_accounted_one(monkeypatch):
    """Both the sum of labels and the number of rows carry the whole noise, of a stream apart."""
    X, y = make_rows("regression", 300)
    d = xgb.DMatrix(X, y)
    requests: list[dict[str, Any]] = []
    true = native.release_before_trees

    def release(matrix: Any, request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        return true(matrix, request)

    monkeypatch.setattr(native, "release_before_trees", release)
    params = {k: v for k, v in KINDS["regression"].items() if k != "base_score"}
    params["dp_target_unit"] = "declared"
    with fixed_noise(1):
        intercept = event(xgb.train(params, d, 2), "intercept")
    (request,) = requests
    assert intercept["sigma2"] == request["sigma2"] > 0
    exact = true(d, request | {"noise_free": True, "sigma2": 0})["sums"]
    assert len(exact) == 2
    noise = np.array(
        [
            np.subtract(true(d, request | {"test_key": k.to_bytes(32, "little").hex()})["sums"],
                        exact)
            for k in range(2000)
        ]
    )  # fmt: skip
    for column in noise.T:
        assert_scale(column.astype(float), np.sqrt(intercept["sigma2"]))
    drawn = {
        stream: [discrete_gaussian(rng, intercept["sigma2"]) for _ in range(2)]
        for stream in range(4)
        for rng in [ChaCha20Source((7).to_bytes(32, "little"), stream)]
    }
    assert noise[7].tolist() == drawn[0]  # the others are those of the training
    assert len({tuple(v) for v in drawn.values()}) == 4


def test_less_epsilon_is_more_noise_in_every_release():
    X, y = make_rows("regression", 100)
    params = {k: v for k, v in KINDS["regression"].items()
              if k not in ("base_score", "dp_feature_bounds")}  # fmt: skip
    params["dp_mean_correction"] = True
    before: dict[str, float] = {}
    for epsilon in (8.0, 2.0, 0.5, 0.1):
        model = xgb.train(params | {"dp_epsilon": epsilon}, xgb.DMatrix(X, y), 5)
        ratio = {
            e["release"]: e["sensitivity2"] / e["sigma2"] if "sigma2" in e else e["eps_num"]
            for e in events(model)
        }
        assert set(ratio) == {
            "range", "intercept", "candidates", "splits", "leaves", "correction"
        }  # fmt: skip
        assert all(ratio[name] < before.get(name, np.inf) for name in ratio)
        before = ratio


def test_noise_does_not_depend_on_the_rows():
    """Neither their number nor their weights, labels, values or gradients decide how much it is."""
    params = KINDS["regression"] | {"dp_max_weight": 2.0}
    X, y = make_rows("regression", 500)
    matrices = [
        xgb.DMatrix(X, y),
        xgb.DMatrix(X[:3], y[:3]),
        xgb.DMatrix(X[:0], y[:0]),
        xgb.DMatrix(1e6 * X, y),
        xgb.DMatrix(X, np.full(500, 1e6)),
        xgb.DMatrix(X, y, weight=np.full(500, 1e-3)),
        xgb.DMatrix(X, y, weight=np.linspace(0, 50, 500)),
    ]
    ledgers = [events(xgb.train(params, d, 3)) for d in matrices]
    assert all(ledger == ledgers[0] for ledger in ledgers)


@pytest.mark.parametrize("lam", [0.0, 0.1, 100.0])
def test_sensitivities_do_not_hang_on_lambda(lam):
    X, y = make_rows("regression", 50)
    d = xgb.DMatrix(X, y)
    for score in ("l1", "newton", "gain"):
        params = KINDS["regression"] | {"dp_score": score}
        assert events(xgb.train(params | {"lambda": lam}, d, 2)) == events(xgb.train(params, d, 2))


def test_noise_may_exceed_the_rows():
    """Released sums are not cut back to exact counts: no rows, and yet sums."""
    with fixed_noise(7):  # of 20 sums one is 0 in 4 of 100,000 trainings
        model = uniform_model(5)
    leaf = [(tree["sum_hessian"][i], tree["base_weights"][i])
            for tree in trees(model) for i in (3, 4, 5, 6)]  # fmt: skip
    assert all(cover > 0 and weight != 0 for cover, weight in leaf)
