"""Objectives on the command line: what is declared, which columns they read, what is predicted."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("click")

import xgboost as xgb

import xgb_dp

from .calls import fails, run

SPENT = ["--epsilon", "4", "--delta", "1e-6", "--rounds", "5"]
PRIVATE = {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6}


@pytest.fixture
def claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Policies with exposures, and times with their ends, as the file rows.csv."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    n = 3000
    age, years = rng.uniform(18, 90, n), rng.choice([0.25, 0.5, 1.0], n)
    time = np.exp(2 + 0.02 * age + 0.5 * rng.logistic(size=n)).round(3) + 0.01
    end = rng.uniform(5, 100, n).round(3)
    frame = pd.DataFrame(
        {
            "age": age.round(2),
            "years": years,
            "claims": rng.poisson(years * 0.02 * age),
            "days": np.minimum(time, end),
            "died": (time <= end).astype(int),
            "last": np.where(time <= end, time, np.nan),
        }
    )
    frame.to_csv("rows.csv", index=False)
    return frame


def columns_but(*kept: str) -> list[str]:
    every = ("years", "claims", "days", "died", "last")
    return [word for name in every if name not in kept for word in ("--drop", name)]


COUNTS = ["--target", "claims", "--objective", "count:poisson", "--target-bounds", "0", "10",
          "--exposure", "years=0.1:1", *columns_but("claims", "years")]  # fmt: skip
TIMES = ["--target", "days", "--objective", "survival:aft", "--target-bounds", "0.1", "200"]


def test_counts_with_exposures(claims):
    run("train", "rows.csv", *COUNTS, *SPENT)
    model = xgb.Booster(model_file="model.json")
    assert model.feature_names == ["age"]
    public = xgb_dp.privacy_report(model).ledger["trainings"][0]["public"]
    assert public["objective"] == "count:poisson"
    assert public["exposure_bounds"] == [0.1, 1.0]
    run("predict", "model.json", "rows.csv", "--out", "with.csv")
    run("predict", "model.json", "rows.csv", "--rate", "--out", "rate.csv")
    predicted = pd.read_csv("with.csv")["prediction"] / pd.read_csv("rate.csv")["prediction"]
    assert np.allclose(predicted, claims["years"], rtol=1e-5)
    d = xgb.DMatrix(claims[["age"]], base_margin=np.log(claims["years"]))
    assert np.allclose(pd.read_csv("with.csv")["prediction"], model.predict(d), rtol=1e-5)
    claims.drop(columns="years").to_csv("new.csv", index=False)
    assert "no column 'years'" in fails("predict", "model.json", "new.csv")
    run("predict", "model.json", "new.csv", "--rate", "--out", "new-rate.csv")
    assert Path("new-rate.csv").read_text() == Path("rate.csv").read_text()


SCORES = ["--target", "died", "--classes", "0,1", "--base-margin", "score",
          *columns_but("died")]  # fmt: skip


def test_margins_of_a_public_score(claims, tmp_path):
    """Every command reads their column, and none predicts without it."""
    claims["score"] = ((claims["age"] - 50) / 20).round(3)
    claims.to_csv("rows.csv", index=False)
    run("train", "rows.csv", *SCORES, *SPENT)
    model = xgb.Booster(model_file="model.json")
    assert model.feature_names == ["age"]
    public = xgb_dp.privacy_report(model).ledger["trainings"][0]["public"]
    assert public["hyperparameters"]["base_margin"] is True
    assert '"base_margin": "score"' in model.attr("dp_schema")
    run("predict", "model.json", "rows.csv", "--out", "out.csv")
    d = xgb.DMatrix(claims[["age"]], base_margin=claims["score"])
    assert np.allclose(pd.read_csv("out.csv")["probability_1"], model.predict(d), atol=1e-6)
    said = run("evaluate", "model.json", "rows.csv", "--epsilon", "8", "--delta", "1e-6").output
    assert "AUC" in said or "auc" in said
    claims.drop(columns="score").to_csv("new.csv", index=False)
    for command in ("predict", "evaluate"):
        target = ["--epsilon", "8", "--delta", "1e-6"] if command == "evaluate" else []
        assert "no column 'score'" in fails(command, "model.json", "new.csv", *target)
    assert "requires a model trained with exposures" in fails(
        "predict", "model.json", "new.csv", "--rate"
    )
    Path("bare.yaml").write_text("target: died\nclasses: [0, 1]\ncolumns: {age: number}\n")
    for command, match in (
        ("predict", "schema that names their column"),
        ("evaluate", "no `base_margin`"),
    ):
        target = ["--epsilon", "8", "--delta", "1e-6"] if command == "evaluate" else []
        assert match in fails(command, "model.json", "rows.csv", "--schema", "bare.yaml", *target)
    run("split", "rows.csv", "--train", "a.csv", "--test", "b.csv")
    run("train", "a.csv", *SCORES, *SPENT, "--model", "part.json")
    run("evaluate", "part.json", "b.csv", "--epsilon", "8", "--delta", "1e-6")
    run("select", "rows.csv", *SCORES, *SPENT, "--grid", "max_depth=2", "--model", "best.json")
    run("predict", "best.json", "rows.csv", "--out", "best.csv")


EVENTS = [*TIMES, "--event", "died", *columns_but("days", "died")]


@pytest.mark.parametrize(
    ("column", "given", "says", "cells"),
    [
        ("years", COUNTS, "exposure 'years' of a row", ("0", "", "-1", "inf", "x")),
        ("died", EVENTS, "neither 1 nor 0", ("2", "", "dead")),
        (
            "years",
            [*SCORES[:-2], "--base-margin", "years", *columns_but("died", "years")],
            "base margin 'years' of a row",
            ("", "inf", "x"),
        ),
    ],
    ids=["exposures", "events", "margins"],
)
def test_cells_that_are_none(claims, no_training, column, given, says, cells):
    text = claims.astype(str)
    for cell in cells:
        text.loc[7, column] = cell
        text.to_csv("rows.csv", index=False)
        error = fails("train", "rows.csv", *given, *SPENT)
        assert says in error and "dead" not in error


def test_quantiles_are_columns_in_order(claims):
    given = ["--target", "days", "--quantiles", "0.1,0.5,0.9", "--target-bounds", "0", "200"]
    run("train", "rows.csv", *given, *columns_but("days"), *SPENT, "--epsilon", "0.3")
    run("predict", "model.json", "rows.csv", "--out", "out.csv", "--contributions")
    predicted = pd.read_csv("out.csv")
    names = ["quantile_0.1", "quantile_0.5", "quantile_0.9"]
    assert list(predicted.columns[:3]) == names
    assert (np.diff(predicted[names], axis=1) >= 0).all()
    assert predicted[names].to_numpy().min() >= 0
    assert predicted[names].to_numpy().max() <= 200
    assert list(predicted.columns[3:5]) == ["contribution_quantile_0.1_age",
                                        "contribution_quantile_0.1_bias"]  # fmt: skip
    one = ["--quantiles", "0.5"]
    run("train", "rows.csv", *given[:2], *one, *given[4:], *columns_but("days"), *SPENT, "--force")
    run("predict", "model.json", "rows.csv", "--out", "out.csv", "--force")
    assert list(pd.read_csv("out.csv").columns) == ["prediction"]


def test_several_targets_are_columns(claims):
    """Of a model that the command line has not trained, since it reads one target of a row."""
    both = claims[["days", "claims"]].to_numpy(dtype=float)
    labels = np.stack([claims["claims"] > 0, claims["days"] > 50], axis=1).astype(int)
    claims[["age"]].to_csv("new.csv", index=False)
    for more, targets in (
        ({"dp_target_bounds": [(0, 200), (0, 10)]}, both),
        ({"objective": "binary:logistic"}, labels),  # no class of a row is the likeliest
    ):
        d = xgb.DMatrix(claims[["age"]], targets)
        model = xgb.train(PRIVATE | more, d, 3)
        model.save_model("model.json")
        run("predict", "model.json", "new.csv", "--out", "out.csv", "--contributions", "--force")
        predicted = pd.read_csv("out.csv")
        assert list(predicted.columns) == [
            "target_0", "target_1", "contribution_target_0_age", "contribution_target_0_bias",
            "contribution_target_1_age", "contribution_target_1_bias",
        ]  # fmt: skip
        assert np.allclose(predicted.iloc[:, :2], model.predict(d), rtol=1e-5)


@pytest.mark.parametrize("by", ["event", "target-upper"])
def test_times_and_their_ends(claims, by):
    """Both ways say the same rows, and what is told of them is what the trainer reads."""
    column = {"event": "died", "target-upper": "last"}[by]
    run("train", "rows.csv", *TIMES, f"--{by}", column, *columns_but("days", column), *SPENT)
    run("predict", "model.json", "rows.csv", "--out", "out.csv")
    predicted = pd.read_csv("out.csv")["prediction"]
    assert np.corrcoef(np.log(predicted), claims["age"])[0, 1] > 0.5
    model = xgb.Booster(model_file="model.json")
    assert model.feature_names == ["age"]
    assert np.allclose(predicted, np.clip(model.predict(xgb.DMatrix(claims[["age"]])), 0.1, 200))


SCHEMA = """\
target: claims
objective: count:poisson
target_bounds: [0, 10]
exposure: {column: years, bounds: [0.1, 1]}
columns: {age: number}
"""


def test_in_a_schema_file(claims):
    Path("schema.yaml").write_text(SCHEMA)
    run("train", "rows.csv", "--schema", "schema.yaml", *SPENT)
    saved = xgb.Booster(model_file="model.json").attr("dp_schema")
    assert '"exposure": {"column": "years", "bounds": [0.1, 1.0]}' in saved
    run("calibrate", "--schema", "schema.yaml", "--epsilon", "1", "--delta", "1e-6")
    run("predict", "model.json", "rows.csv", "--out", "out.csv")
    Path("schema.yaml").write_text(SCHEMA.replace("count:poisson", "reg:tweedie"))
    options = ["--objective", "count:poisson", "--force"]
    run("train", "rows.csv", "--schema", "schema.yaml", *options, *SPENT)
    known = xgb_dp.privacy_report(xgb.Booster(model_file="model.json"))
    assert known.ledger["trainings"][0]["public"]["objective"] == "count:poisson"


WRONG = {
    "exposure: years": "`exposure` must be {column: NAME",
    "exposure: {column: years}": "column and bounds",
    "exposure: {column: [years], bounds: [0.1, 1]}": "name of a column",
    "exposure: {column: years, bounds: [1, 0.1]}": "finite ends and low < high",
    "base_margin: [years]": "name of a column",
    "base_margin: last": "`exposure` or `base_margin`",
    "objective: [count:poisson]": "a name such as",
    "quantiles: [a]": "`quantiles` must be a finite number",
    "event: died": "apply only to the objective survival:aft",
    "params: {objective: reg:gamma}": "has two different values",
    "quantiles: [0.5]": "reg:quantileerror",
}


@pytest.mark.parametrize("line", WRONG)
def test_schemas_that_are_wrong(claims, no_training, line):
    key = line.split(":")[0]
    kept = [text for text in SCHEMA.splitlines() if not text.startswith(f"{key}:")]
    Path("schema.yaml").write_text("\n".join([*kept, line]))
    assert WRONG[line] in fails("train", "rows.csv", "--schema", "schema.yaml", *SPENT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*TIMES, *columns_but("days")], "needs the end of each time"),
        ([*TIMES, "--event", "died", "--target-upper", "last"], "`target_upper`"),
        ([*COUNTS[:-2], "--event", "years"], "survival:aft"),
        ([*COUNTS, "--param", "objective=reg:gamma"], "has two different values"),
        ([*COUNTS[:4], "--exposure", "years"], "--exposure must be"),
        (["--target", "days", "--quantiles", "a", "--target-bounds", "0", "9"], "--quantiles"),
        ([*TIMES[:2], "--objective", "rank:ndcg", *TIMES[4:]], "rank:ndcg"),
    ],
    ids=range(7),
)
def test_options_that_are_wrong(claims, no_training, options, message):
    assert message in fails("train", "rows.csv", *options, *SPENT)


def test_shares_bring_their_range(claims):
    claims.assign(share=claims["claims"] / (1 + claims["claims"])).to_csv("rows.csv", index=False)
    given = ["--target", "share", "--objective", "reg:logistic", *columns_but()]
    run("train", "rows.csv", *given, *SPENT)
    run("predict", "model.json", "rows.csv", "--out", "out.csv")
    assert pd.read_csv("out.csv")["prediction"].between(0, 1).all()


def test_private_rows_are_no_public_ones(claims, no_training):
    """The file of the training rows, under any name, and parts of a division."""
    Path("other.csv").symlink_to("rows.csv")
    Path("third.csv").hardlink_to("rows.csv")
    run("split", "rows.csv", "--train", "part.csv", "--test", "holdout.csv")
    for name in ("rows.csv", "other.csv", "third.csv", "part.csv", "holdout.csv"):
        shown = fails("train", "rows.csv", *COUNTS, "--public-data", name, *SPENT)
        assert "so it is private" in shown


def test_public_rows_need_no_ids(claims):
    """Nor columns that are left out. Their quantiles are the cuts; no candidates are released."""
    claims.assign(who=np.arange(len(claims)) // 2).to_csv("rows.csv", index=False)
    sample = claims.sample(300, random_state=1)
    sample.assign(who=7).to_csv("all.csv", index=False)
    sample[["age", "years", "claims"]].to_csv("few.csv", index=False)
    for name in ("all.csv", "few.csv"):
        run("train", "rows.csv", *COUNTS, "--privacy-id", "who", "--public-data", name, *SPENT,
            "--force")  # fmt: skip
        model = xgb.Booster(model_file="model.json")
        assert model.feature_names == ["age"]
        record = xgb_dp.privacy_report(model).ledger["trainings"][0]
        assert record["public"]["public_cuts"] == ["age"]
        assert "candidates" not in {event["release"] for event in record["events"]}


def test_models_are_judged(claims):
    """Counts with their exposures, and times with their ends, of files read as in training.

    With little noise: at epsilon 4 the model alone moves the ratio by 0.087, here by 0.004.
    """
    little = ["--epsilon", "100", "--delta", "1e-6", "--force"]
    evaluate = ["evaluate", "model.json", "rows.csv", *little, "--json", "out.json"]
    run("train", "rows.csv", *COUNTS, *little, "--rounds", "5")
    run(*evaluate)
    figures = json.loads(Path("out.json").read_text())["figures"]["all"]
    assert {"clipped deviance", "clipped gini", "labels beyond"} <= set(figures)
    ratio = figures["clipped mean ratio"]
    assert ratio["low"] < 1 < ratio["high"]
    assert 0.95 < ratio["value"] < 1.05
    run("train", "rows.csv", *TIMES, "--event", "died", *columns_but("days", "died"), *little,
        "--rounds", "5")  # fmt: skip
    run(*evaluate)
    figures = json.loads(Path("out.json").read_text())["figures"]["all"]
    assert figures["clipped concordance"]["high"] > 0.6
    died = claims["died"].mean()
    assert abs(figures["observed"]["value"] - died) < 4.5 * figures["observed"]["noise"] + 0.01
