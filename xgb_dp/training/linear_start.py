"""The first trees of a linear start: a ridge on ranks and categories, a tree of each column.

Ranks are those of the bins that the released candidates give, so that the unit of a column decides
nothing. All is made of what was released and of public numbers, and costs nothing more.

Proof: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..calibrate.mechanisms import NoisePlan
from ..engine import workers
from ..engine.model_writing import tree_of_column
from ..releases.products import positions, products_of, scored
from ..request.settings import Settings
from .column_start import as_log_odds
from .label_means import Sums

Floats = npt.NDArray[np.float64]

_ROOM = 1.15  # of the mean square of a row's scores: beyond that rows are shrunk
_HALF_ROOT = 23170 / 32768  # what a square, or a product with the label, weighs in the trainer
_MOST_SCALE = 1.5  # of the ridge, which is shrunk to begin with
_LEAST_ROWS = 5.0  # of the rarer class, in deviations of a sum with the label
_LEAST_EXPLAINED = 3.0  # deviations of what noise alone explains
_LEAST_COVER = 1e-6  # of a leaf, as a share of all rows: XGBoost divides by covers
_LEAST_EFFECT = 1e-3  # of a column that a tree is grown for, in log-odds


def requests(
    s: Settings, noise: NoisePlan, request: dict[str, Any], plan: Mapping[str, Any]
) -> tuple[dict[str, Any], ...]:
    """What is asked for after the intercept: candidates, and products without their scores."""
    kept = {k: v for k, v in request.items() if k not in ("n_public", "columns")}
    kept["again"] = True
    of_trees = {name: plan[name] for name in ("candidates", "features")}
    sums = {"kind": "products", "sums": products_of(positions(s))}
    counts, products = (
        {"shift": noise[name].shift, "sigma2": noise[name].sigma2}
        for name in ("candidates", "products")
    )
    return kept | of_trees | {"kind": "candidates"} | counts, kept | sums | products


@dataclass(frozen=True)
class Column:
    """A column as a linear model has it."""

    index: int
    cuts: list[float] | None  # ascending; None for categories
    ranks: Floats  # of each bin, from -1 to 1 and centred; or 1 of any category
    counts: Floats  # rows in each bin, above 0; or 1 of each category, which are not counted yet

    @classmethod
    def of_numbers(cls, index: int, cuts: list[float], leaves: Sequence[Any]) -> Column:
        """Bins between these cuts, whose counts follow from noisy counts of cells of keys."""
        begin, end, count = np.array(leaves, dtype=np.float64).T
        count = np.maximum(count, 0.0) + 1e-9  # some of each, where there is nothing but noise
        below = np.concatenate([[0.0], np.cumsum(count)])
        keys = _keys(np.array(cuts, dtype=np.float32))
        cell = np.clip(np.searchsorted(begin, keys, side="right") - 1, 0, len(begin) - 1)
        inside = np.clip((keys - begin[cell]) / (end - begin)[cell], 0.0, 1.0)
        at = (below[cell] + count[cell] * inside) / below[-1]
        at = np.maximum.accumulate(np.concatenate([[0.0], at, [1.0]]))
        shares, ranks = np.diff(at), at[1:] + at[:-1] - 1.0
        return cls(index, cuts, ranks - float(np.dot(ranks, shares)), shares * below[-1])

    @property
    def width(self) -> int:
        """Its coordinates."""
        return 1 if self.cuts is not None else len(self.counts)

    @property
    def square(self) -> float:
        """The mean square of its scores where none is missing, in units of a rank of 1."""
        return float(np.average(self.ranks**2, weights=self.counts)) if self.cuts else 1.0

    def to_request(self, unit: float) -> dict[str, Any]:
        """Its whole scores: of the bins and of missing cells, or of any category."""
        scores = np.trunc(self.ranks * unit).astype(np.int64).tolist()
        if self.cuts is None:
            return {"index": self.index, "categories": self.width, "cuts": [], "scores": scores}
        cuts = [repr(float(np.float32(cut))) for cut in self.cuts]
        scores.append(scores[np.argmin(np.abs(self.ranks))])
        return {"index": self.index, "categories": 0, "cuts": cuts, "scores": scores}

    def tree(
        self, number: int, width: int, effects: Floats, counts: Floats, rows: float
    ) -> dict[str, Any]:
        """The tree that adds these effects; rows that are not counted have a missing cell."""
        if (total := float(counts.sum())) > rows:
            counts = counts * (rows / total)
        missing = int(np.argmin(np.abs(effects if self.cuts is None else self.ranks)))
        counts[missing] += max(rows - total, 0.0)
        counts = np.maximum(counts, _LEAST_COVER * rows)
        return tree_of_column(number, width, self.index, effects, counts, missing, self.cuts)


@dataclass(frozen=True)
class LinearStart:
    """The scores of all columns."""

    columns: tuple[Column, ...]  # those of numbers, and then those of categories
    unit: int  # what a rank of 1 is as a score
    most: int  # the largest norm of the scores of a row
    labels: Sums  # what the intercept has released

    @classmethod
    def of(
        cls, s: Settings, noise: NoisePlan, first: Sequence[int], trees: Sequence[Mapping[str, Any]]
    ) -> LinearStart:
        """Scores such that few rows are shrunk; the private columns have these quantile trees."""
        released, columns = iter(trees), []
        for i in scored(s):
            feature = s.features[i]
            if feature.kind == "categorical":
                columns.append(Column(i, None, np.ones(1), np.ones(feature.size)))
            else:
                tree = next(released)
                columns.append(Column.of_numbers(i, tree["cuts"], tree["leaves"]))
        columns.sort(key=lambda column: column.cuts is None)
        # Products of scores are whole numbers of the grid.
        most = math.isqrt(1 << noise["products"].shift)
        norm = math.sqrt(1.0 + _ROOM * sum(column.square for column in columns))
        return cls(tuple(columns), math.floor(most / norm), most, Sums.of(s, noise, first))

    @property
    def request(self) -> dict[str, Any]:
        """The scores, for the release of their products; all workers take the first one's."""
        asked = {
            "constant_score": self.unit,
            "scored": [c.to_request(self.unit) for c in self.columns],
        }
        agreed: dict[str, Any] = json.loads(workers.told_by(0, json.dumps(asked).encode()))
        return agreed

    def first_trees(
        self, noise: NoisePlan, sums: Sequence[int], width: int
    ) -> tuple[float, list[dict[str, Any]]]:
        """The log-odds below the trees, and the trees as XGBoost stores them in JSON.

        Post-processing, costs nothing. All workers take those of the first one, down to the last
        bits of their floats.
        """
        deviation = math.sqrt(noise["products"].sigma2)
        gram, by_label = _matrices(sums, 1 + sum(column.width for column in self.columns))
        share = min(max(0.5 + 0.5 * self.labels.label, 0.001), 0.999)
        weights = self._weights(gram, by_label, share, deviation)
        trees: list[dict[str, Any]] = []
        squares, first = np.diag(gram), 1
        for column in self.columns:
            last = first + column.width
            effects = as_log_odds(weights[first:last] * column.ranks, share)
            counts = column.counts
            if column.cuts is None:
                counts = _shares(squares[first:last], squares[0], deviation) * self.labels.rows
            if len(effects) > 1 and np.max(np.abs(effects)) >= _LEAST_EFFECT:
                trees.append(column.tree(len(trees), width, effects, counts, self.labels.rows))
            first = last
        centre = math.log(share / (1.0 - share)) + float(weights[0])
        agreed = json.loads(workers.told_by(0, json.dumps([centre, trees]).encode()))
        return agreed[0], agreed[1]

    def _weights(self, gram: Floats, by_label: Floats, share: float, deviation: float) -> Floats:
        """What the constant and each score add to the log-odds, by a Newton step from the share.

        All are 0 where the rarer class has too few rows beside the noise.
        """
        # Labels were shrunk as the constants of their rows, and so the mean of the labels is too.
        mean = (2.0 * share - 1.0) * self.most / self.unit
        deviation *= math.hypot(1.0 / _HALF_ROOT, mean)
        # How many rows with a rank of 1 the noise of their sum with the label is worth.
        rows = deviation / (self.most * self.unit)
        if self.labels.rows * min(share, 1.0 - share) < _LEAST_ROWS * rows:
            return np.zeros(len(gram))
        units = self.most**2
        weights = shrunk_ridge(gram / units, (by_label - mean * gram[0]) / units, deviation / units)
        return weights * (0.5 / (share * (1.0 - share)) * self.unit / self.most)


