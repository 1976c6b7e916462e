"""Declared columns: how options and schema files declare them, and how their cells are read.

Schema files are YAML, TOML or JSON with every key once. In YAML a scalar stays the string that is
written: otherwise ``no`` would be a truth value, 011 nine, 1:30 ninety and 2024-01-01 a date. Only
null, ~ and an empty value are not strings. Categories and classes without quotes are numbers if all
of them are.

Every cell is read alone, and no type, category or class is taken from the cells. A cell outside its
declaration raises an error, which says nothing else about it; see "Errors" in
``docs/guarantee.md``.

Writes the YAML of schema files, with keys that read back as strings.
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
    parts_of_dates,
)
from ..data.cells import ABSENT, Names, numbers_among, read_cell_numbers, read_data
from ..data.frames import list_columns
from ..errors import PrivacyParameterError, RowDomainError
from ..parameters.parse import parse_number, parse_range


class Unquoted(str):
    """A text of a YAML file or an option that has no quotes around it."""


Declared: TypeAlias = "tuple[str | float, ...]"
"""Names of categories or classes: texts match cells by spelling, numbers by value."""
_KINDS = {
    type(None): "nothing (null)", bool: "a truth value", str: "a text", Unquoted: "a text",
    int: "a number", float: "a number", list: "a list", tuple: "a list", dict: "a mapping",
}  # fmt: skip


def describe_type(value: Any) -> str:
    """What a value of a schema file is, in words."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def check_mapping(expected: str, value: Any) -> Mapping[str, Any]:
    """A mapping of a schema file."""
    if not isinstance(value, Mapping):
        raise PrivacyParameterError(f"{expected}; got {describe_type(value)}.")
    return value


def parse_column_name(name: str, value: Any) -> str:
    """The name of a column."""
    if not isinstance(value, str) or not value.strip():
        raise PrivacyParameterError(
            f"{name} must be the name of a column; got {describe_type(value)}. Put it in quotes, "
            "or leave the line out."
        )
    return value.strip()


def parse_strings(name: str, value: Any) -> tuple[str, ...]:
    """A list of distinct names."""
    if not isinstance(value, (list, tuple)):
        raise PrivacyParameterError(
            f"{name} must be a list of names, such as [red, green]; got {describe_type(value)}."
        )
    if not value:
        raise PrivacyParameterError(
            f"{name} is an empty list. Name at least one entry, or leave it out."
        )
    for entry in value:
        if isinstance(entry, bool) or not isinstance(entry, (str, int)):
            raise PrivacyParameterError(
                f"{name} must be a list of names; one entry is {describe_type(entry)}: put it in "
                "quotes."
            )
    names = tuple(str(entry).strip() for entry in value)
    if len(set(names)) != len(names):
        raise PrivacyParameterError(f"{name} names an entry twice. Keep one of them.")
    return names


def parse_categories(name: str, value: Any) -> Declared:
    """Distinct categories or classes: numbers if each is a number without quotes, else texts."""
    entries = value if isinstance(value, (list, tuple)) else []
    numbers = [number for number in map(_number, entries) if number is not None]
    if not numbers or len(numbers) < len(entries):
        return parse_strings(name, value)
    if len(set(map(float, numbers))) < len(numbers):
        raise PrivacyParameterError(f"{name} names an entry twice. Keep one of them.")
    return tuple(numbers)


def _number(entry: Any) -> int | float | None:
    """A number without quotes in its usual spelling: 007 and 1.10 are texts."""
    if isinstance(entry, Unquoted):
        for read in (float, int):
            with suppress(ValueError):
                if str(read(entry)) == str(entry):
                    return _number(read(entry))
    return entry if type(entry) in (int, float) and abs(entry) <= sys.float_info.max else None


def parse_classes(name: str, value: Any) -> Declared:
    """The classes of a target."""
    classes = parse_categories(name, value)
    if len(classes) < 2:
        raise PrivacyParameterError(f"{name} must name at least two classes.")
    return classes


def parse_levels(name: str, value: Any) -> tuple[float, ...]:
    """Levels of quantiles; their order is checked with the other parameters."""
    levels = value if isinstance(value, (list, tuple)) else [value]
    return tuple(parse_number(name, level) for level in levels)


def parse_bounds(name: str, value: Any) -> tuple[Any, ...]:
    """A public range: (low, high) or (low, high, "log")."""
    listed = isinstance(value, (list, tuple))
    if not listed or len(value) not in (2, 3) or list(value[2:]) not in ([], ["log"]):
        got = "" if listed else f"; got {describe_type(value)}"
        raise PrivacyParameterError(f"{name} must be [low, high] or [low, high, log]{got}.")
    return (*parse_range(name, list(value[:2])), *value[2:])


