"""The rows that the models of a selection are trained on, and those that they are scored on.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..data import persons
from ..data.ids import Persons, persons_of
from ..data.parts import TEST, TRAIN, Part, divided_column, for_persons, part_of
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
            column = flat.get(_IDS) if isinstance(flat.get(_IDS), str) else None
            return flat, cls((data,), (ids,), for_persons(part_of(data), ids, column))
        matrices = (data.train, data.test)
        for matrix in matrices:
            read_matrix(matrix)
        _check_apart(data)
        flat = flatten(params)
        name = flat.get(_IDS)
        if name is None:
            return flat, cls(matrices, (None, None), None)
        if not (isinstance(name, str) or name is True) or data.train_ids is None:
            raise PrivacyParameterError(
                f"The rows of a split belong to the persons by whom they were divided: give the "
                f"ids to xgb_dp.split(..., privacy_id=ids), and here {_IDS}=True, or the name of "
                "their column."
            )
        if isinstance(name, str) and divided_column(data.name) != name:
            raise PrivacyParameterError(
                f"The persons of a split are those by whom it was divided: {_IDS} names another "
                "column than the ids that xgb_dp.split was given, or these had no name. Set "
                f"{_IDS}=True."
            )
        return flat, cls(matrices, (data.train_ids, data.test_ids), None)

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


def _check_apart(data: Split) -> None:
    """The accounting takes a row, or a person, to be in one part: both are as made."""
    train, test = (data.train, data.train_ids, TRAIN), (data.test, data.test_ids, TEST)
    for matrix, ids, name in (train, test):
        part = part_of(matrix)
        as_divided = part is not None and Part(part.split, part.name, part.unit)
        if as_divided != Part(data.name, name, data.unit) or (
            ids is not None and part_of(ids) != part
        ):
            raise PrivacyRefusal(
                "A selection takes an xgb_dp.split as it was made: a part was changed in place, or "
                "put in by hand, so that a row may be in both parts, and cost more than the "
                "selection counts. Change the rows before they are divided. Nothing was released."
            )
