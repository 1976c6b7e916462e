"""What a look has found goes into training and prediction by itself, and its cost with it."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb
from sklearn.base import clone

import xgb_dp
from tests.callbacks import After
from tests.cli.calls import run
from tests.conftest import private
from xgb_dp import BudgetError, PrivacyParameterError
from xgb_dp.accounting import make_accountant
from xgb_dp.discovery.result import FoundColumn
from xgb_dp.domain.domain import stored_domain
from xgb_dp.training.run import DISCOVERY

N = 3000
TARGET = {"epsilon": 1.0, "delta": 1e-6}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    town = rng.choice(["Rome", "Oslo", "Bern", None], N, p=[0.6, 0.25, 0.1, 0.05])
    town[0] = "SECRET"
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, N).astype(float),
            "town": town,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
            "more": rng.normal(size=N),
            "who": rng.integers(0, 1000, N).astype(str),
        },
        index=np.arange(N)[::-1],
    )


ROWS = table()
LABELS = np.where((ROWS["age"] > 50) | (ROWS["town"] == "Oslo"), "yes", "no")
DISCOVERED = ["age", "town", "joined"]


@pytest.fixture(scope="module")
def discovery() -> xgb_dp.Discovery:
    return xgb_dp.discover(ROWS[DISCOVERED], epsilon=1.0, delta=1e-6)


@pytest.fixture(scope="module")
def fitted(discovery) -> xgb_dp.DPXGBClassifier:
    model = xgb_dp.DPXGBClassifier(
        **TARGET, classes=["no", "yes"], schema=discovery, n_estimators=10
    )
    return model.fit(ROWS.drop(columns="who"), LABELS)


@pytest.mark.parametrize("of", [pd.DataFrame, pl.from_pandas, dict])
def test_a_table_is_read_by_what_was_found(discovery, of):
    read = discovery.apply(of(ROWS[[*DISCOVERED, "more"]]))
    parts = ["joined_days", "joined_month", "joined_weekday", "joined_hour"]
    assert list(read) == ["age", "town", *parts, "more"]
    assert list(read["town"].cat.categories) == ["Rome", "Oslo", "Bern", "other"]
    assert read["town"].iloc[0] == "other" and read["town"].isna().mean() > 0.02
    assert (read["joined_days"] >= 18_000).all()
    assert list(read["age"]) == list(ROWS["age"])


def test_the_label_is_left_out_with_target():
    rows = ROWS[["age", "more"]]
    discovery = xgb_dp.discover(rows, epsilon=1.0, delta=1e-6)
    matrix = xgb.DMatrix(discovery.apply(rows[["age"]]), np.clip(rows["more"], -3, 3))
    squared = private(objective="reg:squarederror", dp_target_bounds=(-3, 3))
    with pytest.raises(PrivacyParameterError, match=r"'more', .*found\.params\(target=\.\.\.\)"):
        xgb.train(squared | discovery.params(use="bounds"), matrix, 2)
    params = discovery.params(target="more", use="bounds")
    assert list(params["dp_feature_bounds"]) == ["age"]
    assert xgb.train(squared | params, matrix, 2).num_boosted_rounds() == 2
    alone = xgb_dp.discover(rows[["more"]], epsilon=1.0, delta=1e-6)
    assert set(alone.params(target="more")) == {"dp_discovered", "dp_target_bounds", "objective"}


def test_nothing_was_found():
    """No category reached its threshold, and the cost remains."""
    rows = {"town": np.array(["Rome", "Oslo"])}
    empty = xgb_dp.discover(rows, {"town": "text"}, epsilon=0.1, delta=1e-6)
    assert list(empty.params()) == ["dp_discovered"]
    assert list(empty.apply({**rows, "more": np.ones(2)})) == ["more"]


def test_the_ledger_has_the_cost(discovery):
    labels = (LABELS == "yes").astype(int)
    matrix = xgb.DMatrix(discovery.apply(ROWS[DISCOVERED]), labels, enable_categorical=True)
    params = private(objective="binary:logistic")
    alone = xgb_dp.privacy_report(xgb.train({**params, **discovery.params(), "dp_discovered": None},
                                            matrix, 10))  # fmt: skip
    whole = xgb_dp.privacy_report(xgb.train({**params, **discovery.params()}, matrix, 10))
    assert alone.epsilon < 1.0 < whole.epsilon
    both = make_accountant("exact", [*alone.record.events, *discovery.events])
    assert whole.epsilon == pytest.approx(both.get_epsilon(1e-6), rel=1e-9)
    assert [release.name for release in whole.record.releases] == ["training 1", "discovery 1"]
    assert "the categories of string columns" in whole.statement()


def test_the_figures_are_for_the_larger_delta(discovery):
    large = xgb_dp.discover(ROWS[["town"]], epsilon=1.0, delta=1e-5)
    model = xgb_dp.DPXGBClassifier(
        epsilon=1.0, delta=1e-7, classes=["no", "yes"], schema=large, n_estimators=3
    ).fit(ROWS[["town"]], LABELS)
    assert model.privacy_report_.delta == 1e-5 and model.privacy_report_.epsilon < 3.0


def test_a_model_that_stops_in_its_training_has_paid(discovery):
    seen = []

    def stop(model):
        seen.append(xgb_dp.privacy_report(model).record.releases[-1].name)
        return True

    labels = (LABELS == "yes").astype(int)
    matrix = xgb.DMatrix(discovery.apply(ROWS[DISCOVERED]), labels, enable_categorical=True)
    params = private(objective="binary:logistic", **discovery.params())
    xgb.train(params, matrix, 3, callbacks=[After(stop)])
    assert seen == [f"{DISCOVERY} 1"]


def test_predictions_read_tables_like_training(fitted, tmp_path):
    strange = ROWS.drop(columns="who").assign(town="Kyoto")
    expected = fitted.predict_proba(strange)
    assert (pickle.loads(pickle.dumps(fitted)).predict_proba(strange) == expected).all()
    fitted.save_model(tmp_path / "m.json")
    loaded = xgb_dp.DPXGBClassifier()
    loaded.load_model(tmp_path / "m.json")
    assert (loaded.predict_proba(strange) == expected).all()
    assert xgb_dp.verify(tmp_path / "m.json").verdict == "passed"
    strange.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "p.csv"
    run("predict", str(tmp_path / "m.json"), str(tmp_path / "rows.csv"), "--out", str(out))
    assert np.allclose(pd.read_csv(out)["probability_yes"], expected[:, 1], atol=1e-6)


def test_an_estimator_stays_one(fitted, discovery):
    again = clone(fitted)
    assert again.schema.columns == discovery.columns and not hasattr(again, "_Booster")
    assert "dp_discovered" in again.get_xgb_params()
    assert stored_domain(fitted.get_booster()).classes == ("no", "yes")


def test_a_schema_file_says_the_same(discovery, tmp_path):
    wide = ROWS.assign(pays=LABELS)
    discovery = xgb_dp.discover(wide[[*DISCOVERED, "pays"]], epsilon=1.0, delta=1e-6)
    discovery.save(tmp_path / "s.yaml", target="pays")
    model = xgb_dp.DPXGBClassifier(**TARGET, schema=tmp_path / "s.yaml", n_estimators=3)
    model.fit(ROWS[DISCOVERED], LABELS)
    assert list(model.classes_) == ["no", "yes"]
    assert model.privacy_report_.record.releases[1].events == discovery.events


def test_declarations_beside_the_schema(discovery):
    rows = ROWS.drop(columns="who").assign(sex="f")
    model = xgb_dp.DPXGBClassifier(
        **TARGET, classes=["no", "yes"], schema=discovery, categories={"sex": ["f", "m"]},
        n_estimators=3,
    )  # fmt: skip
    categories = model.fit(rows, LABELS).get_xgb_params()["dp_categories"]
    assert list(categories["sex"]) == ["f", "m"] and "other" in categories["town"]


def test_what_nobody_has_found_is_dropped(discovery):
    hidden = xgb_dp.Discovery(
        {"town": FoundColumn("text", categories={})},
        None,
        discovery.unit,
        discovery.delta,
        discovery.events,
    )
    assert hidden.schema()["drop"] == ["town"]
    assert list(hidden.apply(ROWS[["age", "town"]])) == ["age"]


def test_persons_and_their_book(tmp_path):
    budget = xgb_dp.Budget(tmp_path / "b.json", epsilon=4.0, delta=1e-5, unit="person")
    discovery = xgb_dp.discover(
        ROWS[["town", "who"]], epsilon=1.0, delta=1e-6, privacy_id="who", budget=budget
    )
    parts = xgb_dp.split((ROWS.drop(columns="joined"), LABELS), privacy_id=ROWS["who"])
    model = xgb_dp.DPXGBClassifier(
        **TARGET, classes=["no", "yes"], schema=discovery, budget=budget, n_estimators=3
    ).fit(parts.train)
    assert model.privacy_report_.unit.column == "who" and budget.missing(model) == []
    assert len(budget.entries) == 2
    judged = xgb_dp.evaluate(model, parts, **TARGET, budget=budget)
    assert judged.cost.parallel and "The exception is the column discovery" in judged.statement()


def fit_select(model, rows, labels):
    return model.fit_select(rows, labels, {"max_depth": [2, 3]})


@pytest.mark.parametrize("way", [xgb_dp.DPXGBClassifier.fit, fit_select])
def test_a_book_holds_the_look_that_a_model_rests_on(discovery, tmp_path, way):
    def fit(budget):
        model = xgb_dp.DPXGBClassifier(
            **TARGET, classes=["no", "yes"], schema=discovery, budget=budget, n_estimators=3
        )
        return way(model, ROWS[DISCOVERED], LABELS)

    path = tmp_path / "b.json"
    budget = xgb_dp.Budget(path, epsilon=4.0, delta=1e-5, selection_epsilon=1.5)
    with pytest.raises(BudgetError, match="column discovery it uses"):
        fit(budget)
    assert budget.entries == []
    late = xgb_dp.Budget(path, charge_earlier=True)
    model = fit(late)
    assert late.entries[0].events == discovery.events
    assert len(late.entries) == 2 and late.missing(model) == []


def test_a_look_for_others_is_refused(discovery):
    with pytest.raises(PrivacyParameterError, match="have different privacy units"):
        xgb_dp.DPXGBClassifier(**TARGET, classes=["no", "yes"], schema=discovery).fit(
            ROWS, LABELS, privacy_id="who"
        )


def test_two_looks_are_refused(discovery):
    other = xgb_dp.discover(ROWS[["town"]], epsilon=1.0, delta=1e-6).params()
    model = xgb_dp.DPXGBClassifier(**TARGET, classes=["no", "yes"], schema=discovery, **other)
    with pytest.raises(PrivacyParameterError, match="different runs of column discovery"):
        model.get_xgb_params()
    with pytest.raises(PrivacyParameterError, match="different column discoveries"):
        xgb_dp.DPXGBClassifier(**TARGET, classes=["no", "yes"], schema=discovery).fit_select(
            ROWS[DISCOVERED], LABELS, [{}, {"dp_discovered": other["dp_discovered"]}]
        )


def test_a_selection_pays_once(discovery):
    model = xgb_dp.DPXGBClassifier(
        **TARGET, classes=["no", "yes"], schema=discovery, n_estimators=3
    )
    model.fit_select(ROWS.drop(columns="who"), LABELS, {"max_depth": [2, 3]})
    training, earlier = model.privacy_report_.record.releases
    assert earlier.events == discovery.events and len(training.events) == 1
    text = json.dumps(training.events[0].to_json())
    assert '"ranges"' not in text and '"categories"' not in text


@pytest.mark.parametrize("given", [3, {}, {"events": [], "delta": 0.1}, {"events": [1]}, "x"])
def test_a_cost_that_is_none(given):
    with pytest.raises(PrivacyParameterError, match="does not describe the releases"):
        xgb.train(private(objective="binary:logistic", dp_discovered=given),
                  xgb.DMatrix(np.ones((5, 1)), np.ones(5)), 2)  # fmt: skip


def test_a_schema_with_keys_of_files(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps({"weight": "w", "columns": {"age": "number"}}))
    with pytest.raises(PrivacyParameterError, match="only the command line supports"):
        xgb_dp.DPXGBClassifier(schema=tmp_path / "s.json").get_xgb_params()
