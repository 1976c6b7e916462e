"""What readers, registries and reviewers ask of a private model, filled in from its ledger.

Model cards are ``templates/model_card.md``, in the form of ``string.Template``. Records follow the
deployments registry of OpenDP and NIST, and the questions of NIST SP 800-226, of EDPB Opinion
28/2024 on the anonymity of models, and of those who check outputs of the European health data
space. What a ledger cannot know is taken from the caller, or marked as not stated.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Any

from ..errors import PrivacyParameterError, PrivacyRefusal
from ..request.arguments import takes
from .form import Ledger
from .importance import column_names, importance
from .report import PrivacyReport, as_booster, privacy_report
from .report_views import as_dict, as_html, meaning, round_up, tables

KINDS = ("json", "registry", "nist", "edpb", "ehds")
_NOT_STATED = "not stated"
_HAZARDS = (
    "Running time, memory use and other side channels are not covered.",
    "Errors tell that a row lies outside the declared domain.",
    "Other releases of the same rows add up; the ledger of a model knows those of its trainings.",
    "Whoever can read the memory of the training process is trusted.",
)


def _private_report(model: Any) -> PrivacyReport:
    report = privacy_report(model)
    if not report.private:
        raise PrivacyRefusal(
            "This model is not differentially private, so it gets no model card and no record: it "
            "should not be published or registered. Train with a finite dp_epsilon."
        )
    return report


@takes(
    name="text",
    description="text",
    intended_use="text",
    data="text",
    metrics_source="text",
    license="text",
    contact="text",
    template="text",
)
def model_card(
    model: Any,
    *,
    name: str = "Private XGBoost model",
    description: str = "",
    intended_use: str = "",
    data: str = "",
    metrics: Mapping[str, float] | None = None,
    metrics_source: str = "",
    license: str = "",
    contact: str = "",
    template: str | None = None,
) -> str:
    """A model card in Markdown: privacy, what was public, columns, quality and use of a model.

    Privacy: free post-processing of the ledger. The texts and metrics are yours: an exact metric of
    private rows is a release that no report covers, so the card says where metrics come from.

    Args:
        model: A private model as :func:`xgb_dp.privacy_report` takes it; a pipeline, too.
        name: Title.
        description: What the model predicts.
        intended_use: What it is for, and what not.
        data: Where the training rows come from, and how many rows one person may have where the
            unit of privacy is a row.
        metrics: Names and values of scores.
        metrics_source: The rows that they were computed on, and whether these are public. Needed
            with `metrics`.
        license: Licence of the model.
        contact: Whom to ask.
        template: Another template, with ``$epsilon`` and the other fields of the built-in one.

    Returns:
        str: Markdown, with the front matter that model hubs read.

    Raises:
        PrivacyRefusal: The model is not private.
        PrivacyParameterError: Metrics without their source, or an unknown field in the template.
        LedgerError: The model carries no ledger.

    Examples:
        >>> card = xgb_dp.model_card(model, name="Who comes back", data="Made for this example.")
        >>> "# Who comes back" in card.splitlines()
        True
    """
    fields = {
        "name": name,
        "description": description or "No description was given.",
        "intended_use": intended_use or "Not stated.",
        "data": data or "Not stated.",
        "license": license or "not stated",
        "license_field": json.dumps(license or "unknown"),
        "contact": contact or "not stated",
        **_facts(as_booster(model), _private_report(model)),
        "metrics_table": _metrics(metrics, metrics_source),
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
            f"`template` has a field that is unknown or badly written ({error}). Fields are "
            f"{', '.join('$' + key for key in fields)}; a dollar sign is written $$."
        ) from None


def _facts(booster: Any, report: PrivacyReport) -> dict[str, str]:
    """What the ledger says of the model, and its columns."""
    import xgboost

    last = report.record.trainings[-1]
    budget, curve, groups = tables(report)
    return {
        "epsilon": round_up(report.epsilon),
        "delta": f"{report.delta:g}",
        "unit": report.unit.phrase,
        "statement": report.statement(),
        "meaning": meaning(report),
        "objective": f"`{last.public.get('objective', 'unknown')}`",
        "rounds": str(report.record.rounds),
        "max_depth": str(last.hyperparameters.get("max_depth", "unknown")),
        "budget_table": _markdown(*budget[1:]),
        "curve_table": _markdown(*curve[1:]),
        "groups_title": groups[0],
        "groups_table": _markdown(*groups[1:]),
        "public_table": _markdown(["what", "value"], _public(report.record)),
        "columns_table": _columns(booster),
        "xgb_dp_version": version("xgb-dp"),
        "xgboost_version": xgboost.__version__,
    }


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", " ")


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in (head, *rows)]
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
    """What each training took as public, hyperparameters included."""
    rows = []
    if ledger.start is not None and not ledger.start.released:
        rows.append(["model that training started from", f"`{json.dumps(ledger.start.shown())}`"])
    several = len(ledger.trainings) > 1
    for i, training in enumerate(ledger.trainings, 1):
        every = {**training.public, **training.hyperparameters}
        every.pop("hyperparameters", None)
        for key, value in every.items():
            if value not in (None, [], {}):
                label = f"{key} (training {i})" if several else key
                rows.append([label, f"`{json.dumps(value)}`"])
    return rows


def _metrics(metrics: Mapping[str, float] | None, source: str) -> str:
    if not metrics:
        return "No scores were given."
    if not source.strip():
        raise PrivacyParameterError(
            "`metrics_source` is missing: say which rows `metrics` were computed on and whether "
            "they are public. Exact metrics of private rows are not covered by the report."
        )
    table = _markdown(["score", "value"], [[k, f"{v:.4g}"] for k, v in metrics.items()])
    return f"{table}\n\nComputed on: {source.strip()}"


def deployment_record(
    model: Any,
    kind: str = "registry",
    *,
    name: str = "",
    data: str = "",
    intended_use: str = "",
    contact: str = "",
) -> dict[str, Any]:
    """A model's guarantee in the fields of a registry or of a review.

    Privacy: free post-processing of the ledger.

    Args:
        model: A private model as :func:`xgb_dp.privacy_report` takes it.
        kind: "registry", "nist", "edpb" (Opinion 28/2024), "ehds" (Regulation (EU) 2025/327), or
            "json" for the whole report.
        name: Of the deployment.
        data: Where the rows come from.
        intended_use: What the model is for.
        contact: Whom to ask.

    Returns:
        dict: What JSON can hold.

    Raises:
        PrivacyParameterError: Another kind.
        PrivacyRefusal: The model is not private.
        LedgerError: The model carries no ledger.

    Examples:
        >>> from xgb_dp.record.deployment import deployment_record
        >>> record = deployment_record(model, "registry", name="Who comes back")
        >>> list(record)[:3]
        ['name', 'data', 'intended_use']
    """  # fmt: skip
    if kind not in KINDS:
        raise PrivacyParameterError(f"`kind` must be one of {', '.join(KINDS)}.")
    report = _private_report(model)
    texts = {"name": name, "data": data, "intended_use": intended_use, "contact": contact}
    given = {key: text or _NOT_STATED for key, text in texts.items()}
    report_fields = as_dict(report)
    if kind == "json":
        return {**given, **report_fields}
    common = {
        "privacy_unit": report.unit.phrase,
        "neighbours": "one unit added or removed",
        "epsilon": report_fields["epsilon"],
        "delta": report_fields["delta"],
        "epsilon_if_one_is_replaced": report.get_epsilon(
            report.delta, report.unit.group, adjacency="replace_one"
        ),
        "epsilon_curve": report_fields["epsilon_curve"],
        "mechanisms": report_fields["budget"],
    }
    fill = {"registry": _registry, "nist": _nist, "edpb": _edpb, "ehds": _ehds}[kind]
    return {**given, **fill(report, common)}


def _registry(report: PrivacyReport, common: dict[str, Any]) -> dict[str, Any]:
    masked = any(training.public.get("masked_sums") for training in report.record.trainings)
    return {
        "format": "xgb-dp deployment record",
        "format_version": 1,
        "deployment_model": "central, with masked sums" if masked else "central",
        "release": "one machine-learning model (gradient-boosted trees)",
        "release_frequency": "once",
        "flavour": "(epsilon, delta)-differential privacy",
        **common,
        "accounting": "exact composition, recomputed from the ledger that the model carries",
        "implementation": "xgb-dp",
        "verification": "xgb-dp verify MODEL",
    }


def _nist(report: PrivacyReport, common: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": "xgb-dp answers to NIST SP 800-226",
        "format_version": 1,
        **common,
        "guarantee_in_words": report.statement(),
        "attack_success_at_even_odds": report.attack_success,
        "accounting": "all noisy releases of all trainings, composed adaptively",
        "trust_model": "the party that trains sees the rows; who gets the model does not",
        "randomness": "exact integer samplers, keyed by the operating system's generator",
        "public_inputs": [dict(t.public) for t in report.record.trainings],
        "data_collection_and_access": _NOT_STATED,
        "hazards": list(_HAZARDS),
    }


def _edpb(report: PrivacyReport, common: dict[str, Any]) -> dict[str, Any]:
    """What the documentation of a model has to say that is claimed to be anonymous."""
    return {
        "format": "xgb-dp answers to EDPB Opinion 28/2024",
        "format_version": 1,
        **common,
        "extraction_from_the_model": report.statement(),
        "answers_to_queries": "follow from the model, so they reveal no more than it does, however "
        "many there are",
        "means_that_are_considered": "all: an attacker may know every other row and hold the file",
        "training_method": "gradient-boosted trees with differential privacy; every number in them "
        "is noisy",
        "membership_inference_at_even_odds": report.attack_success,
        "attributes_reconstruction_inversion": "bounded by epsilon_if_one_is_replaced",
        "tests_of_the_method": "audits and attacks of xgb-dp (docs/audit.md)",
        "tests_of_this_model": _NOT_STATED,
        "data_sources_and_minimisation": _NOT_STATED,
        "impact_assessment": _NOT_STATED,
        "advice_of_the_data_protection_officer": _NOT_STATED,
        "for_those_who_deploy": "a model card: xgb-dp card MODEL",
        "hazards": list(_HAZARDS),
        "judgement": "whether this likelihood is insignificant is for the controller to say",
    }


def _ehds(report: PrivacyReport, common: dict[str, Any]) -> dict[str, Any]:
    """What leaves a secure processing environment, for those who check that it is anonymous."""
    return {
        "format": "xgb-dp answers on an output (Regulation (EU) 2025/327, Article 73)",
        "format_version": 1,
        **common,
        "output": "one file with gradient-boosted trees",
        "records_in_the_output": "none: trees, noisy statistics, and what was declared",
        "smallest_count": "no count is exact; rules for small cells do not apply",
        "guarantee_in_words": report.statement(),
        "public_inputs": [dict(t.public) for t in report.record.trainings],
        "check": "xgb-dp verify MODEL --max-epsilon EPSILON --delta DELTA --unit UNIT",
        "data_permit": _NOT_STATED,
        "hazards": list(_HAZARDS),
    }


def page_of(model: Any, *, name: str, data: str, intended_use: str, contact: str) -> str:
    """The privacy report as a whole HTML page, with what the caller says of the model."""
    given = {"Training data": data, "Intended use": intended_use, "Contact": contact}
    report = _private_report(model)
    lines = [f"<h1>{html.escape(name or 'Private XGBoost model')}</h1>"]
    for key, text in given.items():
        lines.append(f"<p><b>{key}</b>: {html.escape(text or _NOT_STATED)}</p>")
    return as_html(report, page=True).replace("<body>", "<body>\n" + "".join(lines), 1)
