"""Parameters of the guarantee: the privacy budget, the privacy unit, and public inputs."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from ..accounting import ACCOUNTANTS, Unit, event_from_json, one_unit
from ..errors import PrivacyParameterError, named, spelt
from ..mechanisms.plan import MECHANISMS, SHARE_NAMES
from ..parameters import parse
from ..parameters.parameter import PUBLIC, SPENDS, Config, Parameter, Rule, Table
from ..parameters.parse import Flag, Integer, Number, OneOf
from ..presets import PRESETS

_ENTRY = re.compile(r"[0-9a-f]{16}")


def _no_epsilon(s: Config) -> float:
    raise PrivacyParameterError(
        f"{named.dp_epsilon} is missing: private training has no default budget. Give the largest "
        f"privacy loss you accept, e.g. {spelt('dp_epsilon')}=1.0 with {spelt('dp_delta')}=1e-6."
    )


def _delta(name: str, value: Any, s: Config) -> float:
    """In (0, 1); the pure accountant also allows 0."""
    try:
        number = Number(0, 1, open_high=True)(name, value)
    except PrivacyParameterError:
        number = -1.0
    if number < 0 or (number == 0 and s["dp_accountant"] != "pure"):
        raise PrivacyParameterError(
            f"{named.dp_delta} must lie strictly between 0 and 1 (0 is for "
            f"{spelt('dp_accountant')}='pure'): "
            "Gaussian noise has no finite epsilon at delta = 0. A usual choice is 1e-6."
        )
    return number


def _no_delta(s: Config) -> float:
    """0 without Gaussian noise, or without any noise."""
    if math.isinf(s["dp_epsilon"]) or s["dp_accountant"] == "pure":
        return 0.0
    raise PrivacyParameterError(
        f"{named.dp_delta} is missing: give a constant well below one over the number of people, "
        f"e.g. {spelt('dp_delta')}=1e-6. It must not be computed from the data."
    )


def _privacy_id(name: str, value: Any, s: Config) -> str | bool:
    """The name of the id column, or True for ids without a name.

    Ids are never read here, nor kept: see :mod:`xgb_dp.data.matrices`.
    """
    if value is True or (isinstance(value, str) and value):
        if isinstance(value, str) and s is not None and value in s.schema.names and s.schema.named:
            raise PrivacyParameterError(
                f"`{name}`: the column {value!r} of ids is also a feature. Leave it out of the "
                "features: by it trees tell persons apart."
            )
        return value
    raise PrivacyParameterError(
        f"`{name}` is read with the rows: here it is the name of the column of ids, or True."
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
            f"`{name}` does not say what was drawn. Take it from `params()` of what "
            "xgb_dp.discover has found, or from the schema file that it has saved."
        ) from None


def _same_persons(discovery: str | None, training: str | None) -> bool:
    """Whether two id columns may be the same; columns without a name match all."""
    return discovery is None or training is None or discovery == training


def _public_data(name: str, value: Any, s: Config) -> bool:
    """Whether there are public rows, which were removed from the parameters before."""
    if isinstance(value, bool):
        return value
    raise PrivacyParameterError(
        f"`{name}` is read with the rows, by `xgboost.train` and the estimators only. Leave it "
        "out here."
    )


# fmt: off
PARAMETERS = (
    Parameter("dp_epsilon", "the privacy budget of this training",
              Number(0, open_low=True, finite=False), _no_epsilon, SPENDS, "guarantee", unit="nats",
              values="> 0; inf trains without noise and marks the model non-private",
              shown="none, must be given", recorded=False),
    Parameter("dp_delta", "the probability with which the bound e^epsilon may fail", _delta,
              _no_delta, SPENDS, "guarantee", unit="probability",
              values="0 < delta < 1, a constant chosen without the data; 0 with "
              "dp_accountant='pure'", shown="none, must be given ('pure': 0)", recorded=False),
    Parameter("dp_group_size", "how many rows of one person dp_epsilon covers together. A single "
              "row then has a smaller epsilon. With dp_privacy_id it counts persons, such as "
              "those of a household", Integer(1, 1 << 20), 1, SPENDS, "neighbours", unit="rows "
                                                                                         "or "
                                                                                         "persons"),
    Parameter("dp_preset", "a published system. It sets the components below; keys that you give "
              "override it", OneOf(tuple(PRESETS)), "default", PUBLIC, "presets",
              values="a name of xgb_dp.presets.PRESETS"),
    Parameter("dp_accountant", "the accountant that certifies dp_epsilon. The report can recompute "
              "epsilon with any of them", OneOf(tuple(ACCOUNTANTS)), "exact", SPENDS, "accounting",
              Table.DEFAULT, shown="'exact', the tightest"),
    Parameter("dp_budget_shares", "how mu^2, the budget in Gaussian terms, is divided among the "
              "releases", lambda name, value, s: resolve_shares(value, s),
              lambda s: resolve_shares(None, s), SPENDS, "accounting", Table.DEFAULT,
              unit="fractions that sum to 1", values="mapping with keys candidates, base_score, "
              "columns, correction, splits, leaves", shown="columns 2/3 with "
              "dp_start='columns'; candidates 0.1 of the others; "
              "base_score 0.009 (regression without dp_mean_correction 0.027); correction 0.05; "
              "dp_target_unit and dp_weight_unit 0.015 each; of the rest 0.3 splits, 0.7 leaves"),
    Parameter("dp_privacy_id", "who each row belongs to. The unit of privacy is then a person",
              _privacy_id, False, PUBLIC,
              "persons", unit="id", values="one id for each row: whole numbers, texts, bytes or "
              "UUIDs; none is missing, and none is stored. Where xgb_dp makes the matrix, the name "
              "of a column", shown="none: the unit of privacy is a row", recorded=False),
    Parameter("dp_max_rows_per_person", "how many rows a person counts as at most. The bound of a "
              "person is that of so many rows, and the noise grows with it", Number(1, 1024), 1.0,
              PUBLIC, "persons", unit="rows", recorded=False),
    Parameter("dp_base_margin", "declares that every row brings a base_margin, which replaces the "
              "intercept", Flag(), False, PUBLIC, "guarantee", Table.LOSSES,
              shown="False: a row with margins is refused", plan="base_margin"),
    Parameter("dp_public_num_rows", "the number of rows, if it is public; with dp_privacy_id the "
              "number of persons. Used for the intercept", Integer(1, 1 << 40), None, PUBLIC,
              "guarantee", unit="rows", values="int >= 1",
              shown="unset: the number of rows is private", plan="public_num_rows", recorded=False),
    Parameter("dp_discovered", "what a look at the columns has cost (`params()` of what "
              "xgb_dp.discover has found). The ledger of the model counts it besides dp_epsilon",
              _discovered, None, PUBLIC, "proofs/discovery",
              values="mapping with the keys events and delta", shown="none", recorded=False),
    Parameter("dp_public_evals", "asserts that every set in evals is public, so that exact metrics "
              "and early stopping on it are allowed", Flag(), False, PUBLIC, "guarantee",
              recorded=False),
    Parameter("dp_public_data", "public rows with the columns of the training data: their "
              "quantiles are the candidates of columns that nothing is declared of, at no cost",
              _public_data, False, PUBLIC, "howto/public", Table.PUBLIC_ROWS,
              values="an xgboost.DMatrix with labels, or a pair (X, y)",
              shown="none: candidates are released privately", recorded=False),
    Parameter("dp_public_model", "asserts that xgb_model was made without any private row. Private "
              "trees are added to it", Flag(), False, PUBLIC, "howto/public", Table.PUBLIC_ROWS,
              shown="False: a model without a ledger is refused", recorded=False),
)
RULES = (
    Rule("a public model is given",
         lambda s: s["dp_public_model"] and not s.continues,
         "{`dp_public_model`} says that `xgb_model` is public, but there is no `xgb_model`. Give "
         "the model to start from, or leave {`dp_public_model`} out."),
    Rule("a look for others",
         lambda s: s["dp_discovered"] is not None and s["dp_discovered"]["unit"].name != s.unit,
         "`dp_discovered`: the look at the columns was for rows and the training is for persons, "
         "or the other way round, so no ledger can add up what both cost. Give both the ids "
         "({`dp_privacy_id`}), or neither."),
    Rule("a look at other persons",
         lambda s: s["dp_discovered"] is not None and s["dp_discovered"]["unit"].name == s.unit
         and not _same_persons(s["dp_discovered"]["unit"].column, s.privacy_unit.column),
         "`dp_discovered`: the look at the columns and the training tell persons by different "
         "columns of ids. One person of one column may be several of the other, so no ledger can "
         "add up what both cost. Give both the same column."),
    Rule("rows of persons",
         lambda s: "dp_max_rows_per_person" in s.given and s.unit == "row",
         "`dp_max_rows_per_person` has an effect with {`dp_privacy_id`} only: without it every "
         "row is a unit of privacy of its own. Leave it out, or give the ids."),
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
    wanted = {kind.share: kind for kind in MECHANISMS if kind.is_enabled(s)}
    shares: dict[str, float] = {}
    for name in (name for name in SHARE_NAMES if name not in _OF_REST):
        default = wanted[name].default_share(s, fixed) if name in wanted else 0.0
        shares[name] = fixed.get(name, default)
    shares |= _divide_rest(fixed, 1.0 - math.fsum(shares.values()), wanted)
    if abs(math.fsum(shares.values()) - 1.0) > 1e-9:
        hint = "".join(kind.no_share for name, kind in wanted.items() if name not in fixed)
        raise PrivacyParameterError(
            f"The shares of the budget (`dp_budget_shares`) must sum to 1.{hint}"
        )
    if any(shares[name] <= 0 for name in wanted):
        raise PrivacyParameterError(
            f"`dp_budget_shares` must leave a part above 0 for each release: {', '.join(wanted)}."
        )
    return _of_released(shares, wanted)


def _divide_rest(fixed: dict[str, float], rest: float, wanted: Collection[str]) -> dict[str, float]:
    """Divide the rest among the remaining releases; the last one takes the remainder."""
    shares = {name: share for name, share in fixed.items() if name in _OF_REST}
    free = [name for name in _OF_REST if name not in fixed]
    shares |= {name: _OF_REST[name] * rest if name in wanted else 0.0 for name in free[:-1]}
    if free:
        shares[free[-1]] = rest - math.fsum(shares.values())
    return {name: shares[name] for name in _OF_REST}


def _of_released(shares: dict[str, float], wanted: Collection[str]) -> dict[str, float]:
    """Give the shares of disabled releases to the releases that divide the rest."""
    listed = {kind.share for kind in MECHANISMS if kind.always_listed} | set(wanted)
    out = {name: shares[name] if name in wanted else 0.0 for name in shares if name in listed}
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
