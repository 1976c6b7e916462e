"""The whole private training in NumPy: the algorithm of the docs, read from top to bottom.

An oracle for tests, written without looking at the C++: with the noise off, or with the noise of
a fixed key, both must grow the same trees. Sums are exact int64, the rest is float64 in a fixed
order of operations, and float32 only where XGBoost itself uses it (objective, cuts, leaves).
It is slow, holds everything in memory and checks no input.
"""

import copy
from typing import NamedTuple

import numpy as np

from .candidates import Candidates, Feature
from .correction import correct_factor, correct_mean
from .draws import Noise
from .grow import Tree, grow
from .history import History
from .leaves import Shrinkage, at_round, fill_leaves, row_variance
from .losses import bounded_pairs, loss_of, start_of, unit_of
from .noisy_splits import Side
from .objective import gradients, initial_margin
from .persons import bound_persons, keys_of_rows, spread_persons
from .splits import Floats, Ints, Plan, RowBound, Score, candidates, utilities

__all__ = ["Model", "Plan", "RowBound", "Score", "Tree", "candidates", "train", "utilities"]


class Model(NamedTuple):
    """Trees (round by round, class by class), cuts per feature, final margins (rows, classes)."""

    trees: list[Tree]
    cuts: list[Floats | None]
    margin: Floats


def train(
    plan: Plan, X: Floats, y: Floats, weight: Floats | None = None,
    base_score: float | list[float] = 0.5, rounds: int | None = None,
    base_margin: Floats | None = None, persons: Ints | None = None, upper: Floats | None = None,
) -> Model:  # fmt: skip
    """Train as the plan says (NaN in `X` is missing; `rounds` defaults to the plan's).

    `persons` are the codes of rows, where the unit of privacy is a person; `upper` are the ends of
    intervals that begin at `y`.
    """
    assert (persons is not None) == (plan["unit"] == "person")
    X, y = np.asarray(X, dtype=np.float32), np.asarray(y, dtype=np.float32)
    bounds = () if upper is None else (y, upper)
    keys = keys_of_rows(X, None if bounds else y, base_margin, weight, *bounds)
    weight = np.ones(len(y), np.float32) if weight is None else np.asarray(weight, dtype=np.float32)
    weight = weight / float(plan["row_bound"].get("weight_unit", 1.0))
    objective, classes, bound = plan["objective"], int(plan["num_class"]), RowBound.of(plan)
    noise = Noise(plan)
    loss = loss_of(plan)
    who = np.arange(len(y)) if persons is None else persons
    units = int(who.max(initial=-1)) + 1  # of privacy, which have coins of their own
    source = Candidates(plan, X, noise, np.bincount(who)[who])
    features: list[Feature] = []
    part = np.zeros(units, dtype=np.int64)
    margin = initial_margin(objective, base_score, len(y), classes)
    if base_margin is not None:
        margin = np.array(base_margin, dtype=np.float32).reshape(len(y), classes)
    shrinkage, of_first = [Shrinkage() for _ in range(classes)], Shrinkage()
    history = [History(plan) for _ in range(classes)]
    joint = plan["class_trees"] == "joint"
    trees = []
    whole = plan
    for t in range(int(plan["rounds"]) if rounds is None else rounds):
        plan = at_round(whole, t)
        if loss is None:
            # The row bound computes logistic loss by itself if it reads predictions.
            by_margin = bound.mode == "prediction" and classes == 1
            precise = margin.astype(np.float64 if by_margin else np.float32)
            g, h = (v.astype(np.float64) for v in gradients(objective, precise, y, weight))
        parallel = int(plan["parallel_trees"])
        sampled = int(plan["sampling_num"]) < 1 << 32
        kept = noise.sample(int(plan["sampling_num"]), units) if sampled else part == 0
        if int(plan["ensemble"]) > 1:
            ensemble = int(plan["ensemble"])
            if t % ensemble == 0:
                part = noise.parts(ensemble, units)
            kept, sampled = part == t % ensemble, True
        labels, heavy = y.astype(np.float64), weight.astype(np.float64)
        if bound.heaviest > 0:
            heavy = np.minimum(heavy, bound.heaviest)
            if loss is None:
                share = np.where(heavy < weight, heavy / np.maximum(weight, heavy), 1.0)[:, None]
                g, h = g * share, h * share
        own_norms = labels
        if loss is not None:
            by_class, own_norms = bounded_pairs(loss, bound, margin, labels, heavy, t, upper)
        elif bound.mode == "prediction" and classes > 1:
            by_class = bound.quantise_classes(g, h, labels, heavy)
        else:
            squared = objective == "reg:squarederror"
            by_class = [
                bound.quantise(g[:, k], h[:, k], labels, squared, heavy) for k in range(classes)
            ]
        shared: list[tuple[Tree, Ints, dict[int, Side]]] = []
        firsts: list[Tree] = []
        together = loss is not None and getattr(loss, "shares_leaves", lambda t: False)(t)
        for pairs in by_class if sampled else ():
            pairs[~kept[who]] = 0
        given_rows = [pairs.copy() for pairs in by_class]
        if persons is not None:
            norms = own_norms
            if bound.mode == "prediction" and loss is None:
                norms = bound.norms(g, h, labels, heavy)
            bound_persons(bound, by_class, persons, norms, keys)
        for k, pairs in enumerate(by_class):
            if loss is not None:
                of_tree = {**plan["row_bound"], "scale": repr(unit_of(loss, t, k))}
                plan = {**plan, "row_bound": of_tree}
            if k == 0 and source.due(t):
                features = source.release(pairs)
            for i in range(parallel):
                index = t * parallel + i
                if joint and k > 0:
                    tree, where, given = copy.deepcopy(shared[i])
                else:
                    of_structure = np.hstack(by_class) if joint else pairs
                    tree, where, given = grow(
                        plan, index, features, of_structure, noise, history[k]
                    )
                    shared.append(copy.deepcopy((tree, where, given)))
                sums = np.zeros((len(tree["left"]), 3), dtype=np.int64)
                np.add.at(sums, where, pairs)
                root = None
                if plan["leaf"]["spread"]:
                    rows_of = given_rows, by_class, who, where, len(tree["left"])
                    sums += spread_persons(bound, row_variance(plan), *rows_of)[k]
                    root = pairs[:, :2].sum(axis=0) // 3
                age = t % int(plan["ensemble"]) if int(plan["ensemble"]) > 1 else t
                if together and k > 0:  # drawn, and left unread
                    fill_leaves(plan, index, tree, sums, given, Shrinkage(), noise, age, root)
                    margin[:, k] += np.array(firsts[i]["leaf"], dtype=np.float32)[where]
                    trees.append(copy.deepcopy(firsts[i]))
                    continue
                of = of_first if together else shrinkage[k]
                g_h_noise = fill_leaves(plan, index, tree, sums, given, of, noise, age, root)
                firsts[i:] = [tree]
                start_of(loss, plan, tree, t)
                if plan["leaf"]["noise"] != "output":
                    history[0 if joint else k].update(tree, *g_h_noise, first=not joint or k == 0)
                if plan["correction"]["on"] and t + 1 == int(plan["rounds"]):
                    if loss is None:
                        correct_mean(plan, tree, where, g[:, k], h[:, k], labels, noise, who)
                    else:
                        correct_factor(
                            plan, loss, tree, where, margin[:, k], labels, weight, noise, who
                        )
                margin[:, k] += np.array(tree["leaf"], dtype=np.float32)[where]
                trees.append(tree)
    return Model(trees, [feature.cuts for feature in features], margin)
