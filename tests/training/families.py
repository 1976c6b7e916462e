"""Small families of plans, of which the number of rows decides on one."""

import math
from typing import Any

import xgboost as xgb

from xgb_dp.request.default_plans import Size, worth

from ..conftest import OBJECTIVE, arrays

FEW, MANY = 40, 4000  # rows; the noise of their number is about 60 at epsilon = 1
SHORT = (
    Size(1_000 * worth(1.0), 2, (2, "oblivious", 32, 2)),
    Size(math.inf, 3, (3, "alternate", 16, 2), 0.25),
)


def private_params(kind: str = "binary", **changes: Any) -> dict[str, Any]:
    parameters = {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6, "nthread": 1}
    parameters |= OBJECTIVE[kind] | changes
    return {k: v for k, v in parameters.items() if v is not None}


def data(n: int, kind: str = "binary", **kwargs: Any) -> xgb.DMatrix:
    X, y = arrays(kind, n)
    return xgb.DMatrix(X, y, **kwargs)
