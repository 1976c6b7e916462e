"""Fits every estimator that never asks for privacy, and prints what came out of it as JSON.

Runs as a script with our `xgboost` and with the stock wheel's; it imports nothing of this project.
"""

import hashlib
import json
import pickle
import sys
from typing import Any

import numpy as np
import xgboost as xgb
from sklearn.base import clone

N, F, SIZE = 300, 4, 60  # rows, columns, rows of a query
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, F)).astype(np.float32)
SIGNAL = X[:, 0] - 0.5 * X[:, 1] * X[:, 2]
LABELS = {
    "Classifier": (SIGNAL > 0).astype(int),
    "Regressor": SIGNAL,
    "Ranker": np.digitize(SIGNAL, [-0.5, 0.5]),
}
IN_MEMORY = ("XGBClassifier", "XGBRegressor", "XGBRanker", "XGBRFClassifier", "XGBRFRegressor")
# Constructor arguments beside the defaults. A `RandomState` is drawn from whenever parameters are
# read, so one more reading changes the model.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "drawn seed": {"subsample": 0.5, "random_state": None},  # see `estimator`
    "given rounds": {"n_estimators": 7},
    "several classes": {},
}


def digest(raw: Any) -> str:
    return hashlib.sha256(bytes(raw)).hexdigest()


def labels(name: str, case: str = "defaults") -> Any:
    y = LABELS[next(kind for kind in LABELS if name.endswith(kind))]
    return np.digitize(SIGNAL, [-0.5, 0.5]) if case == "several classes" else y


def estimator(name: str, case: str, module: Any = xgb) -> Any:
    given = dict(ARGUMENTS[case])
    if "random_state" in given:
        given["random_state"] = np.random.RandomState(3)
    return getattr(module, name)(**given)


def groups(name: str) -> dict[str, Any]:
    return {"qid": np.arange(N) // SIZE} if name.endswith("Ranker") else {}


def outcome(model: Any, predicted: Any) -> dict[str, Any]:
    booster = model.get_booster()
    return {
        "model": digest(booster.save_raw("json")),
        "predicted": digest(np.ascontiguousarray(predicted)),
        "rounds": model.get_num_boosting_rounds(),
        "importance": [float(v) for v in model.feature_importances_],
        "score": booster.get_score(),
    }


def fitted(name: str, case: str) -> dict[str, Any]:
    """Fit, predict, clone, pickle."""
    y = labels(name, case)
    model = estimator(name, case)
    model.fit(X, y, **groups(name))
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.predict(X))
    again = clone(model)
    assert not hasattr(again, "_Booster")
    result = outcome(model, model.predict(X))
    parameters = {k: repr(v) for k, v in model.get_xgb_params().items() if k != "random_state"}
    return result | {"parameters": parameters}


def on_dask() -> dict[str, Any]:
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster
    from xgboost import dask as dxgb

    results = {}
    names = [f"Dask{name}" for name in IN_MEMORY]
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        columns = [f"column {i}" for i in range(F)]

        def table(name: str) -> Any:
            frame = pd.DataFrame(X, columns=columns).assign(y=labels(name), **groups(name))
            return dd.from_pandas(frame, npartitions=1)

        for name in names:
            frame = table(name)
            model = clone(estimator(name, "defaults", dxgb))
            model.client = client
            model.fit(frame[columns], frame["y"], **{k: frame[k] for k in groups(name)})
            copy = pickle.loads(pickle.dumps(model.get_booster()))
            assert digest(copy.save_raw("json")) == digest(model.get_booster().save_raw("json"))
            predicted = np.asarray(model.predict(frame[columns]).compute())
            results[f"{name}, defaults"] = outcome(model, predicted)
        frame = table("XGBRegressor")
        d = dxgb.DaskDMatrix(client, frame[columns], frame["y"])
        booster = dxgb.train(client, {}, d)["booster"]
        results["dask train"] = digest(booster.save_raw("json"))
    return results


def functions() -> dict[str, Any]:
    """The functions of the package whose defaults our patches touch."""
    import matplotlib

    matplotlib.use("Agg")
    d = xgb.DMatrix(X, LABELS["Regressor"])
    booster = xgb.train({}, d)
    bars = [p.get_width() for p in xgb.plot_importance(booster).patches]
    linear = xgb.XGBRegressor(booster="gblinear", updater="coord_descent").fit(
        X, LABELS["Regressor"]
    )
    return {
        "train": digest(booster.save_raw("json")),
        "rounds": booster.num_boosted_rounds(),
        "cv": {k: [float(x) for x in v] for k, v in xgb.cv({}, d, as_pandas=False).items()},
        "plot": [float(b) for b in bars],
        "fscore": booster.get_fscore(),
        "linear": [float(v) for v in linear.feature_importances_],
    }


def main() -> None:
    results: dict[str, Any] = {}
    for name in IN_MEMORY:
        for case in ARGUMENTS:
            if case != "several classes" or name.endswith("Classifier"):
                results[f"{name}, {case}"] = fitted(name, case)
    results |= functions()
    if "dask" in sys.argv[1:]:
        results |= on_dask()
    print("FOUND" + json.dumps({"private": hasattr(xgb.core._LIB, "XGDPBuildInfo"), **results}))


if __name__ == "__main__":
    main()
