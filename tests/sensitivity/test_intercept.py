"""Label sums of the C++ move within their sensitivity."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.comparison import LOGISTIC, SOFTMAX, SQUARED
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native

from .cpp import IN_THE_CLEAR
from .strategies import CLASSES, EXAMPLES, label, squared_distance


@pytest.mark.parametrize("n_public", [False, True])
@pytest.mark.parametrize("kind", ["binary", "regression", "multiclass", "rows"])
@EXAMPLES
@given(data=st.data())
def test_intercept_sums(kind: str, n_public: bool, data: st.DataObject) -> None:
    """The label sums of the C++, with labels on and beyond the bounds; or the number of rows."""
    objective = {"regression": SQUARED, "multiclass": SOFTMAX}.get(kind, LOGISTIC)
    y = np.array(data.draw(st.lists(label(objective), min_size=1, max_size=13)), np.float32)
    low, high = data.draw(st.sampled_from(((-4.0, 4.0), (0.1, 0.3), (-1e300, 1e308))))
    request = {
        "kind": kind,
        "num_class": CLASSES,
        "sigma2": 0,
        "shift": data.draw(st.sampled_from((0, 7, 26))),
        "target_lower": repr(low),
        "target_upper": repr(high),
        "noise_free": True,
        **IN_THE_CLEAR,
    }
    if n_public and kind in ("binary", "regression"):
        request["n_public"] = len(y)
    one, other = (
        native.release_intercept(xgb.DMatrix(np.zeros((len(v), 1)), v), request)["sums"]
        for v in (y, y[:-1])
    )
    bound = sensitivity.intercept_sens2(kind, int(request["shift"]), n_public=n_public)
    assert squared_distance(one, other) <= bound
    if kind == "rows":
        assert one == [len(y) << int(request["shift"])]
    touched = sensitivity.intercept_coordinates(kind, n_public=n_public)
    assert np.count_nonzero(np.subtract(one, other)) <= touched
