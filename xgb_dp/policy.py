"""Policies: limits set by the data owner that apply to every interface.

``XGB_DP_POLICY`` or ``xgb-dp --policy`` names the policy file. A process keeps the first policy
that it reads. The policy binds everybody who cannot modify the process; see docs/howto/policy.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from .accounting import PERSON, ROW, Event, Unit, make_accountant
from .domain.columns import check_mapping, parse_column_name, parse_strings, read_schema_file
from .domain.data_files import Csv
from .domain.domain import Domain, from_mapping
from .errors import (
    POLICY,
    BudgetError,
    PrivacyError,
    PrivacyParameterError,
    PrivacyRefusal,
    RowDomainError,
    named,
)
from .parameters.parse import parse_target
from .record.authorization import POLICY_KEY
from .record.ledger import checksum
from .record.ledger_model import Ledger
from .request.names import check_names, flatten, read_one

_KEYS = {"unit", "epsilon", "delta", "total_epsilon", "total_delta", "budget", "schema"}
_CLAIMS = {
    "public evals": ("dp_public_evals",),
    "public rows": ("dp_public_data", "dp_public_model"),
    "own objectives": ("dp_objective",),
}
_ALLOW = (*_CLAIMS, "discoveries", "exact errors")
_DECLARING = (
    "objective", "num_class", "dp_classes", "dp_target_bounds", "dp_exposure_bounds",
    "dp_base_margin", "dp_max_weight", "dp_public_num_rows", "dp_categories", "dp_feature_bounds",
    "dp_feature_cuts",
)  # fmt: skip
"""Parameters that declare the domain of rows; whether a row fits them reveals information."""


@dataclass(frozen=True)
class Policy:
    """Limits for one data set. All limits are public and independent of the rows."""

    path: Path
    unit: str  # "row" or "person"
    id: str | None  # privacy id column
    target: tuple[float, float]  # limit on (epsilon, delta) of a model with its earlier trainings
    total: tuple[float, float]  # limit on (epsilon, delta) of the budget
    budget: Path
    domain: Domain
    allow: tuple[str, ...]
    csv: Csv  # CSV format of data files
    digest: str  # SHA-256 of the content

    @classmethod
    def read(cls, name: str | os.PathLike[str]) -> Policy:
        """Read a policy file; unknown or invalid content is an error."""
        path = Path(name).resolve()
        try:
            return cls._from_content(path, read_schema_file(path))
        except (OSError, ImportError, PrivacyError) as error:
            reason = str(error.strerror if isinstance(error, OSError) else error).rstrip(".")
            raise PrivacyParameterError(
                f"The policy {os.fspath(name)!r} cannot be read: {reason}. Nothing is released "
                "without a valid policy. Ask the data owner to fix it; see docs/howto/policy.md."
            ) from None

    @classmethod
    def _from_content(cls, path: Path, content: Any) -> Policy:
        given = check_mapping("A policy must be a mapping", content)
        if not set(given) >= _KEYS or not set(given) <= _KEYS | {"id", "allow", "csv"}:
            raise PrivacyParameterError(
                f"a policy must have the keys {', '.join(sorted(_KEYS))}, and for unit 'person' "
                "also id; the keys allow and csv are optional."
            )
        person = given["unit"] == PERSON
        if given["unit"] not in (ROW, PERSON) or person != ("id" in given):
            raise PrivacyParameterError("`unit` must be row, or person with an `id` column.")
        name = parse_column_name("`id`", given["id"]) if person else None
        domain = from_mapping(given["schema"])
        check_names(flatten(domain.params))
        domain.check_target()
        if not domain.columns or domain.privacy_id not in (None, name):
            raise PrivacyParameterError(
                "`schema` must list its `columns`, and its `privacy_id` must match `id`, if given."
            )
        allow = parse_strings("`allow`", given["allow"]) if "allow" in given else ()
        if not set(allow) <= set(_ALLOW):
            raise PrivacyParameterError(f"entries of `allow` must be in {', '.join(_ALLOW)}.")
        return cls(
            path,
            given["unit"],
            name,
            parse_target(given["epsilon"], given["delta"]),
            parse_target(given["total_epsilon"], given["total_delta"]),
            path.parent / str(given["budget"]),
            replace(domain, privacy_id=name, drop=(), discovered=None),
            allow,
            Csv.from_mapping(check_mapping("`csv` must be a mapping", given.get("csv", {}))),
            checksum(dict(given)),
        )

    def check_budget(self, budget: Any) -> None:
        """Refuse a budget other than the policy's, or a total above the limit."""
        if budget.path != self.budget.resolve():
            raise self.no_budget_error()
        larger = budget.epsilon > self.total[0] or budget.delta > self.total[1]
        if larger or budget.unit.name != self.unit:
            raise BudgetError(
                "The budget named by the policy has a larger total than the policy allows, or "
                "another privacy unit. Nothing was released. Ask the data owner to create it with "
                "`xgb-dp budget`, using `total_epsilon`, `total_delta` and `unit` of the policy."
            )

    def no_budget_error(self) -> BudgetError:
        """Return the error for a release that does not charge the policy's budget."""
        return BudgetError(
            "The policy of this data requires every release to be charged to its budget "
            f"{self.budget.name!r}. Nothing was released. Train with xgb_dp.Budget(path).train, or "
            "pass that file as `budget`. Trainings on a cluster are refused, because they cannot "
            "be charged."
        )

    def check_release(self, events: Iterable[Event], unit: Unit, group_size: int) -> None:
        """Refuse a release above the limit of one model, or for another unit. Reads no rows."""
        if unit.name != self.unit or unit.column != self.id:
            protected = self.unit if self.id is None else f"{self.unit} by the column {self.id!r}"
            fix = "Train without" if self.id is None else "Pass this column as"
            raise BudgetError(
                f"The policy of this data protects each {protected}, but this release has another "
                f"privacy unit. Nothing was released. {fix} `dp_privacy_id` (--privacy-id)."
            )
        epsilon, delta = self.target
        if make_accountant("exact", events).get_epsilon(delta, group_size) > epsilon * (1 + 1e-9):
            raise BudgetError(
                f"This release exceeds the limit of the policy of this data: epsilon {epsilon:g} "
                f"at delta {delta:g} for a model with its earlier trainings, or for a discovery, "
                f"selection or evaluation. Nothing was released. Set a smaller {named.dp_epsilon} "
                f"or {named.dp_delta}."
            )

    @cached_property
    def _declared(self) -> Mapping[str, Any]:
        named = {n: v for n, v in self.domain.params.items() if n in _DECLARING}
        return {**self.domain.parameters(), **named}

    def check_params(self, flat: Mapping[str, Any], names: Sequence[str] | None = None) -> None:
        """Refuse claims about the rows that the data owner has not made. Reads no rows."""
        for claim, parameters in _CLAIMS.items():
            if claim not in self.allow:
                for name in parameters:
                    if flat.get(name):
                        raise PrivacyRefusal(f"`{name}` is refused: {self._without(claim)}")
        verbosity = read_one(flat, "verbosity")
        if verbosity is None:
            from xgboost import get_config  # imported here, because `verify` needs no library

            verbosity = get_config()["verbosity"]  # the process-wide setting
        if "exact errors" not in self.allow and verbosity > 1:
            raise PrivacyRefusal(f"`verbosity` must be at most 1: {self._without('exact errors')}")
        known = set(self.domain.features)
        if names is not None and not set(names) <= known:
            raise PrivacyRefusal(
                "A column is not in the schema of the policy of this data. Use named columns from "
                f"this list: {', '.join(sorted(known))}."
            )
        for name in _DECLARING:
            given = flat.get(name)
            if given is None or (not given and name not in self._declared):
                continue
            declared = self._declared.get(name)
            if isinstance(declared, Mapping) and isinstance(given, Mapping):
                declared = {n: v for n, v in declared.items() if n in given}
            if _plain(given) != _plain(declared):
                raise PrivacyRefusal(
                    f"`{name}` differs from its declaration in the policy of this data. Omit it, "
                    "or pass the declared value."
                )

    def check_weights(self, setting: str) -> None:
        """Refuse a setting that would reveal whether all weights are 1. Reads no rows."""
        if setting and self.domain.weight is not None:
            raise PrivacyRefusal(
                f"{setting} is only supported if all row weights are 1, and checking that would "
                "reveal information about the rows. Use another setting."
            )

    def check_classes(self, classes: Iterable[Any] | None) -> None:
        """Refuse class names that differ from the schema. Reads no rows."""
        declared = self.domain.classes
        if classes is not None and sorted(map(str, classes)) != sorted(map(str, declared or ())):
            raise PrivacyRefusal(
                "`classes` differ from the classes declared in the policy of this data. Pass the "
                f"declared classes: {', '.join(map(str, declared or ())) or 'none'}."
            )

    def permitted(self, domain: Domain, *, some: bool = False) -> Domain:
        """Return the policy's domain; raise an error if `domain` differs from it.

        With `some`, `domain` can have fewer columns.
        """
        declared, taken = self.domain.columns or {}, domain.columns or {}
        columns = {n: c for n, c in declared.items() if n in taken} if some else declared
        same = replace(self.domain, params=domain.params)
        if replace(domain, discovered=None) != replace(same, columns=columns):
            raise PrivacyRefusal(
                "The schema differs from the schema in the policy of this data. It cannot be "
                "changed, because whether the rows fit another schema would reveal information "
                "about them. Omit --schema, --drop, and options that declare columns, classes, "
                "ranges or ids."
            )
        return same

    def check_allowed(self, what: str) -> None:
        """Refuse anything that the policy does not list under `allow`."""
        if what not in self.allow:
            raise PrivacyRefusal(f"This is refused: {self._without(what)}")

    def _without(self, what: str) -> str:
        return f"the policy of this data does not allow {what!r}. Ask the data owner to allow it."

    def faults(self, ledger: Ledger) -> list[str]:
        """Return the violations of the policy in the ledger of a model."""
        out = []
        if any(training.public.get(POLICY_KEY) != self.digest for training in ledger.trainings):
            out.append("a training does not name this policy")
        if ledger.unit.name != self.unit or ledger.unit.column != self.id:
            out.append(f"its privacy unit is not the {self.unit} of the policy")
        epsilon, delta = self.target
        spent = make_accountant("exact", ledger.events).get_epsilon(delta, ledger.unit.group_size)
        if not ledger.is_private or spent > epsilon * (1 + 1e-9):
            out.append(f"it is not private with epsilon {epsilon:g} at delta {delta:g}")
        return out


def _plain(value: Any) -> Any:
    """Normalize a value through JSON, so that equivalent declarations compare equal."""
    return json.loads(json.dumps(value, default=repr))


_first: list[Policy] = []  # the policy of this process, once read


def in_force() -> Policy | None:
    """Return the policy of this process, or None.

    Raises:
        PrivacyRefusal: The environment now names another policy than the one read first.
    """
    name = os.environ.get(POLICY)
    if name is not None and not _first:
        _first.append(Policy.read(name))
        RowDomainError.exact = "exact errors" in _first[0].allow
    if _first and name is not None and Path(name).resolve() != _first[0].path:
        raise PrivacyRefusal(
            f"{POLICY} names a policy other than the one this process has read. Nothing is "
            "released. To use another policy, start a new process."
        )
    return _first[0] if _first else None
