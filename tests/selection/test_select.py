"""Selections from end to end: what comes out, what it costs, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
import xgb_dp.testing
from xgb_dp import BudgetError, PrivacyParameterError, PrivacyRefusal, RowDomainError, Score, select
from xgb_dp.accounting import event_from_json, make_accountant
from xgb_dp.budget import budget as budget_module
from xgb_dp.record import selection_record
from xgb_dp.selection import best_run

from ..batches import Batches
from ..conftest import OBJECTIVE, arrays

PARAMS: dict[str, Any] = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1}
TWO = [{"max_depth": 1}, {"max_depth": 2, "eta": 0.3}]


def data(kind: str = "binary", n: int = 1500) -> xgb.DMatrix:
    X, y = arrays(kind, n)
    return xgb.DMatrix(X, y)


def quick(dtrain: Any = None, settings: Any = TWO, params: Any = PARAMS, **changes: Any) -> Any:
    given = {"epsilon": 4.0, "delta": 1e-6, "num_boost_round": 3, **changes}
    return select(params, data() if dtrain is None else dtrain, settings, **given)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fixes the number of runs, which is otherwise random and secret."""
    return lambda count: monkeypatch.setattr(
        selection_record, "repetitions", lambda distribution: count
    )


@pytest.fixture
def budget(tmp_path: Path) -> xgb_dp.Budget:
    return xgb_dp.Budget(tmp_path / "b.json", epsilon=6.0, delta=1e-5, selection_epsilon=5.0)


@pytest.fixture(scope="module")
def result() -> Any:
    return quick()


def test_model_report_and_ledger(result):
    report = result.report
    assert report.private and report.delta == 1e-6
    assert 0.97 * 4.0 <= report.epsilon <= 4.0
    assert result.setting in TWO
    assert result.params == {**PARAMS, **result.setting}
    assert result.booster.num_boosted_rounds() == result.num_boost_round == 3
    assert result.score_name == "log_loss"
    assert "secret number of trainings" in report.statement()
    assert "the list of candidate settings" in report.statement()
    [training] = report.ledger["trainings"]
    [event] = training["events"]
    assert event["mechanism"] == "selection"
    # The model's own training cost much less than the selection.
    of_a_run = make_accountant("exact", [event_from_json(e) for e in event["runs"][0]])
    assert of_a_run.get_epsilon(1e-6) < 0.9 * report.epsilon


def test_saved_and_continued_models_keep_the_cost(result, tmp_path):
    result.booster.save_model(tmp_path / "model.json")
    loaded = xgb_dp.privacy_report(tmp_path / "model.json")
    assert loaded.epsilon == result.report.epsilon
    more = {**result.params, "dp_epsilon": 1.0, "dp_delta": 1e-6}
    longer = xgb.train(more, data(), 2, xgb_model=result.booster)
    assert result.report.epsilon < xgb_dp.privacy_report(longer).epsilon < 6.0


def test_the_number_of_runs_is_nowhere(runs, capfd, tmp_path):
    """With the same model, what one run leaves behind is what seven runs leave behind."""
    seen = []
    for count in (1, 7):
        runs(count)
        budget = xgb_dp.Budget(
            tmp_path / f"{count}.json", epsilon=5.0, delta=1e-4, selection_epsilon=4.5
        )
        result = quick(params={**PARAMS, "verbosity": 3}, settings=[{}], budget=budget)
        ledger = json.loads(result.booster.attr("dp_ledger"))
        [entry] = budget.entries
        assert ledger["trainings"][0].pop("entry") == entry.id
        del ledger["trainings"][0]["trees"], ledger["trainings"][0]["id"]
        del ledger["content"], ledger["digest"]
        seen.append((ledger, entry.charge, entry.state, sorted(result.booster.attributes())))
    assert seen[0] == seen[1]
    out, err = capfd.readouterr()
    assert out + err == ""


