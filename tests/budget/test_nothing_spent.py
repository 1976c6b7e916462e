"""Whatever is wrong is found before anything is released or charged.

Every wrong input of the tables below is tried alone and, at random, together with others. A
training that raises has written nothing into the book and has drawn nothing from any source of
noise; the library itself counts that.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from xgb_dp import Budget, DPXGBClassifier, DPXGBRegressor, PrivacyParameterError, select
from xgb_dp.testing import fixed_noise

from ..conftest import OBJECTIVE, arrays
from ..noise.native import num_refills, row_limits

N = 120
ROUNDS = 2


class Call:
    """The arguments of one training, right until something is done to them."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.X, self.y = arrays(kind, N)
        self.params: dict[str, Any] = {
            "tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6, "max_depth": 2,
            "nthread": 1, "verbosity": 0, "dp_public_evals": True, **OBJECTIVE[kind],
        }  # fmt: skip
        self.info: dict[str, Any] = {}
        self.rounds: Any = ROUNDS
        self.data: dict[str, Any] = {"data": self.X, "label": self.y}
        self.valid: dict[str, Any] = {"data": self.X[:40], "label": self.y[:40]}
        self.name: Any = "public"
        self.train: dict[str, Any] = {"verbose_eval": False}

    def matrix(self) -> xgb.DMatrix:
        d = xgb.DMatrix(**self.data)
        d.set_info(**self.info)
        return d

    def run(self) -> Any:
        evals = [(xgb.DMatrix(**self.valid), self.name)]
        return xgb.train(self.params, self.matrix(), self.rounds, **{"evals": evals, **self.train})


def stock(call: Call, rounds: int) -> xgb.Booster:
    objective = {k: v for k, v in OBJECTIVE[call.kind].items() if not k.startswith("dp_")}
    return xgb.train({**objective, "nthread": 1}, xgb.DMatrix(call.X, call.y), rounds)


def narrow(call: Call) -> xgb.Booster:
    """A private model of fewer columns; its noise is drawn before the count begins."""
    with fixed_noise(1):
        return xgb.train(call.params, xgb.DMatrix(call.X[:, :2], call.y), 1)


def bad_metric(predicted: np.ndarray, data: xgb.DMatrix) -> Any:
    raise RuntimeError("no such column")


