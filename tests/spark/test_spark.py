"""Private training through ``xgboost.spark`` on a local session, two workers.

Needs PySpark (the extra ``spark``) and a Java runtime; ``make test-spark`` installs the former.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.clusters import spark_rows
from xgb_dp.errors import PrivacyRefusal
from xgb_dp.request.params import DEFAULT_ROUNDS

pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("no Java runtime", allow_module_level=True)

from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, when
from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType
from xgboost.spark import SparkXGBClassifier, SparkXGBRegressor

PARAMS: dict[str, Any] = {
    "features_col": ["a", "b", "c"],
    "label_col": "label",
    "num_workers": 2,
    "tree_method": "dp_hist",
    "dp_epsilon": 8.0,
    "dp_delta": 1e-6,
    "n_estimators": 6,
    "max_depth": 3,
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # what the executors run
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def frame(spark: SparkSession, label: str) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["label"] = {"signs": (X[:, 0] > 0).astype(float), "zeros": np.zeros(900)}[label]
    return spark.createDataFrame(table)


def test_classes_are_declared(spark):
    """Three classes, of which one occurs."""
    data = frame(spark, "zeros")
    model = SparkXGBClassifier(**PARAMS, dp_classes=3).fit(data)
    assert len(model.transform(data).select("probability").first()[0]) == 3
    with pytest.raises(Exception, match="dp_classes"):
        SparkXGBClassifier(**PARAMS).fit(data)


def test_workers_do_not_train_past_a_budget(spark, tmp_path):
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=1.0, delta=1e-5)
    data = frame(spark, "signs")
    for estimator in (
        SparkXGBClassifier(**PARAMS, dp_classes=2),
        SparkXGBRegressor(**PARAMS, dp_target_bounds=[0, 1]),
    ):
        with pytest.raises(xgb_dp.BudgetError, match="workers of a cluster"), budget.drawing():
            estimator.fit(data)
    assert not budget.entries


def test_classifier(spark):
    data = frame(spark, "signs")
    model = SparkXGBClassifier(**PARAMS, dp_classes=2).fit(data)
    out = model.transform(data).select("label", "prediction").toPandas()
    assert (out.label == out.prediction).mean() > 0.85
    report = xgb_dp.privacy_report(model.get_booster())
    assert 7.5 < report.epsilon <= 8.0
    assert report.ledger["trainings"][0]["complete"]


@pytest.mark.parametrize("levels", [0.8, [0.1, 0.5, 0.9]])
def test_quantiles(levels, spark):
    """Of a uniform number in [0, 1), which no feature tells: the quantiles are the levels."""
    table = frame(spark, "signs").toPandas()
    table["label"] = np.random.default_rng(1).random(len(table))
    model = SparkXGBRegressor(
        **PARAMS | {"dp_epsilon": float("inf"), "max_depth": 1},
        objective="reg:quantileerror",
        quantile_alpha=levels,
        dp_target_bounds=[0, 1],
    ).fit(spark.createDataFrame(table))
    predicted = model.get_booster().predict(xgb.DMatrix(table[["a", "b", "c"]]))
    predicted = predicted.reshape(len(table), -1).mean(axis=0)
    np.testing.assert_allclose(predicted, np.atleast_1d(levels), atol=0.1)


def test_times_have_no_place_in_a_label(spark):
    """survival:aft needs both ends of a time, and Spark's estimators have one label for a row."""
    estimator = SparkXGBRegressor(**PARAMS, objective="survival:aft", dp_target_bounds=[1, 9])
    with pytest.raises(Exception, match="label_lower_bound"):
        estimator.fit(frame(spark, "signs"))


