"""Masked training on real workers: what they send and hold, and what happens when one dies."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb

pytest.importorskip("cryptography")

from tests.noise import native as sampler
from tests.secure.cluster import WORLD, preloaded, run
from tests.secure.messages import TAG
from tests.secure.test_masking import ALARM, uniform
from tests.secure.worker import CLASSES, labels, part
from xgb_dp.request.default_plans import SIZES, noise_reduction

COMMON: dict[str, Any] = {
    "tree_method": "dp_hist",
    "dp_delta": 1e-6,
    "max_depth": 3,
    "dp_categories": {3: 4},
    "verbosity": 0,
    "nthread": 1,
}
BOUNDS = dict.fromkeys(range(3), (0, 10))
KINDS: dict[str, dict[str, Any]] = {
    # Candidates by the quantile tree, and a released intercept.
    "random": {"objective": "binary:logistic", "dp_split": "random"},
    "partial": {"objective": "reg:squarederror", "dp_target_bounds": (0, 15), "dp_split": "partial",
        "dp_candidates": "adaptive", "dp_feature_bounds": BOUNDS, "max_bin": 16},
    "histogram": {"objective": "multi:softprob", "num_class": 3, "dp_split": "histogram",
        "dp_feature_bounds": BOUNDS, "base_score": [0.0, 0.0, 0.0]},
    "several targets": {"objective": "reg:squarederror", "dp_target_bounds": [(-4, 20), (30, 60)],
        "dp_split": "random", "dp_feature_bounds": BOUNDS},
    # The accountant of the preset leaves a part unspent.
    "cyclic, in ensembles": {"dp_preset": "dp_ebm_newton", "objective": "binary:logistic",
        "dp_feature_bounds": BOUNDS, "dp_ensemble": 2, "dp_accountant": "exact"},
}  # fmt: skip
ROWS = {"partial": "regression", "histogram": "multiclass", "several targets": "targets"}
# Whose parts, if any, do not hang on coins of workers.
EXACT = ["random", "partial", "histogram", "several targets"]
ROUNDS = 4
KEY = bytes(range(32)).hex()
SIGMA2, MANY = 1 << 24, 20000


def parameters(kind: str, epsilon: float, colluders: int = 1) -> dict[str, Any]:
    masked = {"dp_secure_aggregation": True, "dp_secure_colluders": colluders}
    return COMMON | KINDS[kind] | masked | {"dp_epsilon": epsilon}


def training(kind: str, epsilon: float, **extra: Any) -> dict[str, Any]:
    return {
        "do": "train",
        "kind": ROWS.get(kind, "binary"),
        "rounds": ROUNDS,
        "params": parameters(kind, epsilon),
        **extra,
    }


TASKS: dict[str, dict[str, Any]] = {
    "agree": {"do": "agree"},
    **{
        f"noise of nothing, c = {c}": {
            "do": "release", "masked": True, "sigma2": SIGMA2, "classes": MANY, "colluders": c
        }
        for c in (0, 1)
    },
    **{f"no noise, {kind}": training(kind, math.inf) for kind in EXACT},
    **{f"own noise, {kind}": training(kind, 4.0) for kind in KINDS},
    "known noise": training("random", 4.0, key=KEY),
    "own noise, open rounds": training("random", 4.0, rounds=None),
    "out of step": {"do": "out of step", "masked": True, "sigma2": SIGMA2, "classes": 3},
}  # fmt: skip


@pytest.fixture(scope="module")
def answers() -> dict[str, list[Any]]:
    """What each worker came to, by task."""
    of_workers = run(list(TASKS.values()))
    return {
        name: [worker["answers"][i] and worker["answers"][i]["out"] for worker in of_workers]
        for i, name in enumerate(TASKS)
    }


def learner(model: str) -> Any:
    out = json.loads(model)["learner"]
    return out["gradient_booster"], out["learner_model_param"]


@pytest.mark.parametrize("task", [t for t in TASKS if "noise," in t or t == "known noise"])
def test_all_workers_hold_one_model(task, answers):
    models = {out["model"] for out in answers[task]}
    assert len(models) == 1


def test_exchanges_that_would_block_lose_no_byte(answers, tmp_path):
    log = tmp_path / "log"
    of_workers = run([TASKS["known noise"]], preloaded(tmp_path, STUTTER=str(log)))
    assert log.stat().st_size > 100
    models = [worker["answers"][0]["out"]["model"] for worker in of_workers]
    assert models == [answers["known noise"][0]["model"]] * WORLD


def test_open_rounds_are_decided_by_the_masked_sums(answers):
    """Every worker follows the same plan, under the name that its pads have."""
    plans = len({(size.rounds, size.eta) for size in SIZES["binary"]})  # the depth is given
    for out in answers["own noise, open rounds"]:
        assert f"is one of {plans} public plans" in out["statement"]
        trees = learner(out["model"])[0]["model"]["trees"]
        assert len(trees) == round(50 * noise_reduction(4.0) ** 0.5)


@pytest.mark.parametrize("kind", EXACT)
def test_without_noise_the_model_is_that_of_all_rows(kind, answers):
    """So pads cancel, no row is lost or counted twice, and no split reads a part of the rows."""
    p = COMMON | KINDS[kind] | {"dp_epsilon": math.inf}
    with pytest.warns(UserWarning, match="NOT private"):
        alone = xgb.train(p, part(None, ROWS.get(kind, "binary")), ROUNDS)
    assert learner(answers[f"no noise, {kind}"][0]["model"]) == learner(
        alone.save_raw("json").decode()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_ledger_and_report(kind, answers):
    for out in answers[f"own noise, {kind}"]:
        assert 3.0 < out["epsilon"] <= 4.0
        assert "The sums were masked: each of 3 workers" in out["statement"]
        assert "the figures hold against any one worker" in out["statement"]
    booster = xgb.Booster(model_file=bytearray(out["model"].encode()))
    record = json.loads(booster.attr("dp_ledger"))["trainings"][0]
    assert record["complete"]
    assert "drawn" not in record
    assert record["public"]["masked_sums"] == {"workers": WORLD, "colluders": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_in_nothing_that_is_kept(kind, answers):
    for out in answers[f"own noise, {kind}"]:
        assert out["seeds"] == WORLD - 1  # one for each of the others, all different
        assert out["leaks"] == 0


@pytest.mark.parametrize("colluders", [0, 1])
def test_variance_of_the_noise(colluders, answers):
    """W/(W - c) times the claim; what W - c workers add is the claim. False alarm below 1e-6."""
    sums = answers[f"noise of nothing, c = {colluders}"]
    assert sums[0] == sums[1] == sums[2]
    share = -(-SIGMA2 // (WORLD - colluders)) + 1
    statistic = float(np.sum(np.square(np.array(sums[0], float)))) / (WORLD * share)
    assert abs(statistic - MANY) < 5.2 * math.sqrt(2 * MANY)
    assert (WORLD - colluders) * share >= SIGMA2


# ------------------------------------------------------------------------- what is sent
RELEASES: dict[str, dict[str, Any]] = {
    "agree": {"do": "agree"},
    "unmasked": {"do": "release", "masked": False, "rows": True, "sigma2": 1 << 40},
    "masked": {"do": "release", "masked": True, "rows": True, "sigma2": 1 << 20, "key": KEY},
    "again": {"do": "release", "masked": True, "rows": True, "sigma2": 1 << 20, "key": KEY},
}


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Sums that each worker got and the words that it sent for them, by task."""
    folder: Path = tmp_path_factory.mktemp("sent")
    env = preloaded(folder, SENT=f"{folder}/{{rank}}")
    out: dict[str, list[Any]] = {name: [] for name in RELEASES}
    for worker in run(list(RELEASES.values()), env):
        stream = Path(worker["file"]).read_bytes()
        for name, answer in zip(RELEASES, worker["answers"], strict=True):
            if answer:
                first, last = answer["sent"]
                out[name].append((answer["out"], stream[first:last]))
    return out


