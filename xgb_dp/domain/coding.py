"""Code the columns of a table as the numbers that a model reads, for readers of models elsewhere.

A model reads a category as its position in the declared list, a date as its parts, and a missing
cell as NaN. The rules come from the attribute ``dp_schema`` of the model, else from the names of
categories that XGBoost stores. They are public, and coding a table releases nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..data.arrays import collect_table, describe_column_type, find_library
from ..data.row_checks import as_text, check_names
from ..engine.saved_model import category_names, load_booster
from ..errors import LedgerError, PrivacyParameterError
from .columns import Column, column_names, read_feature_arrays
from .domain import ATTRIBUTE, Domain, parse_domain, read_domain

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS = ("number", "object", "decimal", "")


@dataclass(frozen=True)
class Schema:
    """Coding of a table as the numbers that a model reads.

    Attributes:
        feature_names: Names of the features in the order of the model; empty if it has none.
        feature_types: XGBoost's type of each feature, "c" for codes of categories.
        domain: Declarations of the columns of the table.
        declared: Whether `domain` was declared, or follows from categories in the model.

    Examples:
        >>> rows = {"smoker": np.array(["yes", "no"] * 1000)}
        >>> found = xgb_dp.discover(rows, {"smoker": "text"}, epsilon=1.0, delta=1e-6)
        >>> found.save("schema.json")
        >>> coded = xgb_dp.Schema.from_file("schema.json").encode({"smoker": ["no", "new", None]})
        >>> coded.shape, bool(coded["smoker"].isna()[2])
        ((3, 1), True)
    """

    feature_names: tuple[str, ...]
    feature_types: tuple[str, ...]
    domain: Domain
    declared: bool = True

    @classmethod
    def from_model(cls, model: Any) -> Schema:
        """Return the coding of a model.

        Args:
            model: A booster, or the path or the bytes of a saved model. A model has the rules for
                dates and undeclared categories if `xgb-dp train` or an estimator with ``schema``
                trained it. For a model of ``xgboost.train`` on :meth:`Discovery.apply`, save the
                schema of the discovery, and use :meth:`from_file`.

        Raises:
            LedgerError: The schema in the model is damaged or belongs to another model.
        """
        booster = load_booster(model)
        return _schema(
            booster.attr(ATTRIBUTE),
            tuple(booster.feature_names or ()),
            tuple(booster.feature_types or ()),
            tuple(category_names(booster).items()),
        )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Schema:
        """Return the coding of a schema file that lists all columns, in the order of training.

        Raises:
            PrivacyParameterError: The file cannot be read, or has no key `columns`.
        """
        domain = read_domain(Path(path))
        if domain.columns is None:
            raise PrivacyParameterError(
                "The schema has no key `columns`. List every column that the model reads."
            )
        return cls._of(domain)

    @classmethod
    def _of(cls, domain: Domain, types: tuple[str, ...] = ()) -> Schema:
        features = domain.features
        usual = tuple("float" if c.categories is None else "c" for c in features.values())
        return cls(tuple(features), types or usual, domain)

    def encode(self, table: Any) -> pd.DataFrame:
        """Code every cell of a table by itself.

        Args:
            table: A data frame of pandas or polars, an Arrow table, or a mapping from names to
                arrays. Columns can have any order; columns that the model does not read are
                ignored.

        Returns:
            pandas.DataFrame: 32-bit floats with a column per feature, in the order of the model;
            NaN if missing. Pass them to ``xgboost.DMatrix(coded, feature_types=...)`` with the
            types of this schema.

        Raises:
            PrivacyParameterError: The table lacks a column, or has one of another type.
            RowDomainError: A cell is outside its declared domain.
        """
        import pandas as pd

        table = collect_table(table)
        given, columns = set(map(as_text, column_names(table))), list(self.domain.columns or ())
        check_names(columns, [name for name in columns if name in given])
        coded = zip(self.feature_types, self.domain.features.items(), strict=False)
        for kind, (name, column) in coded:
            if kind == "c" and column.categories is None:
                raise PrivacyParameterError(
                    f"The model stores no names for the categories of {name!r}: it was trained on "
                    "codes, or is a slice, which loses the names. Use the whole model, or the "
                    "codes of training."
                )
        index = table.index if find_library(table) == "pandas" else None
        return pd.DataFrame(
            self.codes(table), columns=list(self.feature_names) or None, index=index
        )

    def codes(self, table: Any) -> npt.NDArray[np.float32]:
        """Return the cells of :meth:`encode` as an array; a model without names reads by place."""
        cells = {as_text(name): table[name] for name in column_names(table)}
        columns = self.domain.columns or {name: Column() for name in cells}
        if not self.declared:
            _check_kinds(cells, columns)
        read = read_feature_arrays([cells], columns, self.domain.missing)
        arrays = [read[name] for name in self.feature_names or columns]
        rows = len(arrays[0][0]) if arrays else 0
        coded = np.empty((rows, len(arrays)), dtype=np.float32)
        for i, (array, names) in enumerate(arrays):
            coded[:, i] = array
            if names is not None:
                coded[array < 0, i] = np.nan
        return coded


def _check_kinds(cells: Mapping[str, Any], columns: Mapping[str, Column]) -> None:
    """Refuse columns of a type that a column of numbers cannot have; no cell is read."""
    for name, column in columns.items():
        kind = describe_column_type(cells[name])
        if column.categories is None and kind not in _NUMBERS:
            raise PrivacyParameterError(
                f"The column {name!r} is not a column of numbers, but was one when the model was "
                "trained. Convert it as for training."
            )


@lru_cache(maxsize=16)
def _schema(
    text: str | None,
    names: tuple[str, ...],
    types: tuple[str, ...],
    stored: Sequence[tuple[int, tuple[Any, ...]]],
) -> Schema:
    """Build the schema of a model from everything that it depends on, once per content."""
    try:
        categories = {
            names[i]: tuple(n.decode() if isinstance(n, bytes) else n for n in listed)
            for i, listed in stored
        }
    except (UnicodeDecodeError, IndexError):
        raise LedgerError(
            "The names of categories in the model are damaged. Use an intact copy of the model."
        ) from None
    if text is None:
        columns = {name: Column(categories.get(name)) for name in names} or None
        return Schema(names, types, Domain(columns=columns, missing=()), False)
    schema = Schema._of(parse_domain(text), types)
    known = {n: c.names for n, c in schema.domain.features.items() if c.names is not None}
    strings = {name: tuple(map(str, listed)) for name, listed in categories.items()}
    if names and (schema.feature_names != names or known != {**known, **strings}):
        raise LedgerError(
            "The schema in the model differs from the features of the model. Use an intact copy of "
            "the model."
        )
    return schema
