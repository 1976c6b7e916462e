"""Texts as classes in ensembles of scikit-learn, and as columns where a model is explained."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import StackingClassifier, VotingClassifier

from xgb_dp import DPXGBClassifier, RowDomainError, plotting

from ..conftest import arrays

OWN: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6, "n_estimators": 3, "n_jobs": 1}


def texts() -> tuple[Any, Any]:
    X, y = arrays()
    return np.nan_to_num(X), np.array(["no", "yes"])[y.astype(int)]


def members(classes: Any) -> Any:
    return [(name, DPXGBClassifier(**OWN, classes=classes)) for name in "ab"]


@pytest.mark.parametrize("kind", ["voting", "stacking"])
def test_members_that_declare_a_number_of_classes(kind):
    X, y = texts()
    if kind == "voting":
        ensemble = VotingClassifier(members(2), voting="soft")
    else:
        fitted = [(name, m.fit(X, (y == "yes").astype(int))) for name, m in members(2)]
        ensemble = StackingClassifier(fitted, cv="prefit")
    predicted = ensemble.fit(X, y).predict(X)
    assert set(predicted) <= {"no", "yes"}
    assert (predicted == y).mean() > 0.6


def test_members_that_declare_texts_name_the_way():
    with pytest.raises(RowDomainError, match="declare classes=K in a member"):
        VotingClassifier(members(["no", "yes"]), voting="soft").fit(*texts())


def test_contributions_of_columns_of_texts():
    X, y = texts()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        d=np.array(["u", "v", "w"])[np.arange(len(y)) % 3]
    )
    model = DPXGBClassifier(**OWN, classes=["no", "yes"], categories={"d": ["u", "v", "w"]})
    model.fit(frame, y)
    values, bias = plotting.contributions(model, frame)
    margin = model.predict(frame, output_margin=True)
    np.testing.assert_allclose(values.sum(axis=1) + bias, margin, atol=1e-4)
    ax = plotting.plot_contributions(model, frame, public_rows=True)
    assert len(ax.patches) == 4
    with pytest.raises(RowDomainError) as caught:
        plotting.contributions(model.get_booster(), frame)
    assert "'u'" not in str(caught.value)
