"""The name of one part of a split, as ledgers and budgets store it.

Releases on the two parts of one split cost the larger of both. A release is counted on a part only
if its rows came as a :class:`~xgb_dp.data.split_rows.SplitMatrix` or
:class:`~xgb_dp.data.split_rows.SplitTable`; every other release is counted on all rows.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class Part:
    """One of the two parts of a split."""

    split: str  # random name of the split
    name: str  # "train" or "test"
    unit: str  # "row" or "person": what was assigned to a part

    def to_json(self) -> dict[str, str]:
        """The form of ledgers and budgets."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Part:
        """The inverse of :meth:`to_json`."""
        sound = isinstance(data, Mapping) and set(data) == {"split", "name", "unit"}
        sound = sound and type(data["split"]) is str and data["split"].isalnum()
        sound = sound and data["name"] in (TRAIN, TEST) and data["unit"] in ("row", "person")
        if not sound:
            raise ValueError("a part consists of the name of its split, its own name and its unit")
        return cls(**data)


def apart(one: Part | None, other: Part | None, unit: str) -> bool:
    """Whether no row, or no person, is in both parts."""
    if one is None or other is None or one.split != other.split or one.name == other.name:
        return False
    return unit == "row" or one.unit == other.unit == "person"
