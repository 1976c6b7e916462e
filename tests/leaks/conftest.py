"""Private models that the scans read and do not change."""

import pytest
import xgboost as xgb

from xgb_dp.testing import fixed_noise

from .scan import COMMON, KINDS, OBJECTIVE, ROUNDS, Watch, matrix


@pytest.fixture(scope="package")
def private_models() -> dict[str, tuple[xgb.Booster, Watch]]:
    out = {}
    for kind in KINDS:
        watch = Watch()
        with fixed_noise(21):  # of which no number comes near an exact one by chance
            model = xgb.train(COMMON | OBJECTIVE[kind], matrix(kind), ROUNDS, callbacks=[watch])
        out[kind] = model, watch
    return out
