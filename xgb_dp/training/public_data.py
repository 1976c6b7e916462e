"""Makes public cuts from a sample of public rows (``dp_public_data``).

They are a function of the sample and of public settings. No private row is looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.matrices import private_matrix
from ..errors import PrivacyParameterError, named
from ..request.names import read_one
from ..request.schema import Schema
from ..request.settings import Settings
from .call_site import check_public

_NAME = "dp_public_data"


def taken_out(params: dict[str, Any], dtrain: Any, schema: Schema) -> tuple[dict[str, Any], Any]:
    """Parameters without the public rows, which say only that there are some; and the rows."""
    from xgboost import DMatrix

    given = params.get(_NAME)
    if given is None or given is False:
        return params, None
    if isinstance(given, (tuple, list)) and len(given) == 2:
        X, y = given
        given = private_matrix(
            X, categories=read_one(params, "dp_categories"), label=y, enable_categorical=True
        )
    if not isinstance(given, DMatrix):
        raise PrivacyParameterError(
            f"`{_NAME}` takes public rows as an xgboost.DMatrix with labels, or as a pair (X, y); "
            f"got {type(given).__name__}."
        )
    leak = "its exact quantiles would be thresholds of the model. Give rows of another source."
    theirs = check_public(dtrain, schema, given, f"`{_NAME}`", leak).dictionaries
    if theirs and theirs != schema.dictionaries:
        raise PrivacyParameterError(
            f"`{_NAME}` has other names of categories than the training data, or another order of "
            f"them. Give both the same {named.dp_categories}."
        )
    if not given.num_row():
        raise PrivacyParameterError(f"`{_NAME}` has no rows. Give some, or leave it out.")
    return {**params, _NAME: True}, given


def declared(s: Settings, sample: Any) -> Settings:
    """Settings with the quantiles of the sample as public cuts of the columns without any."""
    if sample is None:
        return s
    values = _columns(sample)
    private = [i for i, feature in enumerate(s.features) if feature.kind == "private"]
    quantiles = {i: _quantiles(values[i], s["max_bin"] - 1) for i in private}
    return s.changed({"dp_feature_cuts": {**s["dp_feature_cuts"], **quantiles}})


def _columns(sample: Any) -> list[npt.NDArray[np.float32]]:
    """The values of each column that are there."""
    table = sample.get_data().tocsc()
    return [table.data[a:b] for a, b in zip(table.indptr[:-1], table.indptr[1:], strict=True)]


def _quantiles(values: npt.NDArray[np.float32], count: int) -> list[float]:
    """At most so many cuts that part the values evenly; each is a value, as XGBoost's cuts are."""
    cuts = np.unique(values)
    if len(cuts) > count + 1:
        cuts = np.unique(np.quantile(values, np.linspace(0, 1, count + 2)[1:-1], method="nearest"))
    elif len(cuts) > 1:
        cuts = cuts[1:]  # below the least value there is no row
    return [float(v) for v in cuts] or [0.0]