def test_the_best_run_is_kept(runs, monkeypatch):
    runs(6)
    ranks = iter([0.1, 0.7, 0.3, 0.7, 0.6, 0.2])
    kept = []

    def release(self: Score, p: Any, y: Any, target: Any, event: Any, *args: Any) -> Any:
        kept.append(next(ranks))
        value = 10.0 * kept[-1] + len(kept)
        return xgb_dp.selection.scores.ScoreValue(value, 0.0, kept[-1], (event,))

    monkeypatch.setattr(Score, "release", release)
    assert quick().score == 10.0 * 0.7 + 2  # ties go to the first
    assert len(kept) == 6


@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_good_settings_win(runs):
    """Stumps cannot learn an interaction; with little noise the deeper trees win."""
    runs(24)  # each draws its setting: that none draws the deeper trees has a chance of 2^-24
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4000, 2)).astype(np.float32)
    dtrain = xgb.DMatrix(X, (X[:, 0] * X[:, 1] > 0).astype(int))
    params = {**PARAMS, "dp_feature_bounds": {0: (-3, 3), 1: (-3, 3)}}
    grid = {"max_depth": [1, 4], "num_boost_round": [15]}
    for score in ("auc", "accuracy", "brier"):
        result = quick(dtrain, grid, params, score=score, epsilon=60.0)
        assert result.setting == {"max_depth": 4, "num_boost_round": 15}


def test_trainings_do_not_see_the_rows_set_aside(runs, monkeypatch):
    runs(3)
    parts = []
    train = best_run._train

    def spy(candidate: Any, plan: Any, expected: Any, fit: Any) -> Any:
        parts.append(fit.matrix.get_label())
        return train(candidate, plan, expected, fit)

    monkeypatch.setattr(best_run, "_train", spy)
    seen = []
    release = Score.release

    def watch(self: Score, prediction: Any, labels: Any, *args: Any) -> Any:
        seen.append(labels)
        return release(self, prediction, labels, *args)

    monkeypatch.setattr(Score, "release", watch)
    n = 1200
    X = np.arange(n, dtype=np.float32).reshape(-1, 1)
    dtrain = xgb.DMatrix(X, np.linspace(0, 1, n))
    params = {"tree_method": "dp_hist", "dp_target_bounds": (0.0, 1.0), "nthread": 1}
    quick(dtrain, [{}], {**params, "objective": "reg:squarederror"}, validation=0.3)
    assert len(parts) == len(seen) == 3
    for kept, apart in zip(parts, seen, strict=True):
        assert not set(kept) & set(apart)
        assert len(kept) + len(apart) == n
        assert 250 < len(apart) < 470  # of 360 expected, 8 deviations
        np.testing.assert_array_equal(apart, seen[0])  # one division for all runs


QUANTILES = {"objective": "reg:quantileerror", "dp_target_bounds": (-3.0, 3.0)}
TIMES = {"objective": "survival:aft", "dp_target_bounds": (0.01, 50.0)}


def times(n: int = 1500) -> xgb.DMatrix:
    """Times that follow the first column, half of which are cut off."""
    X, _ = arrays("regression", n)
    rng = np.random.default_rng(8)
    ends = np.exp(X[:, 0] + 0.3 * rng.logistic(size=n))
    stop = rng.exponential(2.0, n) + 0.05
    out = xgb.DMatrix(X)
    out.set_float_info("label_lower_bound", np.minimum(ends, stop))
    out.set_float_info("label_upper_bound", np.where(ends <= stop, ends, np.inf))
    return out


@pytest.mark.parametrize("alpha", [0.8, [0.1, 0.5, 0.9]])
def test_quantiles_are_judged_by_their_own_loss(alpha, runs):
    runs(3)
    given = {**PARAMS, **QUANTILES, "quantile_alpha": alpha}
    result = quick(data("regression"), params=given)
    assert result.score_name == "pinball_loss" and 0.0 <= result.score <= 1.5
    assert result.report.epsilon <= 4.0


