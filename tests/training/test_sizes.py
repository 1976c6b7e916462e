"""Open rounds: the plan follows a noisy number of rows, and what a user sets is kept."""

import json
import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from click.testing import CliRunner

import xgb_dp
from xgb_dp import planning
from xgb_dp.accounting import ChoiceEvent, make_accountant
from xgb_dp.calibrate import calibrate, calibrate_family
from xgb_dp.cli.commands import cli
from xgb_dp.engine import native
from xgb_dp.errors import BudgetError
from xgb_dp.parameters.parse import OpenRounds
from xgb_dp.record.authorization import Context
from xgb_dp.record.ledger import read_ledger
from xgb_dp.record.spending import mu2_of_kind
from xgb_dp.request.default_plans import SIZES, settings_of_sizes, worth
from xgb_dp.request.guarantee import shares_of
from xgb_dp.request.names import Request
from xgb_dp.request.params import DEFAULT_ROUNDS
from xgb_dp.request.schema import read_schema
from xgb_dp.testing import fixed_noise
from xgb_dp.training.hook import checked, prepare
from xgb_dp.training.run import LedgerCallback, Training

from ..conftest import OBJECTIVE, arrays
from ..models import starts
from .families import FEW, MANY, SHORT, data, private_params

BOUNDS = dict.fromkeys(range(4), (-3, 3))


def training_of(matrix, rounds=None):
    """The training of these parameters, before it starts."""
    prepared = prepare(private_params(), read_schema(matrix), rounds)
    return Training.of(prepared, Context.current())


def last(model: Any) -> Any:
    booster = model if isinstance(model, xgb.Booster) else model.get_booster()
    return read_ledger(booster).trainings[-1]


def grown(model: xgb.Booster) -> int:
    """Rounds of a model without the trees that it started from."""
    starts = [t.start.rounds for t in read_ledger(model).trainings if t.start is not None]
    return int(model.num_boosted_rounds()) - sum(starts)


# Which plan is taken, and what is kept


@pytest.mark.parametrize("kind", list(OBJECTIVE))
@pytest.mark.parametrize("n", [0, FEW, MANY])
def test_the_plan_follows_the_rows(kind, n, short):
    model = xgb.train(private_params(kind), data(n, kind))
    training = last(model)
    size = SHORT[n == MANY]
    assert grown(model) == training.rounds == size.rounds
    shown = training.hyperparameters
    of_trees = ("max_depth", "tree_shape", "max_bin", "split_levels")
    assert tuple(shown[name] for name in of_trees) == size.trees
    assert shown["eta"] == size.eta
    choice = training.public["plan_choice"]
    assert choice["taken"] == (n == MANY)
    assert choice["plans"][choice["taken"]]["rounds"] == size.rounds
    assert abs(choice["rows"] - n) < 800
    [event] = training.events
    assert isinstance(event, ChoiceEvent)
    assert len(event.options) == 2
    before = ["range"] if kind == "regression" else []
    assert [e.label for e in event.first] == [*before, "intercept"]
    assert xgb_dp.privacy_report(model).epsilon <= 1.0


def test_epsilon_counts_as_rows_do(short):
    taken = [
        last(xgb.train(private_params(dp_epsilon=e), data(n))).public["plan_choice"]["taken"]
        for e, n in ((4.0, 800), (0.1, MANY))
    ]
    assert taken == [1, 0]


