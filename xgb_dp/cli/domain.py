"""What a file of rows is declared to hold: columns, categories, classes, bounds.

Nothing here looks at a cell. Declarations come from options or a file (YAML, TOML or JSON) and are
public; they travel with the model as the attribute ``dp_schema``, so that predictions read files
the way training did.
"""

from __future__ import annotations

import difflib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import PrivacyParameterError
from ..parse import parse_number, parse_range

__all__ = ["ATTRIBUTE", "Column", "Domain", "from_mapping", "read_domain", "template", "texts"]

ATTRIBUTE = "dp_schema"
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
KEYS = ("target", "classes", "target_bounds", "weight", "missing", "drop", "columns", "params")


@dataclass(frozen=True)
class Column:
    """One feature.

    Attributes:
        categories: Declared names, in the order of their codes; None for a number.
        other: What an undeclared category is: "error", "missing", or one of the categories.
        bounds: Public (low, high) or (low, high, "log").
        cuts: Public split points.
    """

    categories: tuple[str, ...] | None = None
    other: str = "error"
    bounds: tuple[Any, ...] | None = None
    cuts: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Domain:
    """Declared content of a file of rows. Every value is public.

    Attributes:
        target: Name of the column of labels.
        classes: Class names in the order 0, 1, ...; None for regression.
        target_bounds: Range of a regression target.
        weight: Name of the column of row weights.
        missing: Texts that stand for a missing cell; a declared category of that name goes first.
        drop: Columns to leave out.
        columns: The features, in their order; None for every other column of the file, as numbers,
            except those in `declared`.
        declared: Features that options have declared one by one.
        params: Further parameters of training.
    """

    target: str | None = None
    classes: tuple[str, ...] | None = None
    target_bounds: tuple[float, float] | None = None
    weight: str | None = None
    missing: tuple[str, ...] = MISSING
    drop: tuple[str, ...] = ()
    columns: dict[str, Column] | None = None
    declared: dict[str, Column] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)

    def resolved(self, header: Sequence[str], *, training: bool) -> Domain:
        """The domain with its features spelt out for a file.

        Args:
            header: Names of the file's columns.
            training: Whether target and weight must be there.

        Raises:
            PrivacyParameterError: A declared column is not in the file, or stands in it twice.
        """
        special = [c for c in (self.target, self.weight) if c is not None]
        columns = self.columns
        if columns is None:
            apart = {*special, *self.drop}
            columns = {name: Column() for name in header if name not in apart}
        needed = {**columns, **self.declared}
        for name in [*needed, *self.drop, *(special if training else ())]:
            if header.count(name) != 1:
                raise PrivacyParameterError(_not_in(name, header))
        for name in needed:
            if name in special:
                raise PrivacyParameterError(
                    f"Column {name!r} is declared as a feature, but is the target or the weight."
                )
            if not name or set(name) & set("[]<"):
                raise PrivacyParameterError(
                    f"Column {name!r} cannot be a feature: XGBoost takes no empty names, and none "
                    "with [, ] or <. Rename it in the file."
                )
        return replace(self, columns=needed, declared={})

    def check_target(self) -> None:
        """Refuse what does not say what is learnt, before any row is read.

        Raises:
            PrivacyParameterError: No target, or neither classes nor target bounds are declared.
        """
        if self.target is None:
            raise PrivacyParameterError(
                "Name the column of labels: `--target COLUMN`, or `target` in a schema file."
            )
        if self.classes is None and self.target_bounds is None:
            raise PrivacyParameterError(
                "The target is not declared. Which classes or values occur in the file is private, "
                "so say what may occur: `--classes no,yes` for classification, or "
                "`--target-bounds 0 100` for regression (in a schema file: classes, target_bounds)."
            )

    def parameters(self) -> dict[str, Any]:
        """The parameters of training that follow from what is declared of target and columns."""
        assert self.columns is not None
        made: dict[str, Any] = {}
        if self.classes is not None:
            binary = len(self.classes) == 2
            made = {"objective": "binary:logistic" if binary else "multi:softprob"}
            made |= {"dp_classes" if binary else "num_class": len(self.classes)}
        elif self.target_bounds is not None:
            made = {"objective": "reg:squarederror", "dp_target_bounds": self.target_bounds}
        found = {
            "dp_categories": {n: c.categories for n, c in self.columns.items() if c.categories},
            "dp_feature_bounds": {n: c.bounds for n, c in self.columns.items() if c.bounds},
            "dp_feature_cuts": {n: c.cuts for n, c in self.columns.items() if c.cuts},
        }
        return {**made, **{key: value for key, value in found.items() if value}}

    def to_json(self) -> str:
        """As text for the model's attribute ``dp_schema``."""
        assert self.columns is not None
        made = {
            "target": self.target,
            "classes": self.classes,
            "target_bounds": self.target_bounds,
            "weight": self.weight,
            "missing": self.missing,
            "columns": {name: _short(column) for name, column in self.columns.items()},
        }
        return json.dumps({k: v for k, v in made.items() if v is not None}, allow_nan=False)