def test_times_are_judged_by_their_likelihood(runs):
    """Of two settings the one without trees, which says the same time to all, does not win."""
    runs(24)  # that none draws the longer training has a chance of 2^-24
    settings = [{"num_boost_round": 1, "eta": 1e-4}, {"num_boost_round": 20}]
    result = quick(times(6000), settings, {**PARAMS, **TIMES}, epsilon=200.0)
    assert result.score_name == "time_log_loss" and -4.0 <= result.score <= 4.0
    assert result.num_boost_round == 20


@pytest.mark.parametrize("other", [{**QUANTILES, "quantile_alpha": [0.5, 0.9]}, TIMES])
def test_settings_that_no_score_judges_together(other):
    both = [{**QUANTILES, "quantile_alpha": [0.1, 0.9]}, other]
    both = [{**one, "dp_target_bounds": (0.01, 50.0)} for one in both]
    with pytest.raises(PrivacyParameterError, match="can compare these settings"):
        quick(data("regression"), both)


@pytest.mark.parametrize("score", ["squared_error", "time_log_loss", "auc"])
def test_a_score_of_another_kind_is_refused(score):
    given = {**PARAMS, **QUANTILES, "quantile_alpha": [0.1, 0.9]}
    with pytest.raises(PrivacyParameterError, match="several quantiles"):
        quick(data("regression"), params=given, score=score)


@pytest.mark.parametrize(
    ("options", "family", "shape"),
    [
        ({"mean_runs": 4.0}, "poisson", 0.0),  # the usual law follows the number of runs
        ({"mean_runs": 4.1}, "negative_binomial", 1.0),
        ({"mean_runs": 1.5, "repetitions": "geometric"}, "negative_binomial", 1.0),
        ({"mean_runs": 1.5, "repetitions": "negative_binomial"}, "negative_binomial", -0.5),
        ({"mean_runs": 1.5, "repetitions": "poisson"}, "poisson", 0.0),
    ],
    ids=str,
)
def test_distributions_of_the_number_of_runs(options, family, shape):
    report = quick(settings=[{}], **options).report
    distribution = report.ledger["trainings"][0]["events"][0]["repetitions"]
    assert (distribution["family"], distribution["shape_num"]) == (family, shape * (1 << 16))
    assert 0.97 * 4.0 <= report.epsilon <= 4.0


@pytest.mark.parametrize("objective", [{}, {**QUANTILES, "quantile_alpha": [0.1, 0.9]}, TIMES])
def test_empty_parts_and_no_rows_train(objective):
    """How many rows there are decides on no error."""
    for rows in (0, 1):
        d = xgb.DMatrix(np.zeros((rows, 2), dtype=np.float32), np.zeros(rows))
        d = times(rows) if objective is TIMES else d
        assert quick(d, params={**PARAMS, **objective}).report.epsilon <= 4.0
    if not objective:
        assert quick(validation=1e-9).report.private


def test_components_and_weights():
    X, y = arrays(n=800)
    dtrain = xgb.DMatrix(X, y, weight=np.linspace(0, 1, 800))
    settings = [{"subsample": 0.5}, {"dp_split": "random", "dp_leaf_noise": "laplace"}]
    assert quick(dtrain, settings).report.epsilon <= 4.0


def test_a_budget_books_it_before_anything_is_released(budget, tmp_path, monkeypatch):
    result = quick(budget=budget.path, note="first")
    [entry] = budget.entries
    assert (entry.note, entry.state) == ("first", "spent")
    assert entry.charge.shift == pytest.approx(result.report.epsilon)
    assert entry.charge.extra == 1e-6
    budget.verify()

    def fail(*args: Any) -> Any:
        raise AssertionError("a row was read")

    monkeypatch.setattr(best_run, "_train", fail)
    plain = xgb_dp.Budget(tmp_path / "plain.json", epsilon=6.0, delta=1e-5)
    for full in (budget, plain):
        with pytest.raises(BudgetError, match="selection_epsilon"):
            quick(budget=full)
    assert len(budget.entries) == 1


