"""Under a policy a cluster trains nothing: no book would see it."""

import numpy as np
import pytest

pytest.importorskip("distributed")

from xgboost import dask as dxgb

import xgb_dp

from ..policy.conftest import enforce

__all__ = ["enforce"]


def test_a_cluster_is_refused(client, enforce):
    import dask.array as da

    enforce()
    rows = da.from_array(np.zeros((20, 2)), chunks=(10, 2))
    data = dxgb.DaskDMatrix(client, rows, da.zeros(20, chunks=10))
    params = {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6}
    with pytest.raises(xgb_dp.BudgetError, match="cluster"):
        dxgb.train(client, params, data, num_boost_round=1)