def exact(rank: int) -> npt.NDArray[np.int64]:
    return np.bincount(labels(rank), minlength=CLASSES).astype(np.int64) << 10


def masked_words(stream: bytes) -> npt.NDArray[np.uint64]:
    """The numbers that a worker says of itself, before it passes on those of the others."""
    tags = TAG * WORLD
    words = np.frombuffer(stream[-8 * WORLD * (CLASSES + 2 * tags) :], np.uint64)
    return words[:CLASSES]


def test_in_the_clear_exact_sums_are_sent(sent):
    """The search below finds what is there."""
    total = sum(exact(rank) for rank in range(WORLD))
    for rank, (_, stream) in enumerate(sent["unmasked"]):
        array = exact(rank) if rank > 0 else total  # rank 0 has added all up
        assert array.tobytes() in stream
        assert uniform(np.frombuffer(stream[: array.nbytes], np.uint64)) < ALARM


@pytest.mark.parametrize("task", ["masked", "again"])
def test_what_a_worker_sends_is_uniform(task, sent):
    """Also for somebody who knows the exact sums behind it. Six tests, each false at 1e-7."""
    total = np.zeros(CLASSES, np.uint64)
    for rank, (_, stream) in enumerate(sent[task]):
        words = masked_words(stream)
        assert uniform(words) > ALARM
        with np.errstate(over="ignore"):
            assert uniform(words - exact(rank).astype(np.uint64)) > ALARM
            total += words
        for i in range(WORLD):
            assert exact(i)[:8].tobytes() not in stream
    for sums, _ in sent[task]:
        assert total.view(np.int64).tolist() == sums  # these are the words that were added up


