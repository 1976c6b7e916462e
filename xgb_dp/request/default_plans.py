"""The plans among which an open number of rounds lets the data choose, by how large they are.

What pays is decided by the number of rows times what a row is worth at this epsilon: few and
shallow trees where that is small, many and deep ones where it is large. The number that decides is
a noisy one, released before the first tree; the plans are public, and so is the rule. For a table
with many columns the number of cells that are neither 0 nor missing is released as well: where they
are few, the plan releases the cells of each class by column, and starts from what they say.
docs/accuracy.md has the evidence.

Proof: docs/proofs/choice.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..mechanisms.splits import OF_TREES
from ..parameters.parse import OpenRounds
from .settings import Settings


@dataclass(frozen=True)
class Size:
    """A plan of the default for some numbers of rows."""

    below: float  # it is taken where the number of rows times :func:`worth` is below this
    rounds: int  # boosting rounds
    trees: tuple[int, str, int, int]  # depth, shape, bins, and levels that one selection fills
    eta: float = 0.5  # learning rate, of the last round where it rises
    start: float = 1.0  # that of the first round, as a share of it


# Numbers of columns for which a start from columns is offered: of fewer, trees find the best.
COLUMNS = range(32, 1 << 16)
# It is taken below this share of cells, and while two columns meet in few rows: where they meet in
# many, trees find how they act together. In rows times what each is worth.
SPARSE, MEETINGS = 0.08, 100.0
# Who sets one of these knows which trees to grow, or has no room for the sums of columns.
NOT_FROM_COLUMNS = OF_TREES | {
    "colsample_bytree", "dp_budget_shares", "dp_candidates", "dp_feature_order",
    "dp_features_per_tree", "dp_leaf_noise", "dp_score", "dp_secure_sum", "dp_start",
    "interaction_constraints", "max_bin", "monotone_constraints", "num_parallel_tree",
}  # fmt: skip
_ONE_FEATURE = (3, "alternate", 64, 3)
_SHALLOW = (4, "alternate", 64, 2)
_DEEP = (6, "oblivious", 256, 2)
_DEEPER = (8, "oblivious", 256, 2)
_DEEP_COARSE = (6, "oblivious", 64, 2)
# After a start from columns, whatever the number of rows.
AFTER_COLUMNS = Size(math.inf, 25, _SHALLOW)

SIZES: dict[str, tuple[Size, ...]] = {
    "binary": (
        Size(2_000, 50, _ONE_FEATURE),
        Size(10_000, 50, _SHALLOW),
        Size(40_000, 75, _DEEP),
        Size(120_000, 100, _DEEP),
        Size(400_000, 200, _DEEP, 0.35),
        Size(math.inf, 300, _DEEPER, 0.3),
    ),
    "multiclass": (
        Size(2_000, 50, _SHALLOW),
        Size(10_000, 50, _DEEP),
        Size(120_000, 100, _DEEP),
        Size(400_000, 200, _DEEP, 0.35),
        Size(math.inf, 300, _DEEPER, 0.3),
    ),
    "regression": (
        Size(300, 50, _ONE_FEATURE),
        Size(5_000, 50, _SHALLOW),
        Size(12_000, 50, _DEEP),
        Size(120_000, 100, _DEEP),
        Size(400_000, 200, _DEEP, 0.35),
        Size(math.inf, 300, _DEEPER, 0.3),
    ),
    "quantiles": (
        Size(3_000, 60, _SHALLOW),
        Size(6_000, 100, _SHALLOW, 1.0, 0.2),
        Size(40_000, 120, _DEEP_COARSE, 0.8, 0.2),
        Size(120_000, 120, _DEEP_COARSE, 0.4),
        Size(400_000, 200, _DEEP, 0.35),
        Size(math.inf, 300, _DEEPER, 0.3),
    ),
    "means": (
        Size(120_000, 60, _SHALLOW, 0.3),
        Size(400_000, 100, _SHALLOW, 0.3),
        Size(math.inf, 200, _SHALLOW, 0.2),
    ),
}
"""The plans by the kind of the labels, or of the objective, for growing numbers of rows.

