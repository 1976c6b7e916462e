"""Neighbours that differ by all rows of one person, and a score of the sums that they are in."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from xgb_dp.audit import PreparedTraining
from xgb_dp.audit.__main__ import PLAIN

from .scenarios import TWO_CUTS, TWO_SIDES, Outcome, Rows, Scenario, outcome_of, shares, sums_of

_CORNERS = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]


@dataclass(frozen=True)
class PersonScenario(Scenario):
    """A training whose unit of privacy is a person; the canary is one with many rows."""

    person: Rows

    @cached_property
    def training(self) -> PreparedTraining:
        """This library's training, with its claim for persons."""
        params = PLAIN | self.params | {"dp_privacy_id": True}
        return PreparedTraining(params, self.matrix(self.rest), self.rounds)

    @property
    def with_canary(self) -> Rows:
        """The second neighbour."""
        return Rows(*(np.concatenate(both) for both in zip(self.rest, self.person, strict=True)))

    def ids(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Who each row belongs to."""
        return np.minimum(np.arange(len(rows.y)), len(self.rest.y))

    def real(self, rows: Rows) -> Outcome:
        """Train with this library, whose ids say who the rows belong to."""
        return self._trained(rows, {"dp_privacy_id": self.ids(rows)})

    def for_rows(self, rows: Rows) -> Outcome:
        """The same training for rows, which bounds each of them by itself."""
        return self._trained(rows, {"dp_privacy_id": None})

    def _trained(self, rows: Rows, ids: dict[str, Any]) -> Outcome:
        import xgboost

        params = {k: v for k, v in (self.training.params | ids).items() if v is not None}
        return outcome_of(xgboost.train(params, self.matrix(rows), self.rounds))


def _scenario(
    statistic: str, X: npt.ArrayLike, rest: Rows, places: list[list[float]], **params: Any
) -> PersonScenario:
    """The gradient sums of the leaves in which the person has rows, all of one label."""
    rows = np.array(X, dtype=np.float32)
    person = Rows(rows, np.zeros(len(rows), dtype=np.float32))

    def score(training: PreparedTraining, outcome: Outcome) -> float:
        tree = outcome.trees[0]
        leaves = {tree.find_leaf(place): place for place in places}
        return sum(sums_of(tree, place, training)[0] for place in leaves.values())

    params |= {**TWO_CUTS, "dp_epsilon": 4.0, "dp_budget_shares": shares(splits=0.02)}
    return PersonScenario(statistic, params, 1, rest, ([0.0, 0.0], 0.0), score, person)


def in_one_leaf(rows: int = 20) -> PersonScenario:
    """All rows of the person are in one leaf."""
    # Whichever feature is split, the other rows are on the other side.
    rest = Rows(TWO_SIDES.X + np.float32(1.0), TWO_SIDES.y)
    corner = [0.0, 0.0]
    return _scenario("gradient sum of the person's leaf", [corner] * rows, rest, [corner])


def in_all_leaves(rows: int = 20) -> PersonScenario:
    """Each leaf has some rows of the person."""
    X = (_CORNERS * (-(-rows // 4)))[:rows]
    depth = {"max_depth": 2, "dp_split_levels": 1}
    return _scenario("gradient sums of all leaves", X, TWO_SIDES, _CORNERS, **depth)
