"""The rows of one part of a split, together with the name of the part.

These objects are the only way to say that a release reads one part. Their rows, labels and ids
cannot be replaced, so the name stays true. Whatever is made of them (a copy, a slice, another
matrix) has no name, and a release on it is counted on all rows.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NoReturn

from xgboost import DMatrix

from ..errors import PrivacyParameterError, PrivacyRefusal
from .frames import has_column
from .ids import Persons
from .parts import Part


class SplitMatrix(DMatrix):
    """A part of a split as a DMatrix, whose labels and weights can no longer be set.

    Attributes:
        part: The split and the part.
        persons: The ids of the rows if the split was made by person; None otherwise.

    Examples:
        >>> parts = xgb_dp.split(data, test=0.3)
        >>> parts.test.part.name
        'test'
        >>> parts.test.set_label([])  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        PrivacyRefusal: A part of xgb_dp.split cannot be changed...
    """

    part: Part
    persons: Persons | None

    # What follows takes the place of everything by which XGBoost changes a matrix.
    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: the rows of a part cannot be changed."""
        del args, kwargs
        raise PrivacyRefusal(
            "A part of xgb_dp.split cannot be changed, because a release on it is charged for the "
            "rows that the split put there. Change the rows before you split them."
        )

    set_info = set_label = set_weight = set_base_margin = set_group = _refuse
    set_float_info = set_float_info_npy2d = set_uint_info = _refuse


MATRICES = (DMatrix, SplitMatrix)
"""Types of matrices that hold the rows as they are; others, such as bins, are subclasses too."""


@dataclass(frozen=True, eq=False, repr=False)
class SplitTable:
    """A part of a split as a table and its labels, which cannot be replaced.

    Give it to ``fit``, ``fit_select`` or :func:`xgb_dp.evaluate` as it is. Releases on what
    :meth:`copy` returns are charged for all rows.

    Attributes:
        part: The split and the part.
        persons: The ids of the rows if the split was made by person; None otherwise.

    Examples:
        >>> parts = xgb_dp.split((data.get_data(), data.get_label()), test=0.3)
        >>> trained = xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=[0, 1])
        >>> report = xgb_dp.evaluate(trained.fit(parts.train), parts, epsilon=1.0, delta=1e-6)
        >>> report.cost.parallel
        True
    """

    _rows: tuple[Any, Any]
    part: Part
    persons: Persons | None = None

    def copy(self) -> tuple[Any, Any]:
        """A copy of the table and of the labels."""
        return copy.deepcopy(self._rows)

    def taken(self, y: Any = None, ids: Any = None) -> tuple[Any, Any, Any]:
        """The table, its labels, and the ids that are asked for; by default those of the split."""
        if y is not None:
            raise PrivacyParameterError(
                "A part of xgb_dp.split has its own labels. Give it alone, without `y`."
            )
        X, y = self._rows
        persons = persons_of_part(self, True if ids is None else ids)
        if persons is not None:
            name = persons.column
            ids = name if name is not None and has_column(X, name) else persons
        return X, y, ids


def split_matrix(matrix: Any, part: Part | None, persons: Persons | None = None) -> Any:
    """The same DMatrix as a part of a split; unchanged where the part is not known."""
    if part is not None:
        matrix.__class__ = SplitMatrix  # XGBoost cannot make a matrix of another one without a copy
        matrix.part, matrix.persons = part, persons
    return matrix


def part_of(rows: Any, persons: Any = None) -> Part | None:
    """The part that a release reads; None if it may read other rows or other persons.

    Rows of one hospital are in both parts of a split by patient.
    """
    part = rows.part if isinstance(rows, (SplitMatrix, SplitTable)) else None
    if part is None or persons is None or part.unit == "row":
        return part
    return part if isinstance(persons, Persons) and persons.part == part else None


def persons_of_part(rows: Any, ids: Any) -> Persons | None:
    """The ids of a split by person, where they are asked for by True or by their name."""
    persons = rows.persons if isinstance(rows, (SplitMatrix, SplitTable)) else None
    if persons is None:
        return None
    named = isinstance(ids, str) and ids == persons.column
    return persons if ids is True or named else None