def _short(column: Column) -> dict[str, Any]:
    """What :func:`_column` reads back."""
    kept = {k: v for k, v in asdict(column).items() if v is not None}
    if column.categories is None:
        del kept["other"]
    return kept


def _not_in(name: str, header: Sequence[str]) -> str:
    if name in header:
        return f"Column {name!r} stands in the file more than once. Rename or remove it."
    near = difflib.get_close_matches(name, list(header), 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    # The names are not listed: in a file without a header they would be cells of a row.
    return (
        f"The file has no column {name!r} among its {len(header)} columns.{hint} The first line "
        "of a CSV file must hold the names; `xgb-dp schema FILE` shows them."
    )


def texts(name: str, value: Any) -> tuple[str, ...]:
    """A list of distinct texts, given as a list or separated by commas.

    Raises:
        PrivacyParameterError: Something else, or a text twice.
    """
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Sequence) or not value:
        raise PrivacyParameterError(f"{name} must be a list of names.")
    if any(isinstance(v, (bool, Mapping)) or v is None for v in value):
        raise PrivacyParameterError(f"{name} must be a list of names: put them in quotes.")
    found = tuple(str(v).strip() for v in value)
    if len(set(found)) != len(found):
        raise PrivacyParameterError(f"{name} names an entry twice.")
    return found


def _column(name: str, given: Any) -> Column:
    where = f"Column {name!r} of the schema"
    if given in (None, "", "number", {}):
        return Column()
    if isinstance(given, Sequence) and not isinstance(given, str):
        given = {"categories": given}
    if not isinstance(given, Mapping) or not set(given) <= {
        "categories",
        "other",
        "bounds",
        "cuts",
    }:
        raise PrivacyParameterError(
            f"{where} must be 'number', a list of categories, or a mapping with some of "
            "categories, other, bounds and cuts."
        )
    categories = (
        texts(f"{where}: categories", given["categories"]) if "categories" in given else None
    )
    other = str(given.get("other", "error"))
    if categories is None and "other" in given:
        raise PrivacyParameterError(f"{where} has `other` without categories.")
    if categories is not None and other not in ("error", "missing", *categories):
        raise PrivacyParameterError(
            f"{where}: `other` must be 'error', 'missing' or one of the categories."
        )
    bounds = cuts = None
    if "bounds" in given:
        values = list(given["bounds"])
        low, high = parse_range(f"{where}: bounds", values[:2])
        bounds = (low, high, *map(str, values[2:]))
    if "cuts" in given:
        cuts = tuple(parse_number(f"{where}: cuts", v) for v in given["cuts"])
    return Column(categories, other, bounds, cuts)


