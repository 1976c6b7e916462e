"""What a file of rows is declared to hold: columns, categories, classes, bounds.

Nothing here looks at a cell. Declarations come from options or a file (YAML, TOML or JSON) and are
public; they travel with the model as the attribute ``dp_schema``, so that predictions read files
the way training did.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..data.cells import MISSING
from ..discovery.yaml_text import flow
from ..errors import PrivacyError, PrivacyParameterError
from ..parameters.parse import parse_number, parse_range
from ..request.id_names import looks_like_id
from ..request.names import check_names, flatten
from ..request.params import PARAMETERS
from .column import Column, mapping, read_column, short
from .outcome import KEYS as OUTCOME_KEYS
from .outcome import Outcome, column_of, read_outcome
from .schema_file import read_schema_file
from .values import texts, typed

__all__ = [
    "ATTRIBUTE",
    "Column",
    "Domain",
    "from_mapping",
    "read_domain",
    "template",
]

ATTRIBUTE = "dp_schema"
_NAMES = ("target", "weight", "privacy_id")
KEYS = (
    "target", "classes", "target_bounds", "weight", "privacy_id", "missing", "drop", "columns",
    "params", "discovered", *OUTCOME_KEYS,
)  # fmt: skip


@dataclass(frozen=True)
class Domain:
    """Declared content of a file of rows. Every value is public.

    Attributes:
        target: Name of the column of labels.
        classes: Class names in the order 0, 1, ...; None for regression.
        target_bounds: Range of a regression target.
        outcome: The objective, and the columns that it reads beside the target.
        weight: Name of the column of row weights.
        privacy_id: Name of the column that says who a row belongs to; None where the unit of
            protection is a row.
        missing: Texts that stand for a missing cell; a declared category of that name goes first.
        drop: Columns to leave out.
        columns: The features, in their order; None for every other column of the file, as numbers,
            except those in `declared`.
        declared: Features that options have declared one by one.
        params: Further parameters of training.
        discovered: What it cost to find the declarations on private rows, if they were; see
            :meth:`xgb_dp.Discovery.schema`.
    """

    target: str | None = None
    classes: tuple[str, ...] | None = None
    target_bounds: tuple[float, float] | None = None
    weight: str | None = None
    privacy_id: str | None = None
    missing: tuple[str, ...] = MISSING
    drop: tuple[str, ...] = ()
    columns: dict[str, Column] | None = None
    declared: dict[str, Column] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    discovered: dict[str, Any] | None = None
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def features(self) -> dict[str, Column]:
        """What training sees: the columns, and the parts of dates in place of dates."""
        found: dict[str, Column] = {}
        for name, column in (self.columns or {}).items():
            for feature, declared in column.features(name).items():
                if feature in found:
                    raise PrivacyParameterError(
                        f"Two columns become the feature {feature!r}, one of them as a part of a "
                        "date. Rename one of them in the file."
                    )
                found[feature] = declared
        return found

    def resolved(self, header: Sequence[str], *, training: bool) -> Domain:
        """The domain with its features spelt out for a file."""
        special = [c for c in (self.target, self.weight, self.privacy_id) if c is not None]
        special += self.outcome.special
        if len(set(special)) < len(special):
            raise PrivacyParameterError(
                "One column is declared twice among target, weight, privacy_id, exposure, event "
                "and target_upper: each of them is a column of its own."
            )
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
                    f"Column {name!r} is declared as a feature, but is the target, the weight, "
                    "the id, the exposure or the end of a time. Remove its line from `columns`."
                )
            if not name or set(name) & set("[]<"):
                raise PrivacyParameterError(
                    f"Column {name!r} cannot be a feature: XGBoost takes no empty names, and none "
                    "with [, ] or <. Rename it in the file."
                )
        return replace(self, columns=needed, declared={})

    def check_target(self) -> None:
        """Refuse what does not say what is learnt, before any row is read."""
        if self.target is None:
            raise PrivacyParameterError(
                "The target is not named. Give the column of labels by `--target COLUMN`, or by "
                "`target` in a schema file."
            )
        if self.classes is None and self.target_bounds is None and not self.outcome.ranged:
            raise PrivacyParameterError(
                "The target is not declared. Which classes or values occur in the file is private, "
                "so say what may occur: `--classes no,yes` for classification, or "
                "`--target-bounds 0 100` for regression (in a schema file: classes, target_bounds)."
            )

    def parameters(self) -> dict[str, Any]:
        """The parameters of training that follow from what is declared of target and columns."""
        assert self.columns is not None
        made: dict[str, Any] = {}
        if self.privacy_id is not None:
            made = {"dp_privacy_id": self.privacy_id}
        if self.classes is not None:
            binary = len(self.classes) == 2
            made |= {"objective": "binary:logistic" if binary else "multi:softprob"}
            made |= {"dp_classes" if binary else "num_class": len(self.classes)}
        elif self.target_bounds is not None:
            made |= {"objective": "reg:squarederror", "dp_target_bounds": self.target_bounds}
        features = self.features
        found = {
            "dp_categories": {n: c.categories for n, c in features.items() if c.categories},
            "dp_feature_bounds": {n: c.bounds for n, c in features.items() if c.bounds},
            "dp_feature_cuts": {n: c.cuts for n, c in features.items() if c.cuts},
        }
        made |= self.outcome.parameters()
        return {**made, **{key: value for key, value in found.items() if value}}

    def to_json(self) -> str:
        """As text for the model's attribute ``dp_schema``."""
        assert self.columns is not None
        made = {
            "target": self.target,
            "classes": self.classes,
            "target_bounds": self.target_bounds,
            "weight": self.weight,
            "privacy_id": self.privacy_id,
            "missing": self.missing,
            "columns": {name: short(column) for name, column in self.columns.items()},
            "discovered": self.discovered,
            **self.outcome.to_json(),
        }
        return json.dumps({k: v for k, v in made.items() if v is not None}, allow_nan=False)


