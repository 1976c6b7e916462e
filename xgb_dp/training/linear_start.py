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
from .label_means import Sums

Floats = npt.NDArray[np.float64]

_ROOM = 1.15  # of the mean square of a row's scores: beyond that rows are shrunk
_HALF_ROOT = 23170 / 32768  # what a square, or a product with the label, weighs in the trainer
_MOST_SCALE = 1.5  # of the ridge, which is shrunk to begin with
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
    shares: Floats  # of rows in each bin; or of each category, if all were as frequent

    @classmethod
    def of_numbers(cls, index: int, cuts: list[float], leaves: Sequence[Any]) -> Column:
        """Bins between these cuts, whose shares follow from noisy counts of cells of keys."""
        begin, end, count = np.array(leaves, dtype=np.float64).T
        count = np.maximum(count, 0.0) + 1e-9  # some of each, where there is nothing but noise
        below = np.concatenate([[0.0], np.cumsum(count)])
        keys = _keys(np.array(cuts, dtype=np.float32))
        cell = np.clip(np.searchsorted(begin, keys, side="right") - 1, 0, len(begin) - 1)
        inside = np.clip((keys - begin[cell]) / (end - begin)[cell], 0.0, 1.0)
        at = (below[cell] + count[cell] * inside) / below[-1]
        at = np.maximum.accumulate(np.concatenate([[0.0], at, [1.0]]))
        shares, ranks = np.diff(at), at[1:] + at[:-1] - 1.0
        return cls(index, cuts, ranks - float(np.dot(ranks, shares)), shares)

    @property
    def width(self) -> int:
        """Its coordinates."""
        return 1 if self.cuts is not None else len(self.shares)

    def to_request(self, unit: float) -> dict[str, Any]:
        """Its whole scores: of the bins and of missing cells, or of any category."""
        scores = np.trunc(self.ranks * unit).astype(np.int64).tolist()
        if self.cuts is None:
            return {"index": self.index, "categories": self.width, "cuts": [], "scores": scores}
        cuts = [repr(float(np.float32(cut))) for cut in self.cuts]
        scores.append(scores[np.argmin(np.abs(self.ranks))])
        return {"index": self.index, "categories": 0, "cuts": cuts, "scores": scores}


@dataclass(frozen=True)
class LinearStart:
    """The scores of all columns."""

    columns: tuple[Column, ...]  # those of numbers, and then those of categories
    unit: int  # what a rank of 1 is as a score
    most: int  # the largest norm of the scores of a row

    @classmethod
    def of(cls, s: Settings, shift: int, trees: Sequence[Mapping[str, Any]]) -> LinearStart:
        """Scores such that few rows are shrunk; the private columns have these quantile trees."""
        released, columns, square = iter(trees), [], 1.0
        for i in scored(s):
            feature = s.features[i]
            if feature.kind == "categorical":
                columns.append(
                    Column(i, None, np.ones(1), np.full(feature.size, 1.0 / feature.size))
                )
                square += _ROOM
            else:
                tree, ends = next(released), feature.grid or (-math.inf, math.inf)
                cuts = [cut for cut in tree["cuts"] if ends[0] < cut <= ends[-1]]
                columns.append(Column.of_numbers(i, cuts, tree["leaves"]))
                square += _ROOM * float(np.dot(columns[-1].ranks ** 2, columns[-1].shares))
        most = math.isqrt(1 << shift)  # products of scores are whole numbers of the grid
        columns.sort(key=lambda column: column.cuts is None)
        return cls(tuple(columns), math.floor(most / math.sqrt(square)), most)

    @property
    def request(self) -> dict[str, Any]:
        """The scores, for the release of their products; all workers take the first one's."""
        asked = {
            "constant_score": self.unit,
            "scored": [c.to_request(self.unit) for c in self.columns],
        }
        agreed: dict[str, Any] = json.loads(workers.told_by(0, json.dumps(asked).encode()))
        return agreed

    def effects(
        self, s: Settings, noise: NoisePlan, first: Sequence[int], sums: Sequence[int]
    ) -> tuple[float, list[Floats]]:
        """The log-odds of all rows, and what each bin or category of each column adds."""
        label = Sums.of(s, noise, first).label
        share = min(max(0.5 + 0.5 * label, 0.001), 0.999)
        weights = shrunk_ridge(
            np.array(sums, dtype=np.float64) / self.most**2,
            1 + sum(column.width for column in self.columns),
            math.sqrt(noise["products"].sigma2) / self.most**2,
        )
        centre = math.log(share / (1.0 - share))
        # A Newton step from there, towards the mean label that the scores predict.
        slope = 0.5 / (share * (1.0 - share))
        weights *= slope * self.unit / self.most
        if weights.any():
            centre += float(weights[0]) - slope * label
        effects = []
        for column in self.columns:
            of_column, weights = weights[1 : 1 + column.width], weights[column.width :]
            effects.append((of_column * column.ranks).tolist())
        agreed = json.loads(workers.told_by(0, json.dumps([centre, effects]).encode()))
        return agreed[0], [np.array(of_column) for of_column in agreed[1]]

    def trees(self, effects: Sequence[Floats], width: int, total: float) -> list[dict[str, Any]]:
        """The trees as XGBoost stores them in JSON."""
        out: list[dict[str, Any]] = []
        for column, effect in zip(self.columns, effects, strict=True):
            if len(effect) > 1 and np.max(np.abs(effect)) >= _LEAST_EFFECT:
                covers = np.maximum(column.shares, 1e-6) * total
                missing = np.argmin(np.abs(effect if column.cuts is None else column.ranks))
                leaves = (effect, covers, int(missing), column.cuts)
                out.append(tree_of_column(len(out), width, column.index, *leaves))
        return out


def _keys(values: npt.NDArray[np.float32]) -> Floats:
    """Keys of 32-bit floats in their order, as quantile trees have them."""
    bits = np.where(values == 0, np.float32(0), values).astype(np.float32).view(np.uint32)
    sign = np.uint32(1 << 31)
    return np.where(bits & sign, ~bits, bits | sign).astype(np.float64)


def shrunk_ridge(sums: Floats, n: int, deviation: float) -> Floats:
    """Coefficients of the labels on n scores, shrunk by what noise is beside what they explain.

    The deviation is that of each sum.
    """
    rows, columns = np.triu_indices(n)
    gram = np.zeros((n, n))
    gram[rows, columns] = np.where(rows == columns, 0.5 / _HALF_ROOT, 1.0) * sums[: len(rows)]
    values, vectors = np.linalg.eigh(gram + gram.T)
    values = np.maximum(values, 0.0)
    by_label = vectors.T @ sums[len(rows) :] / _HALF_ROOT
    deviation = deviation / _HALF_ROOT
    inverse = 1.0 / (values + deviation * math.sqrt(2.0 * n) + 1.0)
    effects = inverse * by_label
    # What the ridge explains, less what its own noise makes of it, and its best multiple.
    explained = float(effects @ by_label) - deviation**2 * float(inverse.sum())
    square, norm2 = float(values @ effects**2), float(effects @ effects)
    scale = min(explained / square, _MOST_SCALE) if explained > 0.0 and square > 0.0 else 0.0
    gain = max(2.0 * scale * explained - scale**2 * square, 0.0) ** 2
    noise = (2.0 * scale * deviation) ** 2 * (norm2 + norm2**2 / 4.0)
    return np.asarray(vectors @ effects * (scale * gain / max(gain + noise, 1e-300)))