The one place of them all.
"""


def worth(epsilon: float) -> float:
    """What a row is worth: epsilon while noise hides it, at most 2 where the chance of rows does.

    Trees are limited by the noise of privacy, which falls with epsilon times the number of rows,
    and by the chance of which rows there are, which no epsilon lessens.
    """
    return epsilon / (1.0 + 0.5 * epsilon)


def position(limits: Sequence[float], rows: float) -> int:
    """Which plan a number of rows leads to. A function of what is public and was released."""
    return next((i for i, limit in enumerate(limits) if rows < limit), len(limits) - 1)


def is_sparse(rows: float, present: float, meetings: float) -> bool:
    """Whether a table has so few cells that trees start from its columns."""
    return present < SPARSE * rows and present * present < meetings * rows


def settings_of_sizes(s: Settings) -> tuple[list[float], list[Settings]]:
    """The plans that these settings leave open; what the user has set is in all of them."""
    if not isinstance(s.rounds, OpenRounds):
        return [math.inf], [s]
    limits, sizes = _open_sizes(s)
    return limits, [s.changed(changes, rounds) for rounds, changes in sizes]


def _open_sizes(s: Settings) -> tuple[list[float], list[tuple[int, dict[str, Any]]]]:
    """Below which numbers of rows each plan is taken; its rounds, and what else it changes."""
    if not _follows_rows(s):
        return [math.inf], [(int(s.rounds), {})]
    # Classes share the budget of a round.
    of_row = worth(s.unit_epsilon) / max(s.classes - 1, 1)
    of_row /= 1.0 if s.loss is None else s.loss.bound_ratio(s)
    sizes = SIZES[s.objective.sizes or s.kind]
    limits = [size.below / of_row for size in sizes]
    changes = [(size.rounds, _changes(s, size)) for size in sizes]
    if s["dp_n_public"] is not None:  # the choice is public
        changes = [changes[position(limits, float(s["dp_n_public"]))]]
        limits = [math.inf]
    last = len(changes) - 1
    kept = [i for i in range(last + 1) if i == last or changes[i] != changes[i + 1]]
    limits, changes = [limits[i] for i in kept], [changes[i] for i in kept]
    if len(changes) > 1 and _may_start_from_columns(s):
        limits.append(MEETINGS / of_row)
        sparse = {"dp_start": "columns", **_changes(s, AFTER_COLUMNS)}
        changes.append((AFTER_COLUMNS.rounds, sparse))
    return limits, changes


def _may_start_from_columns(s: Settings) -> bool:
    """Whether the number of cells that are present may decide on the plan."""
    return (
        s.kind == "binary"
        and s.labels == 1
        and s.unit == "row"
        and s.schema.width in COLUMNS
        and s.intercept == "released"
        and s.schema.weights is None
        and all(f.kind != "categorical" for f in s.features)
        and not set(s.given) & NOT_FROM_COLUMNS
    )


def _follows_rows(s: Settings) -> bool:
    """Whether a number of rows may decide on rounds that are open."""
    return (
        s["dp_preset"] == "default"
        and not s.noise_free
        and s.delta > 0.0
        # What has no curve of its own next to others: docs/proofs/choice.md.
        and s["dp_ensemble"] == 1
        and s["subsample"] == 1.0
    )


def _changes(s: Settings, size: Size) -> dict[str, Any]:
    """What a size makes of parameters that the user has not set."""
    changes: dict[str, Any] = {"eta": size.eta}
    # Who gives a learning rate has it in all rounds, and a geometric clip follows one.
    if "eta" not in s.given and not s["dp_geometric_clip"]:
        changes["dp_eta_start"] = size.start
    if not set(s.given) & OF_TREES:
        names = ("max_depth", "dp_tree_shape", "max_bin", "dp_split_levels")
        changes |= dict(zip(names, size.trees, strict=True))
        if "dp_candidates" in s.given:  # bins are also the cells of other candidates
            del changes["max_bin"]
    return {name: value for name, value in changes.items() if name not in s.given}
