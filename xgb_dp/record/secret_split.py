"""What a model, and its evaluation, cost together while the coins of their split stay secret.

Proof: docs/proofs/secret-splits.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..accounting import Event, Unit
from ..accounting.secret import SecretSplit
from ..data.parts import TEST, TRAIN, Part, is_secret
from .form import Ledger


def part_read(public: Mapping[str, Any]) -> Part | None:
    """The part that a training has read; None where it is not known, or evaluations added to it."""
    if public.get("evaluations"):  # whose noisy sums are in the model, too
        return None
    try:
        return Part.from_json(public.get("part"))
    except ValueError:
        return None


def of_records(
    records: Iterable[Ledger], unit: Unit, part: Part | None = None, events: Sequence[Event] = ()
) -> SecretSplit | None:
    """All that models, and a release after them, have read of one split with secret coins.

    None where something has read other rows, or nobody promised that the coins stay secret, or a
    unit has several coins, or shares one with others.
    """
    trainings = [training for record in records for training in record.trainings]
    read = [(part_read(t.public), t.events) for t in trainings]
    read += [(part, tuple(events))] if events else []
    parts = [one for one, _ in read if one is not None and is_secret(one, unit.name)]
    known = len(parts) == len(read) and len({(one.split, one.test_num) for one in parts}) == 1
    same = all((t.unit.name, t.unit.group) == (unit.name, 1) for t in trainings)
    if not known or not same or unit.group != 1:
        return None
    sides: dict[str, list[Event]] = {TRAIN: [], TEST: []}
    for one, (_, released) in zip(parts, read, strict=True):
        sides[one.name] += released
    return SecretSplit(parts[0].test_num or 0, tuple(sides[TRAIN]), tuple(sides[TEST]))
