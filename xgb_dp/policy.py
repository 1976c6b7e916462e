"""The data holder's policy: limits in a file that bind every interface.

``XGB_DP_POLICY`` or ``xgb-dp --policy`` names the file. A process keeps the first policy that it
reads. The policy binds everybody who cannot change the process: docs/howto/policy.md has the
details.
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
from .domain.csv_text import Csv
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
"""Parameters that describe rows; whether a row fits them reveals something about it."""


@dataclass(frozen=True)
class Policy:
    """Limits for one data set. All limits are public, and none is computed from rows."""

    path: Path
    unit: str  # "row" or "person"
    id: str | None  # the id column
    target: tuple[float, float]  # limit of (epsilon, delta) for a model and its earlier trainings
    total: tuple[float, float]  # limit of (epsilon, delta) for the budget
    budget: Path
    domain: Domain
    allow: tuple[str, ...]
    csv: Csv  # format of files of rows
    digest: str  # SHA-256 of the content

    @classmethod
    def read(cls, name: str | os.PathLike[str]) -> Policy:
        """Read a policy; anything that is not fully understood is an error."""
        path = Path(name).resolve()
        try:
            return cls._of(path, read_schema_file(path))
        except (OSError, ImportError, PrivacyError) as error:
            said = str(error.strerror if isinstance(error, OSError) else error).rstrip(".")
            raise PrivacyParameterError(
                f"The policy {os.fspath(name)!r} cannot be read: {said}. Without it nothing is "
                "released. Its holder has to mend it; see docs/howto/policy.md."
            ) from None

    @classmethod
    def _of(cls, path: Path, content: Any) -> Policy:
        given = check_mapping("A policy must be a mapping", content)
        if not set(given) >= _KEYS or not set(given) <= _KEYS | {"id", "allow", "csv"}:
            raise PrivacyParameterError(
                f"a policy has the keys {', '.join(sorted(_KEYS))}, with unit 'person' also id, "
                "allow if it allows anything, and csv if its files are written in another form."
            )
        person = given["unit"] == PERSON
        if given["unit"] not in (ROW, PERSON) or person != ("id" in given):
            raise PrivacyParameterError("`unit` must be row, or person with the column `id`.")
        name = parse_column_name("`id`", given["id"]) if person else None
        domain = from_mapping(given["schema"])
        check_names(flatten(domain.params))
        domain.check_target()
        if not domain.columns or domain.privacy_id not in (None, name):
            raise PrivacyParameterError(
                "`schema` must list its `columns`, and name no other ids than the policy."
            )
        allow = parse_strings("`allow`", given["allow"]) if "allow" in given else ()
        if not set(allow) <= set(_ALLOW):
            raise PrivacyParameterError(f"`allow` must list some of {', '.join(_ALLOW)}.")
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
        """Refuse another budget than the policy's, or one with a larger total."""
        if budget.path != self.budget.resolve():
            raise self.unbooked()
        larger = budget.epsilon > self.total[0] or budget.delta > self.total[1]
        if larger or budget.unit.name != self.unit:
            raise BudgetError(
                "The book that the policy names has a larger total than the policy, or is for "
                "another unit. Nothing was released. Its holder has to make it by `xgb-dp budget` "
                "with `total_epsilon`, `total_delta` and `unit`."
            )

    def unbooked(self) -> BudgetError:
        """The error for a release without the policy's budget."""
        return BudgetError(
            f"The policy of these rows has every release drawn on its book {self.budget.name!r}. "
            "Nothing was released. Train by xgb_dp.Budget(book).train, or pass `budget` with that "
            "book. Trainings on a cluster are refused: its workers would not be booked."
        )

    def check_release(self, events: Iterable[Event], unit: Unit, group: int) -> None:
        """Refuse a release above one model's limit or with another unit. Reads no row."""
        if unit.name != self.unit or unit.column != self.id:
            whom = self.unit if self.id is None else f"{self.unit} by the column {self.id!r}"
            raise BudgetError(
                f"The policy of these rows protects each {whom}, and this does not. Nothing was "
                "released. Give the ids by that column: `dp_privacy_id`, --privacy-id."
            )
        epsilon, delta = self.target
        if make_accountant("exact", events).get_epsilon(delta, group) > epsilon * (1 + 1e-9):
            raise BudgetError(
                f"The policy of these rows allows epsilon {epsilon:g} at delta {delta:g} to one "
                "model with all that it continues, and to one look, selection or judgement. "
                f"Nothing was released. Ask for less {named.dp_epsilon}, or a smaller "
                f"{named.dp_delta}."
            )

    @cached_property
    def _declared(self) -> Mapping[str, Any]:
        named = {n: v for n, v in self.domain.params.items() if n in _DECLARING}
        return {**self.domain.parameters(), **named}

    def check_params(self, flat: Mapping[str, Any], names: Sequence[str] | None = None) -> None:
        """Refuse claims about the rows that the data holder has not made. Reads no row."""
        for claim, parameters in _CLAIMS.items():
            if claim not in self.allow:
                for name in parameters:
                    if flat.get(name):
                        raise PrivacyRefusal(f"`{name}` is refused: {self._without(claim)}")
        talk = read_one(flat, "verbosity")
        if talk is None:
            from xgboost import get_config  # not at the top: `verify` needs no library

            talk = get_config()["verbosity"]  # the process-wide setting
        if "exact errors" not in self.allow and talk > 1:
            raise PrivacyRefusal(f"`verbosity` is at most 1: {self._without('exact errors')}")
        known = set(self.domain.features)
        if names is not None and not set(names) <= known:
            raise PrivacyRefusal(
                "A column is not in the schema of the policy of these rows. Name the columns, and "
                f"take some of {', '.join(sorted(known))}."
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
                    f"`{name}` is not what the policy of these rows declares. Leave it out, or "
                    "give what it declares."
                )

    def check_weights(self, of_one: str) -> None:
        """Refuse a setting that would reveal whether all weights are 1. Reads no row."""
        if of_one and self.domain.weight is not None:
            raise PrivacyRefusal(
                f"{of_one} is proved for weights of 1 only, and whether all are 1 is an answer "
                "about the rows. Make another choice."
            )

    def check_classes(self, classes: Iterable[Any] | None) -> None:
        """Refuse class names that differ from the schema. Reads no row."""
        declared = self.domain.classes
        if classes is not None and sorted(map(str, classes)) != sorted(map(str, declared or ())):
            raise PrivacyRefusal(
                "`classes` are not those that the policy of these rows declares: "
                f"{', '.join(map(str, declared or ())) or 'none'}. Give these."
            )

    def permitted(self, domain: Domain, *, some: bool = False) -> Domain:
        """The policy's domain, if the other is equal or, with ``some``, has fewer columns."""
        declared, taken = self.domain.columns or {}, domain.columns or {}
        columns = {n: c for n, c in declared.items() if n in taken} if some else declared
        same = replace(self.domain, params=domain.params)
        if replace(domain, discovered=None) != replace(same, columns=columns):
            raise PrivacyRefusal(
                "The policy of these rows declares what they hold and which columns are read: one "
                "that is left out is not checked, and whether a row fits would be an answer about "
                "it. Leave out --schema, --drop, and options that declare columns, classes, ranges "
                "or ids."
            )
        return same

    def check_allowed(self, what: str) -> None:
        """Refuse anything that the policy does not list under `allow`."""
        if what not in self.allow:
            raise PrivacyRefusal(f"This is refused: {self._without(what)}")

    def _without(self, what: str) -> str:
        return f"the policy of these rows does not allow {what!r}. Ask their holder."

    def faults(self, ledger: Ledger) -> list[str]:
        """Violations of the policy in a model's ledger."""
        out = []
        if any(training.public.get(POLICY_KEY) != self.digest for training in ledger.trainings):
            out.append("a training does not name this policy")
        if ledger.unit.name != self.unit or ledger.unit.column != self.id:
            out.append(f"it does not protect each {self.unit} of the policy")
        epsilon, delta = self.target
        spent = make_accountant("exact", ledger.events).get_epsilon(delta, ledger.unit.group)
        if not ledger.is_private or spent > epsilon * (1 + 1e-9):
            out.append(f"it is not private with epsilon {epsilon:g} at delta {delta:g}")
        return out


def _plain(value: Any) -> Any:
    """A value in JSON form, equal for all forms of the same declaration."""
    return json.loads(json.dumps(value, default=repr))


_first: list[Policy] = []  # the policy of this process, once read


def in_force() -> Policy | None:
    """The policy of this process, if any. An environment that names another policy is an error."""
    name = os.environ.get(POLICY)
    if name is not None and not _first:
        _first.append(Policy.read(name))
        RowDomainError.exact = "exact errors" in _first[0].allow
    if _first and name is not None and Path(name).resolve() != _first[0].path:
        raise PrivacyRefusal(
            f"{POLICY} names another policy than the one that this process has read. Nothing is "
            "released. A policy cannot be changed while it is in force."
        )
    return _first[0] if _first else None