def test_a_public_number_of_rows_decides_for_nothing(short):
    for n, size in ((999, SHORT[0]), (1000, SHORT[1])):
        model = xgb.train(private_params(dp_public_num_rows=n), data(FEW))
        training = last(model)
        assert training.rounds == size.rounds
        assert training.hyperparameters["max_depth"] == size.trees[0]
        assert "plan_choice" not in training.public
        assert not any(isinstance(e, ChoiceEvent) for e in training.events)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"max_depth": 1}, {"max_depth": 1, "max_bin": 64, "tree_shape": "alternate"}),
        ({"eta": 0.125}, {"eta": 0.125, "max_depth": 3}),
        ({"max_bin": 8}, {"max_bin": 8, "max_depth": 3}),
        ({"dp_split": "random"}, {"split": "random", "max_depth": 4}),
        ({"dp_tree_shape": "oblivious"}, {"tree_shape": "oblivious", "max_depth": 4}),
        ({"dp_candidates": "histogram", "dp_feature_bounds": BOUNDS}, {"max_bin": 64}),
    ],
)
def test_what_is_set_is_kept(given, kept, short):
    """Rounds still follow the rows; of the trees nothing, where one of their parameters is set."""
    training = last(xgb.train(private_params(**given), data(MANY)))
    assert training.rounds == (6 if "eta" in given else 3)  # half the step
    assert kept.items() <= training.hyperparameters.items()


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({}, 0.2),
        ({"eta": 0.3}, 1.0),
        ({"dp_eta_warmup": 0.7}, 0.7),
        ({"dp_public_num_rows": 2 * MANY}, 0.2),
    ],
)
def test_steps_of_a_quantile_rise(given, start):
    """Unless a learning rate is given, which then is that of all rounds."""
    schema = read_schema(data(FEW, "regression"))
    for objective, first in (
        ("reg:absoluteerror", start),
        ("reg:squarederror", given.get("dp_eta_warmup", 1.0)),
    ):
        params = private_params("regression", objective=objective, **given)
        first_steps = [p.settings["dp_eta_warmup"] for p in prepare(params, schema, None).plans]
        assert min(first_steps) == first


@pytest.mark.parametrize(
    "given",
    [
        {"subsample": 0.5},
        {"dp_epsilon": math.inf},
        {"dp_preset": "sarus", "dp_feature_bounds": BOUNDS},
        {
            "dp_accountant": "pure",
            "dp_delta": None,
            "base_score": 0.5,
            "dp_leaf_noise": "laplace",
            "dp_feature_bounds": BOUNDS,
        },
    ],
)
@pytest.mark.filterwarnings("ignore:`dp_epsilon` is infinite")
def test_where_nothing_follows_the_rows(given, short):
    """Where no bound is at hand, no noise is drawn, or a preset says: the rounds of the default."""
    training = last(xgb.train(private_params(max_depth=1, **given), data(MANY)))
    assert training.rounds == DEFAULT_ROUNDS
    assert "plan_choice" not in training.public


def test_given_rounds_leave_nothing_to_the_rows(short):
    for n in (FEW, MANY):
        training = last(xgb.train(private_params(), data(n), 4))
        assert (training.rounds, "plan_choice" in training.public) == (4, False)
        assert training.hyperparameters["max_depth"] == 6  # as before, of epsilon


def test_every_interface_follows_the_rows(short, tmp_path):
    X, y = arrays(n=MANY)
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=4.0, delta=1e-4)
    given = {"epsilon": 1.0, "delta": 1e-6, "n_jobs": 1}
    public = {k: v for k, v in private_params().items() if k not in ("dp_epsilon", "dp_delta")}
    file, schema = tmp_path / "rows.csv", tmp_path / "schema.json"
    columns = {name: {} for name in "abcd"}
    schema.write_text(json.dumps({"target": "y", "classes": ["0.0", "1.0"], "columns": columns}))
    arguments = ["train", file, "--schema", schema, "--epsilon", 1, "--delta", 1e-6, "--quiet"]
    arguments += ["--model", tmp_path / "model.json"]
    np.savetxt(
        file, np.c_[np.nan_to_num(X), y], delimiter=",", header="a,b,c,d,y", comments="", fmt="%.1f"
    )
    done = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    models = {
        "budget": budget.train(private_params(), xgb.DMatrix(X, y)),
        "xgboost's estimator": xgb.XGBClassifier(
            **private_params(objective=None), dp_classes=2
        ).fit(X, y),
        "our classifier": xgb_dp.DPXGBClassifier(**given, classes=2).fit(X, y),
        "our regressor": xgb_dp.DPXGBRegressor(**given, target_bounds=(0, 1)).fit(X, y),
        "command line": xgb.Booster(model_file=tmp_path / "model.json"),
    }
    assert {name: last(m).rounds for name, m in models.items()} == dict.fromkeys(models, 3)
    chosen = xgb_dp.select(public, xgb.DMatrix(X, y), [{}], epsilon=2.0, delta=1e-6)
    assert chosen.num_boost_round == grown(chosen.booster) == 3
    assert (chosen.params["max_depth"], chosen.params["eta"]) == (3, 0.25)
    assert chosen.report.epsilon <= 2.0
    fixed = xgb_dp.select(
        public, xgb.DMatrix(X, y), [{"num_boost_round": 1}], epsilon=2.0, delta=1e-6
    )
    assert fixed.num_boost_round == 1
    assert last(fixed.booster).hyperparameters["max_depth"] == 6


