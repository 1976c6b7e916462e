"""Who the rows of a matrix belong to: kept beside the matrix, and never inherited by another."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

import xgb_dp
from tests.batches import Batches
from tests.callbacks import After
from tests.conftest import arrays
from tests.reference.comparison import make_plan
from tests.sensitivity.cpp import IN_THE_CLEAR
from xgb_dp.data import matrices
from xgb_dp.data.ids import encode_persons
from xgb_dp.engine import native
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal, RowDomainError
from xgb_dp.planning import dump
from xgb_dp.testing import train_with_plan

from ..stated import check_plan

CODES = np.array([1, 0, 1, 2, 0, 1])
FEATURES = [{"kind": "cuts", "cuts": [0.5]}]


def small(n: int = 6) -> xgb.DMatrix:
    return xgb.DMatrix(np.arange(n, dtype=float).reshape(n, 1) % 2, np.arange(n) % 2)


def plan(unit: str, **changes: Any) -> dict[str, Any]:
    return make_plan("binary:logistic", True, FEATURES, unit=unit, **changes)


def test_plan_and_matrix_have_one_unit():
    d = small()
    with pytest.raises(XGBoostError, match="privacy units"):
        train_with_plan(plan("person"), d)
    native.set_persons(d, CODES)
    train_with_plan(plan("person"), d)
    with pytest.raises(XGBoostError, match="privacy units"):
        train_with_plan(plan("row"), d)
    native.set_persons(d, None)
    train_with_plan(plan("row"), d)


def test_another_matrix_inherits_nothing():
    """Also where it lies at the same address, which is likely for matrices of one size."""
    for _ in range(20):
        d = small()
        with pytest.raises(XGBoostError, match="privacy units"):
            train_with_plan(plan("person"), d)
        native.set_persons(d, CODES)
        del d


@pytest.mark.parametrize("codes", [CODES[:5], np.append(CODES, 1), np.array([0, 0, 0, 2, 2, 2])])
def test_bad_codes(codes):
    """Each row has a code, and no code is left out; no message shows a number of rows."""
    with pytest.raises(XGBoostError) as error:
        native.set_persons(small(), codes)
    first = str(error.value).splitlines()[0].rsplit("Check failed", 1)[-1]
    assert not any(str(n) in first for n in (5, 6, 7))


def test_matrix_without_rows():
    d = xgb.DMatrix(np.empty((0, 1)), np.empty(0))
    native.set_persons(d, np.empty(0, dtype=np.uint32))
    train_with_plan(plan("person"), d)


@pytest.mark.parametrize(
    ("bound", "unit"),
    [({"max_rows_per_person": "0.5"}, "person"), ({"max_rows_per_person": "2.0"}, "row")],
    ids=str,
)
def test_rows_per_person_in_plans(bound, unit):
    given = plan(unit, row_bound=bound)
    selection = {**given["selection"], "range": 1 << 20}
    with pytest.raises(XGBoostError, match="max_rows_per_person"):
        check_plan(dump({"id": "by hand", **given, "selection": selection}))
    with pytest.raises((XGBoostError, ValueError), match="max_rows_per_person"):
        train_with_plan(given, small())


def test_a_plan_without_room_for_hessians_is_refused():
    bound = {"mode": "clip", "hessian_bound": "0.0"}
    with pytest.raises(ValueError, match="h_max must be positive"):
        train_with_plan(plan("person", row_bound=bound), small())


@pytest.mark.filterwarnings("ignore:.*NOT private")
def test_ids_are_forgotten_at_the_end(params):
    """Of a training that succeeds, and of one that fails before anything is released."""
    d = small()
    given = params(dp_epsilon=float("inf"), dp_privacy_id=CODES, dp_feature_cuts={0: [0.5]})
    xgb.train(given, d, 2)
    train_with_plan(plan("row"), d)
    with pytest.raises(PrivacyParameterError, match="one id per row"):
        xgb.train(given | {"dp_privacy_id": CODES[1:]}, d, 2)
    d.set_label(np.arange(6))
    with pytest.raises(RowDomainError, match="label"):
        xgb.train(given, d, 2)
    d.set_label(np.zeros(6))
    train_with_plan(plan("row"), d)


@pytest.mark.filterwarnings("ignore:.*NOT private")
def test_no_training_goes_on_with_the_persons_of_another(params):
    """A callback trains on the same matrix for other persons, and leaves them there by an error."""
    d = small()
    given = params(dp_epsilon=float("inf"), dp_privacy_id=CODES, dp_feature_cuts={0: [0.5]})

    def fail(model: xgb.Booster) -> None:
        raise KeyError

    def train(model: xgb.Booster) -> None:
        with pytest.raises(KeyError):
            xgb.train(given | {"dp_privacy_id": np.arange(6)}, d, 1, callbacks=[After(fail)])

    with pytest.raises(PrivacyRefusal, match="changed the privacy ids"):
        xgb.train(given, d, 2, callbacks=[After(train)])
    xgb.train(given, d, 2)


REQUEST = {
    **IN_THE_CLEAR, "unit": "person", "kind": "binary", "sigma2": 0, "shift": 10,
    "noise_free": True,
}  # fmt: skip


@pytest.mark.parametrize("between", [[np.arange(6)], [None, np.arange(6)], [None, CODES]])
@pytest.mark.parametrize("plan_id", ["hand-made", "another"])
def test_the_cpp_refuses_trees_for_others_than_the_intercept(between, plan_id):
    """By itself, without the check in Python. Ids that are given again are others, too."""
    d = small()
    native.set_persons(d, CODES)
    native.release_before_trees(d, REQUEST | {"plan_id": plan_id})
    for codes in between:
        native.set_persons(d, codes)
    if plan_id == "hand-made":  # that of train_with_plan
        for _ in range(2):  # a refusal is not forgotten
            with pytest.raises(XGBoostError, match="between the intercept and the first tree"):
                train_with_plan(plan("person"), d)
        native.release_before_trees(d, REQUEST | {"plan_id": plan_id})
    train_with_plan(plan("person"), d)


def test_the_cpp_refuses_a_second_release_for_others_than_the_first():
    """Counts and amounts have two before the first tree; the trees are for those of both."""
    d = small()
    first, second = ({**REQUEST, "plan_id": "hand-made", "again": a} for a in (False, True))
    native.set_persons(d, CODES)
    with pytest.raises(XGBoostError, match="no first release"):
        native.release_before_trees(d, second)
    native.release_before_trees(d, first)
    native.release_before_trees(d, second)
    native.set_persons(d, np.arange(6))
    with pytest.raises(XGBoostError, match="between two releases"):
        native.release_before_trees(d, second)
    with pytest.raises(XGBoostError, match="between the intercept and the first tree"):
        train_with_plan(plan("person"), d)


def test_no_persons_are_others_than_those_that_are_gone():
    """The plan of the trees is one of rows, under the name of that of the intercept."""
    d = small()
    native.set_persons(d, CODES)
    native.release_before_trees(d, {**REQUEST, "plan_id": "hand-made"})
    native.set_persons(d, None)
    with pytest.raises(XGBoostError, match="between the intercept and the first tree"):
        train_with_plan(plan("row"), d)


def in_a_thread(work: Callable[[], Any]) -> str:
    """What another thread says of the same work: nothing, or the name and text of its error."""
    message = [""]

    def run() -> None:
        try:
            work()
        except Exception as error:
            message[0] = f"{type(error).__name__}: {error}"

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(300)
    assert not thread.is_alive()
    return message[0]


@pytest.mark.filterwarnings("ignore:.*NOT private")
@pytest.mark.parametrize("where", ["tree", "intercept"])
def test_nothing_comes_of_a_tree_or_intercept_of_other_persons(params, where, monkeypatch):
    """Set by the thread that trains, after the last check, and nothing of Python comes later."""
    d = small()
    given = params(dp_epsilon=float("inf"), dp_privacy_id=CODES, dp_feature_cuts={0: [0.5]})
    if where == "tree":
        given["base_score"] = 0.5  # else the C++ finds that it differs from the intercept
    owner, name = (xgb.Booster, "update") if where == "tree" else (native, "release_before_trees")
    inner = getattr(owner, name)
    seen = []

    def with_other_persons(*args: Any, **kwargs: Any) -> Any:
        matrices.hold(d, encode_persons(np.arange(6)))
        return inner(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, with_other_persons)
        # The claim of the trees is for the persons that it was opened for.
        refused = XGBoostError if where == "tree" else PrivacyRefusal
        with pytest.raises(refused, match=r"changed the privacy ids|other privacy ids"):
            xgb.train(given, d, 1, callbacks=[After(seen.append)])
    assert not seen
    xgb.train(given, d, 1, callbacks=[After(seen.append)])
    assert len(seen) == 1


WHO = {"rows": None, "persons": CODES, "others": np.arange(6)}


@pytest.mark.parametrize("second", WHO)
@pytest.mark.parametrize("first", WHO)
@pytest.mark.parametrize("objective", ["binary:logistic", "count:poisson"])
def test_threads_share_a_matrix_of_the_same_persons_alone(
    params, first, second, objective, tmp_path
):
    """One is refused before it is charged; the other keeps its persons, and draws all its trees.

    Counts have two releases before the first tree, and the other one trains between them.
    """
    d, budget = small(), xgb_dp.Budget(tmp_path / "budget", epsilon=9.0, delta=1e-4, unit="person",
                                       most_rows=3)  # fmt: skip
    given = params(objective=objective, dp_feature_cuts={0: [0.5]})
    if objective == "count:poisson":
        given |= {"dp_target_bounds": (0, 1), "dp_mean_correction": True}
    both = [given | ({} if WHO[w] is None else {"dp_privacy_id": WHO[w]}) for w in (first, second)]
    message: list[str] = []
    inner = native.release_before_trees

    def release(data: Any, request: dict[str, Any]) -> Any:
        if not message and (request["again"] or objective == "binary:logistic"):
            message.append("")
            message[0] = in_a_thread(lambda: budget.train(both[1], d, 2))
        return inner(data, request)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(native, "release_before_trees", release)
        assert budget.train(both[0], d, 2).num_boosted_rounds() == 2
    if first == second:
        assert message == [""]
    else:
        assert message[0].startswith("PrivacyRefusal") and "Another thread" in message[0]
    assert len(budget.entries) == 1 + (first == second)
    assert in_a_thread(lambda: budget.train(both[1], d, 2)) == ""  # the first one has ended
    train_with_plan(plan("row"), d)  # and nobody's codes are left


def test_of_two_threads_one_gets_a_matrix_whole(monkeypatch):
    """While one sets its persons the other waits, and is refused: no mix of both comes out."""
    d, set_for, message = small(), [], []
    entered, go_on, done = (threading.Event() for _ in range(3))

    def slow(_: Any, codes: Any) -> None:
        entered.set()
        assert go_on.wait(300)
        set_for.append(len(set(codes.tolist())))

    def train() -> None:
        kept = matrices.hold(d, encode_persons(CODES))
        assert done.wait(300)  # a hold ends with its thread
        kept.check(d)

    def other() -> None:
        message.append(in_a_thread(lambda: matrices.hold(d, encode_persons(np.arange(6)))))

    monkeypatch.setattr(native, "set_persons", slow)
    first, second = threading.Thread(target=train), threading.Thread(target=other)
    first.start()
    assert entered.wait(300)
    second.start()
    second.join(0.1)  # time enough to come in where nothing stops it
    assert not message
    go_on.set()
    second.join()
    done.set()
    first.join()
    assert set_for == [3]
    assert "Another thread" in message[0]


def test_a_matrix_on_disk_is_read_by_one_thread(params, tmp_path):
    """XGBoost ends a training that meets another one there, when both have been charged."""
    X, y = arrays()
    d = xgb.DMatrix(Batches([(X[:150], y[:150]), (X[150:], y[150:])], tmp_path))
    kept = matrices.hold(d, None)
    assert "on disk" in in_a_thread(lambda: xgb.train(params(), d, 2))
    assert xgb.train(params(), d, 2).num_boosted_rounds() == 2  # the same thread does not meet it
    kept.release()
    assert in_a_thread(lambda: xgb.train(params(), d, 2)) == ""
