"""What options and schema files declare: texts that are parsed, values, and columns.

Schema files are YAML, TOML or JSON with every key once. In YAML a scalar stays the text that is
written: else ``no`` were a truth value, 011 nine, 1:30 ninety and 2024-01-01 a date. Only null, ~
and nothing at all are no text. Categories and classes without quotes are numbers if all are.
"""

from __future__ import annotations

import datetime
import json
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..data.dates import EPOCH, PARTS
from ..errors import PrivacyParameterError
from ..parameters.parse import parse_number, parse_range


class Unquoted(str):
    """A text of a YAML file or an option that has no quotes around it."""


Declared: TypeAlias = "tuple[str | float, ...]"
"""Names of categories or classes: texts match cells by spelling, numbers by value."""
_KINDS = {
    type(None): "nothing (null)", bool: "a truth value", str: "a text", Unquoted: "a text",
    int: "a number", float: "a number", list: "a list", tuple: "a list", dict: "a mapping",
}  # fmt: skip


def kind_of(value: Any) -> str:
    """What a value of a schema file is, in words."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def mapping(expected: str, value: Any) -> Mapping[str, Any]:
    """A mapping of a schema file."""
    if not isinstance(value, Mapping):
        raise PrivacyParameterError(f"{expected}; got {kind_of(value)}.")
    return value


def column_of(name: str, value: Any) -> str:
    """The name of a column."""
    if not isinstance(value, str) or not value.strip():
        raise PrivacyParameterError(
            f"{name} must be the name of a column; got {kind_of(value)}. Put it in quotes, or "
            "leave the line out."
        )
    return value.strip()


def texts(name: str, value: Any) -> tuple[str, ...]:
    """A list of distinct names."""
    if not isinstance(value, (list, tuple)):
        raise PrivacyParameterError(
            f"{name} must be a list of names, such as [red, green]; got {kind_of(value)}."
        )
    if not value:
        raise PrivacyParameterError(
            f"{name} is an empty list. Name at least one entry, or leave it out."
        )
    for entry in value:
        if isinstance(entry, bool) or not isinstance(entry, (str, int)):
            raise PrivacyParameterError(
                f"{name} must be a list of names; one entry is {kind_of(entry)}: put it in quotes."
            )
    names = tuple(str(entry).strip() for entry in value)
    if len(set(names)) != len(names):
        raise PrivacyParameterError(f"{name} names an entry twice. Keep one of them.")
    return names


def categories_of(name: str, value: Any) -> Declared:
    """Distinct categories or classes: numbers if each is a number without quotes, else texts."""
    entries = value if isinstance(value, (list, tuple)) else []
    numbers = [number for number in map(_number, entries) if number is not None]
    if not numbers or len(numbers) < len(entries):
        return texts(name, value)
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


def classes_of(name: str, value: Any) -> Declared:
    """The classes of a target."""
    classes = categories_of(name, value)
    if len(classes) < 2:
        raise PrivacyParameterError(f"{name} must name at least two classes.")
    return classes


def levels_of(name: str, value: Any) -> tuple[float, ...]:
    """Levels of quantiles; their order is checked with the other parameters."""
    levels = value if isinstance(value, (list, tuple)) else [value]
    return tuple(parse_number(name, level) for level in levels)


def bounds_of(name: str, value: Any) -> tuple[Any, ...]:
    """A public range: (low, high) or (low, high, "log")."""
    listed = isinstance(value, (list, tuple))
    if not listed or len(value) not in (2, 3) or list(value[2:]) not in ([], ["log"]):
        got = "" if listed else f"; got {kind_of(value)}"
        raise PrivacyParameterError(f"{name} must be [low, high] or [low, high, log]{got}.")
    return (*parse_range(name, list(value[:2])), *value[2:])


def typed(value: Any) -> Any:
    """A value of a parameter: texts that are JSON become numbers, lists and so on."""
    if isinstance(value, Mapping):
        return {str(k): typed(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [typed(v) for v in value]
    if not isinstance(value, str):
        return value
    try:
        parsed = json_of(value)
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
    parse = {".yaml": _yaml, ".yml": _yaml, ".json": json_of, ".toml": _toml}.get(
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


def json_of(text: str) -> Any:
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
        bounds = bounds_of(f"{where}: bounds", given["bounds"])
    if "cuts" in given:
        if not isinstance(given["cuts"], list):
            raise PrivacyParameterError(
                f"{where}: cuts must be a list of numbers; got {kind_of(given['cuts'])}."
            )
        cuts = tuple(parse_number(f"{where}: cuts", v) for v in given["cuts"])
    if "date" not in given:
        return Column(bounds=bounds, cuts=cuts)
    date = texts(f"{where}: date", given["date"])
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
    keys = {given: None} if isinstance(given, str) else mapping(expected, given)
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
    categories = categories_of(f"{where}: categories", given["categories"])
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
