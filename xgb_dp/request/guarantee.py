"""Parameters of the guarantee: the privacy budget, the privacy unit, and public inputs."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from ..accounting import ACCOUNTANTS, Unit, event_from_json, one_unit
from ..errors import PrivacyParameterError, alias, named
from ..mechanisms.plan import MECHANISMS, SHARE_NAMES
from ..parameters import parse
from ..parameters.config import Config
from ..parameters.parameter import PUBLIC, SPENDS, Parameter, Rule, Table
from ..parameters.parse import Flag, Integer, Number, OneOf
from ..presets import PRESETS

_ENTRY = re.compile(r"[0-9a-f]{16}")


def _no_epsilon(s: Config) -> float:
    raise PrivacyParameterError(
        f"{named.dp_epsilon} is missing: private training has no default budget. Pass the largest "
        f"privacy loss you accept, e.g. {alias('dp_epsilon')}=1.0 with {alias('dp_delta')}=1e-6."
    )


def _delta(name: str, value: Any, s: Config) -> float:
    """Read a number in (0, 1); with the pure accountant, 0 is also allowed."""
    try:
        number = Number(0, 1, open_high=True)(name, value)
    except PrivacyParameterError:
        number = -1.0
    if number < 0 or (number == 0 and s["dp_accountant"] != "pure"):
        raise PrivacyParameterError(
            f"{named.dp_delta} must lie strictly between 0 and 1: Gaussian noise has no finite "
            f"epsilon at delta = 0. (0 is allowed with {alias('dp_accountant')}='pure'.) A common "
            "choice is 1e-6."
        )
    return number


def _no_delta(s: Config) -> float:
    """Default: 0 for the pure accountant and without noise; otherwise delta is required."""
    if math.isinf(s["dp_epsilon"]) or s["dp_accountant"] == "pure":
        return 0.0
    raise PrivacyParameterError(
        f"{named.dp_delta} is missing: pass a constant well below one over the number of people, "
        f"e.g. {alias('dp_delta')}=1e-6. It must not be computed from the data."
    )


def _privacy_id(name: str, value: Any, s: Config) -> str | bool:
    """The name of the id column, or True for ids without a name.

    Ids are never read here, nor kept: see :mod:`xgb_dp.data.matrices`.
    """
    if value is True or (isinstance(value, str) and value):
        if isinstance(value, str) and s is not None and value in s.schema.names and s.schema.named:
            raise PrivacyParameterError(
                f"`{name}`: the id column {value!r} is also a feature, which would let trees "
                "identify people. Remove it from the features."
            )
        return value
    raise PrivacyParameterError(
        f"`{name}` must be the name of the id column, or True: ids are read together with the rows."
    )


def _discovered(name: str, value: Any, s: Config | None) -> Mapping[str, Any]:
    """The cost of a column discovery."""
    try:
        cost = dict(value)
        events, entry = tuple(map(event_from_json, cost["events"])), cost.get("entry")
        delta = Number(0, 1, open_high=True)(name, cost["delta"])
        if not events or not (entry is None or _ENTRY.fullmatch(entry)):
            raise ValueError
        unit = Unit(one_unit(events), column=cost.get("column"))
        return {"events": events, "unit": unit, "delta": delta, "entry": entry}
    except Exception:  # an object of the caller may raise anything
        raise PrivacyParameterError(
            f"`{name}` does not describe the releases of a column discovery. Take it from "
            "`params()` of the result of xgb_dp.discover, or from the schema file that it saved."
        ) from None


def _public_data(name: str, value: Any, s: Config) -> bool:
    """Whether public rows were passed; the rows themselves were removed from the parameters."""
    if isinstance(value, bool):
        return value
    raise PrivacyParameterError(
        f"`{name}` is supported by `xgboost.train` and the estimators only. Remove it."
    )


# fmt: off
PARAMETERS = (
    Parameter("dp_epsilon", "Privacy budget of the training. Smaller values add more noise.",
              Number(0, open_low=True, finite=False), _no_epsilon, SPENDS, "guarantee", unit="nats",
              values="> 0; inf trains without noise and marks the model as non-private",
              shown="none; required", recorded=False),
    Parameter("dp_delta", "Probability with which the bound e^epsilon may fail. Choose a constant "
              "well below one over the number of people, without using the data.", _delta,
              _no_delta, SPENDS, "guarantee", unit="probability",
              values="0 < delta < 1; also 0 with dp_accountant='pure'",
              shown="none; required (0 with dp_accountant='pure')", recorded=False),
    Parameter("dp_group_size", "Number of rows of one person that dp_epsilon protects together. "
                               "With dp_privacy_id, number of people, such as a household.",
              Integer(1, 1 << 20), 1, SPENDS, "neighbours", unit="rows or people"),
    Parameter("dp_preset", "Published system to reproduce. Parameters that you pass take "
                           "precedence.", OneOf(tuple(PRESETS)), "default", PUBLIC, "presets",
              values="a name in xgb_dp.presets.PRESETS"),
    Parameter("dp_accountant", "Accountant that certifies dp_epsilon.",
              OneOf(tuple(ACCOUNTANTS)), "exact", SPENDS, "accounting",
              Table.DEFAULT, shown="'exact', the tightest"),
    Parameter("dp_budget_shares", "Division of the budget among the releases, as fractions of "
                                  "mu^2 of Gaussian differential privacy.",
              lambda _, value, s: resolve_shares(value, s), lambda s: resolve_shares(None, s),
              SPENDS, "accounting", Table.DEFAULT,
              unit="fractions that sum to 1", values="mapping with some of the keys "
              + ", ".join(SHARE_NAMES), shown="columns 2/3 with dp_start='columns'; candidates 0.1 "
              "(after columns); base_score 0.009, or 0.027 for regression without "
              "dp_mean_correction; correction 0.05; range 0.015 for each of dp_target_unit and "
              "dp_weight_unit; of the remainder, splits 0.3 and leaves 0.7"),
    Parameter("dp_privacy_id", "Id of the person that each row belongs to. The privacy unit is "
              "then a person.", _privacy_id, False, PUBLIC,
              "persons", unit="id", values="one id per row: integers, strings, bytes or UUIDs, "
              "none missing and none stored; or the name of the id column, if xgb_dp builds the "
              "matrix", shown="none; the privacy unit is a row", recorded=False),
    Parameter("dp_max_rows_per_person", "Maximum contribution of one person, in rows. The noise "
                                        "grows with this value.",
              Number(1, 1024), 1.0, PUBLIC, "persons", unit="rows", recorded=False),
    Parameter("dp_base_margin", "Every row has a base_margin, which replaces the intercept.",
              Flag(), False, PUBLIC, "guarantee", Table.LOSSES,
              shown="False: rows with a base_margin are refused", plan="base_margin"),
    Parameter("dp_public_num_rows", "Number of rows (with dp_privacy_id, of people), if it is "
                                    "public.",
              Integer(1, 1 << 40), None, PUBLIC, "guarantee", unit="rows", values="int >= 1",
              shown="none; the number of rows is private", plan="public_num_rows", recorded=False),
    Parameter("dp_discovered", "Cost of an earlier column discovery (`params()` of its result). "
                               "The ledger includes it in addition to dp_epsilon.",
              _discovered, None, PUBLIC, "proofs/discovery",
              values="mapping with the keys events and delta", shown="none", recorded=False),
    Parameter("dp_public_evals", "Declares that all sets in evals are public, which allows exact "
                                 "metrics and early stopping.", Flag(), False, PUBLIC, "guarantee",
              recorded=False),
    Parameter("dp_public_data", "Public rows with the same columns. Their quantiles are the "
                                "split candidates of all undeclared columns.",
              _public_data, False, PUBLIC, "howto/public", Table.PUBLIC_ROWS,
              values="an xgboost.DMatrix with labels, or a pair (X, y)",
              shown="none; split candidates are released privately", recorded=False),
    Parameter("dp_public_model", "Declares that xgb_model was trained without private rows.",
              Flag(), False, PUBLIC, "howto/public",
              Table.PUBLIC_ROWS, shown="False: a model without a ledger is refused",
              recorded=False),
)
RULES = (
    Rule("dp_public_model needs xgb_model",
         lambda s: s["dp_public_model"] and not s.continues,
         "{`dp_public_model`} declares `xgb_model` public, but there is no `xgb_model`. Pass the "
         "model to continue from, or remove {`dp_public_model`}."),
    Rule("unit of the column discovery",
         lambda s: s["dp_discovered"] is not None and s["dp_discovered"]["unit"].name != s.unit,
         "`dp_discovered`: the column discovery and the training have different privacy units (row "
         "and person), so their costs cannot be added. Pass ids ({`dp_privacy_id`}) to both, or to "
         "neither."),
    Rule("ids of the column discovery",
         # An unnamed column may be every column.
         lambda s: s["dp_discovered"] is not None and s["dp_discovered"]["unit"].name == s.unit
         and len({s["dp_discovered"]["unit"].column, s.privacy_unit.column} - {None}) > 1,
         "`dp_discovered`: the column discovery and the training use different id columns. One id "
         "in one column may match several ids in the other, so their costs cannot be added. Use "
         "the same id column for both."),
    Rule("dp_max_rows_per_person needs ids",
         lambda s: "dp_max_rows_per_person" in s.given and s.unit == "row",
         "`dp_max_rows_per_person` requires {`dp_privacy_id`}: without ids every row is its own "
         "privacy unit. Remove it, or pass the ids."),
)
# fmt: on


_OF_REST = {kind.share: kind.of_rest for kind in MECHANISMS if kind.of_rest}


def resolve_shares(given: Any, s: Config) -> dict[str, float]:
    """The shares of mu^2 for all releases."""
    fractions = parse.mapped({} if given is None else given)
    if fractions is None or not set(fractions) <= set(SHARE_NAMES):
        raise PrivacyParameterError(
            f"`dp_budget_shares` must map some of {', '.join(SHARE_NAMES)} to fractions of the "
            "budget."
        )
    fraction = parse.Number(0, 1)
    fixed = {k: fraction(f"dp_budget_shares[{k!r}]", v) for k, v in fractions.items()}
    enabled = {kind.share: kind for kind in MECHANISMS if kind.is_enabled(s)}
    shares: dict[str, float] = {}
    for name in (name for name in SHARE_NAMES if name not in _OF_REST):
        default = enabled[name].default_share(s, fixed) if name in enabled else 0.0
        shares[name] = fixed.get(name, default)
    shares |= _divide_rest(fixed, 1.0 - math.fsum(shares.values()), enabled)
    if abs(math.fsum(shares.values()) - 1.0) > 1e-9:
        hint = "".join(kind.no_share for name, kind in enabled.items() if name not in fixed)
        raise PrivacyParameterError(
            f"The shares of the budget (`dp_budget_shares`) must sum to 1.{hint}"
        )
    if any(shares[name] <= 0 for name in enabled):
        raise PrivacyParameterError(
            f"`dp_budget_shares` must leave a share above 0 for each release: {', '.join(enabled)}."
        )
    return _redistribute(shares, enabled)


def _divide_rest(
    fixed: dict[str, float], rest: float, enabled: Collection[str]
) -> dict[str, float]:
    """Divide `rest` among the releases without a fixed share; the last takes what is left."""
    shares = {name: share for name, share in fixed.items() if name in _OF_REST}
    free = [name for name in _OF_REST if name not in fixed]
    shares |= {name: _OF_REST[name] * rest if name in enabled else 0.0 for name in free[:-1]}
    if free:
        shares[free[-1]] = rest - math.fsum(shares.values())
    return {name: shares[name] for name in _OF_REST}


def _redistribute(shares: dict[str, float], enabled: Collection[str]) -> dict[str, float]:
    """Give the shares of disabled releases to those of ``_OF_REST`` that are enabled."""
    listed = {kind.share for kind in MECHANISMS if kind.always_listed} | set(enabled)
    out = {name: shares[name] if name in enabled else 0.0 for name in shares if name in listed}
    free = 1.0 - math.fsum(share for name, share in out.items() if name not in _OF_REST)
    factor = free / math.fsum(out[name] for name in _OF_REST)
    return {name: share * factor if name in _OF_REST else share for name, share in out.items()}


def shares_of(s: Config, *, counts: bool = False) -> dict[str, float]:
    """The shares of a training; with `counts`, also the share of a separate count of rows."""
    shares = dict(s["dp_budget_shares"])
    if counts:
        shares |= {
            kind.share: kind.of_count
            for kind in MECHANISMS
            if kind.of_count and not kind.is_enabled(s)
        }
    return shares
