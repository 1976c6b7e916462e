"""Declared columns: parse their declarations in options and schema files, and read their cells.

Schema files are YAML, TOML or JSON without duplicate keys. A YAML scalar is read as the string that
is written; otherwise ``no`` would become a boolean, 011 nine, 1:30 ninety and 2024-01-01 a date.
Only null, ~ and an empty value are not strings. A list of categories or classes is numeric if all
of its entries are unquoted numbers.

Every cell is read by itself, and no type, category or class is inferred from the cells. A cell
outside its declared domain raises an error that reveals nothing else about it; see "Errors" in
``docs/guarantee.md``.

This module also writes schema files as YAML, quoting keys so that they are read back as strings.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..data.arrays import (
    EPOCH,
    PARTS,
    as_cells,
    describe_column_type,
    encode,
    find_library,
    is_arrow,
    is_table,
    split_dates,
)
from ..data.cells import ABSENT, Names, numbers_among, read_cell_numbers, read_data
from ..data.frames import list_columns
from ..errors import PrivacyParameterError, RowDomainError
from ..parameters.parse import parse_number, parse_range


class Unquoted(str):
    """An unquoted string of a YAML file or an option."""


Declared: TypeAlias = "tuple[str | float, ...]"
"""Names of categories or classes: strings match cells by spelling, numbers by value."""
_KINDS = {
    type(None): "nothing (null)", bool: "a boolean", str: "a string", Unquoted: "a string",
    int: "a number", float: "a number", list: "a list", tuple: "a list", dict: "a mapping",
}  # fmt: skip


def describe_type(value: Any) -> str:
    """Describe the type of a value of a schema file, for error messages."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def check_mapping(expected: str, value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping; otherwise raise an error that starts with `expected`."""
    if not isinstance(value, Mapping):
        raise PrivacyParameterError(f"{expected}; got {describe_type(value)}.")
    return value


def parse_column_name(name: str, value: Any) -> str:
    """Parse the name of a column."""
    if not isinstance(value, str) or not value.strip():
        raise PrivacyParameterError(
            f"{name} must be the name of a column; got {describe_type(value)}. Put it in quotes, "
            "or remove the line."
        )
    return value.strip()


def parse_strings(name: str, value: Any) -> tuple[str, ...]:
    """Parse a non-empty list of distinct names."""
    if not isinstance(value, (list, tuple)):
        raise PrivacyParameterError(
            f"{name} must be a list of names, such as [red, green]; got {describe_type(value)}."
        )
    if not value:
        raise PrivacyParameterError(
            f"{name} is an empty list. Name at least one entry, or remove it."
        )
    for entry in value:
        if isinstance(entry, bool) or not isinstance(entry, (str, int)):
            raise PrivacyParameterError(
                f"{name} must be a list of names, but one entry is {describe_type(entry)}. Put it "
                "in quotes."
            )
    names = tuple(str(entry).strip() for entry in value)
    if len(set(names)) != len(names):
        raise PrivacyParameterError(f"{name} contains an entry twice. Remove the duplicate.")
    return names


def parse_categories(name: str, value: Any) -> Declared:
    """Parse distinct categories or classes: numbers if all are unquoted numbers, else strings."""
    entries = value if isinstance(value, (list, tuple)) else []
    numbers = [number for number in map(_number, entries) if number is not None]
    if not numbers or len(numbers) < len(entries):
        return parse_strings(name, value)
    if len(set(map(float, numbers))) < len(numbers):
        raise PrivacyParameterError(f"{name} contains an entry twice. Remove the duplicate.")
    return tuple(numbers)


def _number(entry: Any) -> int | float | None:
    """Return an unquoted number in canonical spelling, else None: 007 and 1.10 are strings."""
    if isinstance(entry, Unquoted):
        for read in (float, int):
            with suppress(ValueError):
                if str(read(entry)) == str(entry):
                    return _number(read(entry))
    return entry if type(entry) in (int, float) and abs(entry) <= sys.float_info.max else None


