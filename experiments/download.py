"""Downloads with checksums and a cache, only where ``--download`` allows them.

Adult and Abalone come from the UCI repository through pooch, which checks SHA-256; Covtype and
California through scikit-learn's own fetchers, and the rest from OpenML through
``sklearn.datasets.fetch_openml``, which check what they get as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd

SWITCH = "XGB_DP_DOWNLOAD"
UCI = os.environ.get("XGB_DP_UCI", "https://archive.ics.uci.edu/ml/machine-learning-databases")
SHA256 = {
    "adult/adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult/adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "abalone/abalone.data": "de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f",
}
# fmt: off
ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
    "native_country", "target",
]
ABALONE_COLUMNS = [
    "sex", "length", "diameter", "height", "whole_weight", "shucked_weight", "viscera_weight",
    "shell_weight", "target",
]
# fmt: on


def allowed() -> bool:
    """Whether downloads were asked for."""
    return os.environ.get(SWITCH, "") == "1"


def cache() -> Path:
    """Folder of downloaded files (``XGB_DP_CACHE``)."""
    default = Path.home() / ".cache" / "xgb_dp"
    return Path(os.environ.get("XGB_DP_CACHE", "") or default)


def fetch(name: str, openml: int) -> Path | None:
    """A Parquet file in the form of the data folder, made from the original source.

    Args:
        name: Stem of the file.
        openml: OpenML number, or 0.

    Returns:
        Its path in the cache, or None if no source is known.

    Raises:
        OSError: If the source cannot be reached.
        ValueError: If its content has another checksum.
    """
    place = cache() / f"{name}.parquet"
    if place.is_file():
        return place
    makers: dict[str, Callable[[], pd.DataFrame]] = {
        "adult": adult,
        "abalone": abalone,
        "covtype": covtype,
        "california_housing": california,
    }
    if name in makers:
        frame = makers[name]()
    elif openml:
        frame = from_openml(openml)
    else:
        return None
    cache().mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(".part")
    frame.to_parquet(part)
    part.replace(place)  # never a half-written file under the final name
    return place


def uci(file: str) -> str:
    """Path of a checked file of the UCI repository."""
    import pooch

    return pooch.retrieve(f"{UCI}/{file}", f"sha256:{SHA256[file]}", path=cache() / "uci")


def adult() -> pd.DataFrame:
    """Both parts of Adult, with the column ``split``."""
    parts = []
    for split, file, skip in (("train", "data", 0), ("test", "test", 1)):
        part = pd.read_csv(
            uci(f"adult/adult.{file}"),
            names=ADULT_COLUMNS,
            skiprows=skip,
            skipinitialspace=True,
            na_values="?",
        )
        part.insert(0, "split", split)
        parts.append(part)
    frame = pd.concat(parts, ignore_index=True)
    frame["target"] = frame["target"].str.startswith(">50K").astype("int8")
    return frame


def abalone() -> pd.DataFrame:
    """Abalone; the target is the number of rings."""
    return pd.read_csv(uci("abalone/abalone.data"), names=ABALONE_COLUMNS)


def covtype() -> pd.DataFrame:
    """All 581,012 rows; the target is the class, 1 to 7."""
    from sklearn.datasets import fetch_covtype

    got = fetch_covtype(data_home=str(cache() / "sklearn"), as_frame=True)
    return got.data.assign(target=got.target.astype(float))


def california() -> pd.DataFrame:
    """California housing in scikit-learn's edition, with averages for each household."""
    from sklearn.datasets import fetch_california_housing

    got = fetch_california_housing(data_home=str(cache() / "sklearn"), as_frame=True)
    return got.data.assign(target=got.target)


def from_openml(number: int) -> pd.DataFrame:
    """A binary task of OpenML; the last label in order counts as 1."""
    from sklearn.datasets import fetch_openml

    got = fetch_openml(data_id=number, data_home=str(cache() / "sklearn"), as_frame=True)
    frame = got.data.copy()
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype("object")
    labels = got.target.astype(str)
    last = sorted(labels.unique())[-1]
    return frame.assign(target=(labels == last).astype("int8"))