# What is released, and what the ledger says


def test_a_public_intercept_has_the_rows_counted(short):
    model = xgb.train(private_params(base_score=0.25), data(MANY))
    training = last(model)
    assert training.rounds == 3
    assert [e.label for e in training.events[0].first] == ["rows"]
    assert training.events[0].first[0].sensitivity2.bit_count() == 1
    assert starts(model) == [0.25]
    assert "the number of rows (a noisy count)" in xgb_dp.privacy_report(model).statement()
    margins = np.zeros(MANY)
    of_margins = xgb.train(private_params(dp_base_margin=True), data(MANY, base_margin=margins))
    assert [e.label for e in last(of_margins).events[0].first] == ["rows"]


def test_a_continued_model_counts_its_rows_again(short):
    earlier = xgb.train(private_params(), data(FEW))
    model = xgb.train(private_params(), data(MANY), xgb_model=earlier)
    first, second = read_ledger(model).trainings
    assert (first.rounds, second.rounds, grown(model)) == (2, 3, 5)
    assert [e.label for e in second.events[0].first] == ["rows"]
    report = xgb_dp.privacy_report(model)
    assert "of training 2 is one of 2 public plans" in report.statement()


def test_the_ledger_charges_the_worst_plan(short):
    """Whichever is taken: the events are the same, and so is epsilon at every question."""
    few, many = (xgb.train(private_params(), data(n)) for n in (FEW, MANY))
    assert last(few).events == last(many).events
    one, two = map(xgb_dp.privacy_report, (few, many))
    for more in ({}, {"group_size": 3}, {"accountant": "rdp"}, {"adjacency": "replace_one"}):
        assert one.get_epsilon(1e-6, **more) == two.get_epsilon(1e-6, **more)
        worst = max(
            make_accountant(more.get("accountant", "exact"), way).get_epsilon(
                1e-6, more.get("group_size", 2 if "adjacency" in more else 1)
            )
            for way in last(few).events[0].ways
        )
        assert worst * (1 - 1e-3) <= one.get_epsilon(1e-6, **more) <= worst * 1.01
    assert one.get_epsilon(1e-6, accountant="pure") == math.inf
    assert [s.count for s in one.spending()] != [s.count for s in two.spending()]
    assert "released less than planned" not in one.statement()


def test_the_claim_before_the_first_tree(short):
    """A training that breaks off has claimed the whole family, and says which plan it followed."""
    seen = []

    class Discovery(xgb.callback.TrainingCallback):
        def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            seen.append(json.loads(model.attr("dp_ledger")))
            return epoch == 1

    model = xgb.train(private_params(), data(MANY), callbacks=[Discovery()])
    claimed = seen[0]["trainings"][0]
    assert not claimed["complete"]
    assert claimed["rounds"] == 3
    assert claimed["events"][0]["mechanism"] == "choice"
    stopped = last(model)
    assert (stopped.rounds, len(stopped.events)) == (1, 1)
    assert stopped.stopped
    assert "released less than planned" in xgb_dp.privacy_report(model).statement()


