"""Pairs of neighbouring data sets on which one fault of a trainer would show, with the statistic.

Each scenario is a private training of few rows, a canary, and a score of the saved model that an
attacker who knows everything but the presence of the canary would compute. The same scenario is
run with this library, where it must find nothing, and with trainers broken on purpose.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xgb_dp.audit import AuditResult, PreparedTraining, audit_neighbours
from xgb_dp.audit.__main__ import PLAIN
from xgb_dp.engine.saved_model import LEAF, SavedModel, StoredTree

Floats = npt.NDArray[np.float32]


class Rows(NamedTuple):
    """Features and binary labels."""

    X: Floats
    y: Floats


class Outcome(NamedTuple):
    """What is published: trees and intercept."""

    trees: Sequence[StoredTree]
    base_score: float


Trainer = Callable[[Rows], Outcome]
Score = Callable[[PreparedTraining, Outcome], float]


@dataclass(frozen=True)
class Scenario:
    """A training with two neighbours and a statistic."""

    statistic: str
    params: dict[str, Any]
    rounds: int
    rest: Rows
    canary: tuple[Sequence[float], float]
    score: Score

    @cached_property
    def training(self) -> PreparedTraining:
        """This library's training."""
        return PreparedTraining(PLAIN | self.params, self.matrix(self.rest), self.rounds)

    @property
    def with_canary(self) -> Rows:
        """The second neighbour."""
        features, label = self.canary
        return Rows(
            np.vstack([self.rest.X, np.array([features], dtype=np.float32)]),
            np.append(self.rest.y, np.float32(label)),
        )

    @staticmethod
    def matrix(rows: Rows) -> Any:
        """The rows as an xgboost.DMatrix."""
        from xgboost import DMatrix

        return DMatrix(rows.X, rows.y, nthread=1)

    def real(self, rows: Rows) -> Outcome:
        """Train with this library and with noise from the operating system."""
        return outcome_of(self.training(self.matrix(rows)))

    def audit(
        self,
        name: str,
        train: Trainer | None = None,
        trainings: int = 1000,
        confidence: float = 0.95,
    ) -> AuditResult:
        """Audit one trainer against the claim of the calibrated plan."""
        trainer = train or self.real
        return audit_neighbours(
            lambda rows: self.score(self.training, trainer(rows)),
            self.rest,
            self.with_canary,
            self.training.claim,
            trainings=trainings,
            name=name,
            statistic=self.statistic,
            confidence=confidence,
        )


def shares(splits: float, intercept: float = 0.0) -> dict[str, float]:
    """Division of the budget; the leaves get the rest."""
    leaves = 1.0 - splits - intercept
    return {"candidates": 0.0, "base_score": intercept, "splits": splits, "leaves": leaves}


def outcome_of(booster: Any) -> Outcome:
    """What a model publishes, as a reader of its file sees it."""
    saved = SavedModel.from_booster(booster)
    return Outcome(saved.trees, saved.base_score)


def sums_of(
    tree: StoredTree, row: Sequence[float], training: PreparedTraining
) -> tuple[float, float]:
    """Noisy (G, H) of the row's leaf, undone from its value and cover.

    Exact where the leaf is neither shrunk nor clipped; otherwise still a function of the model.
    """
    node, s = tree.find_leaf(row), training.settings
    cover = tree.covers[node]
    return -tree.conditions[node] / s["eta"] * (cover + s["lambda"]), cover


def _rows(*groups: tuple[Sequence[float], float, int]) -> Rows:
    """Groups of equal rows: (features, label, how many)."""
    X = [features for features, _, n in groups for _ in range(n)]
    y = [label for _, label, n in groups for _ in range(n)]
    return Rows(np.array(X, dtype=np.float32), np.array(y, dtype=np.float32))


# Two features that divide the rows the same way with opposite signs: the canary joins the larger
# side of one and the smaller side of the other, which moves two utilities by +B and by -B.
TWO_SIDES = _rows(([0, 1], 0, 20), ([1, 0], 1, 20))
_CORNER = ([0.0, 0.0], 0.0)
TWO_CUTS = {"dp_feature_cuts": {0: [0.5], 1: [0.5]}}


def _chosen_side(tree: StoredTree) -> int:
    """+1 if the root is split by the feature that the canary strengthens, -1 for the other."""
    if tree.left[0] == LEAF or tree.conditions[0] != 0.5:
        return 0
    return 1 if tree.features[0] == 0 else -1


def _of_tree(score: Callable[[StoredTree], float]) -> Score:
    """A score of the first tree alone."""
    return lambda _, outcome: float(score(outcome.trees[0]))


def root_split(epsilon: float = 1.0, levels: int = 1) -> Scenario:
    """Which feature splits the root, where one row attains the range of the utilities."""
    params = {**TWO_CUTS, "dp_epsilon": epsilon, "dp_budget_shares": shares(splits=0.98)}
    params |= {"max_depth": levels, "dp_split_levels": levels}
    params["dp_hessian_weight"] = 1e-4  # so that a gradient of C is hardly shortened
    return Scenario("chosen root split", params, 1, TWO_SIDES, _CORNER, _of_tree(_chosen_side))