EARLY = xgb.callback.EarlyStopping
WRONG: dict[str, Callable[[Call], Any]] = {
    # rows
    "too few weights": lambda c: c.info.update(weight=np.ones(N - 1)),
    "too many weights": lambda c: c.info.update(weight=np.ones(N + 1)),
    "heavy weights": lambda c: c.info.update(weight=np.full(N, -2.0)),
    "undeclared margins": lambda c: c.data.update(base_margin=np.zeros(N)),
    "declared margins": lambda c: c.params.update(dp_base_margin=True),
    "bounds of labels": lambda c: c.info.update(label_lower_bound=np.zeros(N - 1)),
    "weights of columns": lambda c: c.info.update(feature_weights=np.ones(4)),
    "no labels": lambda c: c.data.update(label=None),
    "two targets": lambda c: c.data.update(label=np.stack([c.y, c.y], axis=1)),
    "labels outside": lambda c: c.data.update(label=np.full(N, np.inf)),
    "infinite cell": lambda c: c.data.update(data=np.where(c.X > 1, np.inf, c.X), missing=5.0),
    "groups": lambda c: c.data.update(qid=np.arange(N) // 2),
    "undeclared categories": lambda c: c.data.update(
        data=pd.DataFrame({"a": pd.Categorical(["u", "v"] * (N // 2))}), enable_categorical=True
    ),
    # public sets
    "set without labels": lambda c: c.valid.update(label=None),
    "set of other width": lambda c: c.valid.update(data=c.X[:40, :2]),
    "set of other names": lambda c: (
        c.valid.update(feature_names=list("abcd")),
        c.data.update(feature_names=list("efgh")),
    ),
    "set with codes": lambda c: c.valid.update(
        data=c.X[:40] // 1, feature_types=["c", "q", "q", "q"], enable_categorical=True
    ),
    "set with wrong labels": lambda c: (
        c.valid.update(label=np.full(40, 7.0)),
        c.params.update(eval_metric="mlogloss"),
    ),
    "set with two targets": lambda c: c.valid.update(label=np.zeros((40, 2))),
    "no name": lambda c: setattr(c, "name", 3),
    "name with a hyphen": lambda c: setattr(c, "name", "a-b"),
    "no pairs": lambda c: c.train.update(evals=[c.matrix()]),
    "triples": lambda c: c.train.update(evals=[(c.matrix(), "a", 1)]),
    "set that is no matrix": lambda c: c.train.update(evals=[(c.X, "a")]),
    "no set": lambda c: c.train.update(evals=[(None, "a")]),
    # metrics and callbacks
    "unknown metric": lambda c: c.params.update(eval_metric="best"),
    "metric that does not fit": lambda c: c.params.update(eval_metric="aft-nloglik"),
    "metric of groups": lambda c: c.params.update(eval_metric="interval-regression-accuracy"),
    "metric that raises": lambda c: c.train.update(custom_metric=bad_metric),
    "metric that is none": lambda c: c.train.update(custom_metric="mean"),
    "metric without a name": lambda c: c.train.update(custom_metric=lambda p, d: 0.5),
    "metric with words": lambda c: c.train.update(custom_metric=lambda p, d: ("m", "much")),
    "no callback": lambda c: c.train.update(callbacks=[object()]),
    "class of a callback": lambda c: c.train.update(callbacks=[EARLY]),
    "stops by another metric": lambda c: c.train.update(
        callbacks=[EARLY(rounds=2, metric_name="best")]
    ),
    "stops by another set": lambda c: c.train.update(callbacks=[EARLY(rounds=2, data_name="x")]),
    "stops after many": lambda c: c.train.update(callbacks=[EARLY(rounds="many")]),
    "no folder": lambda c: c.train.update(
        callbacks=[xgb.callback.TrainingCheckPoint(c.folder / "none", interval=1)]
    ),
    "stops after a text": lambda c: c.train.update(early_stopping_rounds="two"),
    "no direction": lambda c: c.train.update(
        early_stopping_rounds=2, maximize=np.array([True, False])
    ),
    "no period": lambda c: c.train.update(verbose_eval="often"),
    "negative period": lambda c: c.train.update(verbose_eval=-1),
    "several periods": lambda c: c.train.update(verbose_eval=[1, 2]),
    "no place for results": lambda c: c.train.update(evals_result=[]),
    "objective of one's own": lambda c: c.train.update(obj=lambda p, d: (p, p)),
    # rounds
    "rounds as a float array": lambda c: setattr(c, "rounds", np.array(2.0)),
    "rounds as a list": lambda c: setattr(c, "rounds", [2]),
    "rounds as a text": lambda c: setattr(c, "rounds", "2"),
    "no rounds": lambda c: setattr(c, "rounds", -1),
    "rounds without end": lambda c: setattr(c, "rounds", 10**12),
    # parameters
    "threads": lambda c: c.params.update(nthread="many"),
    "seed beyond": lambda c: c.params.update(seed=1 << 64),
    "seed": lambda c: c.params.update(seed="random"),
    "verbosity": lambda c: c.params.update(verbosity="loud"),
    "verbosity beyond": lambda c: c.params.update(verbosity=99),
    "unknown": lambda c: c.params.update(max_dept=3),
    "epsilon": lambda c: c.params.update(dp_epsilon=-1),
    "depth": lambda c: c.params.update(max_depth="deep"),
    "objective": lambda c: c.params.update(objective="rank:ndcg"),
    "classes": lambda c: c.params.update(num_class=1, objective="multi:softprob"),
    "domain": lambda c: c.params.update(dp_feature_bounds={0: (2, 1)}),
    "too much": lambda c: c.params.update(dp_epsilon=50.0),
    # earlier models
    "stock model": lambda c: c.train.update(xgb_model=stock(c, 1)),
    "stock model without trees": lambda c: c.train.update(xgb_model=stock(c, 0)),
    "model of other columns": lambda c: c.train.update(xgb_model=narrow(c)),
    "no file": lambda c: c.train.update(xgb_model=str(c.folder / "none.ubj")),
    "no model": lambda c: c.train.update(xgb_model=5),
}


@pytest.fixture
def budget(tmp_path: Path) -> Budget:
    return Budget(tmp_path / "budget.json", epsilon=5.0, delta=1e-5)


@contextlib.contextmanager
def nothing_is_spent(budget: Budget) -> Iterator[list[BaseException]]:
    """Any exception inside leaves the book as it was, and every source of noise untouched."""
    before, drawn = budget.path.read_bytes(), num_refills()
    raised: list[BaseException] = []
    try:
        yield raised
    except Exception as error:
        raised.append(error)
    if raised:
        assert isinstance(raised[0], (ValueError, TypeError)), raised[0]  # no accident
        assert num_refills() == drawn, f"noise was drawn before {raised[0]!r}"
        assert budget.path.read_bytes() == before, f"something was charged before {raised[0]!r}"


@pytest.mark.parametrize("kind", OBJECTIVE)
def test_what_is_right_is_drawn_and_booked(kind, budget, tmp_path):
    drawn = num_refills()
    with budget.drawing("right"):
        Call(kind, tmp_path).run()
    assert num_refills() > drawn
    assert len(budget.entries) == 1


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_what_is_wrong_spends_nothing(name, budget, tmp_path):
    for kind in OBJECTIVE:
        call = Call(kind, tmp_path)
        WRONG[name](call)
        with nothing_is_spent(budget) as raised, budget.drawing("wrong"):
            call.run()
        assert raised, kind


@pytest.mark.parametrize("name", ["verbosity", "verbosity beyond", "seed", "seed beyond"])
def test_a_parameter_that_is_refused_changes_no_global_setting(name, tmp_path):
    call, before = Call("binary", tmp_path), xgb.get_config()
    WRONG[name](call)
    with pytest.raises(PrivacyParameterError, match=f"`{name.split()[0]}`"):
        call.run()
    assert xgb.get_config() == before


SELECTED: dict[str, Callable[[Call], Any]] = {
    **{
        name: WRONG[name]
        for name in (
            "too few weights", "too many weights", "heavy weights", "undeclared margins",
            "declared margins", "no labels", "two targets", "labels outside", "infinite cell",
            "groups", "undeclared categories", "weights of columns", "bounds of labels",
            "unknown metric", "seed", "unknown", "depth", "objective", "classes", "domain",
            "no rounds",
        )
    },
    "one infinite cell": lambda c: c.X.__setitem__((7, 1), np.inf),
    "one label outside": lambda c: c.y.__setitem__(7, np.nan),
    "bounds of all labels": lambda c: c.info.update(label_lower_bound=np.zeros(N)),
}  # fmt: skip


@pytest.mark.parametrize("name", SELECTED)
def test_selections_spend_nothing_on_what_is_wrong(name, tmp_path):
    number = list(SELECTED).index(
        name
    )  # calibrating takes long: each kind has a third of the names
    budget = Budget(tmp_path / "b.json", epsilon=50.0, delta=1e-4, selection_epsilon=49.0)
    call = Call(list(OBJECTIVE)[number % 3], tmp_path)
    given = ("dp_epsilon", "dp_delta", "dp_public_evals", "verbosity")
    call.params = {k: v for k, v in call.params.items() if k not in given}
    SELECTED[name](call)
    settings = [{}] if number % 2 else [{"max_depth": 1}, {}]
    more = {"epsilon": 4.0, "delta": 1e-6, "num_boost_round": call.rounds, "budget": budget}
    # Whether a row is trained on does not matter.
    for share in [0.02, 0.98] if name.startswith("one ") else [(0.02, 0.98)[number // 3 % 2]]:
        with nothing_is_spent(budget) as raised:
            select(call.params, call.matrix(), settings, **more, validation=share)
        assert raised


def test_a_wrong_number_of_weights_does_not_show_the_number_of_rows(tmp_path):
    for name in ("too few weights", "too many weights"):
        call = Call("binary", tmp_path)
        WRONG[name](call)
        with pytest.raises(ValueError, match="weight") as caught:
            call.run()
        assert not {str(n) for n in (N - 1, N, N + 1)} & set(str(caught.value).split())


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_random_wrong_inputs_spend_nothing(seed, budget, tmp_path):
    rng = random.Random(seed)
    call = Call(rng.choice(list(OBJECTIVE)), tmp_path)
    for name in rng.sample(sorted(WRONG), rng.choice([1, 2, 3])):
        with contextlib.suppress(Exception):  # what is wrong already may not be made more so
            WRONG[name](call)
    with nothing_is_spent(budget), budget.drawing("random"):
        call.run()


@pytest.mark.parametrize("kind", OBJECTIVE)
@pytest.mark.parametrize("limit", [{"total": N - 1}, {"batch": N - 1}], ids=str)
def test_too_many_rows_are_told_first(kind, limit, budget, tmp_path):
    call = Call(kind, tmp_path)
    with row_limits(**limit), nothing_is_spent(budget) as raised, budget.drawing("many"):
        call.run()
    text = str(raised[0]).split("Stack trace")[0]
    assert "rows" in text
    assert str(N) not in text
    with row_limits(total=N, batch=N):
        assert call.run().num_boosted_rounds() == ROUNDS


ESTIMATED: dict[str, dict[str, Any]] = {
    "set of other width": {"eval_set": [(np.zeros((5, 2)), np.zeros(5))]},
    "set of other length": {"eval_set": [(np.zeros((5, 4)), np.zeros(4))]},
    "set with text": {"eval_set": [(np.full((5, 4), "x"), np.zeros(5))]},
    "no pairs": {"eval_set": [np.zeros((5, 4))]},
    "weights": {"sample_weight": np.ones(N - 1)},
    "weights of sets": {
        "eval_set": [(np.zeros((5, 4)), np.zeros(5))], "sample_weight_eval_set": [np.ones(4)]
    },
    "margins": {"base_margin": np.zeros(N - 1)},
    "earlier model": {"xgb_model": "nowhere.ubj"},
    "printing": {"eval_set": [(np.zeros((5, 4)), np.zeros(5))], "verbose": "often"},
}  # fmt: skip
SET_UP: dict[str, dict[str, Any]] = {
    "metric": {"eval_metric": "best"},
    "metric that raises": {"eval_metric": lambda true, predicted: 1 / 0},
    "callbacks": {"callbacks": [object()]},
    "early stopping": {"early_stopping_rounds": "two"},
    "rounds": {"n_estimators": 2.5},
    "threads": {"n_jobs": "many"},
    "epsilon": {"epsilon": 0},
    "columns": {"feature_weights": [1, 1, 1, 1]},
}


@pytest.mark.parametrize("name", [*ESTIMATED, *SET_UP])
def test_estimators_spend_nothing_on_what_is_wrong(name, budget):
    for kind in ("binary", "regression"):
        X, y = arrays(kind, N)
        common: dict[str, Any] = {
            "epsilon": 1.0, "delta": 1e-6, "n_estimators": 2, "n_jobs": 1, "budget": budget,
            "public_evals": True,
        }  # fmt: skip
        model: Any = DPXGBClassifier(classes=2, **common)
        if kind == "regression":
            model = DPXGBRegressor(target_bounds=(-3, 3), **common)
        model.set_params(**SET_UP.get(name, {}))
        fit = {"eval_set": [(X[:20].copy(), y[:20])], "verbose": False, **ESTIMATED.get(name, {})}
        with nothing_is_spent(budget) as raised:
            model.fit(X, y, **fit)
        assert raised, kind