def parse_scalar(value: Any) -> Any:
    """A value of a parameter: texts that are JSON become numbers, lists and so on."""
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
_DEEPEST = 32  # levels; a schema has four


def read_schema_file(path: Path) -> Any:
    """The content of a schema file."""
    parse = {".yaml": _yaml, ".yml": _yaml, ".json": parse_json, ".toml": _toml}.get(
        path.suffix.lower()
    )
    if parse is None:
        raise PrivacyParameterError(
            "the ending is not known. A schema file ends in .yaml, .toml or .json."
        )
    try:
        content = parse(path.read_text(encoding="utf-8-sig"))
        json.dumps(content, ensure_ascii=False, default=str).encode()  # "\\ud800" is an escape
        return content
    except UnicodeError:
        raise PrivacyParameterError(
            "it is not UTF-8 text, or a name in it cannot be written in UTF-8. Save the schema "
            "file in UTF-8, without halves of characters such as \\ud800."
        ) from None
    except RecursionError:
        raise PrivacyParameterError(
            "cannot be parsed: it is nested too deeply. A schema has at most a few levels."
        ) from None


def parse_json(text: str) -> Any:
    """The value of a JSON text in which no key is given twice."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, count in Counter(key for key, _ in items).items():
            if count > 1:
                raise PrivacyParameterError(f"the key {key!r} is given twice. Keep one of them.")
        return dict(items)

    def constant(name: str) -> Any:
        raise PrivacyParameterError(
            f"{name} is not a number that JSON knows. Write a finite number."
        )

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
        return tomllib.loads(text)  # refuses a key that is given twice, with its line
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
            "cannot be parsed as YAML. Compare it with what `xgb-dp schema FILE` prints."
        ) from None
    return None if node is None else _plain(node, set(), 0)


def _plain(node: Any, seen: set[int], depth: int) -> Any:
    """The value of a node of YAML's syntax tree."""
    import yaml

    line = node.start_mark.line + 1
    if depth > _DEEPEST:
        raise PrivacyParameterError(
            f"line {line}: it is nested too deeply. A schema has at most a few levels."
        )
    if id(node) in seen:
        raise PrivacyParameterError(
            f"line {line}: a schema must not contain anchors or aliases (&, *). Write the value "
            "in full."
        )
    seen.add(id(node))
    if node.tag.rpartition(":")[2] not in ("str", "seq", "map"):
        raise PrivacyParameterError(
            f"line {line}: a schema must not contain tags (!). Remove the tag, or put the text in "
            "quotes."
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
            raise PrivacyParameterError(f"line {at}: a key must be a name; put it in quotes.")
        if name in content:
            raise PrivacyParameterError(
                f"line {at}: the key {name!r} is given twice. Keep one of them."
            )
        content[name] = _plain(value, seen, depth + 1)
    return content


_KEYS = ("categories", "other", "bounds", "cuts", "date", "since")


PUBLIC_CUTS = {
    "month": tuple(float(k) for k in range(2, 13)),
    "weekday": tuple(float(k) for k in range(1, 7)),
    "hour": tuple(float(k) for k in range(1, 24)),
}
"""Split points that part all values; they follow from the calendar."""


@dataclass(frozen=True)
class Column:
    """One column of features; a number unless it has categories or is a date."""

    categories: Declared | None = None  # in the order of their codes
    other: str = "error"  # what becomes of undeclared ones: "error", "missing", or a category
    bounds: tuple[Any, ...] | None = None  # (low, high) or (low, high, "log"); of a date: its days
    cuts: tuple[float, ...] | None = None
    date: tuple[str, ...] | None = None  # the parts that become features
    since: str | None = None  # the day that its days are counted from, as YYYY-MM-DD

    @property
    def is_number(self) -> bool:
        """Whether cells count by the numbers that they spell."""
        return self.date is None and not any(isinstance(n, str) for n in self.categories or ())

    @property
    def names(self) -> tuple[str, ...] | None:
        """The categories as models store them."""
        return None if self.categories is None else tuple(map(str, self.categories))

    def features(self, name: str) -> dict[str, Column]:
        """The features that a column of this name becomes, each with its declaration."""
        if self.date is None:
            return {name: self}
        days = Column(bounds=self.bounds, cuts=self.cuts)
        return {
            f"{name}_{part}": days if part == "days" else Column(cuts=PUBLIC_CUTS[part])
            for part in self.date
        }


def read_column(name: str, given: Any) -> Column:
    """The declaration of a column in a schema file."""
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
        raise PrivacyParameterError(f"{where}: `date` must list some of {', '.join(PARTS)}.")
    if "days" not in date and (bounds or cuts):
        raise PrivacyParameterError(
            f"{where}: bounds and cuts of a date are for its days. Add 'days' to `date`, or "
            "remove them."
        )
    since = read_day(f"{where}: since", given.get("since", EPOCH))
    return Column(bounds=bounds, cuts=cuts, date=date, since=since)


def read_day(name: str, value: Any) -> str:
    """A day as YYYY-MM-DD."""
    try:
        return datetime.date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise PrivacyParameterError(f"{name} must be a day such as 2000-01-31.") from None


def _check_keys(where: str, given: Any) -> None:
    """Refuse unknown keys, and keys that exclude each other."""
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
            f"{where} declares more than one of categories, numbers (bounds, cuts) and dates. A "
            "column is of one kind: keep one of them."
        )
    if "since" in given and "date" not in given:
        raise PrivacyParameterError(
            f"{where} has `since` without `date`. Add `date` with the parts to use, or remove "
            "`since`."
        )
    if "bounds" in given and "cuts" in given:
        raise PrivacyParameterError(f"{where} has both bounds and cuts. Keep one of them.")
    if "categories" not in given and "other" in given:
        raise PrivacyParameterError(
            f"{where} has `other` without `categories`. List the categories, or remove `other`."
        )