def from_mapping(given: Any) -> Domain:
    """A domain from the content of a schema file.

    Args:
        given: Mapping with some of the keys target, classes, target_bounds, weight, missing, drop,
            columns and params; values may be texts where numbers are meant.

    Raises:
        PrivacyParameterError: Unknown keys, or ill-formed values.
    """
    if not isinstance(given, Mapping):
        raise PrivacyParameterError(
            f"A schema must be a mapping with some of the keys {', '.join(KEYS)}."
        )
    for key in given:
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise PrivacyParameterError(
                f"The schema has the unknown key {key!r}.{hint} Keys are {', '.join(KEYS)}."
            )
    made: dict[str, Any] = {k: str(given[k]) for k in ("target", "weight") if given.get(k)}
    if "classes" in given:
        made["classes"] = texts("`classes`", given["classes"])
        if len(made["classes"]) < 2:
            raise PrivacyParameterError("`classes` must name at least two classes.")
    if "target_bounds" in given:
        made["target_bounds"] = parse_range("target_bounds", given["target_bounds"])
    if "classes" in made and "target_bounds" in made:
        raise PrivacyParameterError("Declare `classes` or `target_bounds`, not both.")
    if "missing" in given:
        made["missing"] = texts("`missing`", given["missing"])
    if given.get("drop"):
        made["drop"] = texts("`drop`", given["drop"])
    columns = given.get("columns")
    if columns:
        if not isinstance(columns, Mapping):
            raise PrivacyParameterError("`columns` must map names to declarations.")
        made["columns"] = {str(n): _column(str(n), c) for n, c in columns.items()}
    params = given.get("params") or {}
    if not isinstance(params, Mapping):
        raise PrivacyParameterError("`params` must map names of parameters to values.")
    made["params"] = {str(k): typed(v) for k, v in params.items()}
    return Domain(**made)


def typed(value: Any) -> Any:
    """A value of a parameter: texts that are JSON become numbers, lists and so on."""
    if isinstance(value, Mapping):
        return {str(k): typed(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [typed(v) for v in value]
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except ValueError:
        return math.inf if value == "inf" else value
    return value if found is None else found


def read_domain(path: Path) -> Domain:
    """Read a schema file.

    Args:
        path: Ends in .yaml, .yml, .toml or .json.

    Raises:
        PrivacyParameterError: Another ending, or a file that cannot be parsed.
    """
    text = path.read_text(encoding="utf-8")
    kind = path.suffix.lower()
    try:
        if kind in (".yaml", ".yml"):
            import yaml

            # Every scalar stays a text: else `no` were a truth value, 011 nine and 1.10 1.1.
            return from_mapping(yaml.load(text, Loader=yaml.BaseLoader))  # noqa: S506
        if kind == ".json":
            return from_mapping(json.loads(text))
        if kind == ".toml":
            return from_mapping(_toml(text))
    except PrivacyParameterError as error:
        raise PrivacyParameterError(f"{path.name}: {error}") from None
    except Exception as error:  # each parser has errors of its own
        raise PrivacyParameterError(f"{path.name} cannot be parsed: {error}") from None
    raise PrivacyParameterError(f"{path.name}: a schema file ends in .yaml, .toml or .json.")


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def template(header: Sequence[str], target: str | None) -> str:
    """A schema file to fill in, in YAML, from the names of the columns alone."""
    lines = [
        "# What the rows may hold. All of this is public: declare it from knowledge of the domain,",
        "# not by looking at the rows.",
        f"target: {json.dumps(target or 'NAME OF THE TARGET COLUMN')}",
        'classes: ["0", "1"]            # for classification, in the order 0, 1, ...',
        "# target_bounds: [0, 100]      # for regression, instead of classes",
        f"missing: {json.dumps(list(MISSING))}",
        "columns:",
        "  # Each is one of these. Remove the line of a column that is no feature, such as a key.",
        "  # number",
        "  # {bounds: [0, 100]}         a number with a public range, which saves budget",
        '  # ["red", "green"]           categories; all that may occur',
        '  # {categories: ["red"], other: missing}   others are treated as missing',
    ]
    lines += [f"  {json.dumps(name)}: number" for name in header if name != target]
    return "\n".join(lines) + "\n"
