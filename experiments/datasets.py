"""Data sets: read from the folder that ``XGB_DP_DATA`` names, downloaded, or generated.

Every file has its features first and ``target`` last; text columns are categories. The domain of a
category is taken from the whole file and declared: it is the public code book of the data set.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from . import download, synthetic

# Rows that are left out to balance classes, and other public choices, do not follow the split.
PUBLIC_SEED = 100


class MissingDataError(FileNotFoundError):
    """A data set is neither in the folder nor could it be downloaded."""


@dataclass(frozen=True)
class Dataset:
    """One learning task.

    Attributes:
        name: Name of the task.
        file: Stem of the Parquet file.
        objective: XGBoost objective.
        threshold: "median" makes a binary task of a regression target, above its median.
        bounds: Public bounds of a regression target.
        drop: Columns to leave out.
        keep: The only columns to keep, if given.
        complete_rows: Whether rows with a missing value are left out.
        train_only: Whether only rows of the published training part are used.
        classes: Labels to keep, of several.
        positive: Labels that count as 1, of several.
        balance: Whether the larger class is cut down to the smaller, by a public draw.
        negatives: Rows of class 0 for each of class 1 among the training rows, where there are
            fewer: the other rows of class 1 are left out. 0 for all rows.
        code_all: Whether systems that take categories as numbers get the ranks of all values.
        generate: Name of a generator in synthetic.py, with `size` rows and columns.
        size: Rows and columns of a generated data set.
        test_rows: Number of rows held out, in place of the table's fraction; 0 for that.
        openml: OpenML number, for downloads.
        person: Column of the file that says whom a row belongs to; of a generated data set any
            name. Splits are then by person.
        most_rows: Rows of a person, at most; public.
        target: Column of the labels.
        above_zero: Whether only rows with a label above 0 are used.
        exposure: Column of exposures, whose logarithm is the base margin; no feature.
        event: Column that is 1 where the time of the label was seen and 0 where it is censored
            from the right; no feature.
        quantiles: Levels of ``reg:quantileerror``.
    """

    name: str
    file: str = ""
    objective: str = "binary:logistic"
    threshold: str | None = None
    bounds: tuple[float, float] | None = None
    drop: tuple[str, ...] = field(default_factory=tuple)
    keep: tuple[str, ...] = field(default_factory=tuple)
    complete_rows: bool = False
    train_only: bool = False
    classes: tuple[float, ...] = ()
    positive: tuple[float, ...] = ()
    balance: bool = False
    negatives: int = 0
    code_all: bool = False
    generate: str = ""
    size: tuple[int, int] = (0, 0)
    test_rows: int = 0
    openml: int = 0
    person: str = ""
    most_rows: int = 1
    target: str = "target"
    above_zero: bool = False
    exposure: str = ""
    event: str = ""
    quantiles: tuple[float, ...] = ()

    def resized(self, size: str) -> Dataset:
        """The same generator with another number of rows and columns, "ROWSxCOLUMNS"."""
        rows, columns = (int(part) for part in size.split("x"))
        name = f"{self.name.split('(')[0]}({rows}x{columns})"
        return replace(self, name=name, size=(rows, columns))


ADULT = Dataset("Adult", "adult")
BANK = Dataset("Bank", "bank_full", openml=1461, code_all=True)
CREDIT1 = Dataset("Credit 1", "credit1_gmsc")
CREDIT2 = Dataset("Credit 2", "credit2_default", openml=42477)
CALIFORNIA = Dataset("California", "california_housing", threshold="median")
ELECTRICITY = Dataset("Electricity", "electricity", openml=151)
HOUSE = Dataset("House 16H", "house_16h_bin", openml=44123)
POL = Dataset("Pol", "pol_bin", openml=44122)
EYE = Dataset("Eye movements", "eye_movements", openml=44130)
ABALONE = Dataset("Abalone", "abalone", "reg:squarederror", bounds=(0.0, 30.0))
BAR = (ADULT, BANK, CREDIT1, CREDIT2, CALIFORNIA, ELECTRICITY, HOUSE, POL, EYE, ABALONE)

HIGGS_11K = Dataset("Higgs 11k", "higgs_11k")
COVTYPE_25K = Dataset("Covtype 25k", "covtype_25k", positive=(2,))
SLEEP = Dataset("Sleep", "sleep", "multi:softprob")
FARS = Dataset("FARS", "fars", "multi:softprob")
HOSPITALS = Dataset("Diabetes 130", "diabetes130us", "multi:softprob")
COVTYPE_7 = Dataset("Covtype 25k, 7 classes", "covtype_25k", "multi:softprob")
PRICES = Dataset(
    "California, prices", "california_housing", "reg:squarederror", bounds=(0.0, 500_001.0)
)
HOUSE_PRICES = Dataset("House 16H, prices", "house_16h", "reg:squarederror", bounds=(0, 500_001.0))
POL_NUMBERS = Dataset("Pol, numbers", "pol", "reg:squarederror", bounds=(0.0, 100.0))
PHISHING = Dataset("Phishing", "phishing_websites", openml=4534)
HELOC = Dataset("HELOC", "heloc")
WEBDATA = Dataset("Webdata", "w8a")
PATIENTS = Dataset(
    "Patients", "diabetes130us_persons", positive=(1, 2), person="person", most_rows=40
)
VISITS = Dataset(
    "Visits", generate="visits", size=(1500, 14), person="person", most_rows=synthetic.MOST_ROWS
)
CLAIMS = Dataset(
    "Claims", "bemtpl97", "count:poisson", bounds=(0.0, 5.0), drop=("amount",), exposure="exposure"
)
AMOUNTS = Dataset(
    "Amounts a policy",
    "bemtpl97",
    "reg:tweedie",
    bounds=(0.0, 50_000.0),
    drop=("target",),
    target="amount",
    exposure="exposure",
)
SEVERITIES = Dataset(
    "Amounts above 0",
    "bemtpl97",
    "reg:gamma",
    bounds=(1.0, 50_000.0),
    drop=("target", "exposure"),
    target="amount",
    above_zero=True,
)
SURVIVAL = Dataset("Survival", "support2", "survival:aft", bounds=(1.0, 3000.0), event="death")
LEVELS = (0.1, 0.5, 0.9)
# The defaults of quantiles were chosen on the first two.
_FOR_QUANTILES = (PRICES, HOUSE_PRICES, ABALONE, POL_NUMBERS)
SEVERAL_QUANTILES = tuple(
    replace(data, name=f"{data.name}, quantiles", objective="reg:quantileerror", quantiles=LEVELS)
    for data in _FOR_QUANTILES
)
MEDIANS = tuple(
    replace(data, name=f"{data.name}, median", objective="reg:absoluteerror", quantiles=(0.5,))
    for data in _FOR_QUANTILES
)
# The columns of the first name that no row lacks: what is left of Nomao in the papers.
NOMAO = Dataset("Nomao", "nomao", keep=("V1", "V2", "V3", "V4", "V5", "V6"), openml=1486)


def folder() -> Path | None:
    """The data folder, if ``XGB_DP_DATA`` names one."""
    path = os.environ.get("XGB_DP_DATA", "")
    return Path(path) if path and Path(path).is_dir() else None


def path(data: Dataset) -> Path:
    """The file of a data set, downloaded if that is allowed and needed.

    Raises:
        MissingDataError: If it is not available; the message says how to get it.
    """
    place = folder()
    if place is not None and (place / f"{data.file}.parquet").is_file():
        return place / f"{data.file}.parquet"
    if download.allowed():
        try:
            path = download.fetch(data.file, data.openml)
        except Exception as reason:  # any failure of the network or of a checksum
            raise MissingDataError(f"{data.name}: the download failed: {reason}") from reason
        if path is not None:
            return path
        raise MissingDataError(f"{data.name}: no source to download is known; see README")
    raise MissingDataError(
        f"{data.name}: {data.file}.parquet is not in the folder that XGB_DP_DATA names; give "
        "--download to fetch it"
    )


def load(data: Dataset) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[str]]]:
    """Features, target and the declared categories of a task.

    Raises:
        MissingDataError: If the data set is not at hand.
    """
    if data.generate:
        return synthetic.generate(data.generate, *data.size)
    frame = pd.read_parquet(path(data))
    if data.train_only:
        if "split" not in frame:
            raise MissingDataError(f"{data.name}: this copy does not tell train from test rows")
        frame = frame[frame["split"] == "train"]
    beside = ("split", data.person, data.exposure, data.event, *data.drop)
    frame = frame.drop(columns=[c for c in beside if c in frame])
    if data.keep:
        frame = frame[[*data.keep, data.target]]
    if data.complete_rows:
        frame = frame.dropna()
    if data.classes:
        frame = frame[frame[data.target].isin(data.classes)]
    if data.above_zero:
        frame = frame[frame[data.target] > 0]
    y = frame.pop(data.target).to_numpy(dtype=np.float32)
    if data.positive:
        y = np.isin(y, np.asarray(data.positive, dtype=np.float32)).astype(np.float32)
    if data.objective.startswith("multi:"):
        y = np.unique(y, return_inverse=True)[1].astype(np.float32)
    if data.threshold == "median":
        y = (y > np.median(y)).astype(np.float32)
    if data.balance:
        rows = balanced(y)
        frame, y = frame.iloc[rows], y[rows]
    frame = frame.reset_index(drop=True)
    categories: dict[str, list[str]] = {}
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            names = sorted(str(v) for v in frame[name].dropna().unique())
            frame[name] = pd.Categorical(frame[name].astype("object"), categories=names)
            categories[str(name)] = names
        else:
            frame[name] = frame[name].astype(np.float32)
    return frame, y, categories


def persons(data: Dataset) -> np.ndarray:
    """Whom each row of :func:`load` belongs to, of a data set with persons, shape (rows,)."""
    if data.generate:
        return synthetic.rows_of_persons(data.size[0])
    return pd.read_parquet(path(data), columns=[data.person])[data.person].to_numpy()


def column(data: Dataset, name: str) -> np.ndarray:
    """A column beside the features for each row of :func:`load`, shape (rows,).

    Of data sets whose rows are all used, or those with a label above 0.
    """
    frame = pd.read_parquet(path(data), columns=[name, data.target])
    kept = frame[frame[data.target] > 0] if data.above_zero else frame
    return kept[name].to_numpy(dtype=np.float64)


def balanced(y: np.ndarray) -> np.ndarray:
    """Rows of as many zeros as ones, drawn once and for all."""
    rng = np.random.default_rng(PUBLIC_SEED)
    groups = [np.flatnonzero(y == c) for c in (0, 1)]
    size = min(len(g) for g in groups)
    return np.sort(np.concatenate([rng.choice(g, size, replace=False) for g in groups]))


def as_codes(frame: pd.DataFrame, everything: bool = False) -> pd.DataFrame:
    """Numbers for categories, in the order of their names, and missing values as they are.

    Args:
        frame: Features.
        everything: Ranks of values for the numeric columns too.
    """
    out = {}
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = column.cat.codes.to_numpy(dtype=np.float32)
        elif everything:
            codes = pd.Categorical(column).codes.astype(np.float32)
        else:
            out[name] = column
            continue
        codes[codes < 0] = np.nan
        out[name] = codes
    return pd.DataFrame(out, index=frame.index)


# Candidates of a column in the papers.
CANDIDATES = 32


def public_range(column: pd.Series, least: bool) -> tuple[float, float]:
    """Range of a column, over the whole file.

    Args:
        column: Numbers.
        least: Whether the inner edges of an even grid of CANDIDATES + 1 bins are to be the papers'
            candidates, of which the first is the least value itself: "equals the least value" is
            then a split, which counts with many zeros need.
    """
    low, high = float(column.min()), float(column.max())
    high = high if high > low else low + 1.0
    width = (high - low) / CANDIDATES
    return (low - width * (1 - 1e-4), high) if least else (low, high)


def log_cuts(column: pd.Series) -> list[float]:
    """Logarithmic candidates from the side of the column that has most rows.

    That side is taken from the whole file, as public knowledge of the skew.
    """
    low, high = float(column.min()), float(column.max())
    steps = np.expm1(np.linspace(0.0, np.log1p(high - low), CANDIDATES, endpoint=False))
    cuts = low + steps if column.skew() >= 0 else high - steps
    # A row at a cut goes left in the paper and right in XGBoost.
    return sorted({float(np.nextafter(np.float32(c), np.float32(np.inf))) for c in cuts})
