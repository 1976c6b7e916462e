"""The privacy ledger of a model: what was released, by which mechanism, with how much noise.

The C++ trainer writes the events from what it drew. This module adds what only Python knows (the
intercept, earlier trainings, the target, what was public) and stores the whole as the booster
attribute ``dp_ledger``, the one free-form field that survives ``save_model``, pickling and copying.
The stored text carries a digest of itself (``sealed.py``), against damage and not against forgers.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from typing import Any

from . import sealed
from .errors import LedgerError, PrivacyParameterError, PrivacyRefusal, PrivacyWarning
from .models import load_booster
from .record import VERSION, Ledger

__all__ = [
    "ATTRIBUTE",
    "complete",
    "earlier_ledger",
    "native_ledger",
    "planned",
    "read_ledger",
    "sign",
    "store",
]

ATTRIBUTE = "dp_ledger"


def native_ledger(booster: Any) -> dict[str, Any]:
    """The ledger that the C++ trainer keeps of the training under way.

    Returns:
        dict: ``private``, ``noise`` and one entry in ``trainings`` with ``complete`` and
        ``events``.

    Raises:
        LedgerError: The booster was not trained by the private updater.
    """
    config = json.loads(booster.save_config())
    for updater in config["learner"]["gradient_booster"].get("updater", []):
        if updater.get(ATTRIBUTE):
            record: dict[str, Any] = json.loads(updater[ATTRIBUTE])
            return record
    raise LedgerError(
        "The booster holds no record of private training: nothing was trained privately."
    )


def read_ledger(booster: Any) -> dict[str, Any]:
    """The ledger stored with a booster, without its digest.

    It is sound, its parts fit each other, and it accounts for every tree of the booster. Ledgers
    of models from before they had a digest are read with a ``PrivacyWarning``.

    Args:
        booster: xgboost.Booster.

    Raises:
        LedgerError: There is none, it is damaged or incomplete, or it does not describe the trees
            of the booster.
    """
    record, has_digest = _stored(booster)
    ledger = Ledger.from_json(record)
    if not has_digest:
        warnings.warn(
            "The privacy ledger of this model has no digest: it is from before there was one, or "
            "it was changed. Damage to its numbers would not be noticed.",
            PrivacyWarning,
            stacklevel=3,
        )
    _check_trees(booster, ledger)
    return record


def _stored(booster: Any) -> tuple[dict[str, Any], bool]:
    """The content of the attribute, and whether it had a digest."""
    try:
        text = booster.attr(ATTRIBUTE)
        found = None if text is None else sealed.loads(text)
    except (ValueError, AssertionError) as error:  # XGBoost asserts that no attribute is empty
        reason = "no Unicode" if isinstance(error, UnicodeError) else str(error) or "it is empty"
        raise LedgerError(
            f"The privacy ledger of this model is damaged ({reason}), so what the model has cost "
            "is not known. Take a sound copy of the model, or train it again."
        ) from None
    if found is None:
        raise LedgerError(
            "This model carries no privacy ledger: it was not trained with tree_method='dp_hist', "
            "or its attributes were removed. Nothing can be said about its privacy."
        )
    return found


def _check_trees(booster: Any, ledger: Ledger) -> None:
    """Refuse trees that the ledger does not name."""
    known = {name for t in ledger.trainings for name in t.trees or ()}
    digests = _tree_digests(booster)
    unknown = [d for d in digests if d not in known]
    total = booster.num_boosted_rounds()
    # Only the last training may be under way; its trees are the last ones.
    last = ledger.trainings[-1]
    open_rounds = last.rounds if last.trees is None else 0
    allowed = open_rounds * len(digests) // max(total, 1)
    at_end = not unknown or digests[-len(unknown) :] == unknown
    if len(unknown) > allowed or not at_end or total > ledger.rounds:
        raise LedgerError(
            "This model holds trees that its privacy ledger does not account for: it was changed "
            "after training. Continue models with xgboost.train(..., xgb_model=...) only."
        )


def _tree_digests(booster: Any) -> list[str]:
    """Short names of the trees with all their numbers, which saving and slicing do not change.

    Raises:
        LedgerError: The trees cannot be read, so that no ledger can be theirs.
    """
    try:
        model = json.loads(booster.save_raw("json"))["learner"]
        score = model["learner_model_param"]["base_score"]
        digests = []
        for tree in model["gradient_booster"]["model"]["trees"]:
            tree.pop("id", None)
            text = json.dumps([score, tree], sort_keys=True)
            digests.append(hashlib.sha256(text.encode()).hexdigest()[:16])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LedgerError(
            "The trees of this model cannot be read: it is damaged, or its booster is not gbtree."
        ) from None
    return digests


def sign(booster: Any, ledger: dict[str, Any], rounds: int) -> dict[str, Any]:
    """The ledger with the names of the trees that the last training has added.

    A report then speaks of these trees only: attributes that are copied to another model, or trees
    that are refreshed on exact data, no longer fit.

    Args:
        booster: The trained booster.
        ledger: Result of :func:`complete`.
        rounds: Boosting rounds that the training added.
    """
    total = booster.num_boosted_rounds()
    digests = _tree_digests(booster)
    per_round = len(digests) // total if total else 0
    trainings = [*ledger["trainings"]]
    trainings[-1] = {**trainings[-1], "trees": digests[len(digests) - rounds * per_round :]}
    return {**ledger, "trainings": trainings}


def earlier_ledger(
    xgb_model: Any, *, private: bool, names: list[str] | None, types: list[str] | None
) -> dict[str, Any] | None:
    """Ledger of the model to be continued.

    Args:
        xgb_model: Booster, file name, raw bytes or None.
        private: Whether the new training is private.
        names: Names of the columns of the new training, None without.
        types: Their types, "c" or "float"; None without.

    Returns:
        The ledger, in which every training names its trees, or None without a model.

    Raises:
        PrivacyParameterError: The columns are not those of the model.
        PrivacyRefusal: The model was not trained privately, so more private trees would not make
            it private.
    """
    if xgb_model is None:
        return None
    from xgboost import Booster

    try:
        booster = xgb_model if isinstance(xgb_model, Booster) else load_booster(xgb_model)
        ledger = read_ledger(booster)
    except LedgerError as error:
        raise PrivacyRefusal(
            f"`xgb_model` is refused: {error} Private trees on top of it would not make it "
            "private. Train a new model."
        ) from None
    if private and not ledger["private"]:
        raise PrivacyRefusal(
            "`xgb_model` is refused: its trees were grown without noise or with fixed noise, so "
            "the result could not be private. Train a new model."
        )
    if (booster.feature_names, booster.feature_types) != (names, types):
        raise PrivacyParameterError(
            "`xgb_model` was trained on other columns: names, their order and which are "
            "categorical must be those of the training data."
        )
    # A training that was broken off named no trees. What it has grown is fixed from here on.
    known = {d for t in ledger["trainings"] for d in t.get("trees", [])}
    rest = [d for d in _tree_digests(booster) if d not in known]
    trainings = [t if "trees" in t else {**t, "trees": rest} for t in ledger["trainings"]]
    return {**ledger, "trainings": trainings}


def _number(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


def _compose(
    earlier: dict[str, Any] | None, training: dict[str, Any], *, private: bool, noise: str
) -> dict[str, Any]:
    before = earlier["trainings"] if earlier else []
    is_private = private and (earlier is None or bool(earlier["private"]))
    if earlier is not None and noise == "os":
        noise = earlier["noise"]
    return {
        "version": VERSION,
        "private": is_private,
        "noise": noise,
        "trainings": [*before, training],
    }


def complete(
    native: dict[str, Any],
    *,
    intercept: dict[str, Any] | None,
    earlier: dict[str, Any] | None,
    target: tuple[float, float],
    public: dict[str, Any],
    plan_digest: str,
    claimed: list[dict[str, Any]] | None,
    rounds: int,
    planned: int = 0,
) -> dict[str, Any]:
    """The whole ledger of a model from what C++ drew and what Python knows.

    A training that released less than planned (a callback stopped it, or "no split" won somewhere)
    counts as the whole plan: when it ended is itself an outcome of the mechanisms, and the
    composition is proved for releases fixed in advance. ``drawn`` then holds what was drawn.

    Args:
        native: Ledger of the C++ trainer, see :func:`native_ledger`.
        intercept: Event of the intercept's release, None if nothing was released.
        earlier: Ledger of the continued model.
        target: (epsilon, delta) that this training was calibrated for.
        public: What was taken as public.
        plan_digest: Names the plan.
        claimed: Events of the whole plan; None for plans made by hand, which are not private.
        rounds: Boosting rounds that this training added.
        planned: Rounds that it was calibrated for.

    Raises:
        LedgerError: The trees of the booster are not those that the trainer recorded, or more was
            drawn than planned.
    """
    record = native["trainings"][-1]
    drawn = ([intercept] if intercept else []) + record["events"]
    if claimed is not None:
        _check_drawn(drawn, claimed, rounds, planned)
    short = claimed is not None and _counts(drawn) != _counts(claimed)
    training = {
        "plan_digest": plan_digest,
        "complete": True,
        "events": claimed if short else drawn,
        **({"drawn": drawn} if short else {}),
        "rounds": rounds,
        "target": {"epsilon": _number(target[0]), "delta": target[1]},
        "public": public,
    }
    return _compose(earlier, training, private=bool(native["private"]), noise=native["noise"])


def _key(event: dict[str, Any]) -> tuple[str, str]:
    return event["mechanism"], event.get("release", "rounds")


def _counts(events: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    return {_key(e): int(e["count"]) for e in events if e["count"]}


def flat_counts(events: list[dict[str, Any]]) -> dict[str, int]:
    """How often each release was made, by name; those of sampled rounds included."""
    out: dict[str, int] = {}
    for event in events:
        count = int(event["count"])
        inner = flat_counts(event["events"]) if "events" in event else {event["release"]: 1}
        for name, n in inner.items():
            out[name] = out.get(name, 0) + count * n
    return out


def _covered(event: dict[str, Any], limit: dict[str, Any]) -> bool:
    """Whether a drawn event costs no more than a planned one."""
    if event["count"] > limit["count"]:
        return False
    if event["mechanism"] == "gaussian":
        return bool(
            event["sigma2"] == limit["sigma2"]
            and event["sensitivity2"] <= limit["sensitivity2"]
            and event["coordinates"] <= limit["coordinates"]
        )
    if event["mechanism"] == "exponential":
        return bool(event["eps_num"] <= limit["eps_num"])
    if event["mechanism"] == "laplace":
        same = event["scale"] == limit["scale"]
        return bool(same and event["sensitivity"] <= limit["sensitivity"])
    pairs = zip(event["events"], limit["events"], strict=False)
    most = {"poisson": "rate_num", "parallel": "parts"}[event["mechanism"]]
    return bool(
        event[most] <= limit[most]
        and [_key(e) for e in event["events"]] == [_key(e) for e in limit["events"]]
        and all(_covered(e, most) for e, most in pairs)
    )


def _check_drawn(
    drawn: list[dict[str, Any]], claimed: list[dict[str, Any]], rounds: int, planned: int
) -> None:
    """Everything drawn was planned, with at least as much noise, and every round was drawn."""
    plan = {_key(e): e for e in claimed}
    for event in drawn:
        limit = plan.get(_key(event))
        if limit is None or not _covered(event, limit):
            raise LedgerError(
                f"The trainer released more than was calibrated ({_key(event)[1]}). The model "
                "must not be published. Please report this."
            )
    name = "histograms" if "histograms" in flat_counts(claimed) else "leaves"
    releases = flat_counts(drawn).get(name, 0)
    # The rounds of an ensemble, which read disjoint parts of the rows, are recorded as one.
    ensemble = max((int(e["parts"]) for e in claimed if "parts" in e), default=1)
    each = flat_counts(claimed).get(name, 0) // max(-(-planned // ensemble), 1)
    if claimed and releases != -(-rounds // ensemble) * each:
        raise LedgerError(
            f"The booster has grown {rounds} rounds, but the trainer has recorded {releases} "
            f"releases of {name}: "
            "something has changed the booster during training. The model must not be published."
        )


def planned(
    events: list[dict[str, Any]],
    *,
    plan_digest: str,
    earlier: dict[str, Any] | None,
    target: tuple[float, float],
    public: dict[str, Any],
    rounds: int,
    private: bool,
    noise: str,
) -> dict[str, Any]:
    """Ledger of a training under way, which claims the whole plan as spent.

    A checkpoint or a training that an exception ends keeps it, so that it never shows less than
    what may have been released.
    """
    training = {
        "plan_digest": plan_digest,
        "complete": False,
        "events": events,
        "rounds": rounds,
        "target": {"epsilon": _number(target[0]), "delta": target[1]},
        "public": public,
    }
    return _compose(earlier, training, private=private, noise=noise)


def store(booster: Any, ledger: dict[str, Any]) -> None:
    """Write the ledger into the booster's attributes, with its digest."""
    booster.set_attr(**{ATTRIBUTE: sealed.dumps(ledger)})
