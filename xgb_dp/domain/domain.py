"""The declared domain of a data set: columns, categories, classes and bounds.

This module reads no cells. Declarations come from options or from a file (YAML, TOML or JSON) and
are public. They are stored in the model as the attribute ``dp_schema``, so that prediction reads
data in the same way as training.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.arrays import collect_table, find_library
from ..data.cells import MISSING, read_number
from ..engine import model_json
from ..engine.model_json import ModelJson
from ..engine.saved_model import CLASSES, class_names
from ..errors import LedgerError, PrivacyError, PrivacyParameterError
from ..parameters.parse import parse_number, parse_range
from ..request.names import check_names, flatten, read_one
from ..request.objectives import OBJECTIVES
from .columns import (
    Column,
    Declared,
    check_mapping,
    column_names,
    describe_type,
    parse_classes,
    parse_column_name,
    parse_levels,
    parse_scalar,
    parse_strings,
    read_column,
    read_features,
    read_schema_file,
    to_schema_entries,
)
from .data_files import (
    Csv,
    Source,
    check_columns,
    find_files,
    is_parquet,
    parse_header,
    read_blocks,
)

ATTRIBUTE = "dp_schema"
_PARAMETERS_OF_COLUMNS = {
    "dp_categories": "names", "dp_feature_bounds": "bounds", "dp_feature_cuts": "cuts",
}  # fmt: skip


@dataclass(frozen=True)
class Domain:
    """Declared domain of a data set; every value is public."""

    target: str | None = None
    classes: Declared | None = None  # in the order of their codes; None for regression
    target_bounds: tuple[float, float] | None = None
    objective: str | None = None  # by default from the classes, or squared error
    quantiles: tuple[float, ...] | None = None  # the objective is then reg:quantileerror
    exposure: str | None = None  # a column, such as the duration of an insurance policy in years
    exposure_bounds: tuple[float, float] | None = None
    base_margin: str | None = None  # a column from which the trees start, such as a public score
    event: str | None = None  # a column: 1 if the end of the time was observed, else 0
    target_upper: str | None = None  # a column of upper bounds of the time, empty if unknown
    weight: str | None = None
    privacy_id: str | None = None  # None if the privacy unit is a row
    missing: tuple[str, ...] = MISSING  # declared categories take precedence
    drop: tuple[str, ...] = ()
    columns: dict[str, Column] | None = None  # None: all columns, numeric unless in `declared`
    declared: dict[str, Column] = field(default_factory=dict)  # single columns, set by options
    params: dict[str, Any] = field(default_factory=dict)
    discovered: dict[str, Any] | None = None  # privacy cost, see xgb_dp.Discovery.schema

    @property
    def ends(self) -> tuple[str, ...]:
        """Columns besides the target that give the end of a time; only training needs them."""
        return tuple(c for c in (self.event, self.target_upper) if c is not None)

    @property
    def margins(self) -> str | None:
        """Column of the base margins, or of the exposures, whose logs are the margins."""
        return self.exposure or self.base_margin

    @property
    def special(self) -> tuple[str, ...]:
        """All columns that are not features."""
        names = (self.target, self.weight, self.privacy_id, *self.ends, self.margins)
        return tuple(name for name in names if name is not None)

    @property
    def features(self) -> dict[str, Column]:
        """The features as training sees them, with each date replaced by its parts."""
        features: dict[str, Column] = {}
        for name, column in (self.columns or {}).items():
            for feature, declared in column.features(name).items():
                if feature in features:
                    raise PrivacyParameterError(
                        f"Two columns become the feature {feature!r}, because a part of a date has "
                        "the name of another column. Rename one column in the file."
                    )
                features[feature] = declared
        return features

    def resolve(self, header: Sequence[str], *, training: bool) -> Domain:
        """Return the domain with explicit features for a file with this header."""
        special = self.special
        if len(set(special)) < len(special):
            raise PrivacyParameterError(
                "target, weight, privacy_id, exposure, base_margin, event and target_upper must be "
                "different columns; one column has two of these roles."
            )
        columns = self.columns
        if columns is None:
            apart = {*special, *self.drop}
            columns = {name: Column() for name in header if name not in apart}
        needed = {**columns, **self.declared}
        check_columns([*needed, *self.drop, *(special if training else ())], header)
        for name in needed:
            if name in special:
                raise PrivacyParameterError(
                    f"Column {name!r} is declared as a feature, but is the target, the weight, "
                    "the privacy id, the exposure, the base margin or the end of a time. Remove it "
                    "from `columns`."
                )
            if not name or set(name) & set("[]<"):
                raise PrivacyParameterError(
                    f"Column {name!r} cannot be a feature: XGBoost does not accept empty names or "
                    "names with [, ] or <. Rename it in the file."
                )
        return replace(self, columns=needed, declared={})

    def for_table(self, names: Iterable[str]) -> Domain:
        """Return the domain for a table with these columns; undeclared columns are numbers."""
        apart, known = {*self.special, *self.drop}, self.columns or {}
        columns = {name: known.get(name, Column()) for name in names if name not in apart}
        return replace(self, columns=columns, drop=())

    def read_table(self, table: Any) -> Any:
        """Read the features of a table in memory cell by cell, as for training and prediction."""
        import pandas as pd

        table = collect_table(table)
        read = read_features(
            [table], self.for_table(column_names(table)).columns or {}, self.missing
        )
        return pd.DataFrame(read, index=table.index if find_library(table) == "pandas" else None)

    def check_target(self) -> None:
        """Check that the target is declared, before any row is read."""
        if self.target is None:
            raise PrivacyParameterError(
                "The target is not declared. Set the label column with `--target COLUMN`, or with "
                "`target` in a schema file."
            )
        known = OBJECTIVES.get(self.objective or "")
        bounded = known is not None and known.highest < math.inf  # the objective bounds the labels
        if self.classes is None and self.target_bounds is None and not bounded:
            raise PrivacyParameterError(
                "The domain of the target is not declared. The classes or values in the file are "
                "private, so declare what may occur: `--classes no,yes` for classification, or "
                "`--target-bounds 0 100` for regression (in a schema file: classes, target_bounds)."
            )

    def parameters(self) -> dict[str, Any]:
        """Return the training parameters that follow from the declarations."""
        params: dict[str, Any] = {"dp_privacy_id": self.privacy_id}
        params["dp_discovered"] = self.discovered
        if self.classes is not None:
            binary = len(self.classes) == 2
            params["objective"] = "binary:logistic" if binary else "multi:softprob"
            params["dp_classes" if binary else "num_class"] = len(self.classes)
        elif self.target_bounds is not None:
            params |= {"objective": "reg:squarederror", "dp_target_bounds": self.target_bounds}
        params |= self.parameters_of_objective()
        for name, attribute in _PARAMETERS_OF_COLUMNS.items():
            values = {n: getattr(column, attribute) for n, column in self.features.items()}
            params[name] = {n: value for n, value in values.items() if value}
        return {name: value for name, value in params.items() if value not in (None, {})}

    def declare(self, params: dict[str, Any]) -> None:
        """Add the declarations to `params`; entries already in `params` take precedence."""
        declared = self.parameters()
        discovery, other = (read_one(given, "dp_discovered") for given in (declared, params))
        if discovery is not None and other is not None and discovery != other:
            raise PrivacyParameterError(
                "`schema` and `dp_discovered` come from different runs of column discovery, but a "
                "ledger can record only one. Discover all columns in one run, or pass only one of "
                "the two."
            )
        for name, value in declared.items():
            given = params.get(name)
            if isinstance(given, Mapping) and isinstance(value, Mapping):
                params[name] = {**value, **given}
            elif given is None and name.startswith("dp_"):
                params[name] = value
        if self.classes is not None and read_one(params, "dp_classes") is None:
            params["dp_classes"] = len(self.classes)

    def parameters_of_objective(self) -> dict[str, Any]:
        """Return the training parameters of the label type; raise if they contradict each other."""
        intervals = self.objective == "survival:aft"
        if self.ends and not intervals:
            raise PrivacyParameterError(
                "`event` and `target_upper` apply only to the objective survival:aft. Remove "
                "them, or set this objective."
            )
        if intervals and len(self.ends) != 1:
            raise PrivacyParameterError(
                "survival:aft needs the end of each time. Set either `event` (a column that is 1 "
                "if the end was observed, else 0) or `target_upper` (a column of upper bounds), "
                "not both."
            )
        if self.quantiles is not None and self.objective not in (None, "reg:quantileerror"):
            raise PrivacyParameterError(
                "`quantiles` apply only to the objective reg:quantileerror. Remove them, or set "
                "this objective."
            )
        params: dict[str, Any] = {}
        if self.objective is not None:
            params["objective"] = self.objective
        if self.quantiles is not None:
            params |= {"objective": "reg:quantileerror", "quantile_alpha": list(self.quantiles)}
        if self.exposure is not None and self.base_margin is not None:
            raise PrivacyParameterError("Declare `exposure` or `base_margin`, not both.")
        if self.base_margin is not None:
            params["dp_base_margin"] = True
        if self.exposure is not None:
            params |= {"dp_base_margin": True, "dp_exposure_bounds": self.exposure_bounds}
        return params

    def to_json(self) -> str:
        """Format as JSON for the model attribute ``dp_schema``."""
        assert self.columns is not None
        content = {key: getattr(self, key) for key in _READERS if key not in ("drop", "params")}
        content["columns"] = {
            name: to_schema_entries(column) for name, column in self.columns.items()
        }
        if self.exposure is not None:
            content["exposure"] = {"column": self.exposure, "bounds": self.exposure_bounds}
        return json.dumps({k: v for k, v in content.items() if v is not None}, allow_nan=False)

    def checked(self) -> Domain:
        """Return the domain after checking that a model can store its names."""
        model_json.check_carried(json.loads(self.to_json()), "the names of the schema")
        return self


def _columns(name: str, value: Any) -> dict[str, Column]:
    columns = check_mapping(f"{name} must map names to declarations", value)
    if not columns:
        raise PrivacyParameterError(f"{name} is empty. Remove it to use every column as a number.")
    return {n: read_column(n, column) for n, column in columns.items()}


def _params(name: str, value: Any) -> dict[str, Any]:
    params = check_mapping(f"{name} must map names of parameters to values", value)
    for n, given in params.items():
        if given is None:
            raise PrivacyParameterError(f"{name}: {n} has no value. Set one, or remove the line.")
    return {n: parse_scalar(given) for n, given in params.items()}


def _objective(name: str, value: Any) -> str:
    """Parse the name of an objective; its support is checked with the other parameters."""
    if not isinstance(value, str):
        raise PrivacyParameterError(
            f"{name} must be a name such as count:poisson; got {describe_type(value)}."
        )
    return value


def _exposure(name: str, value: Any) -> tuple[str, tuple[float, float]]:
    exposure = check_mapping(f"{name} must be {{column: NAME, bounds: [low, high]}}", value)
    if set(exposure) != {"column", "bounds"}:
        raise PrivacyParameterError(f"{name} must have exactly the keys column and bounds.")
    column = parse_column_name("`exposure: column`", exposure["column"])
    return column, parse_range("exposure: bounds", exposure["bounds"])


def _discovered(name: str, value: Any) -> dict[str, Any]:
    """Parse the privacy cost of a column discovery, with numbers converted from strings."""
    cost = dict(check_mapping(f"{name} must be the mapping that `xgb-dp discover` writes", value))
    for part in ("epsilon", "delta"):
        cost[part] = parse_number(f"discovered: {part}", cost.get(part), low=0.0)
    return {**cost, "events": parse_scalar(cost.get("events"))}


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "target": parse_column_name,
    "classes": parse_classes,
    "target_bounds": parse_range,
    "weight": parse_column_name,
    "privacy_id": parse_column_name,
    "missing": parse_strings,
    "drop": parse_strings,
    "columns": _columns,
    "params": _params,
    "discovered": _discovered,
    "objective": _objective,
    "quantiles": parse_levels,
    "exposure": _exposure,
    "base_margin": parse_column_name,
    "event": parse_column_name,
    "target_upper": parse_column_name,
}


def from_mapping(given: Any) -> Domain:
    """Build a domain from the content of a schema file."""
    check_mapping(f"A schema must be a mapping with some of the keys {', '.join(_READERS)}", given)
    for key in given:
        if key not in _READERS:
            near = difflib.get_close_matches(str(key), _READERS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise PrivacyParameterError(
                f"The schema has the unknown key {key!r}.{hint} Valid keys are "
                f"{', '.join(_READERS)}."
            )
    values = {k: read(f"`{k}`", given[k]) for k, read in _READERS.items() if k in given}
    if "classes" in values and "target_bounds" in values:
        raise PrivacyParameterError("Declare `classes` or `target_bounds`, not both.")
    if "exposure" in values:
        values["exposure"], values["exposure_bounds"] = values["exposure"]
    return Domain(**values)


def stored_domain(booster: Any) -> Domain | None:
    """Return the domain stored in a model, or None."""
    text = booster.attr(ATTRIBUTE)
    return None if text is None else parse_domain(text)


def parse_domain(text: str) -> Domain:
    """Parse the model attribute ``dp_schema``."""
    try:
        content = model_json.loads(text)
    except ValueError:
        raise LedgerError(
            "The schema in the model is damaged. Use an intact copy of the model."
        ) from None
    return from_mapping(content)


def stored_classes(booster: Any) -> np.ndarray | None:
    """Return the class names stored in a model, in the order of their codes, or None.

    Class names from a schema become numbers if every name is a number.
    """
    text = booster.attr(CLASSES)
    if text is None:
        domain = stored_domain(booster)
        names = None if domain is None else domain.classes
        if names is None:
            return None
        with suppress(ValueError):
            return np.array([int(v) if v.is_integer() else v for v in map(read_number, names)])
        return np.array(names)
    try:
        return np.array(class_names(text, max(ModelJson.from_config(booster).classes, 2)))
    except ValueError:
        raise PrivacyParameterError(
            f"The model attribute {CLASSES!r} does not match the classes of the model: the file is "
            "damaged. Use an intact copy of the model."
        ) from None


def read_domain(path: Path) -> Domain:
    """Read a schema file."""
    try:
        domain = from_mapping(read_schema_file(path))
        check_names(flatten(domain.params))
    except PrivacyError as error:
        raise type(error)(f"{path.name}: {error}") from None
    except OSError as error:
        raise PrivacyParameterError(
            f"The schema file {str(path)!r} cannot be read: {error.strerror}. Check the path."
        ) from None
    return domain


def read_model_domain(booster: Any, path: Path, schema_file: Path | None) -> Domain:
    """Return the domain from the schema file, else from the model, else for numeric columns."""
    if schema_file is not None:
        return read_domain(schema_file)
    if (stored := stored_domain(booster)) is not None:
        return stored
    if booster.feature_names is None or "c" in (booster.feature_types or []):
        raise PrivacyParameterError(
            f"{path} was not trained by `xgb-dp train`, so it has no schema to read a file with. "
            "Pass --schema with the model's columns in order."
        )
    names, config = stored_classes(booster), ModelJson.from_config(booster)
    known = OBJECTIVES.get(config.objective)
    if names is None and (known is None or known.kind != "regression"):
        names = np.arange(max(config.classes, 2))
    classes = None if names is None else tuple(names.tolist())
    return Domain(classes=classes, columns=dict.fromkeys(booster.feature_names, Column()))


def read_header(source: Source, form: Csv | None = None) -> list[str]:
    """Return the column names of a table in files without reading a row."""
    if is_parquet(source):
        from .row_files import read_types

        return list(read_types(source).column_names)
    form, (path, parts) = form or Csv(), find_files(source)[0]
    return [*parse_header(path, form, next(read_blocks(path, form), (1, b""))[1])[0], *parts]
