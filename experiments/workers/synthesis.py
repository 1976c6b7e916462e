"""XGBoost on private synthetic rows: MST and AIM of smartnoise-synth.

The synthesizers get the bins of numbers and all categories as public. XGBoost, with the settings of
the runs without privacy, sees the synthetic rows alone, as many as there were.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from .codes import all_codes

BINS = 16
ROUNDS = 150


def warm_up() -> None:
    """Import what is trained with."""
    import xgboost  # noqa: F401


class _Drawn:
    """A fitted model whose rows are drawn independently.

    The rounding that mbi 1.1.0 does by itself ranks the rows of a group alike for each further
    column, which ties columns together that are independent in the model.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def synthetic_data(self, rows: int) -> Any:
        """Rows of the model."""
        return self.model.synthetic_data(rows, method="sample")


def _predict(synthesizer: Any, request: dict[str, Any], data: Any) -> np.ndarray:
    import pandas as pd
    import xgboost as xgb
    from snsynth.transform import LabelTransformer, TableTransformer

    codes = all_codes(data, request["nominal"], BINS)
    train = len(data["x_train"])
    labels = np.concatenate([data["y_train"], np.zeros(len(codes) - train)]).astype(int)
    names = [f"c{j}" for j in range(codes.shape[1])]
    rows = pd.DataFrame(np.column_stack([codes, labels]), columns=[*names, "label"])
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in rows.columns])
    transformer.fit(rows)  # on the whole file, for the domains alone, which are public
    with contextlib.redirect_stdout(io.StringIO()):
        synthesizer.fit(rows.iloc[:train], transformer=transformer)
        synthesizer.synthesizer = _Drawn(synthesizer.synthesizer)
        sampled = pd.DataFrame(synthesizer.sample(train), columns=rows.columns).astype(int)
    types = ["c" if nominal else "q" for nominal in request["nominal"]]

    def matrix(values: Any, label: Any = None) -> xgb.DMatrix:
        return xgb.DMatrix(
            np.asarray(values, dtype=np.float32),
            label,
            feature_types=types,
            enable_categorical=True,
            nthread=1,
        )

    params = {"objective": "binary:logistic", "eta": 0.1, "max_depth": 6, "nthread": 1}
    booster = xgb.train(params, matrix(sampled[names], sampled["label"]), ROUNDS)
    return booster.predict(matrix(codes[train:]))


def mst(request: dict[str, Any], data: Any) -> np.ndarray:
    """Maximum spanning tree of two-way marginals (McKenna, Miklau and Sheldon 2021)."""
    from snsynth.mst import MSTSynthesizer

    return _predict(MSTSynthesizer(request["epsilon"], request["delta"]), request, data)


def aim(request: dict[str, Any], data: Any) -> np.ndarray:
    """Adaptive and iterative mechanism (McKenna et al. 2022), over two-way marginals."""
    from snsynth.aim import AIMSynthesizer

    synthesizer = AIMSynthesizer(
        request["epsilon"], request["delta"], rounds=request["params"]["rounds"]
    )
    return _predict(synthesizer, request, data)
