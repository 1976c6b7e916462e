"""Several classes: trees that share their splits, and probabilities that are true on average."""

from typing import Any

import pytest
import xgboost as xgb

from tests.reference.comparison import trees_of

from ..models import event
from .test_trees import counts

STRUCTURE = ("left", "right", "split_index", "default_left")


def structure(tree: dict[str, Any]) -> list[Any]:
    """Everything of a tree but its leaves."""
    inner = [i for i, left in enumerate(tree["left"]) if left != -1]
    return [tree[name] for name in STRUCTURE] + [[tree["split_condition"][i] for i in inner]]


@pytest.mark.parametrize("parallel", [1, 2])
def test_trees_of_a_round_share_their_splits(parallel, params, matrix):
    config = params("multiclass", num_parallel_tree=parallel, max_depth=4)
    booster = xgb.train(config, matrix("multiclass"), 3)
    trees = trees_of(booster)
    assert len(trees) == 9 * parallel
    for t in range(3):
        of_round = trees[3 * parallel * t : 3 * parallel * (t + 1)]  # class by class
        for i in range(parallel):
            first, *others = (of_round[k * parallel + i] for k in range(3))
            for other in others:
                assert structure(other) == structure(first)
                assert other["leaf"] != first["leaf"]
    assert len({str(structure(trees[3 * parallel * t])) for t in range(3)}) > 1


def test_one_selection_serves_all_classes(params, matrix):
    """It is paid once, so that each gets more of the budget than where every class has its own."""
    joint, each = (
        xgb.train(params("multiclass", max_depth=4, **changes), matrix("multiclass"), 4)
        for changes in ({}, {"dp_class_trees": "per_class"})
    )
    assert counts(joint)["splits"] == 4 * 2
    assert counts(each)["splits"] == 4 * 2 * 3
    assert counts(joint)["leaves"] == counts(each)["leaves"] == 4
    first, second = (event(b, "splits")["eps_num"] for b in (joint, each))
    assert first > 1.5 * second
    shapes = [structure(tree) for tree in trees_of(each)[:3]]
    assert shapes[0] != shapes[1] or shapes[1] != shapes[2]