@pytest.mark.parametrize("given", [None, 100])
def test_rounds_where_none_are_given(given, spark, tmp_path):
    """Those of every private training, also of an estimator that was saved; 100 if one says so."""
    params = {k: v for k, v in PARAMS.items() if k != "n_estimators"} | {"max_depth": 1}
    estimator = SparkXGBRegressor(**params, dp_target_bounds=[0, 1])
    if given is not None:
        estimator.setParams(n_estimators=given)
    estimator.write().save(str(tmp_path / "estimator"))
    for each in (estimator, SparkXGBRegressor.load(str(tmp_path / "estimator"))):
        model = each.fit(frame(spark, "signs"))
        assert model.get_booster().num_boosted_rounds() == (given or DEFAULT_ROUNDS)


def test_rows_of_persons_are_on_one_worker(spark):
    """By a column, which is no feature; were one on two workers, training would be refused."""
    table = frame(spark, "signs").withColumn("patient", (col("a") * 1000).cast("long") % 50)
    for ids in (col("patient"), col("patient").cast("string")):
        model = SparkXGBClassifier(
            **PARAMS | {"dp_epsilon": float("inf")}, dp_classes=2, dp_privacy_id="patient"
        ).fit(table.withColumn("patient", ids))
        assert model.get_booster().num_features() == 3


def test_wrong_ids_are_refused(spark):
    table = frame(spark, "signs").withColumn("patient", (col("a") * 1000).cast("long") % 50)
    free = PARAMS | {"dp_epsilon": float("inf"), "dp_classes": 2}
    missing = table.withColumn("patient", when(col("b") < 2, col("patient")))
    with pytest.raises(Exception, match="A row has no id"):
        SparkXGBClassifier(**free, dp_privacy_id="patient").fit(missing)
    with pytest.raises(Exception, match="saved and displayed"):
        SparkXGBClassifier(**free, dp_privacy_id=[1, 2, 3]).fit(table)


def test_importance_is_the_total_gain(spark):
    model = SparkXGBRegressor(**PARAMS, dp_target_bounds=[0, 1]).fit(frame(spark, "signs"))
    booster = model.get_booster()
    assert model.get_feature_importances() == booster.get_score(importance_type="total_gain")
    weight = booster.get_score(importance_type="weight")
    assert model.get_feature_importances(importance_type="weight") == weight


def test_validation_rows_are_public_only_by_declaration(spark):
    """They are a plain matrix, which shares no bins with the rows that are trained on."""
    data = frame(spark, "signs").withColumn("public", col("a") > 1.0)
    params = PARAMS | {"dp_target_bounds": [0, 1], "validation_indicator_col": "public"}
    with pytest.raises(Exception, match="dp_public_evals"):
        SparkXGBRegressor(**params).fit(data)
    model = SparkXGBRegressor(**params, dp_public_evals=True).fit(data)
    summary = model.training_summary
    assert len(summary.validation_objective_history["rmse"]) == PARAMS["n_estimators"]
    assert not summary.train_objective_history  # a metric of private rows
    with pytest.raises(Exception, match="QuantileDMatrix"):  # made for `hist`, of exact quantiles
        SparkXGBRegressor(**params | {"tree_method": "hist"}, dp_public_evals=True).fit(data)