def test_the_choice_depends_on_what_was_released_alone(short):
    """With noise from a tape: the plan follows from the sums, and the same rows have the same."""
    limits = []
    for n in (FEW, 940, 1000, 1060, MANY):
        with fixed_noise("ab" * 32):
            model, again = (xgb.train(private_params(), data(n)) for _ in range(2))
            training = training_of(data(n))
            sums = native.release_before_trees(
                data(n), training.options[0].plan.request("intercept")
            )["sums"]
        rows = math.ldexp(sums[1], -training.prepared.noise["intercept"].shift)
        assert last(model).public["plan_choice"]["rows"] == max(0, round(rows))
        assert last(model).rounds == (2 if rows < 1000 else 3)
        assert model.save_raw() == again.save_raw()
        limits.append(rows)
    assert limits[0] < 1000 < limits[-1]


def test_one_name_for_the_whole_family(short):
    """The claim names the family, and every plan has its name; the trainer asks for it."""
    training = training_of(data(FEW))
    assert len({option.plan.body["id"] for option in training.options}) == 1
    assert training.options[0].plan.request("intercept")["plan_id"] == training.plan_id
    alone = training_of(data(FEW), 2)
    assert alone.plan_id != training.plan_id
    d = data(FEW)
    low, _ = training.start(d)
    booster = xgb.Booster(low, [d])
    with pytest.raises(xgb.core.XGBoostError, match="does not account"):
        booster.update(d, 0)
    LedgerCallback(training, 0, None, (), d).before_training(booster)
    booster.update(d, 0)


@pytest.mark.parametrize("position", [0, 1])
def test_a_claim_pays_for_one_plan_of_the_family(position, short):
    """A checkpoint claims the family: it grows no trees by any other plan of it."""
    seen = []

    class Keep(xgb.callback.TrainingCallback):
        def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            seen.append(model.copy())
            return False

    d = data(MANY)
    xgb.train(private_params(), d, callbacks=[Keep()])
    training = training_of(d)
    plan = training.options[position].plan.text
    seen[1].set_param({"tree_method": "dp_hist", **OBJECTIVE["binary"], "dp_plan": plan})
    with pytest.raises(xgb.core.XGBoostError, match=r"spent|does not account"):
        seen[1].update(d, 1)


def test_budgets_book_the_choice(tmp_path):
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=1.0, delta=1e-6)
    budget.train(private_params(), data(FEW))
    assert [type(e) for e in budget.entries[0].events] == [ChoiceEvent]
    budget.verify()
    with pytest.raises(BudgetError):
        budget.train(private_params(dp_epsilon=0.1), data(FEW))


# The family of the default


@pytest.mark.parametrize("kind", list(OBJECTIVE))
def test_the_table(kind):
    sizes_of_kind = SIZES[kind]
    assert [s.below for s in sizes_of_kind] == sorted({s.below for s in sizes_of_kind})
    assert sizes_of_kind[-1].below == math.inf
    prepared = prepare(private_params(kind), read_schema(data(FEW, kind)), None)
    assert [p.settings.rounds for p in prepared.plans] == [s.rounds for s in sizes_of_kind]
    assert prepared.family is not None
    assert prepared.family.choose(-1e9) == 0
    assert prepared.family.choose(1e12) == len(sizes_of_kind) - 1
    firsts = {p.noise.events[0] for p in prepared.plans}
    assert len(firsts) == 1


@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_the_family_wastes_little(epsilon):
    """mu^2 of every plan against that which it could have alone: well under 1% of epsilon."""
    prepared = prepare(private_params(dp_epsilon=epsilon), read_schema(data(FEW)), None)
    assert 0.998 * epsilon <= prepared.noise.epsilon <= epsilon
    for plan in prepared.plans:
        alone = calibrate(plan.mechanisms, shares_of(plan.settings, counts=True), epsilon, 1e-6)
        chosen, best = (
            math.fsum(mu2_of_kind(e, (e.label, e.mechanism)) for e in noise.events)
            for noise in (plan.noise, alone)
        )
        assert chosen >= 0.994 * best  # mu goes with epsilon: 0.3%


