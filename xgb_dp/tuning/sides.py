"""The rows that the models of a selection are trained on, and those that they are scored on.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..data import persons
from ..data.ids import Persons, persons_of
from ..data.parts import Part, apart
from ..data.split_rows import part_of
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..evaluation.parting import Split, halves
from ..request.names import flatten
from ..training.call_site import read_matrix

_IDS = "dp_privacy_id"


@dataclass(frozen=True)
class Side:
    """Some of the rows, and whose they are where the unit of privacy is a person."""

    matrix: Any
    persons: Persons | None


@dataclass(frozen=True, eq=False)
class Given:
    """The rows of a selection: a matrix that it divides itself, or both parts of a division."""

    matrices: tuple[Any, ...]
    ids: tuple[Any, ...]  # of the rows of each matrix; None where every row counts for itself
    part: Part | None  # of another division that the rows are; None for all rows

    @classmethod
    def of(cls, params: Mapping[str, Any], data: Any) -> tuple[dict[str, Any], Given]:
        """The rows, and parameters that say of ids only that there are some."""
        if not isinstance(data, Split):
            read_matrix(data)
            flat, ids = persons.taken_out(flatten(params), data)
            return flat, cls((data,), (ids,), part_of(data, ids))
        matrices = (data.train, data.test)
        for matrix in matrices:
            read_matrix(matrix)
        if not apart(part_of(data.train), part_of(data.test), data.unit):
            raise PrivacyRefusal(
                "A selection takes the two parts of one xgb_dp.split: a part was put in by hand, "
                "so that a row may be in both, and cost more than the selection counts. Nothing "
                "was released."
            )
        flat = flatten(params)
        given = flat.get(_IDS)
        if given is not None and not (isinstance(given, str) or given is True):
            raise PrivacyParameterError(
                "The rows of a split belong to the persons by whom it was made: give the ids to "
                f"xgb_dp.split(..., privacy_id=ids), and here {_IDS}=True, or the name of their "
                "column."
            )
        flat, train_ids = persons.taken_out(flat, data.train)
        return flat, cls(matrices, (train_ids, train_ids and data.test.persons), None)

    def sides(self, column: str | None) -> tuple[Side, ...]:
        """Each matrix with its persons."""
        pairs = zip(self.matrices, self.ids, strict=True)
        return tuple(
            Side(m, None if ids is None else persons_of(ids, m.num_row(), column=column))
            for m, ids in pairs
        )

    def divided(self, sides: tuple[Side, ...], share: float) -> tuple[Side, Side]:
        """Rows to train on, and rows to score on."""
        if len(sides) == 2:
            return sides[0], sides[1]
        whole = sides[0]
        whose = whole.persons
        parts = halves(whole.matrix, share, None if whose is None else whose.codes)
        first, second = (Side(taken, whose and whose.some(rows)) for rows, taken in parts)
        return first, second
