"""Model cards, deployment registry entries and feature importance of private models.

A card fills in ``templates/model_card.md``, a ``string.Template``. Facts that are not in the ledger
come from the caller; otherwise the card says "not stated". Gains and covers in private models are
computed from noisy sums (``docs/leaks.md``), so importance is free post-processing.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Any

from ..errors import PrivacyParameterError, PrivacyRefusal
from ..request.names import takes
from .formatting import markdown_code, markdown_prose, markdown_text, round_up
from .ledger_model import Ledger
from .privacy_report import (
    PrivacyReport,
    as_booster,
    evaluated,
    meaning,
    privacy_report,
    tables,
)

_USAGE = """\
import xgboost as xgb

booster = xgb.Booster(model_file="model.json")
matrix = xgb.DMatrix(rows)"""
_CODED_USAGE = """\
import xgb_dp
import xgboost as xgb

booster = xgb.Booster(model_file="model.json")
schema = xgb_dp.Schema.from_model(booster)
matrix = xgb.DMatrix(schema.encode(rows), feature_types=list(schema.feature_types))"""


def _private_report(model: Any) -> PrivacyReport:
    report = privacy_report(model)
    if not report.private:
        raise PrivacyRefusal(
            "This model is not differentially private and must not be published, so no model card "
            "or registry entry is written for it. Train it with a finite dp_epsilon."
        )
    return report


_TEXTS = "name", "description", "intended_use", "data", "license", "contact", "template"


@takes(**dict.fromkeys((*_TEXTS, "metrics_source"), "text"))
def model_card(
    model: Any,
    *,
    name: str = "Private XGBoost model",
    description: str = "",
    intended_use: str = "",
    data: str = "",
    metrics: Mapping[str, float] | None = None,
    metrics_source: str = "",
    evaluation: Any = None,
    license: str = "",
    contact: str = "",
    template: str | None = None,
) -> str:
    """Write a model card in Markdown: privacy, public inputs, columns, quality and usage.

    Privacy: free post-processing of the ledger. Descriptions and metrics come from you. An exact
    metric of private rows is a release that no report covers, so the card states which rows the
    metrics were computed on. All strings except `name` and `license` may contain Markdown; HTML is
    escaped.

    Args:
        model: A private model that :func:`xgb_dp.privacy_report` accepts; also a pipeline.
        name: Title.
        description: The purpose of the predictions.
        intended_use: Intended and excluded uses.
        data: Source of the training rows. If the privacy unit is a row, also state the largest
            number of rows of one person.
        metrics: Metrics, by name.
        metrics_source: The rows that the metrics were computed on, and whether they are public.
            Required with `metrics`.
        evaluation: Result of :func:`xgb_dp.evaluate` to include: its main figures with intervals,
            and their privacy cost.
        license: License of the model.
        contact: Contact for questions.
        template: A custom template; it can use ``$epsilon`` and the other fields of the built-in
            template.

    Returns:
        str: Markdown with front matter for model hubs.

    Raises:
        PrivacyRefusal: The model is not private.
        PrivacyParameterError: `metrics` without `metrics_source`, `evaluation` of another model,
            or an unknown field in the template.
        LedgerError: The model has no ledger.

    Examples:
        >>> card = xgb_dp.model_card(model, name="Who comes back", data="Made for this example.")
        >>> "# Who comes back" in card.splitlines()
        True
    """
    report = _private_report(model)
    figures = evaluated(evaluation, report.record)
    quality = [_metrics(metrics, metrics_source), markdown_text(figures)]
    fields = {
        "name": markdown_text(name),
        "description": markdown_prose(description) or "No description provided.",
        "intended_use": markdown_prose(intended_use) or "Not stated.",
        "data": markdown_prose(data) or "Not stated.",
        "license": markdown_text(license) or "not stated",
        "license_field": json.dumps(license or "unknown"),
        "contact": markdown_prose(contact) or "not stated",
        **_facts(as_booster(model), report),
        "metrics_table": "\n\n".join(filter(None, quality)) or "No metrics provided.",
    }
    return _filled(template, fields)


def _filled(template: str | None, fields: Mapping[str, str]) -> str:
    if template is None:
        file = files("xgb_dp.record").joinpath("templates/model_card.md")
        template = file.read_text(encoding="utf-8")
    try:
        return Template(template).substitute(fields)
    except (KeyError, ValueError) as error:
        raise PrivacyParameterError(
            f"`template` has an unknown or malformed field ({error}). The fields are "
            f"{', '.join('$' + key for key in fields)}; write $$ for a dollar sign."
        ) from None


def _facts(booster: Any, report: PrivacyReport) -> dict[str, str]:
    """Template fields that follow from the ledger and the model."""
    import xgboost

    last = report.record.trainings[-1]
    budget, curve, groups = tables(report)
    coded = "c" in (booster.feature_types or [])
    return {
        "epsilon": round_up(report.epsilon),
        "delta": f"{report.delta:g}",
        "unit": markdown_text(report.unit.phrase),
        "statement": "\n\n".join(map(markdown_text, report.paragraphs().values())),
        "meaning": markdown_text(meaning(report)),
        "objective": markdown_code(str(last.public.get("objective", "unknown"))),
        "rounds": str(report.record.rounds),
        "max_depth": markdown_text(str(last.hyperparameters.get("max_depth", "unknown"))),
        "budget_table": _markdown(*budget[1:]),
        "curve_table": _markdown(*curve[1:]),
        "groups_title": groups[0],
        "groups_table": _markdown(*groups[1:]),
        "public_table": _table(["input", "value"], _public(report.record)),
        "columns_table": _columns(booster),
        "usage": _CODED_USAGE if coded else _USAGE,
        "needed_for": f"xgb-dp {'codes categories' if coded else 'is needed only for training'}",
        "xgb_dp_version": version("xgb-dp"),
        "xgboost_version": xgboost.__version__,
    }


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return _table(head, (map(markdown_text, row) for row in rows))


def _table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Format a table; the cells are already Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def _columns(booster: Any) -> str:
    names = column_names(booster)
    types = booster.feature_types or ["float"] * len(names)
    kinds = {"c": "categorical", "float": "number"}
    gains = importance(booster)
    total = sum(gains.values()) or 1.0
    return _markdown(
        ["column", "type", "share of the total gain (noisy)"],
        [
            [n, kinds.get(t, t), f"{gains[n] / total:.3f}"]
            for n, t in zip(names, types, strict=True)
        ],
    )


def _public(ledger: Ledger) -> list[list[str]]:
    """Public inputs of each training, including hyperparameters, as Markdown cells."""
    rows = []
    if ledger.start is not None and not ledger.start.released:
        shown = markdown_code(json.dumps(ledger.start.summary()))
        rows.append(["public model that the training started from", shown])
    several = len(ledger.trainings) > 1
    for i, training in enumerate(ledger.trainings, 1):
        every = {**training.public, **training.hyperparameters}
        every.pop("hyperparameters", None)
        for key, value in every.items():
            if value not in (None, [], {}):
                label = f"{key} (training {i})" if several else key
                rows.append([markdown_text(label), markdown_code(json.dumps(value))])
    return rows


def _metrics(metrics: Mapping[str, float] | None, source: str) -> str:
    if not metrics:
        return ""
    if not source.strip():
        raise PrivacyParameterError(
            "`metrics_source` is missing: state which rows `metrics` were computed on and whether "
            "they are public. The report does not cover exact metrics of private rows."
        )
    table = _markdown(["metric", "value"], [[k, f"{v:.4g}"] for k, v in metrics.items()])
    return f"{table}\n\nComputed on: {markdown_prose(source.strip())}"


def registry_entry(
    model: Any,
    *,
    name: str = "Private XGBoost model",
    description: str = "",
    data: str = "",
    intended_use: str = "",
    curator: str = "",
    region: str = "",
    contact: str = "",
) -> dict[str, Any]:
    """Describe a model in the schema of OpenDP's deployments registry.

    Privacy: free post-processing of the ledger.

    Args:
        model: A private model that :func:`xgb_dp.privacy_report` accepts.
        name: Name of the deployment; the registry's stable address is made from it.
        description: The purpose of the predictions.
        data: Source of the rows.
        intended_use: Intended and excluded uses.
        curator: Organisation that publishes the model.
        region: Region that the data describe.
        contact: Author of this entry.

    Returns:
        dict: A draft entry; dump it as YAML. Check the date, and fill in what is not stated.

    Raises:
        PrivacyRefusal: The model is not private.
        LedgerError: The model has no ledger.

    Examples:
        >>> from xgb_dp.record.model_card import registry_entry
        >>> entry = registry_entry(model, name="Who comes back")
        >>> entry["url_slug"], entry["deployment"]["dp_variant"]["variant_name"]
        ('who-comes-back', 'Approximate DP')
    """
    report = _private_report(model)
    texts = report.paragraphs()
    masked = any(training.public.get("masked_sums") for training in report.record.trainings)
    replaced = report.get_epsilon(report.delta, report.unit.group_size, adjacency="replace_one")
    unknown = "Not stated."
    curve = "; ".join(f"epsilon {round_up(e)} at delta {d:g}" for d, e in report.epsilon_curve())
    mechanisms = [
        f"- {spent.release}: {spent.count} times {spent.mechanism}, {spent.noise}"
        for spent in report.spending()
    ]
    deployment: dict[str, Any] = {
        "basic": {
            "name": name,
            "data_curators": [curator or unknown],
            "description": description or "Gradient-boosted trees with differential privacy.",
            "intended_use": intended_use or unknown,
            "data_product_type": "Machine learning model",
            "data_product_region": region or unknown,
            "publication_date": datetime.date.today().isoformat(),
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if report.delta else "Pure DP",
            "data_domain": data or unknown,
            "unprotected_quantities": f"{texts['public']} {texts['not covered']}",
        },
        "privacy_loss": {
            "privacy_unit": report.unit.phrase,
            "privacy_unit_details": "Adjacent data sets differ by one added or removed unit. If a "
            f"unit is replaced by another, epsilon is {round_up(replaced)}.",
            "privacy_parameters": {"epsilon": report.epsilon, "delta": report.delta},
            "privacy_parameters_details": curve,
        },
        "deployment_model": {
            "model_name": "Federated" if masked else "Central",
            "release_type": "One release",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "composition": "Exact composition of all releases, recomputed from the ledger in the "
            "model file by `xgb-dp verify`.",
        },
        "implementation": {
            "mechanisms": "\n".join([f"xgb-dp {version('xgb-dp')}:", *mechanisms]),
        },
    }
    if "preprocessing" in texts:
        key = "preprocessing_and_hyperparameter_tuning"
        deployment["implementation"][key] = texts["preprocessing"]
    if contact:
        deployment["administrative"] = {"registry_authors": [contact]}
    slug = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")
    return {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": deployment}


_KINDS = ("gain", "total_gain", "cover", "total_cover", "weight")


def private_booster(model: Any) -> Any:
    """Return the booster of a private model; refuse others, which contain exact statistics."""
    booster = as_booster(model)
    if not privacy_report(booster).private:
        raise PrivacyRefusal(
            "This model is not differentially private: its statistics are exact statistics of the "
            "training rows. For debugging, use XGBoost's own get_score and pred_contribs."
        )
    return booster


def column_names(booster: Any) -> list[str]:
    """Column names of a model; f0, f1, ... if it has no names."""
    return list(booster.feature_names or [f"f{i}" for i in range(booster.num_features())])


def importance(model: Any, kind: str = "total_gain") -> dict[str, float]:
    """Compute the importance of each feature from the noisy statistics in the model.

    Every split of a private tree is forced: if no feature helps, the mechanism picks one at random.
    The number of splits and the gain per split of a feature are therefore unreliable, and a feature
    with few splits can have the largest gain by chance. The total gain combines both, and is also
    the default of XGBoost's own functions for private models.

    Gains and covers are shrunk to account for noise, but not to 0: a feature without any signal
    has some importance if the mechanism chose it. :func:`importance_noise` estimates how much.

    Privacy: free post-processing.

    Args:
        model: xgboost.Booster, or a fitted scikit-learn estimator of xgboost; private.
        kind: "total_gain" or "total_cover" (sum over the splits of a feature), "gain" or "cover"
            (mean over its splits), or "weight" (number of splits).

    Returns:
        dict: Importance of every feature, in decreasing order; 0 for unused features.

    Raises:
        PrivacyParameterError: Unknown `kind`.
        PrivacyRefusal: The model is not private.
        LedgerError: The model has no ledger.

    Examples:
        >>> shares = xgb_dp.plotting.importance(model)
        >>> set(shares) <= set(data.feature_names)
        True
    """
    if kind not in _KINDS:
        raise PrivacyParameterError(f"`kind` must be {', '.join(_KINDS[:-1])} or {_KINDS[-1]}.")
    booster = private_booster(model)
    scores = booster.get_score(importance_type=kind)
    every = {name: float(scores.get(name, 0.0)) for name in column_names(booster)}
    return dict(sorted(every.items(), key=lambda item: -item[1]))