def test_counts_with_exposures(spark):
    """The column of margins holds the logarithms of exposures."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(900, 3)), columns=["a", "b", "c"])
    exposure = rng.uniform(0.2, 1.0, 900)
    table["label"] = rng.poisson(exposure * np.exp(table["a"])).astype(float)
    table["margin"] = np.log(exposure)
    config = PARAMS | {
        "objective": "count:poisson", "dp_target_bounds": [0, 10], "dp_base_margin": True,
        "dp_exposure_bounds": [0.2, 1.0], "base_margin_col": "margin",
    }  # fmt: skip
    model = SparkXGBRegressor(**config).fit(spark.createDataFrame(table))
    booster = model.get_booster()
    d = xgb.DMatrix(table[["a", "b", "c"]], base_margin=table["margin"].to_numpy())
    rate = booster.predict(d) / exposure
    assert np.corrcoef(np.log(rate), table["a"])[0, 1] > 0.6
    events = xgb_dp.privacy_report(booster).ledger["trainings"][0]["events"]
    assert {e["release"]: e["count"] for e in events}["intercept"] == 2


class Fail(xgb.callback.TrainingCallback):
    """Notes every round that has released something, and fails in the second one."""

    def __init__(self, file: Path, dies: bool) -> None:
        super().__init__()
        self.file, self.dies = file, dies

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        with self.file.open("a") as file:
            file.write(f"{xgb.collective.get_rank()} {epoch}\n")
        if epoch == 1:
            if self.dies:
                os._exit(9)
            raise RuntimeError("the second round fails")
        return False


@pytest.mark.parametrize("dies", [False, True])
def test_a_failed_training_is_not_begun_again(dies, spark, tmp_path):
    """Spark repeats stages of barriers, but none whose results go to the driver."""
    file = tmp_path / "rounds"
    estimator = SparkXGBRegressor(**PARAMS, dp_target_bounds=[0, 1], callbacks=[Fail(file, dies)])
    data = frame(spark, "signs")
    attempts = spark.sparkContext.getConf().get("spark.stage.maxConsecutiveAttempts", "4")
    assert attempts == "4"  # what other stages have
    with pytest.raises(Exception, match="failed barrier ResultStage"):
        estimator.fit(data)
    noted = file.read_text().splitlines()
    assert {"0 0", "1 0"} <= set(noted)
    assert len(noted) == len(set(noted)) <= 4


def test_spark_connect_is_refused():
    rows = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    with pytest.raises(PrivacyRefusal, match="Spark Connect is refused"):
        spark_rows(SparkXGBRegressor(**PARAMS, dp_target_bounds=[0, 1]), rows, [])


def placed(spark: SparkSession, parts: list[list[Any]], schema: Any) -> Any:
    """A data frame with these rows in its partitions, one for each worker."""
    context = spark.sparkContext
    keyed = context.parallelize(list(enumerate(parts)), len(parts))
    spread = keyed.partitionBy(len(parts), lambda key: key)
    return spark.createDataFrame(spread.flatMap(lambda pair: pair[1]), schema)


@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize("public", [False, True])
def test_a_worker_without_rows(public, full, spark):
    """It trains as a worker with one row does; also where all its rows are for validation."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).tolist()
    rows = [(*x, float(x[0] > 0), False) for x in X]
    other = [(*x, float(x[0] > 0), True) for x in X] if public else []
    data = placed(
        spark,
        [rows, other] if full == 0 else [other, rows],
        "a double, b double, c double, label double, public boolean",
    )
    given = {"validation_indicator_col": "public", "dp_public_evals": True} if public else {}
    model = SparkXGBRegressor(**PARAMS, **given, dp_target_bounds=[0, 1]).fit(data)
    assert model.get_booster().feature_names == ["a", "b", "c"]


@pytest.mark.parametrize("sparse", [False, True])
def test_vectors_of_other_lengths(sparse, spark):
    """One row would give all others a column more, wherever it lies."""

    def row(width: int) -> Any:
        vector = Vectors.sparse(width, {0: 1.0, width - 1: 2.0}) if sparse else [1.0] * width
        return (vector, 1.0)

    kind = VectorUDT() if sparse else ArrayType(DoubleType())
    schema = StructType([StructField("features", kind), StructField("label", DoubleType())])
    given = {k: v for k, v in PARAMS.items() if k != "features_col"} | {"n_estimators": 2}
    if sparse:
        given |= {"enable_sparse_data_optim": True, "missing": 0.0}
    estimator = SparkXGBRegressor(**given, features_col="features", dp_target_bounds=[0, 1])
    many = [row(3)] * 50
    for end in ([], many):
        model = estimator.fit(placed(spark, [many, end], schema))
        assert model.get_booster().num_features() == 3
    for parts in ([many, [row(4)]], [many, [*many, row(4)]]):
        with pytest.raises(Exception, match="differ in length"):
            estimator.fit(placed(spark, parts, schema))
