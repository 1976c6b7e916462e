"""The statement of a privacy report: what is guaranteed, about what, and what is not covered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..accounting import SelectionEvent
from ..accounting.events import release_counts
from ..mechanisms.plan import MECHANISMS
from .caution import concerns, doubts, scope
from .escaping import visible
from .report_views import round_up

if TYPE_CHECKING:
    from .form import Ledger
    from .report import PrivacyReport

_RELEASES = {
    **dict(pair for kind in MECHANISMS for pair in kind.words),
    "plan": "one of several plans",
    "ranges": "a look at columns of numbers and dates (noisy counts)",
    "categories": "a look at text columns (noisy counts of texts)",
    "evaluation": "figures of the model on private rows (noisy counts of scores)",
    "selection": "the whole model, as the best by noisy score of a secret number of trainings",
}
_PUBLIC = {
    "target_bounds": "the target bounds",
    "exposure_bounds": "the range of exposures",
    "own_objective": "the formulas of the loss and the numbers in them",
    "public_cuts": "the declared feature bounds or cuts",
    "public_grids": "the declared feature bounds",
    "public_data": "the public rows that candidates come from",
    "categories": "the declared categories",
    "classes": "the declared classes",
    "n_public": "the number of {}, as declared",
    "max_weight": "the bound of row weights",
}
_NOT_COVERED = (
    "Not covered: running time, memory use and other side channels; anything else that is "
    "published about the same rows, such as exact metrics, other models or choices of parameters "
    "made by looking at the data; errors that say that a row is outside the declared domain; and "
    "anybody with access to the training process."
)


def paragraphs(report: PrivacyReport) -> dict[str, str]:
    """The paragraphs of the statement of a private model, by what they are about."""
    record = report.record
    every = {
        "guarantee": _guarantee(report),
        "population": _population(record),
        "concerns": _concerns(report),
        "preprocessing": _preprocessing(record, report.steps),
        "released": _released(record),
        "chosen": _chosen(record),
        "masked": _masked(record),
        "public": _public(record),
        "history": _history(record),
        "not covered": _NOT_COVERED,
    }
    return {key: visible(text) for key, text in every.items() if text}


def _guarantee(report: PrivacyReport) -> str:
    unit, epsilon = report.unit, round_up(report.epsilon)
    return (
        f"This model is ({epsilon}, {report.delta:g})-differentially private: adding or removing "
        f"{unit.neighbours()} of the training data changes the probability of any outcome of "
        f"training by a factor of at most e^{epsilon}, except with probability delta = "
        f"{report.delta:g}. {scope(unit)} {_other_groups(report)} Replacing one {unit.name} "
        "counts as a removal and an addition: get_epsilon(delta, adjacency='replace_one') gives "
        "that epsilon. The noise came from a generator with a secret key from the operating system."
    )


def _population(record: Ledger) -> str:
    """Whom a model of persons answers for, which is not the population of its rows."""
    if not record.unit.of_persons:
        return ""
    rows = max(t.public.get("rows_per_person") or 1 for t in record.trainings)
    return (
        "The model answers for people and not for rows: all rows of a person together count as "
        f"{'one row' if rows == 1 else f'{rows:g} rows'} at most. Where those with many rows are "
        "unlike others, its mean and its accuracy over rows are others than those over people."
    )


def _other_groups(report: PrivacyReport) -> str:
    """What holds for more or fewer rows or persons than were asked for."""
    unit = report.unit
    if unit.group > 1:
        alone = round_up(report.get_epsilon(report.delta, 1))
        return f"For one {unit.name} alone, epsilon is {alone}."
    most = "k persons together" if unit.of_persons else "a person with at most k rows"
    return f"For {most}, get_epsilon(delta, group=k) gives the epsilon."


def _concerns(report: PrivacyReport) -> str:
    rows = [t.public.get("n_public") for t in report.record.trainings]
    n_public = max((n for n in rows if n is not None), default=None)
    reasons = concerns(report.epsilon, report.delta, n_public, report.unit)
    for training in report.record.trainings:
        reasons += doubts(training, report.unit)
    return " ".join(dict.fromkeys(reasons))


def _preprocessing(record: Ledger, more: tuple[str, ...]) -> str:
    """What was fitted on the rows before training, without noise."""
    steps = [name for t in record.trainings for name in t.public.get("preprocessing", [])]
    steps += more
    if not steps:
        return ""
    return (
        "NOT COVERED: before training the rows went through steps of a pipeline that were "
        f"fitted on them without noise ({', '.join(dict.fromkeys(steps))}). What these have "
        "learnt about the rows is in the model and in the pipeline, and no epsilon covers it."
    )


def _released(record: Ledger) -> str:
    counts = release_counts(e for t in record.trainings for e in t.released)
    parts = [
        f"{_RELEASES.get(name, name)}, {'once' if count == 1 else f'{count} times'}"
        for name, count in counts.items()
    ]
    return (
        f"Released with noise: {'; '.join(parts) or 'nothing'}. Everything else in the model "
        "is computed from these releases, or is public."
    )


def _of_each(record: Ledger, key: str) -> Iterator[tuple[str, Any]]:
    """Which training it is, in words, and what its public record says under a key."""
    for number, training in enumerate(record.trainings, 1):
        value = training.public.get(key)
        if value:
            yield f" of training {number}" if len(record.trainings) > 1 else "", value


def _chosen(record: Ledger) -> str:
    """Which of several plans was taken, and that this is a private release."""
    parts = []
    counted = record.unit.plural
    for which, choice in _of_each(record, "plan_choice"):
        plans = choice["plans"]
        taken = plans[choice["taken"]].items()
        choices = ", ".join(f"{k} {v}" for k, v in taken if k != "budget_shares")
        rows = "" if choice["rows"] is None else f" (about {choice['rows']})"
        sparse = any("start" in plan for plan in plans)
        cells = " and of their cells" if sparse else ""
        parts.append(
            f"The plan{which} is one of {len(plans)} public ones: {choices}. A noisy number of "
            f"{counted}{rows}{cells} was released first, and decided which one. The choice costs "
            "nothing beyond that release, and the figures hold for the worst of the plans."
        )
    return " ".join(parts)


def _masked(record: Ledger) -> str:
    """What the workers saw of each other, where it was not everything."""
    parts = []
    for which, masked in _of_each(record, "masked_sums"):
        curious = int(masked["colluders"])
        against = (
            f"any {'one' if curious == 1 else curious} of them, for the rows of the others"
            if curious
            else "whoever took no part in the training"
        )
        parts.append(
            f"The sums{which} were masked: each of {masked['workers']} workers added its share of "
            "the noise to its own sums and saw nothing but noisy sums of all. If all followed the "
            f"protocol, the figures hold against {against}."
        )
    return " ".join(parts)


def _public(record: Ledger) -> str:
    lines = ["Taken as public, and not protected: the number, names and types of the columns"]
    seen = [t.public for t in record.trainings]
    public = (text for key, text in _PUBLIC.items() if any(p.get(key) for p in seen))
    lines += [text.format(record.unit.plural) for text in public]
    if any(isinstance(p.get("base_score"), (int, float, list)) for p in seen):
        lines.append("the given intercept")
    if record.start is not None and not record.start.released:
        lines.append("the model that training started from")
    if any(p.get("evals") for p in seen):
        lines.append("every evaluation set, and so the time of early stopping")
    chosen = any(e.mechanism == SelectionEvent.mechanism for e in record.events)
    lines.append(
        ("the list of settings to choose from" if chosen else "the hyperparameters")
        + ", which must not have been chosen by looking at these rows (as a "
        "grid search or cross-validation on them does)"
    )
    return ", ".join(lines[:-1]) + ", and " + lines[-1] + "."


def _history(record: Ledger) -> str:
    trainings = record.trainings
    parts = []
    start = record.start
    if start is not None and start.released:
        first = trainings[0]
        offered = first.hyperparameters.get("features_per_tree")
        kept = f" Which {offered} columns the others were offered follows from them too."
        parts.append(
            f"The first {len(start.trees)} trees follow from the sums that were released of each "
            f"column.{'' if offered in (None, first.public.get('columns')) else kept}"
        )
    elif start is not None:
        parts.append(
            f"The private trees were added to a public model of {start.rounds} rounds "
            f"({len(start.trees)} trees, digest {start.digest[:16]}). Whoever trained the model "
            "declared that this start was made without any private row. The figures say nothing "
            "about the rows that the start was made from."
        )
    if len(trainings) > 1:
        parts.append(
            f"The model was trained in {len(trainings)} steps; the figures compose all of them."
        )
    if any(p.get("base_score") == "base_margin" for p in (t.public for t in trainings)):
        parts.append(
            "The trees start from a `base_margin` of each row. What was released of these rows to "
            "make it, such as another private model, adds up."
        )
    if any(t.stopped for t in trainings):
        parts.append(
            "A training released less than planned. It counts in full, because the moment at "
            "which it ended is an outcome of the training."
        )
    return " ".join(parts)
