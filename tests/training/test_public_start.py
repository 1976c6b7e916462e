"""A public model under private trees: what it costs, how it is named, and what is refused."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import LedgerError, PrivacyError, PrivacyParameterError, PrivacyRefusal
from xgb_dp.record import ledger as ledgers
from xgb_dp.record.ledger_model import Ledger

from ..conftest import OBJECTIVE, arrays
from ..models import training

KINDS = ["binary", "regression", "multiclass"]


def stock(kind: str = "binary", rounds: int = 3, **more: Any) -> xgb.Booster:
    """A stock model of other rows than the private ones."""
    plain = {k: v for k, v in OBJECTIVE[kind].items() if not k.startswith("dp_")}
    X, y = arrays(kind, 500)
    return xgb.train({**plain, "max_depth": 2, "nthread": 1} | more, xgb.DMatrix(X[300:], y[300:]),
                     rounds)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_private_trees_are_added_to_public_ones(params, matrix, kind, tmp_path):
    start = stock(kind)
    model = xgb.train(params(kind, dp_public_model=True), matrix(kind), 4, xgb_model=start)
    assert model.num_boosted_rounds() == 7
    data = matrix(kind)
    np.testing.assert_array_equal(
        model.predict(data, output_margin=True, iteration_range=(0, 3)),
        start.predict(data, output_margin=True),
    )
    for name in ("model.json", "model.ubj"):
        model.save_model(tmp_path / name)
        report = xgb_dp.privacy_report(tmp_path / name)
        assert report.private
        assert 0.99 < report.epsilon <= 1.0
        record = training(tmp_path / name)
        assert (record["rounds"], record["start"]["rounds"]) == (4, 3)
        assert "intercept" not in {e["release"] for e in record["events"]}


def test_the_start_recentres_by_itself(params):
    """A start of other rows, where positives are rarer, has the mean of the private rows after."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    noise = rng.normal(size=6000)
    there = (X[:, 0] + noise > 1.0).astype(int)
    here = (X[:, 0] + noise > -1.0).astype(int)
    start = xgb.train({"objective": "binary:logistic", "max_depth": 2, "nthread": 1},
                      xgb.DMatrix(X[:1000], there[:1000]), 20)  # fmt: skip
    private, truth = xgb.DMatrix(X[1000:], here[1000:]), here[1000:].mean()
    model = xgb.train(params(dp_public_model=True), private, 20, xgb_model=start)
    assert abs(start.predict(private).mean() - truth) > 0.3
    assert abs(model.predict(private).mean() - truth) < 0.03


def test_reports_name_the_start(params, matrix, tmp_path):
    start = stock()
    model = xgb.train(params(dp_public_model=True), matrix(), 2, xgb_model=start)
    path = tmp_path / "model.json"
    model.save_model(path)
    text = xgb_dp.privacy_report(model).statement()
    start_record = training(model)["start"]
    assert "public model of 3 rounds" in text
    assert start_record["digest"][:16] in text
    assert "the model that training started from" in text
    assert start_record["digest"] in xgb_dp.model_card(model)
    verified = xgb_dp.verify(path)
    assert verified.verdict == "passed"
    assert verified.claim is not None
    assert verified.claim["public_start"] == {
        "digest": start_record["digest"], "rounds": 3, "trees": 3
    }  # fmt: skip
    again = xgb.train(params(dp_public_model=True), matrix(), 2, xgb_model=bytearray(
        start.save_raw("ubj")))  # fmt: skip
    assert training(again)["start"] == start_record


def test_continued_and_sliced(params, matrix):
    first = xgb.train(params(dp_public_model=True), matrix(), 3, xgb_model=stock())
    both = xgb.train(params(), matrix(), 2, xgb_model=first)
    report = xgb_dp.privacy_report(both)
    assert both.num_boosted_rounds() == 8
    assert 1.0 < report.epsilon < 2.0
    assert "2 steps" in report.statement()
    for part in (both[:2], both[2:7], both[4:]):
        assert xgb_dp.privacy_report(part).epsilon == report.epsilon
    again = xgb.train(params(), matrix(), 2, xgb_model=both[3:])
    assert xgb_dp.privacy_report(again).epsilon > report.epsilon


def test_calibrated_models_keep_the_start(params, matrix):
    model = xgb.train(params(dp_public_model=True), matrix(), 3, xgb_model=stock())
    X, y = arrays(n=900)
    judged = xgb_dp.evaluate(model, xgb.DMatrix(X[300:], y[300:]), epsilon=1.0, delta=1e-6)
    better = judged.calibrated(model)
    assert xgb_dp.privacy_report(better).private
    start = training(better)["start"]
    assert start["digest"] == training(model)["start"]["digest"]
    assert start["trees"] == ledgers.tree_names(better)[:3]