def _not_in(name: str, header: Sequence[str]) -> str:
    if name in header:
        return f"Column {name!r} is in the file more than once. Rename or remove the others."
    near = difflib.get_close_matches(name, list(header), 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    # The names are not listed: in a file without a header they would be cells of a row.
    return (
        f"The file has no column {name!r} among its {len(header)} columns.{hint} The first line "
        "of a CSV file must hold the names; `xgb-dp schema FILE` shows them."
    )


def from_mapping(given: Any) -> Domain:
    """A domain from the content of a schema file."""
    mapping(f"A schema must be a mapping with some of the keys {', '.join(KEYS)}", given)
    for key in given:
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise PrivacyParameterError(
                f"The schema has the unknown key {key!r}.{hint} Keys are {', '.join(KEYS)}."
            )
    made: dict[str, Any] = {k: column_of(k, given[k]) for k in _NAMES if k in given}
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
    if "drop" in given:
        made["drop"] = texts("`drop`", given["drop"])
    if "columns" in given:
        columns = mapping("`columns` must map names to declarations", given["columns"])
        if not columns:
            raise PrivacyParameterError(
                "`columns` names no column. Leave it out to use every column as a number."
            )
        made["columns"] = {n: read_column(n, c) for n, c in columns.items()}
    params = mapping("`params` must map names of parameters to values", given.get("params", {}))
    for name, value in params.items():
        if value is None:
            raise PrivacyParameterError(
                f"`params`: {name} has no value. Give one, or remove the line."
            )
    made["params"] = {name: typed(value) for name, value in params.items()}
    made["outcome"] = read_outcome(given)
    if "discovered" in given:
        made["discovered"] = _discovered(given["discovered"])
    return Domain(**made)


def _discovered(given: Any) -> dict[str, Any]:
    """What a discovery has cost, as it was written; epsilon and delta are read as numbers."""
    found = dict(mapping("`discovered` must be what `xgb-dp schema --discover` writes", given))
    for name in ("epsilon", "delta"):
        found[name] = parse_number(f"discovered: {name}", found.get(name), low=0.0)
    return found


def read_domain(path: Path) -> Domain:
    """Read a schema file."""
    try:
        domain = from_mapping(read_schema_file(path))
        check_names(flatten(domain.params))
    except PrivacyError as error:
        raise type(error)(f"{path.name}: {error}") from None
    return domain


def _unit_of_protection(header: Sequence[str], target: str | None) -> list[str]:
    """The question whom the guarantee protects, with the columns that look like an answer."""
    found = [name for name in header if name != target and looks_like_id(name)]
    return [
        "# What is the unit of protection? Name the column that says who a row belongs to, and the",
        "# guarantee is for all rows of one person; remove its line below, as it is not a feature.",
        "# Without it the guarantee is for one row: too little for whoever has several rows.",
        *(f"# privacy_id: {flow(n)}" for n in found or ["NAME OF THE COLUMN OF IDS"]),
    ]


_SHOWN = ("dp_preset", "max_depth", "eta", "max_bin")


def template(header: Sequence[str], target: str | None) -> str:
    """A schema file to fill in, in YAML, from the names of the columns alone."""
    lines = [
        "# What the rows may contain. All of this is public: declare it from what is known of the",
        "# domain, not by looking at the rows.",
        f"target: {flow(target or 'NAME OF THE TARGET COLUMN')}",
        'classes: ["0", "1"]            # for classification, in the order 0, 1, ...',
        "# target_bounds: [0, 100]      # for regression, instead of classes",
        "# objective: count:poisson     # another loss of regression; docs/howto/objectives.md",
        *_unit_of_protection(header, target),
        f"missing: {flow(MISSING)}",
        "columns:",
        "  # Each is one of these. Remove the lines of columns that are not features, as keys.",
        "  # number",
        "  # {bounds: [0, 100]}         a number with a public range, which saves budget",
        '  # ["red", "green"]           categories; all that may occur',
        '  # {categories: ["red"], other: missing}   others are treated as missing',
    ]
    for name in header:
        if name != target:
            question = "    # looks like an id: a feature?" if looks_like_id(name) else ""
            lines.append(f"  {flow(name)}: number{question}")
    lines += ["# params:                      # of training, by their names in docs/parameters.md"]
    for parameter in map(PARAMETERS.__getitem__, _SHOWN):
        lines.append(f"#   {parameter.name}: {parameter.unset}    # {parameter.meaning}")
    return "\n".join(lines) + "\n"
