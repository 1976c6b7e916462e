"""Random rows in every container; cells and labels hold marks that no message may show."""

import re
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["MARKS", "Rows", "rows"]

NUMBER = 731406.25  # exact in 32 bits
TEXT = "marked-cell-7314"
MARKS = re.compile(r"731406|marked-cell|7\.31406")


class Rows:
    """Rows of one case."""

    def __init__(self, rng: Random) -> None:
        self.kind = rng.choice(("binary", "binary", "regression", "multiclass"))
        noise = np.random.default_rng(rng.getrandbits(32))
        n = rng.choice((0, 1, 2, 7, 40, 40, 40, 40))
        self.columns = rng.choice((1, 2, 3, 3, 3, 5))
        X = noise.normal(size=(n, self.columns)).astype(np.float32)
        if rng.random() < 0.4:
            X[noise.random(X.shape) < 0.2] = np.nan
        if n and rng.random() < 0.5:
            X[rng.randrange(n), rng.randrange(self.columns)] = NUMBER
        classes = {"binary": 2, "multiclass": 3}.get(self.kind)
        y: Any = noise.integers(0, classes, n) if classes else noise.normal(size=n)
        self.names: list[str] | None = None
        self.keywords: dict[str, Any] = {}
        self.X: Any = self._container(rng, X)
        self.y = self._labels(rng, y.astype(np.float32))
        self.n = n
        self._extras(rng, noise)

    def _container(self, rng: Random, X: np.ndarray) -> Any:
        import pandas as pd

        kind = rng.randrange(14)
        frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
        if kind < 5:
            return X
        if kind == 5:
            return X.astype(rng.choice((np.float64, np.float16, object, ">f4")))
        if kind == 6:
            return rng.choice((sp.csr_matrix, sp.csc_matrix, sp.coo_matrix))(np.nan_to_num(X))
        if kind == 7:
            return X.tolist()
        if kind == 8:
            self.names = list(frame.columns)
            return frame
        if kind == 9:
            frame["c0"] = pd.Categorical(np.where(frame["c0"] > 0, "up", "down"), ["down", "up"])
            self.keywords["enable_categorical"] = rng.random() < 0.9
            self.names = list(frame.columns)
            return frame
        if kind == 10:
            frame["c0"] = frame["c0"].astype(object)
            if len(frame):
                frame.loc[0, "c0"] = TEXT
            return frame
        if kind == 11:
            frame.columns = [rng.choice(("a", "b", "", "a[0]", 5)) for _ in frame.columns]
            return frame
        if kind == 12:
            import pyarrow as pa

            self.names = list(frame.columns)
            return pa.Table.from_pandas(frame, preserve_index=False)
        import polars as pl

        self.names = list(frame.columns)
        return pl.DataFrame({c: frame[c].to_numpy() for c in frame.columns})

    def _labels(self, rng: Random, y: np.ndarray) -> Any:
        kind = rng.randrange(16)
        if kind < 9 or not len(y):
            return y
        if kind == 9:
            y[rng.randrange(len(y))] = rng.choice((NUMBER, np.nan, np.inf, -1, 0.5, 1e30))
            return y
        if kind == 10:
            return y.astype(rng.choice((np.float64, np.int64, object)))
        if kind == 11:
            return y[: rng.randrange(len(y))]
        if kind == 12:
            return np.stack([y, y], axis=1)
        if kind == 13:
            return np.array([TEXT] * len(y))
        if kind == 14:
            return rng.choice((None, y.tolist(), (y > 0), y.reshape(-1, 1)))
        mixed = y.astype(object)
        mixed[0] = TEXT
        return mixed

    def _extras(self, rng: Random, noise: np.random.Generator) -> None:
        if rng.random() < 0.2:
            size = self.n if rng.random() < 0.7 else rng.choice((0, 1, self.n + 1))
            weight = noise.random(size)
            if size and rng.random() < 0.4:
                weight[0] = rng.choice((np.nan, np.inf, -1.0, 0.0, 1e30, NUMBER))
            self.keywords["weight"] = weight
        if rng.random() < 0.1:
            shape = rng.choice(((self.n,), (self.n, 3), (self.n + 1,), (self.n, 1)))
            margin = noise.normal(size=shape)
            if margin.size and rng.random() < 0.4:
                margin.flat[0] = rng.choice((np.nan, np.inf, NUMBER))
            self.keywords["base_margin"] = margin
        if rng.random() < 0.05:
            self.keywords["feature_weights"] = noise.random(self.columns)
        if rng.random() < 0.05:
            self.keywords["feature_types"] = rng.choice(
                (["c"] * self.columns, ["q"] * self.columns, ["int"] * self.columns, ["c"])
            )
        if rng.random() < 0.05:
            self.keywords["feature_names"] = rng.choice(
                ([f"n{i}" for i in range(self.columns)], ["a"] * self.columns, ["a"])
            )
        if rng.random() < 0.05:
            self.keywords["missing"] = rng.choice((0.0, NUMBER, np.inf))
        if rng.random() < 0.03:
            self.keywords["group"] = [self.n]


def rows(rng: Random) -> Rows:
    """The rows of one case."""
    return Rows(rng)
