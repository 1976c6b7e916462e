"""A ledger whose numbers do not follow from its settings fails, whatever its digest says."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from xgb_dp.engine.saved_model import SavedModel
from xgb_dp.record import consistency, ledger
from xgb_dp.record.consistency import contradictions
from xgb_dp.record.ledger_model import Ledger

from ..conftest import arrays
from ..models import as_xgboost_writes
from ..mutations import at, places

PARAMS = private(objective="binary:logistic", max_depth=2, nthread=1)
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "ensemble": {"dp_ensemble": 2},
    "sampled": {"subsample": 0.5},
    "persons": {"dp_privacy_id": [i // 3 for i in range(300)]},
    "laplace": {"dp_leaf_noise": "laplace", "dp_group_size": 2},
    "histogram": {"dp_split": "histogram", "dp_feature_bounds": {0: (-4, 4)}},
}


def trained(name: str) -> xgb.Booster:
    X, y = arrays()
    if name == "selected":
        params = {k: v for k, v in PARAMS.items() if k not in ("dp_epsilon", "dp_delta")}
        data = xgb.DMatrix(X, y)
        return xgb_dp.select(
            params, data, {"max_depth": [1, 2]}, epsilon=1.0, delta=1e-6, num_boost_round=2
        ).booster
    if name == "open":
        open_rounds = {k: v for k, v in PARAMS.items() if k != "max_depth"}
        return xgb.train(open_rounds, xgb.DMatrix(X, y))
    return xgb.train({**PARAMS, **CASES[name]}, xgb.DMatrix(X, y), 4)


@pytest.fixture(scope="module")
def models() -> dict[str, dict[str, Any]]:
    boosters = {name: trained(name) for name in (*CASES, "open", "selected")}
    boosters["continued"] = xgb.train(
        PARAMS, xgb.DMatrix(*arrays()), 2, xgb_model=boosters["plain"]
    )
    return {name: json.loads(model.save_raw("json")) for name, model in boosters.items()}


def ledger_of(content: dict[str, Any]) -> dict[str, Any]:
    return ledger.load_checksummed(content["learner"]["attributes"]["dp_ledger"])


def events_in(value: Any) -> list[dict[str, Any]]:
    """All events, those of rounds, choices and runs among them."""
    parts = (at(value, path) for path in ((), *places(value)))
    return [part for part in parts if isinstance(part, dict) and "mechanism" in part]


def field(name: str, change: Callable[[int], int]) -> Callable[[dict[str, Any]], bool]:
    def apply(training: dict[str, Any]) -> bool:
        events = [event for event in events_in(training["events"]) if name in event]
        for event in events:
            event[name] = change(event[name])
        return bool(events)

    return apply


def setting(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], bool]:
    def apply(training: dict[str, Any]) -> bool:
        shown = training["public"]["hyperparameters"]
        before = shown[name]
        shown[name] = change(before)
        for plan in training["public"].get("plan_choice", {}).get("plans", []):
            if name in plan:
                plan[name] = change(plan[name])
        return bool(shown[name] != before)

    return apply


def target(training: dict[str, Any]) -> bool:
    training["target"]["epsilon"] = 0.001
    return True


CHANGES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "a target that the events do not meet": target,
    "no sensitivity": field("sensitivity2", lambda v: 0),
    "no sensitivity of Laplace noise": field("sensitivity", lambda v: 0),
    "less sensitivity": field("sensitivity2", lambda v: v - 1),
    "a million times the noise": field("sigma2", lambda v: v * 10**6),
    "a tenth more noise": field("sigma2", lambda v: v + v // 10),
    "a tenth less noise": field("sigma2", lambda v: v - v // 10),
    "Laplace noise of another scale": field("scale", lambda v: 2 * v),
    "selections that cost nothing": field("eps_num", lambda v: 0),
    "fewer releases": field("count", lambda v: max(v // 2, 1) if v > 1 else v + 1),
    "fewer coordinates": field("coordinates", lambda v: v - 1),
    "more parts": field("parts", lambda v: v + 1),
    "a smaller sample": field("rate_num", lambda v: v // 2),
    "more rounds": setting("rounds", lambda v: v + 3),
    "deeper trees": setting("max_depth", lambda v: v + 2),
    "another group": setting("group_size", lambda v: v + 1),
    "other shares": setting("budget_shares", lambda v: {**v, "leaves": v["leaves"] / 3}),
    "nonsense": setting("max_depth", lambda v: "deep"),
    "a huge number": setting("max_depth", lambda v: 10**9),
}
ALL = (*CASES, "open", "selected", "continued")


def test_what_was_trained_follows_from_its_settings(models):
    for name, content in models.items():
        ledger = Ledger.from_json(ledger_of(content))
        assert contradictions(ledger, SavedModel(content)) == [], name


@pytest.mark.parametrize("change", list(CHANGES))
def test_what_does_not_follow_is_named(models, change):
    met = 0
    for name in ALL:
        record = ledger_of(models[name])
        if not CHANGES[change](record["trainings"][-1]):
            continue
        try:
            ledger = Ledger.from_json(record)
        except xgb_dp.LedgerError:
            met += 1
            continue
        contradicted = contradictions(ledger, SavedModel(models[name]))
        assert contradicted and contradicted[0].startswith("training"), (name, change)
        met += 1
    assert met


def test_a_model_of_other_columns_or_another_objective(models):
    content = models["plain"]
    ledger = Ledger.from_json(ledger_of(content))
    for part, name, value in (
        ("learner_model_param", "num_feature", "5"),
        ("objective", "name", "reg:squarederror"),
    ):
        changed = json.loads(json.dumps(content))
        changed["learner"][part][name] = value
        assert "differs from the model" in contradictions(ledger, SavedModel(changed))[0]


@pytest.mark.parametrize(
    ("change", "verdict", "detail"),
    [
        ("a million times the noise", "failed", "`sigma2` is "),
        ("no sensitivity", "unknown", "The sensitivity of"),
    ],
)
def test_a_file_that_contradicts_itself_fails(models, tmp_path, change, verdict, detail):
    content = json.loads(json.dumps(models["plain"]))
    record = ledger_of(content)
    CHANGES[change](record["trainings"][0])
    content["learner"]["attributes"]["dp_ledger"] = ledger.dump_checksummed(record)
    path = tmp_path / "model.json"
    path.write_text(as_xgboost_writes(content), encoding="utf-8")
    contradicted = xgb_dp.verify(path)
    assert contradicted.verdict == verdict
    [check] = [check for check in contradicted.checks if not check.passed]
    assert check.name in ("settings", "ledger") and detail in check.detail


def test_another_machine_may_round_otherwise(models):
    record = ledger_of(models["plain"])
    field("sigma2", lambda v: v + v // 1000)(record["trainings"][0])
    assert contradictions(Ledger.from_json(record), SavedModel(models["plain"])) == []


def test_evaluations_are_no_part_of_the_calibration():
    data = xgb.DMatrix(*arrays())
    model = xgb.train(PARAMS, data, 2)
    twin = xgb_dp.evaluate(model, data, epsilon=0.5, delta=1e-6).calibrated(model)
    ledger = xgb_dp.privacy_report(twin).record
    assert len(ledger.trainings[0].releases) == 2
    assert contradictions(ledger, SavedModel.from_booster(twin)) == []


def test_every_recorded_parameter_is_read():
    """Whatever decides on noise is in the record, or in the few values beside it."""
    record = xgb_dp.privacy_report(trained("plain")).record.trainings[0]
    s = consistency.settings_of_record(record.public, record.target, {})
    for name, value in record.hyperparameters.items():
        if name not in ("rounds", "interaction_constraints", "monotone_constraints"):
            known = name if name in consistency.PARAMETERS else f"dp_{name}"
            assert s[known] == value, name


def test_numbers_of_the_model_are_those_of_its_ledger(models):
    """The ledger names every tree, and nothing else of a file: these follow from its settings."""
    several = xgb.train(
        {**PARAMS, "objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2},
        xgb.DMatrix(arrays()[0], np.arange(300) % 3), 2,
    )  # fmt: skip
    contents = {**models, "several": json.loads(several.save_raw("json"))}

    def parallel(learner: dict[str, Any]) -> None:
        model = learner["gradient_booster"]["model"]["gbtree_model_param"]
        model["num_parallel_tree"] = "1" if model["num_parallel_tree"] != "1" else "2"

    def loss(value: dict[str, str]) -> Callable[[dict[str, Any]], None]:
        return lambda learner: learner["objective"].update(reg_loss_param=value)

    weight, no_weight = loss({"scale_pos_weight": "2"}), loss({})
    edits = {
        "plain": (weight, no_weight, parallel),
        "continued": (weight, parallel),
        "several": (lambda m: m["gradient_booster"]["model"]["tree_info"].reverse(), parallel),
    }
    for name, changes in edits.items():
        content = contents[name]
        ledger = Ledger.from_json(ledger_of(content))
        assert not contradictions(ledger, SavedModel(content))
        for change in changes:
            changed = json.loads(json.dumps(content))
            change(changed["learner"])
            assert contradictions(ledger, SavedModel(changed)), (name, change)


@pytest.mark.parametrize(
    ("objective", "name", "value", "other"),
    [
        ("reg:quantileerror", "quantile_alpha", [0.1, 0.5], "[2E-1,5E-1]"),
        ("survival:aft", "aft_loss_distribution", "normal", "logistic"),
        ("reg:tweedie", "tweedie_variance_power", 1.3, "1.4"),
    ],
)
def test_parameters_of_objectives_are_covered(objective, name, value, other, tmp_path):
    X, _ = arrays()
    data = xgb.DMatrix(X)
    times = 1.0 + np.arange(len(X)) % 7
    for side in ("label", "label_lower_bound", "label_upper_bound"):
        if (side == "label") != (objective == "survival:aft"):
            data.set_float_info(side, times)
    params = {**PARAMS, "objective": objective, name: value, "dp_target_bounds": (0.5, 10)}
    model, path = xgb.train(params, data, 2), tmp_path / "model.json"
    content = json.loads(model.save_raw("json"))
    for stored, verdict in ((None, "passed"), (other, "failed"), ("SECRET", "failed")):
        for part in content["learner"]["objective"].values():
            if stored and isinstance(part, dict) and name in part:
                part[name] = stored
        path.write_text(as_xgboost_writes(content), encoding="utf-8")
        assert xgb_dp.verify(path).verdict == verdict, stored


def test_parameters_are_compared_as_floats_of_32_bits(tmp_path):
    """Also where six digits of the double and of the float differ; no number is too long."""
    params = {**PARAMS, "objective": "binary:logistic", "scale_pos_weight": 8.135135135135135}
    model, path = xgb.train(params, xgb.DMatrix(*arrays()), 2), tmp_path / "model.json"
    content = json.loads(model.save_raw("json"))
    for stored, verdict in ((None, "passed"), ("1" + "0" * 400, "failed"), ("8.1352", "failed")):
        if stored:
            content["learner"]["objective"]["reg_loss_param"]["scale_pos_weight"] = stored
        path.write_text(as_xgboost_writes(content), encoding="utf-8")
        assert xgb_dp.verify(path).verdict == verdict, stored


@pytest.mark.parametrize(("name", "sound"), [("candidate_levels", True), ("max_depth", False)])
def test_a_parameter_that_a_ledger_does_not_name_was_unset(models, name, sound):
    """A version that did not know it has written the ledger, or it is left out on purpose."""
    content = json.loads(json.dumps(models["plain"]))
    record = ledger_of(content)
    del record["trainings"][0]["public"]["hyperparameters"][name]
    faults = contradictions(Ledger.from_json(record), SavedModel(content))
    assert (not faults) == sound