@pytest.mark.parametrize("epsilon", [1e-4, 30.0, 1e5])
def test_targets_far_out(epsilon):
    """As far as the grids reach, open rounds train; losses of hundreds of nats are no matter."""
    prepared = prepare(private_params(dp_epsilon=epsilon), read_schema(data(FEW)), None)
    assert 0.99 * epsilon <= prepared.noise.epsilon <= epsilon
    assert len(prepared.plans) == len(SIZES["binary"])


def test_a_target_without_noise_for_large_plans_leaves_them_out(monkeypatch):
    """Whether there is noise depends on public inputs alone."""

    def calibrated(choices: Any, *args: Any) -> Any:
        if max(choice.rounds for choice in choices) > 100:
            raise BudgetError("The noise of the leaves for this epsilon exceeds the grid.")
        return calibrate_family(choices, *args)

    monkeypatch.setattr(planning, "calibrate_family", calibrated)
    prepared = prepare(private_params(), read_schema(data(FEW)), None)
    assert max(p.settings.rounds for p in prepared.plans) == 100
    assert prepared.family is not None
    assert prepared.family.choose(1e12) == len(prepared.plans) - 1


def test_a_small_learning_rate_takes_more_rounds():
    d = xgb.DMatrix(np.zeros((10, 4), dtype=np.float32))
    given = private_params("binary")

    def rounds(**changes: Any) -> list[int]:
        request = Request.parse({**given, **changes}, OpenRounds(DEFAULT_ROUNDS))
        settings = checked(request, read_schema(d), None)
        return [plan.rounds for plan in settings_of_sizes(settings)[1]]

    default, small = rounds(), rounds(eta=0.1)
    assert default[:3] == [50, 50, 75]
    assert small[:3] == [250, 250, 375]
    assert rounds(eta=0.5)[:3] == default[:3]
    assert max(rounds(eta=0.001)) == 500


def test_above_epsilon_2_steps_are_smaller_and_more():
    """Only noise justifies large steps and one feature a tree. An `eta` of the user stays."""
    d = xgb.DMatrix(np.zeros((10, 4), dtype=np.float32))

    def plans(epsilon: float, **changes: Any) -> list[tuple[float, int, float]]:
        given = {**private_params("binary", dp_epsilon=epsilon), **changes}
        request = Request.parse(given, OpenRounds(DEFAULT_ROUNDS))
        limits, plans = settings_of_sizes(checked(request, read_schema(d), None))
        return [(n, p.rounds, p["eta"]) for n, p in zip(limits, plans, strict=True)]

    table = SIZES["binary"]
    for epsilon, more in [(0.5, 1.0), (2.0, 1.0), (8.0, 2.0), (32.0, 8**0.5), (100.0, 8**0.5)]:
        of_row = worth(epsilon)
        first = table[0].below / (of_row if epsilon <= 2.0 else more**2)
        limits = [first, *(size.below / of_row for size in table[1:])]
        expected = [
            (limit, round(more * size.rounds), size.eta / more)
            for limit, size in zip(limits, table, strict=True)
        ]
        assert plans(epsilon) == pytest.approx(np.array(expected))
    assert [p[1:] for p in plans(8.0, eta=0.5)] == [p[1:] for p in plans(1.0, eta=0.5)]


@pytest.mark.parametrize(
    ("eta", "rounds", "bound"), [(0.5, 50, 0.3), (0.5, 200, 0.3), (0.1, 100, 0.474), (0.05, 5, 1)]
)
def test_few_or_small_steps_have_a_larger_bound(eta, rounds, bound):
    d = xgb.DMatrix(np.zeros((10, 4), dtype=np.float32))
    prepared = prepare({**private_params("regression"), "eta": eta}, read_schema(d), rounds)
    assert prepared.settings["dp_gradient_bound"] == pytest.approx(bound, abs=1e-3)


def test_a_learning_rate_that_is_too_small_is_named_before_anything_is_spent():
    with pytest.warns(xgb_dp.PrivacyWarning, match="rounds is 2.5") as caught:
        xgb.train(private_params(eta=0.05), data(50), 50)
    assert "Omit `eta` or `num_boost_round`" in str(caught[0].message)