def parse_classes(name: str, value: Any) -> Declared:
    """Parse the classes of a target."""
    classes = parse_categories(name, value)
    if len(classes) < 2:
        raise PrivacyParameterError(f"{name} must name at least two classes, such as no,yes.")
    return classes


def parse_levels(name: str, value: Any) -> tuple[float, ...]:
    """Parse quantile levels; their order is checked with the other parameters."""
    levels = value if isinstance(value, (list, tuple)) else [value]
    return tuple(parse_number(name, level) for level in levels)


def parse_bounds(name: str, value: Any) -> tuple[Any, ...]:
    """Parse a public range: (low, high) or (low, high, "log")."""
    listed = isinstance(value, (list, tuple))
    if not listed or len(value) not in (2, 3) or list(value[2:]) not in ([], ["log"]):
        got = "" if listed else f"; got {describe_type(value)}"
        raise PrivacyParameterError(f"{name} must be [low, high] or [low, high, log]{got}.")
    return (*parse_range(name, list(value[:2])), *value[2:])


def parse_scalar(value: Any) -> Any:
    """Parse a parameter value: strings that contain JSON become numbers, lists and so on."""
    if isinstance(value, Mapping):
        return {str(k): parse_scalar(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [parse_scalar(v) for v in value]
    if not isinstance(value, str):
        return value
    try:
        parsed = parse_json(value)
    except PrivacyParameterError as error:
        if "given twice" in str(error):
            raise
        return math.inf if value == "inf" else value
    except RecursionError:
        return value
    return value if parsed is None else parsed


_NULLS = ("", "~", "null", "Null", "NULL")
_DEEPEST = 32  # nesting levels; a schema has four


def read_schema_file(path: Path) -> Any:
    """Read the content of a schema file."""
    parse = {".yaml": _yaml, ".yml": _yaml, ".json": parse_json, ".toml": _toml}.get(
        path.suffix.lower()
    )
    if parse is None:
        raise PrivacyParameterError(
            "unknown file extension. A schema file must end in .yaml, .toml or .json."
        )
    try:
        content = parse(path.read_text(encoding="utf-8-sig"))
        # JSON can escape unpaired surrogates such as "\\ud800", which UTF-8 cannot encode.
        json.dumps(content, ensure_ascii=False, default=str).encode()
        return content
    except UnicodeError:
        raise PrivacyParameterError(
            "the file is not valid UTF-8, or a name in it cannot be encoded in UTF-8. Save the "
            "schema file as UTF-8, without unpaired surrogates such as \\ud800."
        ) from None
    except RecursionError:
        raise PrivacyParameterError(
            "the file is nested too deeply to be parsed. A schema has at most a few levels."
        ) from None


def parse_json(text: str) -> Any:
    """Parse JSON text, refusing duplicate keys."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, count in Counter(key for key, _ in items).items():
            if count > 1:
                raise PrivacyParameterError(f"the key {key!r} is given twice. Remove one.")
        return dict(items)

    def constant(name: str) -> Any:
        raise PrivacyParameterError(f"{name} is not a valid JSON number. Write a finite number.")

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise PrivacyParameterError(
            f"cannot be parsed as JSON: line {error.lineno}: {error.msg}."
        ) from None
    except PrivacyParameterError:
        raise
    except ValueError:  # an integer of thousands of digits
        raise PrivacyParameterError(
            "cannot be parsed as JSON: a number is too long. Write it with fewer digits."
        ) from None


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)  # refuses duplicate keys itself
    except ValueError as error:
        raise PrivacyParameterError(f"cannot be parsed as TOML: {error}.") from None


def _yaml(text: str) -> Any:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise PrivacyParameterError(
            f"cannot be parsed as YAML: {line}{error.problem or error.context}."
        ) from None
    except yaml.YAMLError:
        raise PrivacyParameterError(
            "cannot be parsed as YAML. Compare it with the output of `xgb-dp schema FILE`."
        ) from None
    return None if node is None else _plain(node, set(), 0)


def _plain(node: Any, seen: set[int], depth: int) -> Any:
    """Return the value of a node of the YAML syntax tree."""
    import yaml

    line = node.start_mark.line + 1
    if depth > _DEEPEST:
        raise PrivacyParameterError(
            f"line {line}: nested too deeply. A schema has at most a few levels."
        )
    if id(node) in seen:
        raise PrivacyParameterError(
            f"line {line}: a schema must not contain anchors or aliases (&, *). Write the value "
            "in full."
        )
    seen.add(id(node))
    if node.tag.rpartition(":")[2] not in ("str", "seq", "map"):
        raise PrivacyParameterError(
            f"line {line}: a schema must not contain tags (!). Remove the tag, or put the string "
            "in quotes."
        )
    if isinstance(node, yaml.ScalarNode):
        if node.style is None:
            return None if node.value in _NULLS else Unquoted(node.value)
        return str(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(entry, seen, depth + 1) for entry in node.value]
    content: dict[str, Any] = {}
    for key, value in node.value:
        at = key.start_mark.line + 1
        name = _plain(key, seen, depth + 1)
        if not isinstance(name, str):
            raise PrivacyParameterError(f"line {at}: a key must be a name. Put it in quotes.")
        if name in content:
            raise PrivacyParameterError(f"line {at}: the key {name!r} is given twice. Remove one.")
        content[name] = _plain(value, seen, depth + 1)
    return content


_KEYS = ("categories", "other", "bounds", "cuts", "date", "since")


PUBLIC_CUTS = {
    "month": tuple(float(k) for k in range(2, 13)),
    "weekday": tuple(float(k) for k in range(1, 7)),
    "hour": tuple(float(k) for k in range(1, 24)),
}
"""Cuts that separate all values of a date part; they follow from the calendar."""


@dataclass(frozen=True)
class Column:
    """Declaration of one column: numeric, unless it has categories or is a date."""

    categories: Declared | None = None  # in the order of their codes
    other: str = "error"  # how to read undeclared categories: "error", "missing", or a category
    bounds: tuple[Any, ...] | None = None  # (low, high) or (low, high, "log"); for a date: its days
    cuts: tuple[float, ...] | None = None
    date: tuple[str, ...] | None = None  # the date parts that become features
    since: str | None = None  # the origin of "days", as YYYY-MM-DD

    @property
    def is_number(self) -> bool:
        """Whether cells are read by numeric value."""
        return self.date is None and not any(isinstance(n, str) for n in self.categories or ())

    @property
    def names(self) -> tuple[str, ...] | None:
        """The categories as a model stores them."""
        return None if self.categories is None else tuple(map(str, self.categories))

    def features(self, name: str) -> dict[str, Column]:
        """Return the declarations of the features that a column of this name becomes."""
        if self.date is None:
            return {name: self}
        days = Column(bounds=self.bounds, cuts=self.cuts)
        return {
            f"{name}_{part}": days if part == "days" else Column(cuts=PUBLIC_CUTS[part])
            for part in self.date
        }


def read_column(name: str, given: Any) -> Column:
    """Parse the declaration of a column in a schema file."""
    where = f"Column {name!r} of the schema"
    if given in (None, "number", {}):
        return Column()
    if isinstance(given, list):
        given = {"categories": given}
    _check_keys(where, given)
    if "categories" in given:
        return _categories(where, given)
    bounds = cuts = None
    if "bounds" in given:
        bounds = parse_bounds(f"{where}: bounds", given["bounds"])
    if "cuts" in given:
        if not isinstance(given["cuts"], list):
            raise PrivacyParameterError(
                f"{where}: cuts must be a list of numbers; got {describe_type(given['cuts'])}."
            )
        cuts = tuple(parse_number(f"{where}: cuts", v) for v in given["cuts"])
    if "date" not in given:
        return Column(bounds=bounds, cuts=cuts)
    date = parse_strings(f"{where}: date", given["date"])
    if not set(date) <= set(PARTS):
        raise PrivacyParameterError(f"{where}: `date` must be a list of {', '.join(PARTS)}.")
    if "days" not in date and (bounds or cuts):
        raise PrivacyParameterError(
            f"{where}: bounds and cuts of a date apply to its days. Add 'days' to `date`, or "
            "remove them."
        )
    since = read_day(f"{where}: since", given.get("since", EPOCH))
    return Column(bounds=bounds, cuts=cuts, date=date, since=since)


def read_day(name: str, value: Any) -> str:
    """Parse a day and format it as YYYY-MM-DD."""
    try:
        return datetime.date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise PrivacyParameterError(f"{name} must be a day such as 2000-01-31.") from None


def _check_keys(where: str, given: Any) -> None:
    """Refuse unknown keys and contradictory combinations of keys."""
    expected = (
        f"{where} must be 'number', a list of categories, or a mapping with some of "
        f"{', '.join(_KEYS)}"
    )
    keys = {given: None} if isinstance(given, str) else check_mapping(expected, given)
    unknown = [repr(key) for key in keys if key not in _KEYS or key == given]
    if unknown:
        raise PrivacyParameterError(f"{expected}; got {', '.join(unknown)}.")
    if "categories" in given and not {"bounds", "cuts", "date"}.isdisjoint(given):
        raise PrivacyParameterError(
            f"{where} declares more than one of categories, numbers (bounds, cuts) and dates. "
            "Keep only one kind."
        )
    if "since" in given and "date" not in given:
        raise PrivacyParameterError(
            f"{where} has `since` without `date`. Add `date` with the parts to use, or remove "
            "`since`."
        )
    if "bounds" in given and "cuts" in given:
        raise PrivacyParameterError(f"{where} has both bounds and cuts. Remove one.")
    if "categories" not in given and "other" in given:
        raise PrivacyParameterError(
            f"{where} has `other` without `categories`. List the categories, or remove `other`."
        )


def _categories(where: str, given: Mapping[str, Any]) -> Column:
    categories = parse_categories(f"{where}: categories", given["categories"])
    names, other = list(map(str, categories)), given.get("other", "error")
    if not isinstance(other, str) or other not in ("error", "missing", *names):
        raise PrivacyParameterError(
            f"{where}: `other` must be 'error', 'missing' or a category of the column."
        )
    if "other" in given and other in ("error", "missing") and other in names:
        raise PrivacyParameterError(
            f"{where}: `other` is {other!r}, which is also a category. Rename the category."
        )
    return Column(categories, str(other))


def to_schema_entries(column: Column) -> dict[str, Any]:
    """Return the entries of a schema file from which :func:`read_column` restores the column."""
    entries = {k: v for k, v in asdict(column).items() if v is not None}
    if column.categories is None:
        del entries["other"]
    return entries


Floats = npt.NDArray[np.float32]


def column_names(table: Any) -> list[Any]:
    """Return the column names of a table in memory or of a mapping from names to arrays."""
    if isinstance(table, Mapping):
        return list(table)
    if not is_table(table):
        raise PrivacyParameterError(
            "A schema applies to a data frame, or to a mapping from column names to arrays; got a "
            f"{type(table).__name__}."
        )
    return list_columns(table)


def read_features(
    pieces: Iterable[Any], columns: Mapping[str, Column], missing: Sequence[str]
) -> dict[str, Any]:
    """Read every feature in a form that XGBoost accepts; see :func:`read_feature_arrays`."""
    import pandas as pd

    read: dict[str, Any] = {}
    for feature, (array, names) in read_feature_arrays(pieces, columns, missing).items():
        read[feature] = array if names is None else pd.Categorical.from_codes(array, list(names))
    return read


def read_feature_arrays(
    pieces: Iterable[Any], columns: Mapping[str, Column], missing: Sequence[str]
) -> dict[str, tuple[npt.NDArray[Any], tuple[str, ...] | None]]:
    """Read every feature: 32-bit floats and None, or codes and their categories.

    Args:
        pieces: Rows in blocks: data frames of any library, or mappings from names to arrays.
        columns: Declarations of the columns to read.
        missing: Strings that mark a missing cell.

    Raises:
        RowDomainError: A cell is outside its declared domain. All such columns are reported at
            once, so that the error does not depend on the order of the rows.
    """
    read: dict[tuple[str, str], _ColumnReader] = {}
    errors: dict[str, set[str]] = {}
    for cells in pieces:
        for name, column in columns.items():
            try:
                for feature, values in _feature(name, column, cells[name], missing).items():
                    if not errors:
                        read.setdefault((name, feature), _ColumnReader()).add(values)
            except RowDomainError as error:
                errors.setdefault(name, set()).add(str(error))
                read.clear()
    if errors:  # one per column, chosen independently of the blocks
        columns_by_error: dict[str, list[str]] = {}
        for name in (name for name in columns if name in errors):
            columns_by_error.setdefault(max(errors[name]), []).append(name)
        raise RowDomainError(
            " ".join(f"{', '.join(map(repr, n))}: {e}" for e, n in columns_by_error.items())
        )
    return {f: (cells.all(), columns[name].names) for (name, f), cells in read.items()}


def _feature(name: str, column: Column, cells: Any, missing: Sequence[str]) -> dict[str, Any]:
    """Convert a column to its features: numbers, or codes of categories."""
    if column.date is not None:
        parts = split_dates(cells, column.date, column.since or EPOCH, missing)
        return {f"{name}_{part}": values.astype(np.float32) for part, values in parts.items()}
    if column.categories is None:
        return {name: _finite(read_numbers(cells, missing))}
    return {name: read_codes(cells, column.categories, missing, column.other).astype(np.int32)}


class _ColumnReader:
    """One feature in an array that grows in place, so that memory never contains two copies."""

    def __init__(self) -> None:
        self._array: npt.NDArray[Any] | None = None
        self._rows = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        start, self._rows = self._rows, self._rows + len(values)
        if self._array is None:
            self._array = values
            return
        if self._rows > len(self._array):
            self._array.resize(self._rows * 9 // 8, refcheck=False)
        self._array[start : self._rows] = values

    def all(self) -> npt.NDArray[Any]:
        assert self._array is not None
        self._array.resize(self._rows, refcheck=False)
        return self._array


def read_numbers(cells: Any, missing: Sequence[str]) -> Floats:
    """Convert a column to 32-bit floats; `missing` strings that are numbers match by value."""
    strings = [text.strip() for text in missing]
    values: npt.NDArray[Any] | None = None
    with suppress(ValueError):
        column = cells.array.__arrow_array__() if is_arrow(cells) else cells
        kind = getattr(cells, "dtype", None)
        if isinstance(kind, np.dtype) and kind.kind in "biuf" and find_library(cells):
            values = np.asarray(cells)  # the usual case, without the steps of the others
        elif find_library(column) == "pyarrow" and describe_column_type(column) == "text":
            values = _numbers_from_strings(column, strings)
        else:
            array = read_data(as_cells, cells, "number")
            if array.dtype.kind in "biuf":
                values = array
            elif array.dtype.kind == "O":
                values = _numbers_from_cells(array.tolist(), strings)
    if values is None:
        raise RowDomainError(
            "a row has a cell that is not a number. Write numbers as 1234.5. For decimal commas "
            "and thousands separators in CSV files, pass `--decimal , --thousands .`; remove "
            "percent signs. Declare dates as `{date: [days, month]}` in a schema file. If the "
            "column contains categories, declare them (`--categories COLUMN=a,b,c`, or in a "
            "schema file). If it is not a feature, such as a key, drop it (`--drop COLUMN`). If "
            "some strings mark missing cells, list them under `missing` in a schema file."
        )
    values = values.astype(np.float64, copy=False)
    if absent := numbers_among(missing):
        values = np.where(np.isin(values, absent), np.nan, values)
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _numbers_from_cells(cells: Sequence[Any], missing: Sequence[str]) -> npt.NDArray[np.float64]:
    absent = frozenset(missing)
    return read_cell_numbers(
        ["nan" if isinstance(cell, str) and cell.strip() in absent else cell for cell in cells]
    )


# Strings that Arrow and Python convert to the same number, the nearest float.
_DIGITS = r"^-?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?$"


def _numbers_from_strings(strings: Any, missing: Sequence[str]) -> npt.NDArray[np.float64]:
    """Convert strings to numbers: with Arrow where it can, the others one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if str(strings.type) == "string_view":
        strings = strings.cast(pa.large_string())  # Arrow supports fewer operations on views
    with suppress(pa.ArrowInvalid):
        return _require_numbers(strings.cast(pa.float64()))
    absent = pc.is_in(strings, pa.array(missing, strings.type))
    none = pa.scalar(None, strings.type)
    with suppress(pa.ArrowInvalid):
        return _require_numbers(pc.if_else(absent, none, strings).cast(pa.float64()))
    plain = pc.and_not(pc.match_substring_regex(strings, _DIGITS), absent).fill_null(False)
    kept = pc.if_else(plain, strings, none)
    values = np.array(kept.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    others = np.flatnonzero(~plain.to_numpy(zero_copy_only=False).astype(bool))
    values[others] = _numbers_from_cells(strings.take(pa.array(others)).to_pylist(), missing)
    return values


def _require_numbers(values: Any) -> npt.NDArray[np.float64]:
    """Return the numbers; raise ArrowInvalid for NaN, since Arrow also reads "nan(1)" as NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.is_nan(values)).as_py():
        raise pa.ArrowInvalid
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _finite(values: Floats) -> Floats:
    if np.isinf(values).any():
        raise RowDomainError(
            "a row has a number that is infinite or outside the range of 32-bit floats. Features "
            "must be finite or missing. Drop or replace such cells by a rule that reads one row at "
            "a time."
        )
    return values


def read_codes(
    cells: Any, declared: Sequence[Any], missing: Sequence[str], other: str
) -> npt.NDArray[np.int64]:
    """Return the code of each cell, -1 if missing; see :class:`..data.cells.Names`."""
    names = Names(declared, "A list of categories or classes", absent=missing)
    indices = read_data(encode, cells, names.codes, "category")
    outside = indices < ABSENT
    if other == "error" and outside.any():
        raise RowDomainError(
            "a row has an undeclared value. Quoted names match by spelling, and unquoted numbers "
            "by value. Declare every value that may occur, or set in a schema file how to read "
            "others (`other: missing` or `other: NAME`)."
        )
    if other not in ("error", "missing"):
        indices[outside] = list(map(str, declared)).index(other)
    indices[indices < ABSENT] = ABSENT
    return indices


_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


def format_yaml(content: dict[str, Any], indent: int = 0) -> str:
    """Format a mapping of strings to mappings, lists, strings and numbers as YAML."""
    lines = []
    for key, value in content.items():
        head = f"{' ' * indent}{_key(key)}:"
        if isinstance(value, dict) and indent < 2 and value:
            lines += [head, format_yaml(value, indent + 2).rstrip("\n")]
        else:
            lines.append(f"{head} {format_flow(value)}")
    return "\n".join(lines) + "\n"


def format_flow(value: Any) -> str:
    """Format a mapping, list, string or number on one line, as JSON, which is also YAML."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in text)


def _key(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
    return name if plain and name.lower() not in _WORDS else format_flow(name)