def test_other_trees_in_the_place_of_the_start(params, matrix):
    """Whoever swaps the public trees for exact ones, or adds some, loses the guarantee."""
    model = xgb.train(params(dp_public_model=True), matrix(), 3, xgb_model=stock())
    exact = xgb.train({"objective": "binary:logistic", "nthread": 1}, matrix(), 6)
    exact.set_attr(**model.attributes())
    with pytest.raises(LedgerError, match="does not account"):
        xgb_dp.privacy_report(exact)
    record = json.loads(model.attr("dp_ledger"))
    del record["digest"], record["trainings"][0]["start"]
    ledgers.store(model, Ledger.from_json(record))
    with pytest.raises(LedgerError, match="does not account"):
        xgb_dp.privacy_report(model)


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 2}, {"rounds": 0}, {"trees": []}, {"digest": "1"}, {"trees": ["x", "y", "z"]},
        {"more": 1},
    ],
)  # fmt: skip
def test_a_damaged_start(params, matrix, change):
    model = xgb.train(params(dp_public_model=True), matrix(), 1, xgb_model=stock())
    record = json.loads(model.attr("dp_ledger"))
    del record["digest"]
    record["trainings"][0]["start"] |= change
    with pytest.raises(LedgerError, match="public start"):
        Ledger.from_json(record)


def test_a_start_after_another_training(params, matrix):
    model = xgb.train(params(dp_public_model=True), matrix(), 1, xgb_model=stock())
    record = json.loads(model.attr("dp_ledger"))
    del record["digest"]
    record["trainings"] += [record["trainings"][0] | {"id": "0" * 32}]
    with pytest.raises(LedgerError, match="after another training"):
        Ledger.from_json(record)


def refused(params: dict[str, Any], d: xgb.DMatrix, model: Any, match: str,
            kind: type[PrivacyError] = PrivacyParameterError) -> None:  # fmt: skip
    """It raises before anything is charged, and so before anything is released."""
    with TemporaryDirectory() as folder:
        budget = xgb_dp.Budget(Path(folder) / "budget.json", epsilon=5.0, delta=1e-3)
        with pytest.raises(kind, match=match):
            budget.train(params, d, 2, xgb_model=model)
        assert not budget.entries


def test_what_is_no_start(params, matrix):
    config = params(dp_public_model=True)
    narrow = xgb.train({"objective": "binary:logistic"}, xgb.DMatrix(np.eye(4)[:, :3], [0, 1] * 2),
                       2)  # fmt: skip
    odd = json.loads(stock().save_raw("json"))
    odd["learner"]["gradient_booster"]["model"]["trees"][0]["split_conditions"][-1] = float("inf")
    for model, match in (
        (stock("regression"), "objective is reg:squarederror"),
        (stock(objective="binary:logitraw"), "objective is binary:logitraw"),
        (narrow, "3 columns"),
        (stock(rounds=0), "no trees"),
        (stock(num_parallel_tree=2), "num_parallel_tree=2"),
        (stock(booster="gblinear"), "gbtree"),
        (stock(booster="dart", rate_drop=0.5, one_drop=True), "not gbtree|gbtree with dropout"),
        (b"no model", "cannot be read"),
    ):
        refused(config, matrix(), model, match)
    other = stock("multiclass", num_class=4)
    refused(params("multiclass", dp_public_model=True), matrix("multiclass"), other, "4 classes")
    refused(config, matrix(), None, "there is no `xgb_model`")
    private = xgb.train(params(), matrix(), 2)
    refused(config, matrix(), private, "carries a privacy ledger", PrivacyRefusal)
    refused(params(), matrix(), stock(), "dp_public_model", PrivacyRefusal)
    refused(config | {"base_score": 0.5}, matrix(), stock(), "base_score")


def test_columns_of_the_start(params):
    frame = pd.DataFrame(arrays()[0][:, :2], columns=["a", "b"])
    y = arrays()[1]
    plain = {"objective": "binary:logistic", "nthread": 1}
    start = xgb.train(plain, xgb.DMatrix(frame.astype(float), y), 2)
    config = params(dp_public_model=True)
    xgb.train(config, xgb.DMatrix(frame, y), 2, xgb_model=start)
    nameless = xgb.train(plain, xgb.DMatrix(frame.to_numpy(), y), 2)
    model = xgb.train(config, xgb.DMatrix(frame, y), 2, xgb_model=nameless)
    assert model.feature_names == ["a", "b"]
    for other in (frame[["b", "a"]], frame.rename(columns={"a": "c"})):
        refused(config, xgb.DMatrix(other, y), start, "different names")
    refused(config, xgb.DMatrix(frame.to_numpy(), y), start, "different names")


