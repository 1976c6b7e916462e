"""The model that private trees stand on, as the ledger names it.

It is public, made without a private row; or it follows from what the training itself has released.
Either way its trees cost nothing more. A ledger names them one by one, so that nobody takes one of
them for a private tree.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_TREE_NAME = re.compile(r"[0-9a-f]{16}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELDS = {"digest", "rounds", "trees"}
_RELEASED = "released"


def are_tree_names(value: Any) -> bool:
    """Whether this is a list of short names of trees, as ledgers have them."""
    return isinstance(value, list) and all(
        type(name) is str and _TREE_NAME.fullmatch(name) is not None for name in value
    )


@dataclass(frozen=True)
class PublicStart:
    """A model that stands below the private trees."""

    digest: str  # SHA-256 of the names of its trees, which name all of its numbers
    rounds: int
    trees: tuple[str, ...]  # their names, in order
    released: bool = False  # it follows from sums that the training released, and is not public

    @classmethod
    def of(cls, trees: Sequence[str], rounds: int, *, released: bool = False) -> PublicStart:
        """The start with these trees."""
        digest = hashlib.sha256("\n".join(trees).encode()).hexdigest()
        return cls(digest, rounds, tuple(trees), released)

    def renamed(self, names: Mapping[str, str]) -> PublicStart:
        """The same model, named by the same digest, after its numbers were scaled with the rest."""
        return replace(self, trees=tuple(names.get(n, n) for n in self.trees))

    def shown(self) -> dict[str, Any]:
        """What a reader needs to know it by: digest, number of rounds and number of trees."""
        return {"digest": self.digest, "rounds": self.rounds, "trees": len(self.trees)}

    def to_json(self) -> dict[str, Any]:
        """As a ledger holds it."""
        out = {"digest": self.digest, "rounds": self.rounds, "trees": list(self.trees)}
        return out | {_RELEASED: True} if self.released else out

    @classmethod
    def from_json(cls, data: Any) -> PublicStart:
        """Read what :meth:`to_json` has written."""
        if not isinstance(data, Mapping) or set(data) - {_RELEASED} != _FIELDS:
            raise ValueError("it must have the fields digest, rounds, trees")
        digest, rounds, trees = data["digest"], data["rounds"], data["trees"]
        sound = (
            type(digest) is str
            and _DIGEST.fullmatch(digest) is not None
            and type(rounds) is int
            and rounds >= 1
            and are_tree_names(trees)
            and bool(trees)
            and len(trees) % rounds == 0
            and data.get(_RELEASED, True) is True
        )
        if not sound:
            raise ValueError("it does not name its trees")
        return cls(digest, rounds, tuple(trees), _RELEASED in data)
