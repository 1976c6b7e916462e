"""Use an installed xgb-dp as a user does; `try_wheel.py` runs this in a clean environment.

``python -I use_wheel.py alone`` needs no more than the wheel depends on; ``extras`` needs the
extras cli, plot and sklearn, and writes files into the current folder. A failed check raises.
"""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

EPSILON, DELTA = 4.0, 1e-6
SEED = 7


def command(*words: str) -> str:
    """Standard output of the installed ``xgb-dp``, which must succeed."""
    program = Path(sys.executable).parent / "xgb-dp"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"xgb-dp {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def check(holds: bool, claim: str) -> None:
    """Unlike ``assert``, also with ``python -O``."""
    if not holds:
        raise RuntimeError(f"not so: {claim}")


def is_spent(report: Any) -> bool:
    """Whether a report certifies almost all of the budget and no more."""
    return bool(report.private) and 0.9 * EPSILON < report.epsilon <= EPSILON


def alone() -> None:
    """The version, and a training on arrays from front to back."""
    import numpy as np
    import xgboost as xgb

    import xgb_dp

    for package in (xgb, xgb_dp):
        inside = Path(str(package.__file__)).is_relative_to(sys.prefix)
        check(inside, f"{package.__name__} comes from the environment")
    maps = Path("/proc/self/maps")
    if maps.exists():
        loaded = {w for w in maps.read_text().split() if "libgomp" in w and w.startswith("/")}
        shipped = {path for path in loaded if "/xgb_dp.libs/" in path}
        check(
            bool(shipped) and shipped == loaded, f"the wheel's OpenMP runtime is used, not {loaded}"
        )
    check(", private build: " in command("--version"), "the private build is loaded")

    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(1500, 3)).astype(np.float32)
    X[::7, 2] = np.nan
    for objective, y in {
        "binary:logistic": (X[:, 0] > 0).astype(int),
        "multi:softprob": np.digitize(X[:, 0], [-0.5, 0.5]),
        "reg:squarederror": np.clip(X[:, 0], -2, 2),
    }.items():
        params: dict[str, Any] = {
            "tree_method": "dp_hist", "dp_epsilon": EPSILON, "dp_delta": DELTA,
            "objective": objective, "nthread": 2,
        }  # fmt: skip
        if objective == "multi:softprob":
            params["num_class"] = 3
        if objective == "reg:squarederror":
            params["dp_target_bounds"] = (-2.0, 2.0)
        booster = xgb.train(params, xgb.DMatrix(X, y), num_boost_round=10)
        check(is_spent(xgb_dp.privacy_report(booster)), f"{objective} spends its budget")
        path = Path("alone.ubj")
        booster.save_model(path)
        again = xgb.Booster(model_file=path)
        same = np.array_equal(again.predict(xgb.DMatrix(X)), booster.predict(xgb.DMatrix(X)))
        check(same, f"{objective} predicts the same after loading")
        check(is_spent(xgb_dp.privacy_report(path)), f"the report of {objective} is saved")
    print("alone: version, three objectives")


def extras() -> None:
    """The command line on a CSV file, and the estimators on a frame of pandas."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(SEED)
    n = 3000
    pet = rng.choice(["cat", "dog", "none"], n)
    frame = pd.DataFrame({"age": rng.integers(18, 90, n).astype(float), "pet": pet})
    frame.loc[::11, "age"] = np.nan
    buys = np.where((frame["age"] > 50) | (frame["pet"] == "dog"), "yes", "no")
    command_line(frame.assign(buys=buys))
    estimators(frame, buys)
    print("extras: command line, estimators, plots")


def command_line(rows: Any) -> None:
    """Declare, train, report and predict."""
    import pandas as pd

    rows.to_csv("rows.csv", index=False)
    check("pet" in command("schema", "rows.csv", "--target", "buys"), "schema names the columns")
    schema = {"target": "buys", "classes": ["no", "yes"]}
    columns = {"age": {"bounds": [18, 90]}, "pet": {"categories": ["cat", "dog", "none"]}}
    Path("rows.json").write_text(json.dumps({**schema, "columns": columns}))
    # The same as TOML, whose parser is another package on Python 3.10.
    text = 'target = "buys"\nclasses = ["no", "yes"]\n[columns.age]\nbounds = [18, 90]\n'
    Path("rows.toml").write_text(text + '[columns.pet]\ncategories = ["cat", "dog", "none"]\n')
    for kind in ("json", "toml"):
        model = f"model.{kind}.json"
        spent = ["--epsilon", str(EPSILON), "--delta", str(DELTA)]
        output = command("train", "rows.csv", "--schema", f"rows.{kind}", *spent, "--model", model)
        check("differentially private" in output, "train says what was spent")
        certified = float(command("report", model, "--delta", str(DELTA)))
        check(0.9 * EPSILON < certified <= EPSILON, "the report recomputes epsilon")
        command("predict", model, "rows.csv", "--out", f"{kind}.csv", "--keep", "buys")
        predicted = pd.read_csv(f"{kind}.csv")
        check(len(predicted) == len(rows), "every row is predicted")
        check(
            (predicted["prediction"] == predicted["buys"]).mean() > 0.8,
            "most rows are predicted well",
        )
    command("report", "model.json.json", "--out", "report.html")
    check("<html" in Path("report.html").read_text(encoding="utf-8"), "the report is a page")
    check("epsilon" in command("card", "model.json.json"), "the card names epsilon")


def estimators(frame: Any, labels: Any) -> None:
    """Fit, clone, pickle, save, load, report, plot."""
    import matplotlib
    import numpy as np
    import pandas as pd
    import xgboost as xgb
    from sklearn.base import clone

    import xgb_dp

    X = frame.assign(pet=pd.Categorical(frame["pet"], categories=["cat", "dog", "none"]))
    options: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA}
    first = xgb_dp.DPXGBClassifier(
        classes=["no", "yes"], categories={"pet": ["cat", "dog", "none"]}, **options
    )
    model = clone(first).fit(X, labels)
    check(is_spent(model.privacy_report_), "the classifier spends its budget")
    check(model.score(X, labels) > 0.8, "the classifier has learnt")
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    check(np.array_equal(again.predict_proba(X), model.predict_proba(X)), "pickles predict alike")
    model.get_booster().save_model("classifier.json")
    loaded = xgb_dp.privacy_report("classifier.json")
    check(math.isclose(loaded.epsilon, model.privacy_report_.epsilon), "the report is saved")
    plain = xgb.Booster(model_file="classifier.json").predict(
        xgb.DMatrix(X, enable_categorical=True)
    )
    check(np.allclose(plain, model.predict_proba(X)[:, 1]), "the saved model predicts alike")

    target = np.clip(frame["age"].fillna(50.0) / 10, 0, 10)
    regressor = xgb_dp.DPXGBRegressor(target_bounds=(0, 10), **options).fit(X[["age"]], target)
    check(is_spent(regressor.privacy_report_), "the regressor spends its budget")
    matplotlib.use("Agg")
    axes = xgb_dp.plotting.plot_importance(model.get_booster())
    axes.figure.savefig("importance.png")
    check(Path("importance.png").stat().st_size > 0, "a plot is drawn")


if __name__ == "__main__":
    {"alone": alone, "extras": extras}[sys.argv[1]]()