def leaf_and_split(
    epsilon: float = 4.0,
    leaves: float = 0.7,
    hessian_weight: float = 1.0,
    *,
    joint_bound: bool = True,
) -> Scenario:
    """Log likelihood ratio of the root split and of the sums in the canary's leaf."""

    def score(training: PreparedTraining, outcome: Outcome) -> float:
        tree, noise, s = outcome.trees[0], training.noise, training.settings
        side = _chosen_side(tree)
        g, h = sums_of(tree, _CORNER[0], training)
        # Known sums of the other rows there: 20 rows of one sign, or everything.
        unit = s["dp_gradient_bound"] / 2**noise.grid_bits
        root_r = float(np.sqrt(s["dp_hessian_weight"]))
        row = np.array([0.5, root_r * 0.25])
        if joint_bound:
            row *= min(1.0, s["dp_gradient_bound"] / float(np.hypot(*row)))
        known = row * np.array([20.0 * side, 20.0 if side else 40.0])
        seen = np.array([g, root_r * h])
        ratio = float((seen - known) @ row) / (noise["leaves"].sigma2 * unit * unit)
        return ratio + 0.5 * side * noise["splits"].eps_num / 2**40

    params = {
        **TWO_CUTS,
        "dp_epsilon": epsilon,
        "dp_budget_shares": shares(splits=1.0 - leaves),
        "dp_hessian_weight": hessian_weight,
    }
    return Scenario(
        "likelihood ratio of the canary's leaf and split", params, 1, TWO_SIDES, _CORNER, score
    )


def label_sum(epsilon: float = 4.0) -> Scenario:
    """The intercept, which is released from noisy sums of labels."""
    params = {
        **TWO_CUTS,
        "dp_epsilon": epsilon,
        "dp_budget_shares": shares(splits=0.05, intercept=0.9),
        "base_score": None,
    }
    # Unequal classes: then the canary moves the mean by its label and by its number.
    rest = _rows(([0, 1], 0, 10), ([1, 0], 1, 30))
    return Scenario("base_score", params, 1, rest, _CORNER, lambda _, outcome: outcome.base_score)


def min_child_weight() -> Scenario:
    """Whether a split is chosen whose child reaches min_child_weight with the canary only."""
    params = {
        "dp_feature_cuts": {0: [0.5, 1.5]},
        "min_child_weight": 0.9,
        "dp_split_levels": 1,  # all cuts are candidates
        "dp_hessian_weight": 1e-4,
    }
    # Each row has a Hessian of about 1/4. Both cuts are equally good.
    rest = _rows(([0], 0, 3), ([1], 0, 20), ([1], 1, 20), ([2], 1, 4))
    score = _of_tree(lambda tree: tree.conditions[0] == 0.5)
    return Scenario("chosen root split", params, 1, rest, ([0.0], 0.0), score)


def split_winner() -> Scenario:
    """Which cut of a feature is chosen, where the canary decides the best one."""

    def score(_: PreparedTraining, outcome: Outcome) -> float:
        tree = outcome.trees[0]
        if tree.left[0] == LEAF or tree.features[0] != 0:
            return 0.0
        return {0.5: -1.0, 1.5: 1.0}.get(float(tree.conditions[0]), 0.0)

    params = {"dp_feature_cuts": {0: [0.5, 1.5], 1: [0.5]}, "dp_split_levels": 1}
    rest = _rows(([0, 0], 0, 10), ([2, 0], 1, 10))
    return Scenario("chosen root split", params, 1, rest, ([1.0, 0.0], 0.0), score)


def reused_noise() -> Scenario:
    """Difference of a leaf's values in two trees; the leaf holds the canary or nothing."""

    def score(training: PreparedTraining, outcome: Outcome) -> float:
        if any(tree.left[0] == LEAF or tree.conditions[0] != 0.5 for tree in outcome.trees):
            return -1e9
        first, second = (tree.conditions[tree.find_leaf([0.0])] for tree in outcome.trees)
        return -abs(first - second)

    params = {"dp_feature_cuts": {0: [0.5]}}
    rest = _rows(([1], 0, 10), ([1], 1, 10))
    return Scenario("difference of two trees' leaves", params, 2, rest, ([0.0], 0.0), score)


def exact_sum() -> Scenario:
    """Cover of the root in the saved model."""
    score = _of_tree(lambda tree: tree.covers[0])
    return Scenario("cover of the root", dict(TWO_CUTS), 1, TWO_SIDES, _CORNER, score)


def guessed_seed(train: Callable[[Rows, int], Outcome], seeds: int = 64) -> Scenario:
    """Whether the model is one that a seed guessed by the attacker gives."""
    tables: dict[bool, set[tuple[float, ...]]] = {}

    def print_of(outcome: Outcome) -> tuple[float, ...]:
        return tuple(outcome.trees[0].conditions)

    def score(_: PreparedTraining, outcome: Outcome) -> float:
        if not tables:
            for with_canary, rows in ((False, scenario.rest), (True, scenario.with_canary)):
                tables[with_canary] = {print_of(train(rows, seed)) for seed in range(seeds)}
        seen = print_of(outcome)
        return float(seen in tables[True]) - float(seen in tables[False])

    statistic = f"trainings repeated with {seeds} guessed seeds"
    scenario = Scenario(statistic, dict(TWO_CUTS), 1, TWO_SIDES, _CORNER, score)
    return scenario