def test_categories_of_a_model_that_is_continued(params):
    y = np.arange(300) % 2

    def data(names: str) -> xgb.DMatrix:
        cells = pd.Categorical(list("abc") * 100, categories=list(names))
        return xgb.DMatrix(pd.DataFrame({"x": y * 1.0, "c": cells}), y, enable_categorical=True)

    plain = {"objective": "binary:logistic", "nthread": 1, "tree_method": "hist"}
    start = xgb.train(plain, data("abc"), 2)
    config = params(dp_public_model=True, dp_categories={"c": list("abc")})
    model = xgb.train(config, data("abc"), 2, xgb_model=start)
    assert model.feature_types == ["float", "c"]
    private = xgb.train(params(dp_categories={"c": list("abc")}), data("abc"), 2)
    other = params(dp_categories={"c": list("cab")})
    refused(other | {"dp_public_model": True}, data("cab"), start, "categories of column 'c'")
    refused(other, data("cab"), private, "categories of column 'c'")
    numbers = xgb.DMatrix(np.c_[y, y], y)
    other = xgb.train(plain, xgb.DMatrix(np.c_[y, y], y, feature_types=["q", "c"],
                                         enable_categorical=True), 1)  # fmt: skip
    refused(params(dp_public_model=True), numbers, other, "categorical")


def test_what_early_stopping_left_is_dropped(params, matrix):
    """XGBoost's estimators would otherwise predict with the public rounds alone."""
    start = stock()
    start.set_attr(best_iteration="1", best_score="0.3", note="2024")
    model = xgb.train(params(dp_public_model=True), matrix(), 2, xgb_model=start)
    assert set(model.attributes()) == {"note", "dp_ledger"}
    assert start.attr("best_iteration") == "1"


@pytest.mark.parametrize("kind", KINDS)
def test_estimators(kind):
    X, y = arrays(kind, 500)
    named: dict[str, Any] = {"classes": 2 if kind == "binary" else 3}
    public: type[xgb.XGBModel] = xgb.XGBClassifier
    private: Any = xgb_dp.DPXGBClassifier
    if kind == "regression":
        named, public, private = {"target_bounds": (-3, 3)}, xgb.XGBRegressor, (
            xgb_dp.DPXGBRegressor
        )  # fmt: skip
    start = public(n_estimators=3, max_depth=2).fit(X[300:], y[300:])
    model = private(epsilon=1.0, delta=1e-6, n_estimators=4, public_model=True, **named)
    model.fit(X[:300], y[:300], xgb_model=start)
    assert model.get_booster().num_boosted_rounds() == 7
    assert model.privacy_report_.epsilon <= 1.0
    assert model.predict(X).shape == (500,)


def test_on_the_command_line(tmp_path, monkeypatch):
    pytest.importorskip("click")
    from ..cli.calls import fails, run

    monkeypatch.chdir(tmp_path)
    X, y = arrays()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y.astype(int))
    frame.to_csv("rows.csv", index=False)
    features = xgb.DMatrix(frame[list("abcd")], y)
    xgb.train({"objective": "binary:logistic"}, features, 3).save_model("public.json")
    spent = ["--epsilon", "1", "--delta", "1e-6", "--rounds", "3"]
    words = ["train", "rows.csv", "--target", "y", "--classes", "0,1", *spent]
    run(*words, "--public-start", "public.json")
    assert training("model.json")["start"]["rounds"] == 3
    run(*words, "--continue", "model.json", "--model", "longer.json")
    assert len(xgb_dp.privacy_report("longer.json").ledger["trainings"]) == 2
    both = ["--continue", "model.json", "--public-start", "public.json", "--model", "c.json"]
    assert "not both" in fails(*words, *both)
    assert "dp_public_model" in fails(*words, "--continue", "public.json", "--model", "d.json")


def test_quantiles(params, matrix):
    """Several outputs of a regression: the same levels, or no start."""
    plain = {"objective": "reg:quantileerror", "quantile_alpha": [0.25, 0.75], "max_depth": 2}
    X, y = arrays("regression", 500)
    start = xgb.train(plain, xgb.DMatrix(X[300:], y[300:]), 3)
    config = params("regression", dp_public_model=True) | plain
    model = xgb.train(config, matrix("regression"), 2, xgb_model=start)
    assert model.num_boosted_rounds() == 5
    assert model.predict(matrix("regression")).shape == (300, 2)
    assert xgb_dp.privacy_report(model).epsilon <= 1.0
    d = matrix("regression")
    refused(config | {"quantile_alpha": [0.25, 0.5]}, d, start, "`quantile_alpha` differs")
    refused(config | {"quantile_alpha": 0.25}, d, start, "2 targets, but the training has 1")


def test_parameters_of_the_objective(params, matrix):
    """Amounts and times: the same power, distribution and scale, or no start."""
    X, y = arrays("regression", 500)
    for plain, other in (
        ({"objective": "reg:tweedie", "tweedie_variance_power": 1.3}, 1.5),
        ({"objective": "count:poisson"}, None),
    ):
        config = params("regression", dp_public_model=True) | plain | {"dp_target_bounds": (0, 3)}
        start = xgb.train(plain, xgb.DMatrix(X[300:], np.abs(y[300:])), 3)
        d = xgb.DMatrix(X[:300], np.abs(y[:300]))
        assert xgb.train(config, d, 2, xgb_model=start).num_boosted_rounds() == 5
        if other is not None:
            refused(config | {"tweedie_variance_power": other}, d, start, "tweedie_variance_power")
