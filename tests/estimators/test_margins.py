"""Weights and margins of rows have the same names everywhere, and predictions need the margins."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.cli.calls import invoke
from xgb_dp import DPXGBClassifier, DPXGBRegressor, PrivacyParameterError, RowDomainError

N = 2000
TARGET = {"epsilon": 64.0, "delta": 1e-6}  # hardly any noise in the mean
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2)).astype(np.float32)
YEARS = RNG.choice([0.2, 1.0], N)
CLAIMS = RNG.poisson(2.0 * np.exp(0.3 * X[:, 0]) * YEARS).astype(float)
LOGS = np.log(YEARS)
SCORE = X[:, 1] * 2.0
BUYS = (RNG.random(N) < 1.0 / (1.0 + np.exp(-SCORE - X[:, 0]))).astype(int)
WEIGHTS = RNG.choice([0.5, 1.0], N)
OTHERS = {"n_estimators": 10, "max_depth": 2, "n_jobs": 1}


def counts() -> DPXGBRegressor:
    bounds = {"target_bounds": (0, 20), "dp_exposure_bounds": (0.1, 1.0)}
    return DPXGBRegressor(objective="count:poisson", **bounds, **TARGET, **OTHERS)


def buyers() -> DPXGBClassifier:
    return DPXGBClassifier(classes=2, **TARGET, **OTHERS)


MODELS = {"exposure": (counts, CLAIMS, LOGS), "score": (buyers, BUYS, SCORE)}
WAYS = {
    "fit": lambda m, X, y, **more: m.fit(X, y, **more),
    "fit_select": lambda m, X, y, **more: m.fit_select(X, y, [{"max_depth": 2}], **more),
}
PREDICT = {"exposure": ("predict",), "score": ("predict", "predict_proba")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", MODELS)
def test_a_model_with_margins_predicts_with_margins_only(what, way, tmp_path):
    """Also after it was saved, with one name for fitting, predicting and evaluating."""
    make, y, margin = MODELS[what]
    model = WAYS[way](make(), X, y, base_margin=margin, sample_weight=WEIGHTS)
    training = model.privacy_report_.ledger["trainings"][0]
    assert training["public"]["hyperparameters"]["base_margin"] is True
    model.save_model(tmp_path / "model.json")
    loaded = type(model)()
    loaded.load_model(tmp_path / "model.json")
    for one in (model, loaded):
        for call in (getattr(one, name) for name in PREDICT[what]):
            with pytest.raises(PrivacyParameterError, match="trained with base margins"):
                call(X)
            for wrong, match in ((margin[:-1], "one entry per row"), (np.nan * margin, "margin")):
                with pytest.raises(xgb_dp.PrivacyError, match=match):
                    call(X, base_margin=wrong)
            assert call(X, base_margin=margin).shape[0] == N
        with pytest.raises(PrivacyParameterError, match="trained with base margins"):
            one.score(X, y)
    booster = model.get_booster()
    expected = booster.predict(xgb.DMatrix(X, base_margin=margin))
    given = model.predict(X, base_margin=margin)
    if what == "exposure":
        np.testing.assert_allclose(given, np.clip(expected, 0, 20), rtol=1e-6)
        assert given.mean() == pytest.approx(CLAIMS.mean(), rel=0.1)
    else:
        np.testing.assert_array_equal(given, expected > 0.5)
    rows = pd.DataFrame(X, columns=["a", "b"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "schema.yaml").write_text("columns: {a: number, b: number}\n")
    done = invoke("predict", tmp_path / "model.json", tmp_path / "rows.csv", "--schema",
                  tmp_path / "schema.yaml")  # fmt: skip
    assert done.exit_code != 0
    assert "base margins" in done.output


@pytest.mark.parametrize("what", MODELS)
@pytest.mark.parametrize("by", [None, "person"])
def test_parts_of_a_split_keep_weights_and_margins(what, by):
    make, y, margin = MODELS[what]
    arguments = {"sample_weight": WEIGHTS, "base_margin": margin}
    ids = None if by is None else np.arange(N) // 2
    parts = xgb_dp.split((X, y), test=0.4, privacy_id=ids, **arguments)
    whole = {round(float(x[0]), 6): i for i, x in enumerate(X)}
    for part in (parts.train, parts.test):
        places = [whole[round(float(x[0]), 6)] for x in part.copy()[0]]
        for name, values in arguments.items():
            np.testing.assert_array_equal(part.arguments[name], values[places])
            with pytest.raises(ValueError, match="read-only"):
                part.arguments[name][0] = 7.0
            with pytest.raises(TypeError):
                part.arguments[name] = values
    for way, fit in WAYS.items():
        model = fit(make(), parts.train, None)
        assert model.privacy_report_.ledger["trainings"][0]["public"]["part"]["name"] == "train"
        report = xgb_dp.evaluate(model, parts, epsilon=4.0, delta=1e-6)
        assert report.cost.parallel, way
        for name in arguments:
            ones = np.ones(len(parts.train.copy()[1]))
            with pytest.raises(PrivacyParameterError, match=f"already contains its `{name}`"):
                fit(make(), parts.train, None, **{name: ones})
    with pytest.raises(PrivacyParameterError, match="already contains its `base_margin`"):
        xgb_dp.evaluate(model, parts, epsilon=4.0, delta=1e-6, base_margin=margin)


def test_margins_from_elsewhere_are_of_no_part():
    """They could come from other rows than those of the part."""
    parts = xgb_dp.split((X, BUYS))
    n = len(parts.train.copy()[1])
    model = buyers().fit(parts.train, base_margin=np.zeros(n))
    assert "part" not in model.privacy_report_.ledger["trainings"][0]["public"]
    parts = xgb_dp.split((X, BUYS), base_margin=SCORE)
    trained = buyers().fit(parts.train)
    bare = xgb_dp.split((X, BUYS))
    report = xgb_dp.evaluate(
        trained, bare.test, epsilon=4.0, delta=1e-6,
        base_margin=np.zeros(len(bare.test.copy()[1])),
    )  # fmt: skip
    assert not report.cost.parallel


REFUSED: dict[str, tuple[type, str, dict[str, Any]]] = {
    "missing margin": (
        RowDomainError,
        "missing or infinite margin",
        {"base_margin": SCORE * np.nan},
    ),
    "negative weight": (RowDomainError, "negative weight", {"sample_weight": -WEIGHTS}),
    "short margin": (PrivacyParameterError, "`base_margin` must have one", {"base_margin": [1.0]}),
    "short weight": (PrivacyParameterError, "one entry per row", {"sample_weight": [1.0]}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_of_a_split_are_refused(name):
    error, match, arguments = REFUSED[name]
    with pytest.raises(error, match=match):
        xgb_dp.split((X, BUYS), **arguments)
    with pytest.raises(PrivacyParameterError, match=r"when you create it"):
        xgb_dp.split(xgb.DMatrix(X, BUYS), **arguments)


@pytest.mark.parametrize("what", MODELS)
def test_evaluations_need_the_margins(what):
    make, y, margin = MODELS[what]
    target = {"epsilon": 50.0, "delta": 1e-6}
    model = make().fit(X, y, base_margin=margin)
    report = xgb_dp.evaluate(model, (X, y), base_margin=margin, **target)
    as_matrix = xgb_dp.evaluate(model, xgb.DMatrix(X, y, base_margin=margin), **target)
    if what == "score":
        guesses = model.predict_proba(X, base_margin=margin)[:, 1]
        order = np.argsort(np.argsort(guesses))[y == 1] + 1
        exact = (order.sum() - y.sum() * (y.sum() + 1) / 2) / (y.sum() * (N - y.sum()))
        for one in (report, as_matrix):
            assert float(one.auc) == pytest.approx(exact, abs=0.02)
        with pytest.raises(PrivacyParameterError, match="base margins cannot be calibrated"):
            report.calibrated(model)
    for rows in ((X, y), xgb.DMatrix(X, y)):
        with pytest.raises(RowDomainError, match="A row has no `base_margin`"):
            xgb_dp.evaluate(model, rows, **target)
    with pytest.raises(PrivacyParameterError, match="belongs to a pair"):
        xgb_dp.evaluate(model, xgb.DMatrix(X, y), base_margin=margin, **target)
    for wrong in (margin[:-1], np.stack([margin] * 2, axis=1)):
        with pytest.raises(xgb_dp.PrivacyError, match="margin"):
            xgb_dp.evaluate(model, (X, y), base_margin=wrong, **target)
    without = make().set_params(dp_exposure_bounds=None).fit(X, y)
    with pytest.raises(xgb_dp.PrivacyRefusal, match="trained without base margins"):
        xgb_dp.evaluate(without, (X, y), base_margin=margin, **target)
