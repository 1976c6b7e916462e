"""Model cards, and entries of the deployments registry, filled in from a model's ledger.

Cards are ``templates/model_card.md``, in the form of ``string.Template``. What a ledger cannot know
is taken from the caller, or marked as not stated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Any

from ..errors import PrivacyParameterError, PrivacyRefusal
from ..request.arguments import takes
from .escaping import markdown_code, markdown_prose, markdown_text
from .form import Ledger
from .importance import column_names, importance
from .report import PrivacyReport, as_booster, privacy_report
from .report_views import as_dict, meaning, round_up, tables


def _private_report(model: Any) -> PrivacyReport:
    report = privacy_report(model)
    if not report.private:
        raise PrivacyRefusal(
            "This model is not differentially private, so it gets no model card and no entry: it "
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
    Texts other than `name` and `license` may be Markdown. HTML in them is shown and not rendered.

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
        "name": markdown_text(name),
        "description": markdown_prose(description) or "No description was given.",
        "intended_use": markdown_prose(intended_use) or "Not stated.",
        "data": markdown_prose(data) or "Not stated.",
        "license": markdown_text(license) or "not stated",
        "license_field": json.dumps(license or "unknown"),
        "contact": markdown_prose(contact) or "not stated",
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
        "public_table": _table(["what", "value"], _public(report.record)),
        "columns_table": _columns(booster),
        "xgb_dp_version": version("xgb-dp"),
        "xgboost_version": xgboost.__version__,
    }


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return _table(head, (map(markdown_text, row) for row in rows))


def _table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are Markdown already."""
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
    """What each training took as public, hyperparameters included, as Markdown."""
    rows = []
    if ledger.start is not None and not ledger.start.released:
        shown = markdown_code(json.dumps(ledger.start.shown()))
        rows.append(["model that training started from", shown])
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
        return "No scores were given."
    if not source.strip():
        raise PrivacyParameterError(
            "`metrics_source` is missing: say which rows `metrics` were computed on and whether "
            "they are public. Exact metrics of private rows are not covered by the report."
        )
    table = _markdown(["score", "value"], [[k, f"{v:.4g}"] for k, v in metrics.items()])
    return f"{table}\n\nComputed on: {markdown_prose(source.strip())}"


def registry_entry(
    model: Any,
    *,
    name: str = "",
    data: str = "",
    intended_use: str = "",
    contact: str = "",
) -> dict[str, Any]:
    """A model's guarantee in the fields of the deployments registry of OpenDP and NIST.

    Privacy: free post-processing of the ledger.

    Args:
        model: A private model as :func:`xgb_dp.privacy_report` takes it.
        name: Of the deployment.
        data: Where the rows come from.
        intended_use: What the model is for.
        contact: Whom to ask.

    Returns:
        dict: What JSON can hold.

    Raises:
        PrivacyRefusal: The model is not private.
        LedgerError: The model carries no ledger.

    Examples:
        >>> from xgb_dp.record.deployment import registry_entry
        >>> entry = registry_entry(model, name="Who comes back")
        >>> list(entry)[:3]
        ['name', 'data', 'intended_use']
    """
    report = _private_report(model)
    texts = {"name": name, "data": data, "intended_use": intended_use, "contact": contact}
    fields = as_dict(report)
    masked = any(training.public.get("masked_sums") for training in report.record.trainings)
    return {
        **{key: text or "not stated" for key, text in texts.items()},
        "format": "xgb-dp deployment record",
        "format_version": 1,
        "deployment_model": "central, with masked sums" if masked else "central",
        "release": "one machine-learning model (gradient-boosted trees)",
        "release_frequency": "once",
        "flavour": "(epsilon, delta)-differential privacy",
        "privacy_unit": report.unit.phrase,
        "neighbours": "one unit added or removed",
        "epsilon": fields["epsilon"],
        "delta": fields["delta"],
        "epsilon_if_one_is_replaced": report.get_epsilon(
            report.delta, report.unit.group, adjacency="replace_one"
        ),
        "epsilon_curve": fields["epsilon_curve"],
        "mechanisms": fields["budget"],
        "accounting": "exact composition, recomputed from the ledger that the model carries",
        "implementation": "xgb-dp",
        "verification": "xgb-dp verify MODEL",
    }
