"""What a file is declared to hold in one column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..data.dates import EPOCH, PARTS, PUBLIC_CUTS, read_day
from ..errors import PrivacyParameterError
from ..parameters.parse import parse_number
from .declared import bounds_of, kind_of, mapping, texts

_KEYS = ("categories", "other", "bounds", "cuts", "date", "since")


@dataclass(frozen=True)
class Column:
    """One column of features; a number unless it has categories or is a date."""

    categories: tuple[str, ...] | None = None  # in the order of their codes
    other: str = "error"  # what becomes of undeclared ones: "error", "missing", or a category
    bounds: tuple[Any, ...] | None = None  # (low, high) or (low, high, "log"); of a date: its days
    cuts: tuple[float, ...] | None = None
    date: tuple[str, ...] | None = None  # the parts that become features
    since: str | None = None  # the day that its days are counted from, as YYYY-MM-DD

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


def _check_keys(where: str, given: Any) -> None:
    """Refuse unknown keys, and keys that exclude each other."""
    expected = (
        f"{where} must be 'number', a list of categories, or a mapping with some of "
        f"{', '.join(_KEYS)}"
    )
    unknown = [repr(key) for key in mapping(expected, given) if key not in _KEYS]
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
    categories = texts(f"{where}: categories", given["categories"])
    other = given.get("other", "error")
    if not isinstance(other, str) or other not in ("error", "missing", *categories):
        raise PrivacyParameterError(
            f"{where}: `other` must be 'error', 'missing' or one of the categories."
        )
    if "other" in given and other in ("error", "missing") and other in categories:
        raise PrivacyParameterError(
            f"{where}: `other` is {other!r}, which is also a category: rename the category."
        )
    return Column(categories, other)


def short(column: Column) -> dict[str, Any]:
    """What :func:`read_column` reads back."""
    entries = {k: v for k, v in asdict(column).items() if v is not None}
    if column.categories is None:
        del entries["other"]
    return entries