def _categories(where: str, given: Mapping[str, Any]) -> Column:
    categories = parse_categories(f"{where}: categories", given["categories"])
    names, other = list(map(str, categories)), given.get("other", "error")
    if not isinstance(other, str) or other not in ("error", "missing", *names):
        raise PrivacyParameterError(
            f"{where}: `other` must be 'error', 'missing' or one of the categories."
        )
    if "other" in given and other in ("error", "missing") and other in names:
        raise PrivacyParameterError(
            f"{where}: `other` is {other!r}, which is also a category: rename the category."
        )
    return Column(categories, str(other))


def short(column: Column) -> dict[str, Any]:
    """What :func:`read_column` reads back."""
    entries = {k: v for k, v in asdict(column).items() if v is not None}
    if column.categories is None:
        del entries["other"]
    return entries


Floats = npt.NDArray[np.float32]


def column_names(table: Any) -> list[Any]:
    """Names of the columns of a table in memory, or of a mapping of names to arrays."""
    if isinstance(table, Mapping):
        return list(table)
    if not is_table(table):
        raise PrivacyParameterError(
            "A schema is for a data frame, or a mapping of names of columns to arrays; got a "
            f"{type(table).__name__}."
        )
    return list_columns(table)


def read_features(
    pieces: Iterable[Any], columns: Mapping[str, Column], missing: Sequence[str]
) -> dict[str, Any]:
    """Every feature in the form that XGBoost takes; one error for all that are outside.

    Args:
        pieces: The rows, as data frames of any library, or mappings of names to arrays.
        columns: What is declared of the columns to read.
        missing: Texts that stand for a missing cell.
    """
    import pandas as pd

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
    if errors:  # of one column one, whatever lies in which piece
        said: dict[str, list[str]] = {}
        for name in (name for name in columns if name in errors):
            said.setdefault(max(errors[name]), []).append(name)
        raise RowDomainError(" ".join(f"{', '.join(map(repr, n))}: {e}" for e, n in said.items()))
    out: dict[str, Any] = {}
    for (name, feature), cells in read.items():
        names = columns[name].names
        array = cells.all()
        out[feature] = array if names is None else pd.Categorical.from_codes(array, list(names))
    return out


def _feature(name: str, column: Column, cells: Any, missing: Sequence[str]) -> dict[str, Any]:
    """What a column becomes: numbers, or codes of its categories."""
    if column.date is not None:
        parts = parts_of_dates(cells, column.date, column.since or EPOCH, missing)
        return {f"{name}_{part}": values.astype(np.float32) for part, values in parts.items()}
    if column.categories is None:
        return {name: _finite(read_numbers(cells, missing))}
    return {name: read_codes(cells, column.categories, missing, column.other).astype(np.int32)}