def test_a_crash_leaves_the_booking(budget, monkeypatch):
    def crash(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(best_run, "_train", crash)
    with pytest.raises(KeyboardInterrupt):
        quick(budget=budget)
    assert budget.spent.shift > 3.8


def test_a_training_that_would_release_something_else_is_stopped(monkeypatch):
    plan_runs = best_run.plan_runs

    def costlier(*args: Any) -> Any:
        plan = plan_runs(*args)
        return replace(plan, epsilon=plan.epsilon * 1.5)

    monkeypatch.setattr(best_run, "plan_runs", costlier)
    released = []
    monkeypatch.setattr(
        xgb_dp.engine.native, "release_before_trees", lambda *args: released.append(1)
    )
    with pytest.raises(BudgetError, match="differ from those accounted for"):
        quick()
    assert not released


WRONG: dict[str, list[Any]] = {
    "epsilon": [0.0, float("inf")], "delta": [0.0], "validation": [0.0, 1.0],
    "mean_runs": [1.0, "many"], "repetitions": ["fixed"], "score": ["f1", "squared_error"],
    "settings": [[], "grid", {"eta": 0.3}, {"eta": []}],
}  # fmt: skip


@pytest.mark.parametrize(
    "changes, error, match",
    [
        *(({name: value}, PrivacyParameterError, name) for name, values in WRONG.items()
          for value in values),
        ({"settings": [{"etta": 0.3}]}, PrivacyParameterError, "etta"),
        ({"settings": [{"dp_epsilon": 1.0}]}, PrivacyParameterError, "dp_epsilon"),
        ({"settings": [{}, {"objective": "reg:squarederror", "dp_target_bounds": (0, 1)}]},
         PrivacyParameterError, "same objective"),
        ({"settings": [{"dp_public_num_rows": 1500}]}, PrivacyRefusal, "dp_public_num_rows"),
        ({"settings": [{"dp_public_evals": True}]}, PrivacyRefusal, "dp_public_evals"),
        ({"settings": [{"booster": "dart"}]}, PrivacyRefusal, "booster"),
        ({"params": {**PARAMS, "dp_delta": 1e-6}}, PrivacyParameterError, "dp_delta"),
        ({"params": {"objective": "binary:logistic"}}, PrivacyRefusal, "tree_method"),
        ({"epsilon": 1e-7}, BudgetError, "epsilon"),
    ],
)  # fmt: skip
def test_bad_arguments(changes, error, match, monkeypatch):
    monkeypatch.setattr(best_run, "_best_run", lambda *args: pytest.fail("a row was read"))
    with pytest.raises(error, match=match):
        quick(**changes)


def test_bad_data():
    X, y = arrays()
    for rows, error, match in (
        (X, PrivacyParameterError, "DMatrix"),
        (xgb.QuantileDMatrix(X, y), PrivacyRefusal, "QuantileDMatrix"),
        (xgb.DMatrix(X, y, qid=np.zeros(len(y), dtype=int)), PrivacyRefusal, "Query groups"),
        (xgb.DMatrix(X, y + 1), RowDomainError, "dp_classes"),
    ):
        with pytest.raises(error, match=match):
            quick(rows)


def test_fixed_noise_is_refused():
    with xgb_dp.testing.fixed_noise(3), pytest.raises(PrivacyRefusal, match="fixed key"):
        quick()


def test_selections_and_budgets_do_not_nest(tmp_path):
    """What one would let through the other would not see."""
    one, two = (xgb_dp.Budget(tmp_path / name, epsilon=9.0, delta=1e-5) for name in "ab")
    with pytest.raises(BudgetError, match="do not nest"), one.drawing():
        quick()
    with pytest.raises(BudgetError, match="do not nest"), one.drawing(), two.drawing():
        pass
    assert not one.entries and not two.entries


def test_a_selection_runs_on_one_machine(monkeypatch):
    """Workers would each keep a run of the same trainings."""
    monkeypatch.setattr(budget_module, "this_worker", lambda: (1, 2))
    with pytest.raises(PrivacyRefusal, match="one machine"):
        quick()


def test_what_is_refused_before_anything_is_booked(budget, tmp_path):
    with pytest.raises(PrivacyRefusal, match="dp_accountant"):
        quick(params=PARAMS | {"dp_accountant": "rdp"}, budget=budget)
    with pytest.raises(PrivacyRefusal, match=r"external memory.*Nothing was spent"):
        quick(xgb.DMatrix(Batches([arrays(n=400)] * 2, tmp_path)), settings=[{}], budget=budget)
    assert budget.entries == []


@pytest.mark.parametrize("preset", ["dp_xgb", "dpboost"])
def test_presets_with_an_accountant_of_their_own(preset, budget):
    """The selection's accountant certifies its runs, so that these are the charged events."""
    bounds = dict.fromkeys(range(4), (-3.0, 3.0))
    params = PARAMS | {"dp_preset": preset, "dp_feature_bounds": bounds}
    result = quick(params=params, budget=budget)
    assert 0.9 * 4.0 <= result.report.epsilon <= 4.0
    assert len(budget.entries) == 1


def test_chosen_parameters_select_and_continue_with_another_number_of_rounds():
    """They hold what the default made of epsilon, and nothing that follows the rounds."""
    bounds = dict.fromkeys(range(4), (-4.0, 4.0))
    base = {**PARAMS, "dp_preset": "dp_tr_ada", "dp_feature_bounds": bounds}
    result = quick(params=base, settings=[{}])
    assert "dp_budget_shares" not in result.params
    again = quick(params=result.params, settings=[{}])
    assert again.params == result.params
    more = {**result.params, "dp_epsilon": 1.0, "dp_delta": 1e-6}
    xgb.train(more, data(), 3, xgb_model=result.booster)
    assert quick(settings=[{}]).params["max_depth"] == 6  # whatever a run's epsilon is


@pytest.mark.parametrize(
    ("name", "hint"),
    [("scoring", "mean `score`"), ("max_depth", "in `params`"), ("n_iter", "mean `mean_runs`")],
)
def test_unknown_arguments_name_the_way(name, hint):
    with pytest.raises(PrivacyParameterError, match=f"`{name}` is not an argument.*{hint}"):
        quick(**{name: "accuracy"})
    X, y = arrays(n=40)
    estimator = xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=2)
    with pytest.raises(PrivacyParameterError, match=f"`{name}` is not an argument.*{hint}"):
        estimator.fit_select(X, y, TWO, **{name: "accuracy"})


def test_a_run_that_scores_with_less_noise_ends_the_selection(monkeypatch):
    """The score of a run is charged once for all runs: each of them must have drawn that."""
    released = Score.release

    def costlier(self: Score, p: Any, y: Any, target: Any, event: Any, *rest: Any) -> Any:
        return released(self, p, y, target, replace(event, sigma2=event.sigma2 // 2), *rest)

    monkeypatch.setattr(Score, "release", costlier)
    with pytest.raises(BudgetError, match="something that was not accounted for"):
        quick()


def test_a_selection_with_open_rounds_is_verified(tmp_path):
    """Enough rows that the plan of the default that is followed is not the first one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    data = xgb.DMatrix(X, X[:, 0] + rng.normal(size=6000) > 0)
    params = {"tree_method": "dp_hist", "nthread": 1, **OBJECTIVE["binary"]}
    model = select(params, data, [{}], epsilon=3.0, delta=1e-6).booster
    path = tmp_path / "model.json"
    model.save_model(path)
    public = json.loads(model.attr("dp_ledger"))["trainings"][0]["public"]
    assert public["plan_choice"]["taken"] > 0
    assert xgb_dp.verify(path).verdict == "passed"