def test_the_same_sums_are_masked_anew(sent):
    """With the same noise: what differs is the pads."""
    for rank in range(WORLD):
        (sums, one), (again, other) = sent["masked"][rank], sent["again"][rank]
        assert sums == again
        with np.errstate(over="ignore"):
            assert uniform(masked_words(one) - masked_words(other)) > ALARM


def test_unmasked_the_total_is_the_sum_of_sums_and_shares(sent):
    share = -(-(1 << 20) // WORLD) + 1
    expected = sum(exact(rank) for rank in range(WORLD))
    for rank in range(WORLD):
        stream = (1 << 31) + 2 * rank  # plugin_cpp/release/source.cc
        expected += sampler.discrete_gaussian(bytes.fromhex(KEY), stream, share, CLASSES)
    for sums, _ in sent["masked"]:
        assert sums == expected.tolist()


def test_a_worker_with_keys_of_its_own_ends_the_release_on_all(answers):
    """Nobody can check its tags, and it can check nobody's."""
    assert all("cannot be authenticated" in text for text in answers["out of step"])


# ------------------------------------------------------------------------- a worker dies
@pytest.mark.parametrize("slow", [False, True], ids=["usual", "slow to see the error"])
def test_a_worker_that_dies_ends_the_training_on_all(slow, tmp_path):
    """With an error that says so, and with the whole plan claimed; and it cannot go on.

    However long it takes to find out what a socket suffers from: nobody waits without end.
    """
    params = parameters("random", 4.0)
    env = preloaded(tmp_path, SLOW="1") if slow else {}
    alive = [a for a in run([{"do": "die", "params": params}], env) if "dead" not in a]
    assert sorted(a["rank"] for a in alive) == [0, 2]
    for answer in alive:
        out = answer["answers"][0]["out"]
        assert "A worker has left a masked sum" in out["message"]
        assert "cannot continue" in out["again"]
        assert out["rounds"] == 2
        assert not out["training"]["complete"]
        leaves = next(e for e in out["training"]["events"] if e["release"] == "leaves")
        assert leaves["count"] == 6
