"""Reconstruction of training rows from the trees and the sums of Hessians in a model file.

The idea is that of TimberStrike (Di Gennaro and others, PoPETs 2025), which attacks federated
XGBoost; the method here is our own. Before the first tree all rows have one margin, so that the
Hessian of a leaf tells how many rows it has, and its value how many of them are positive. Rows are
kept in groups of one label and one cell: the leaves that they are in so far. Each further tree is
an integer program, which sends the rows of every group to leaves whose boxes meet that of the cell,
so that the sums of gradients and Hessians in all leaves are those of the file. As every cell has a
margin of its own, the sums of a few trees have few solutions.

Statistics that are noisy, or masked, are not refused: the program minimises by how much they are
missed, and a masked file has its leaf values alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from .forest import Leaf, Model

__all__ = ["Knowledge", "agreement", "cells", "reconstruct"]

Floats = npt.NDArray[np.float64]
Cell = tuple[int, ...]  # the label, and the leaf of each tree


@dataclass(frozen=True)
class Knowledge:
    """What the attacker knows besides the file, all of it public or usual.

    Attributes:
        rows: Number of training rows.
        low: Lowest value of each column.
        high: Highest value of each column.
        eta: Learning rate.
        penalty: ``reg_lambda``.
        masked: Whether the sums of Hessians in the file are overwritten.
        seconds: How long one integer program may take. The best solution until then is taken.
    """

    rows: int
    low: Floats
    high: Floats
    eta: float = 0.3
    penalty: float = 1.0
    masked: bool = False
    seconds: float = 20.0


@dataclass(frozen=True)
class _Group:
    """Rows of one label and one cell.

    Attributes:
        low: Lower ends of the box of the cell.
        high: Upper ends.
        cell: The label and the leaves so far.
        margin: The prediction before the next tree.
        rows: How many they are.
    """

    low: Floats
    high: Floats
    cell: Cell
    margin: float
    rows: int


def reconstruct(model: Model, known: Knowledge, trees: int) -> Counter[Cell]:
    """How many training rows of each label each cell has, by the statistics of the first trees."""
    positive = round(known.rows / (1 + np.exp(-model.margin)))
    groups = [
        _Group(known.low, np.nextafter(known.high, np.inf), (label,), model.margin, rows)
        for label, rows in ((0, known.rows - positive), (1, positive))
    ]
    for leaves in model.trees[:trees]:
        groups = _advance(groups, leaves, known)
    return Counter({group.cell: group.rows for group in groups})


def cells(model: Model, x: Floats, y: Floats, trees: int) -> Counter[Cell]:
    """The same, of rows that are known."""
    rows = x.astype(np.float32)  # as XGBoost compares them
    columns = [y.astype(np.int64)]
    for leaves in model.trees[:trees]:
        inside = [
            (rows >= leaf.low.astype(np.float32)) & (rows < leaf.high.astype(np.float32))
            for leaf in leaves
        ]
        columns.append(np.argmax([of_leaf.all(axis=1) for of_leaf in inside], axis=0))
    return Counter(tuple(row) for row in np.stack(columns, axis=1).tolist())


def agreement(guess: Counter[Cell], truth: Counter[Cell]) -> float:
    """What share of rows one to one have the same label and the same leaves."""
    return (guess & truth).total() / truth.total()


def _advance(groups: list[_Group], leaves: list[Leaf], known: Knowledge) -> list[_Group]:
    """Send the rows of all groups to the leaves of one tree."""
    pairs = []
    for i, group in enumerate(groups):
        for j, leaf in enumerate(leaves):
            low, high = np.maximum(group.low, leaf.low), np.minimum(group.high, leaf.high)
            if (high > low).all():
                pairs.append((i, j, low, high))
    sent = _program(groups, leaves, known, [(i, j) for i, j, _, _ in pairs])
    return [
        replace(
            groups[i],
            low=low,
            high=high,
            cell=(*groups[i].cell, j),
            margin=groups[i].margin + leaves[j].value,
            rows=int(rows),
        )
        for (i, j, low, high), rows in zip(pairs, sent, strict=True)
        if rows > 0
    ]


def _program(
    groups: list[_Group], leaves: list[Leaf], known: Knowledge, pairs: list[tuple[int, int]]
) -> npt.NDArray[np.int64]:
    """How many rows each pair of a group and a leaf has."""
    group, leaf = np.array(pairs).T
    p = 1 / (1 + np.exp([-one.margin for one in groups]))
    hessian = np.maximum(p * (1 - p), 1e-16)
    gradient = p - [one.cell[0] for one in groups]
    step = np.array([one.value for one in leaves]) / known.eta
    cover = np.array([one.hessian for one in leaves])
    columns = np.arange(len(pairs))
    shape = (len(leaves), len(pairs))

    def by_leaf(summed: Floats) -> sparse.coo_matrix:
        return sparse.coo_matrix((summed, (leaf, columns)), shape)

    # A leaf is the step -G / (H + lambda).
    if known.masked:
        sums = by_leaf(gradient[group] + step[leaf] * hessian[group])
        target = -known.penalty * step
    else:
        sums = sparse.vstack([by_leaf(gradient[group]), by_leaf(hessian[group])])
        target = np.concatenate([-step * (cover + known.penalty), cover])
    of_group = sparse.coo_matrix((np.ones(len(pairs)), (group, columns)), (len(groups), len(pairs)))
    slack = sparse.identity(len(target))
    none = sparse.coo_matrix((len(groups), 2 * len(target)))
    equal = sparse.vstack([sparse.hstack([sums, slack, -slack]), sparse.hstack([of_group, none])])
    right = np.concatenate([target, [one.rows for one in groups]])
    missed = 2 * len(target)
    solution = milp(
        np.concatenate([np.zeros(len(pairs)), np.ones(missed)]),
        integrality=np.concatenate([np.ones(len(pairs)), np.zeros(missed)]),
        bounds=Bounds(0, np.inf),
        constraints=LinearConstraint(equal.tocsr(), right, right),
        options={"time_limit": known.seconds},
    )
    if solution.x is None:
        raise RuntimeError("The integer program has found no solution: give it more seconds.")
    return np.rint(solution.x[: len(pairs)]).astype(np.int64)
