"""A model file has no place for anything that its ledger does not bind."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.models import as_xgboost_writes
from xgb_dp.errors import LedgerError
from xgb_dp.record import ledger
from xgb_dp.record.content import attach

Content = dict[str, Any]


PARAMS = {
    "tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 2.0, "dp_delta": 1e-6,
    "max_depth": 2, "nthread": 1, "dp_categories": {"kind": ["x", "é", "z"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def d() -> xgb.DMatrix:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "größe"])
    X["kind"] = pd.Categorical.from_codes(rng.integers(0, 3, 600), ["x", "é", "z"])
    return xgb.DMatrix(X, (X["a"] > 0).astype(int), enable_categorical=True, nthread=1)


@pytest.fixture(scope="module")
def trained(d) -> xgb.Booster:
    return xgb.train(PARAMS, d, 3)


@pytest.fixture(scope="module")
def judged(trained, d) -> Any:
    return xgb_dp.evaluate(trained, d, epsilon=1.0, delta=1e-7)


@pytest.fixture(scope="module")
def model(trained, judged) -> xgb.Booster:
    """A model with names, categories and a calibration, and text that is not ASCII."""
    calibrated = judged.calibrated(trained)
    attach(calibrated, dp_schema=json.dumps({"columns": ["größe"]}))
    return calibrated


def in_ledger(change: Callable[[Content], Any]) -> Callable[[Content], Any]:
    """The same change in the ledger, whose own digest is made anew."""

    def apply(content: Content) -> None:
        attributes = content["learner"]["attributes"]
        record = ledger.load_checksummed(attributes["dp_ledger"])
        change(record)
        attributes["dp_ledger"] = ledger.dump_checksummed(record)

    return apply


def trees(content: Content) -> Content:
    return content["learner"]["gradient_booster"]["model"]


def reorder(grown: list[Content]) -> None:
    """Exchange two trees, each of which gets the number of its new place."""
    grown[0], grown[1] = grown[1] | {"id": 0}, grown[0] | {"id": 1}


def put(place: str, value: Any) -> Callable[[Content], None]:
    """Put a value in one place, which may be new."""

    def apply(content: Content) -> None:
        *outer, last = place.split(".")
        part: Any = content
        for name in outer:
            part = part[int(name)] if isinstance(part, list) else part.setdefault(name, {})
        part[int(last) if isinstance(part, list) else last] = value

    return apply


TREES = "learner.gradient_booster.model"
CHANGES: dict[str, Callable[[Content], Any]] = {
    "column names exchanged": lambda c: c["learner"]["feature_names"].reverse(),
    "names of categories": lambda c: trees(c)["cats"]["enc"][2]["values"].reverse(),
    "intercept": put("learner.learner_model_param.base_score", "[2.5E-1]"),
    "schema": put("learner.attributes.dp_schema", "exact mean 5.77"),
    "order of trees": lambda c: reorder(trees(c)["trees"]),
    "white space in the ledger": lambda c: c["learner"]["attributes"].__setitem__(
        "dp_ledger", c["learner"]["attributes"]["dp_ledger"].replace(",", ", ")
    ),
    **{
        place: put(place, value)
        for place, value in (
            ("learner.attributes.scikit_learn", "mean 5.77"),
            ("learner.attributes.best_score", "0.8123"),
            ("learner.rows", [1, 2, 3]),
            ("learner.objective.17_param", {"a": "54321.77"}),
            ("learner.objective.reg_loss_param.note", "SECRET"),
            ("learner.objective.x_param", "SECRET"),
            ("learner.learner_model_param.boost_from_average", "SECRET"),
            ("learner.feature_names", ["a", "größe", "kind", "SECRET"]),
            ("learner.feature_types", ["SECRET", "float", "c"]),
            ("learner.gradient_booster.name", "SECRET"),
            (f"{TREES}.gbtree_model_param.num_trees", "7"),
            (f"{TREES}.gbtree_model_param.num_parallel_tree", "3"),
            (f"{TREES}.iteration_indptr.1", 2),
            (f"{TREES}.trees.0.id", "SECRET"),
            (f"{TREES}.cats.note", "SECRET"),
            ("version", [3, 2, 0, "SECRET"]),
        )
    },
    "a further plan": in_ledger(lambda r: r["trainings"][0]["plans"].append("5" * 64)),
    "further mechanisms": in_ledger(
        lambda r: r["trainings"][0]["mechanisms"].append(r["trainings"][0]["mechanisms"][0])
    ),
    "no digest of the rest": in_ledger(lambda r: r.pop("content")),
    **{
        f"{place} of the ledger": in_ledger(put(place, value))
        for place, value in (
            ("zz", 1),
            ("trainings.0.zz", 1),
            ("trainings.0.public.exact mean", "5.77 " * 1000),
            ("trainings.0.public.hyperparameters.mean", [5.77]),
            ("trainings.0.public.evaluations.0.mean", 5.77),
            ("trainings.0.mechanisms.0.rounds", 577),
            *(
                (f"trainings.0.mechanisms.0.mechanisms.{name}", value)
                for name, value in (
                    ("leaves.mechanism", "mean 5.77"), ("leaves.depth", 9), ("leaves.draws", 5),
                    ("splits.depth", 9), ("splits.score_clip", 5.77), ("splits.selections", 577),
                )
            ),
        )
    },
}  # fmt: skip


def written(content: Content, path: Path) -> Path:
    """A file as XGBoost writes it, of this content."""
    path.write_text(as_xgboost_writes(content), encoding="utf-8")
    return path


def test_the_model_itself_passes(model, tmp_path):
    for ending in ("json", "ubj"):
        model.save_model(tmp_path / f"model.{ending}")
        answer = xgb_dp.verify(tmp_path / f"model.{ending}")
        assert answer.verdict == "passed", str(answer)
    again = xgb.Booster(model_file=tmp_path / "model.ubj")
    assert (
        xgb_dp.verify(written(json.loads(again.save_raw("json")), tmp_path / "a.json")).exit_code
        == 0
    )
    assert xgb_dp.verify(model[0:2]).verdict == "passed"


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_does_not_pass(model, tmp_path, name):
    content = json.loads(model.save_raw("json"))
    CHANGES[name](content)
    assert xgb_dp.verify(written(content, tmp_path / "m.json")).verdict != "passed"


STRINGS: dict[str, Callable[[str], str]] = {
    "white space": lambda text: text.replace(",", "," + " " * 30, 100),
    "a line": lambda text: text + "\n",
    "digits": lambda text: text.replace("E-1", "0E-1", 1),
    "more digits than a float has": lambda text: text.replace("E-1", "0000000001E-1", 1),
    "an exponent": lambda text: text.replace("E-1", "E-01", 1),
    "order of keys": lambda text: text.replace('"num_class":"0",', "", 1).replace(
        '"num_target":"1"', '"num_target":"1","num_class":"0"', 1
    ),
    "an escape that needs none": lambda text: text.replace('"gbtree"', '"gbtr\\u0065e"', 1),
}  # fmt: skip


@pytest.mark.parametrize("name", STRINGS)
def test_only_the_form_of_xgboost_passes(model, tmp_path, name):
    text = bytes(model.save_raw("json")).decode()
    changed = STRINGS[name](text)
    assert changed != text
    (tmp_path / "m.json").write_text(changed, encoding="utf-8")
    assert xgb_dp.verify(tmp_path / "m.json").verdict != "passed"


BINARY: dict[str, tuple[bytes, bytes]] = {
    "length of a text": (b"L" + bytes(7) + b"\6gbtree", b"U\6gbtree"),
    "type of a number": (
        b"tree_info[#L" + bytes(7) + b"\3i\0",
        b"tree_info[#L" + bytes(7) + b"\3I\0\0",
    ),
    "type of an array": (b"[$l#L" + bytes(8), b"[$L#L" + bytes(8)),
}


@pytest.mark.parametrize("name", BINARY)
def test_only_the_binary_form_of_xgboost_passes(trained, tmp_path, name):
    before, after = BINARY[name]
    data = bytes(trained.save_raw("ubj"))
    assert before in data
    (tmp_path / "m.ubj").write_bytes(data.replace(before, after, 1))
    answer = xgb_dp.verify(tmp_path / "m.ubj")
    assert answer.verdict != "passed", str(answer)


def test_keys_in_another_order_do_not_pass(trained, tmp_path):
    data = bytes(trained.save_raw("ubj"))
    start, second = (
        data.index(b"L" + bytes(7) + b"\7version"),
        data.index(b"L" + bytes(7) + b"\7learner"),
    )
    (tmp_path / "m.ubj").write_bytes(data[:second] + data[start:-1] + data[second:start] + b"}")
    answer = xgb_dp.verify(tmp_path / "m.ubj")
    assert answer.verdict == "failed" and "order" in str(answer)


DOORS: dict[str, Callable[[xgb.Booster, Any, xgb.DMatrix], object]] = {
    "continued": lambda model, judged, d: xgb.train(PARAMS, d, 1, xgb_model=model),
    "calibrated": lambda model, judged, d: judged.calibrated(model),
    "attached": lambda model, judged, d: attach(model, dp_schema="{}"),
}


@pytest.mark.parametrize("operation", DOORS)
@pytest.mark.parametrize("name", ["intercept", "names of categories", "schema"])
def test_no_ledger_is_written_for_a_changed_model(trained, judged, d, operation, name):
    content = json.loads(trained.save_raw("json"))
    CHANGES[name](content)
    changed = xgb.Booster(model_file=bytearray(as_xgboost_writes(content).encode()))
    with pytest.raises(LedgerError, match="changed after its training"):
        DOORS[operation](changed, judged, d)
    DOORS[operation](trained.copy(), judged, d)


def test_an_allowed_attribute_passes(model, tmp_path):
    twin = model.copy()
    twin.set_attr(owner="the hospital")
    twin.save_model(tmp_path / "m.json")
    assert xgb_dp.verify(tmp_path / "m.json").verdict == "failed"
    assert xgb_dp.verify(tmp_path / "m.json", allow=["owner"]).verdict == "passed"
