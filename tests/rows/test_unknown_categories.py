"""A category that the model was not trained with is refused; none takes the code of another."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import private

TOWNS = ["Bern", "Oslo", "Rome"]
CODES = [10, 20, 30]
NAMES = {"towns": TOWNS, "codes": CODES}
UNKNOWN = {
    "towns": ["", "Aarau", "Berna", "Ber", "Munich", "Paris", "Zurich", "Öland"],
    "codes": [-1, 0, 15, 25, 35],
}
BY = {
    "predict": lambda b, f: b.predict(xgb.DMatrix(f, enable_categorical=True)),
    "margin": lambda b, f: b.predict(xgb.DMatrix(f, enable_categorical=True), output_margin=True),
    "leaves": lambda b, f: b.predict(xgb.DMatrix(f, enable_categorical=True), pred_leaf=True),
    "contributions": lambda b, f: b.predict(
        xgb.DMatrix(f, enable_categorical=True), pred_contribs=True
    ),
    "in place": lambda b, f: b.inplace_predict(f),
}


def table(kind: str, values: Any) -> pd.DataFrame:
    categories = pd.Categorical(values)
    return pd.DataFrame({"a": np.zeros(len(values)), "town": categories})


@pytest.fixture(scope="module", params=NAMES)
def trained(request: pytest.FixtureRequest) -> tuple[str, xgb.Booster]:
    kind = request.param
    rng = np.random.default_rng(0)
    values = rng.choice(NAMES[kind], 1000)
    frame = table(kind, values).assign(a=rng.normal(size=1000))
    params = private(objective="binary:logistic", dp_categories={"town": NAMES[kind]}, nthread=1)
    matrix = xgb.DMatrix(frame, values == NAMES[kind][1], enable_categorical=True)
    return kind, xgb.train(params, matrix, 5)


@pytest.mark.parametrize("by", BY)
def test_no_prediction_takes_an_unknown_category_for_another(trained, by):
    """Before, between and behind the known names, alone and beside them."""
    kind, booster = trained
    alone = BY[by](booster, table(kind, NAMES[kind]))
    for i, name in enumerate(NAMES[kind]):  # whatever the dictionary of the frame is
        np.testing.assert_array_equal(BY[by](booster, table(kind, [name]))[0], alone[i])
    for unknown in UNKNOWN[kind]:
        for rows in ([unknown], [*NAMES[kind], unknown]):
            with pytest.raises(xgb.core.XGBoostError, match="not in the training set"):
                BY[by](booster, table(kind, rows))


def test_estimators_and_evaluations_refuse_them(trained):
    kind, booster = trained
    known, y = table(kind, NAMES[kind] * 20), np.tile([0, 1, 0], 20)
    model = xgb_dp.DPXGBClassifier(
        epsilon=1.0, delta=1e-6, classes=2, n_estimators=2, categories={"town": NAMES[kind]}
    ).fit(known, y)
    assert model.predict(known).shape == (60,)
    for unknown in UNKNOWN[kind]:
        rows = table(kind, [NAMES[kind][0], unknown])
        for call in (model.predict, model.predict_proba, model.apply):
            with pytest.raises(xgb_dp.RowDomainError):
                call(rows)
        for one in (model, booster):
            with pytest.raises(xgb_dp.RowDomainError):
                xgb_dp.evaluate(one, (rows, [0, 1]), epsilon=1.0, delta=1e-6)
