"""What registries and reviewers of private deployments ask for, from the ledger of a model.

The fields follow the deployments registry of OpenDP and NIST, and the questions of NIST SP 800-226:
unit, neighbours, parameters, accounting, mechanisms, trust, what is public, and hazards. What a
ledger cannot know is taken from the caller, or marked as not stated.
"""

from __future__ import annotations

import html
from typing import Any

from ..errors import PrivacyParameterError, PrivacyRefusal
from .report import PrivacyReport, as_booster, privacy_report
from .report_views import as_dict, as_html

KINDS = ("json", "registry", "nist")
_NOT_STATED = "not stated"
_HAZARDS = (
    "Running time, memory use and other side channels are not covered.",
    "Errors tell that a row lies outside the declared domain.",
    "Other releases of the same rows add up; the ledger of a model knows those of its trainings.",
    "Whoever can read the memory of the training process is trusted.",
)


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
        kind: "registry", "nist", or "json" for the whole report.
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
    report = privacy_report(as_booster(model))
    if not report.private:
        raise PrivacyRefusal(
            "This model is not differentially private: it should not be published or registered. "
            "Train with a finite dp_epsilon."
        )
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
    return {**given, **(_registry if kind == "registry" else _nist)(report, common)}


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


def page_of(model: Any, *, name: str, data: str, intended_use: str, contact: str) -> str:
    """The privacy report as a whole HTML page, with what the caller says of the model."""
    given = {"Training data": data, "Intended use": intended_use, "Contact": contact}
    report = privacy_report(as_booster(model))
    if not report.private:
        raise PrivacyRefusal(
            "This model is not differentially private, so it gets no card. Train with a finite "
            "dp_epsilon."
        )
    lines = [f"<h1>{html.escape(name or 'Private XGBoost model')}</h1>"]
    for key, text in given.items():
        lines.append(f"<p><b>{key}</b>: {html.escape(text or _NOT_STATED)}</p>")
    return as_html(report, page=True).replace("<body>", "<body>\n" + "".join(lines), 1)