def _shares(squares: Floats, of_all: float, deviation: float) -> Floats:
    """Shares of rows in categories: of their squares in the constant's, shrunk by the noise."""
    deviation /= _HALF_ROOT
    shrunk = squares - deviation**2 / np.maximum(squares, deviation)
    return np.maximum(shrunk, 0.0) / max(of_all, deviation, 1.0)


def _keys(values: npt.NDArray[np.float32]) -> Floats:
    """Keys of 32-bit floats in their order, as quantile trees have them."""
    bits = np.where(values == 0, np.float32(0), values).astype(np.float32).view(np.uint32)
    sign = np.uint32(1 << 31)
    return np.where(bits & sign, ~bits, bits | sign).astype(np.float64)


def _matrices(sums: Sequence[int], n: int) -> tuple[Floats, Floats]:
    """The sums of products of n scores, and those of each with the label, in units of scores."""
    values, (rows, columns) = np.array(sums, dtype=np.float64), np.triu_indices(n)
    gram = np.zeros((n, n))
    gram[rows, columns] = np.where(rows == columns, 0.5 / _HALF_ROOT, 1.0) * values[: len(rows)]
    return gram + gram.T, values[len(rows) :] / _HALF_ROOT


def shrunk_ridge(gram: Floats, by_label: Floats, deviation: float) -> Floats:
    """Coefficients of the labels on scores, shrunk by what noise is beside what they explain.

    All are 0 where they explain no more than noise may.

    The deviation is that of the noise of each sum with the label.
    """
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    by_label = vectors.T @ by_label
    inverse = 1.0 / (values + deviation * math.sqrt(2.0 * len(gram)) + 1.0)
    effects = inverse * by_label
    # What the ridge explains, less what its own noise makes of it, and its best multiple.
    explained = float(effects @ by_label) - deviation**2 * float(inverse.sum())
    if explained <= _LEAST_EXPLAINED * deviation**2 * math.sqrt(2.0 * float(inverse @ inverse)):
        return np.zeros(len(gram))
    square, norm2 = float(values @ effects**2), float(effects @ effects)
    scale = min(explained / max(square, 1e-300), _MOST_SCALE)
    gain = max(2.0 * scale * explained - scale**2 * square, 0.0) ** 2
    noise = (2.0 * scale * deviation) ** 2 * (norm2 + norm2**2 / 4.0)
    return np.asarray(vectors @ effects * (scale * gain / max(gain + noise, 1e-300)))
