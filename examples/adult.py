"""The Adult census data (UCI), with its documented categories.

The categories come from the description of the data set, not from its rows: which categories occur
is data, and a private model must not learn it from there.
"""

from __future__ import annotations

import contextlib
import os
import socket
import warnings
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import numpy as np
import pandas as pd

# fmt: off
CATEGORIES: dict[str, list[str]] = {
    "workclass": [
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
        "Without-pay", "Never-worked",
    ],
    "education": [
        "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc",
        "9th", "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
    ],
    "marital_status": [
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
        "Married-spouse-absent", "Married-AF-spouse",
    ],
    "occupation": [
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
        "Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical",
        "Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv", "Armed-Forces",
    ],
    "relationship": [
        "Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried",
    ],
    "race": ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"],
    "sex": ["Female", "Male"],
    "native_country": [
        "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany",
        "Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba", "Iran",
        "Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico", "Portugal",
        "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan", "Haiti", "Columbia",
        "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand", "Yugoslavia", "El-Salvador",
        "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
    ],
}
# fmt: on
NUMBERS = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
TIMEOUT_S = 10.0


def clean(frame: pd.DataFrame, target: pd.Series) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and labels in the form that training takes.

    Each cell is treated by itself: a category outside the documented ones becomes missing.

    Args:
        frame: The 14 columns, named with ``-`` or ``_``.
        target: 0 and 1, or ``<=50K`` and ``>50K``.

    Returns:
        Columns with declared categories, and labels 0 or 1 (income above 50,000 dollars).
    """
    frame = frame.rename(columns=lambda c: str(c).replace("-", "_"))
    out = {name: pd.to_numeric(frame[name]).astype("float32") for name in NUMBERS}
    columns = pd.DataFrame(out, index=frame.index)
    for name, declared in CATEGORIES.items():
        cells = frame[name].astype("object")
        cells = cells.where(cells.isin(declared), None)
        columns[name] = pd.Categorical(cells, categories=declared)
    text = target.astype(str).str.strip().str.rstrip(".")
    return columns, text.isin(["1", ">50K"]).to_numpy().astype(int)


@contextlib.contextmanager
def _timeout(seconds: float) -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def load() -> tuple[pd.DataFrame, np.ndarray, str] | str:
    """Adult from the folder ``XGB_DP_DATA``, else from OpenML.

    Returns:
        Columns, labels and where they came from; or, if there are none, the reason.
    """
    folder = os.environ.get("XGB_DP_DATA")
    if folder and (path := Path(folder) / "adult.parquet").is_file():
        frame = pd.read_parquet(path)
        return *clean(frame, frame["target"]), "adult.parquet in XGB_DP_DATA"
    from sklearn.datasets import fetch_openml

    try:
        with _timeout(TIMEOUT_S), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one line about a retry
            adult = fetch_openml("adult", version=2, as_frame=True, n_retries=1, delay=0.1)
    except (OSError, ValueError, HTTPException) as error:  # no network, or another answer
        return f"Adult could not be downloaded from OpenML ({type(error).__name__}: {error})"
    return *clean(adult.data, adult.target), "OpenML, adult version 2"