class _ColumnReader:
    """One feature, whose array grows in its place: memory never holds it twice."""

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
    """Numbers of a column as 32-bit floats; texts of missing cells that are numbers by value."""
    strings = [text.strip() for text in missing]
    values: npt.NDArray[Any] | None = None
    with suppress(ValueError):
        column = cells.array.__arrow_array__() if is_arrow(cells) else cells
        if find_library(column) == "pyarrow" and describe_column_type(column) == "text":
            values = _numbers_from_strings(column, strings)
        else:
            array = read_data(as_cells, cells, "number")
            if array.dtype.kind in "biuf":
                values = array
            elif array.dtype.kind == "O":
                values = _numbers_from_cells(array.tolist(), strings)
    if values is None:
        raise RowDomainError(
            "a row holds something that is not a number. Numbers are written as 1234.5: decimal "
            "commas and separated thousands of CSV files need `--decimal , --thousands .`, and a "
            "per cent sign has to be removed. Dates are declared as `{date: [days, month]}` in a "
            "schema file. If the column holds categories, declare them (`--categories "
            "COLUMN=a,b,c`, or in a schema file); if it is not a feature, such as a key, leave it "
            "out (`--drop COLUMN`); if such texts stand for missing cells, list them under "
            "`missing` in a schema file."
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


# Texts that Arrow and Python read as the same number, the nearest to what is written.
_DIGITS = r"^-?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?$"


def _numbers_from_strings(strings: Any, missing: Sequence[str]) -> npt.NDArray[np.float64]:
    """Numbers of texts; if Arrow reads not all, those that are not in digits one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if str(strings.type) == "string_view":
        strings = strings.cast(pa.large_string())  # of views Arrow knows less
    with suppress(pa.ArrowInvalid):
        return _sound(strings.cast(pa.float64()))
    absent, none = (
        pc.is_in(strings, pa.array(missing, strings.type)),
        pa.scalar(None, strings.type),
    )
    with suppress(pa.ArrowInvalid):
        return _sound(pc.if_else(absent, none, strings).cast(pa.float64()))
    plain = pc.and_not(pc.match_substring_regex(strings, _DIGITS), absent).fill_null(False)
    kept = pc.if_else(plain, strings, none)
    values = np.array(kept.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    others = np.flatnonzero(~plain.to_numpy(zero_copy_only=False).astype(bool))
    values[others] = _numbers_from_cells(strings.take(pa.array(others)).to_pylist(), missing)
    return values


def _sound(values: Any) -> npt.NDArray[np.float64]:
    """Numbers that Arrow has read, where all of them are: it reads "nan(1)", which is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.is_nan(values)).as_py():
        raise pa.ArrowInvalid
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _finite(values: Floats) -> Floats:
    if np.isinf(values).any():
        raise RowDomainError(
            "a row holds an infinite number, or one beyond 32-bit floats. Features are finite or "
            "missing. Drop or replace such cells by a rule that looks at one row at a time."
        )
    return values


def read_codes(
    cells: Any, declared: Sequence[Any], missing: Sequence[str], other: str
) -> npt.NDArray[np.int64]:
    """Code of each cell, -1 for missing; see :class:`..data.cells.Names`."""
    names = Names(declared, "A list of categories or classes", absent=missing)
    indices = read_data(encode, cells, names.codes, "category")
    outside = indices < ABSENT
    if other == "error" and outside.any():
        raise RowDomainError(
            "a row holds something that is not declared. Names in quotes match by spelling, and "
            "numbers without quotes by value. Declare all that may occur, or say in a schema file "
            "what others are (`other: missing` or `other: NAME`)."
        )
    if other not in ("error", "missing"):
        indices[outside] = list(map(str, declared)).index(other)
    indices[indices < ABSENT] = ABSENT
    return indices


_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


def format_yaml(content: dict[str, Any], indent: int = 0) -> str:
    """A mapping of texts to mappings, lists, texts and numbers."""
    lines = []
    for key, value in content.items():
        head = f"{' ' * indent}{_key(key)}:"
        if isinstance(value, dict) and indent < 2 and value:
            lines += [head, format_yaml(value, indent + 2).rstrip("\n")]
        else:
            lines.append(f"{head} {format_flow(value)}")
    return "\n".join(lines) + "\n"


def format_flow(value: Any) -> str:
    """A mapping, list, text or number on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)}: {format_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(format_flow, value)) + "]"
    return _scalar(value)


def _key(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
    return name if plain and name.lower() not in _WORDS else _scalar(name)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return repr(value)
    return '"' + "".join(map(_character, value)) + '"'


def _character(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    if c.isprintable():
        return c
    return f"\\U{ord(c):08X}"
