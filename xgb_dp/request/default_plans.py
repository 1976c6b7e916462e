"""The default plans, chosen by the number of rows if the user does not set the number of rounds.

The best plan depends on the number of rows times the weight of a row at this epsilon (see
:func:`worth`): few shallow trees for a small product, many deep trees for a large one. The choice
uses a noisy number of rows, released before the first tree. The plans and the rule are public. For
a table with many columns, the number of cells that are neither 0 nor missing is released as well.
If it is small, the plan releases sums of the cells by class and column and starts from them. Above
epsilon 2, plans for two classes also depend on epsilon alone (see :func:`noise_reduction`).
Evidence: docs/accuracy.md.

Proof: docs/proofs/choice.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..mechanisms.splits import OF_TREES
from ..parameters.config import Config
from ..parameters.parse import OpenRounds
from .params import changed


@dataclass(frozen=True)
class Size:
    """A default plan for a range of numbers of rows."""

    below: float  # upper limit of the number of rows times :func:`worth`
    rounds: int  # boosting rounds
    trees: tuple[int, str, int, int]  # depth, shape, bins, and levels per selection
    eta: float = 0.5  # learning rate; of the last round if it increases
    start: float = 1.0  # learning rate of the first round, relative to `eta`


# Numbers of columns that allow a start from columns; with fewer, trees find the best ones anyway.
COLUMNS = range(32, 1 << 16)
# A start from columns requires a share of present cells below SPARSE and few rows that two columns
# have in common (MEETINGS, in rows times worth); otherwise trees gain from interactions.
SPARSE, MEETINGS = 0.08, 100.0
# Parameters that determine the trees, or that rule out column sums.
NOT_FROM_COLUMNS = OF_TREES | {
    "colsample_bytree", "dp_budget_shares", "dp_candidates", "dp_feature_order",
    "dp_features_per_tree", "dp_leaf_noise", "dp_score", "dp_secure_aggregation", "dp_start",
    "interaction_constraints", "max_bin", "monotone_constraints", "num_parallel_tree",
}  # fmt: skip
# Most rounds of a plan whose learning rate the user sets.
MOST_ROUNDS = 500
_ONE_FEATURE = (3, "alternate", 64, 3)
_SHALLOW = (4, "alternate", 64, 2)
_DEEP = (6, "oblivious", 256, 2)
_DEEPER = (8, "oblivious", 256, 2)
_DEEP_COARSE = (6, "oblivious", 64, 2)
# The plan after a start from columns, for any number of rows.
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
"""The plans by kind of label or objective, for increasing numbers of rows."""


def worth(epsilon: float) -> float:
    """Effective weight of a row: near epsilon if noise dominates, at most 2 otherwise.

    Two errors limit the trees: the noise, which falls with epsilon times the number of rows, and
    the sampling error of the rows, independent of epsilon.
    """
    return epsilon / (1.0 + 0.5 * epsilon)


def noise_reduction(epsilon: float) -> float:
    """How far noise is below the sampling error of the rows: 1 up to epsilon 2, at most 8.

    Noise is new in each tree. The sampling error is the same in all trees, so large steps fit it.
    """
    return min(max(epsilon / 2.0, 1.0), 8.0)


def position(limits: Sequence[float], rows: float) -> int:
    """Index of the plan for a number of rows, which must be public or released."""
    return next((i for i, limit in enumerate(limits) if rows < limit), len(limits) - 1)


def is_sparse(rows: float, present: float, meetings: float) -> bool:
    """Whether a table has so few present cells that trees start from its columns."""
    return present < SPARSE * rows and present * present < meetings * rows


def settings_of_sizes(s: Config) -> tuple[list[float], list[Config]]:
    """Limits and settings of the possible plans; all keep the parameters set by the user."""
    if not isinstance(s.rounds, OpenRounds):
        return [math.inf], [s]
    limits, sizes = _open_sizes(s)
    return limits, [changed(s, changes, rounds) for rounds, changes in sizes]


def _open_sizes(s: Config) -> tuple[list[float], list[tuple[int, dict[str, Any]]]]:
    """The row count below which each plan applies, and its rounds and other changes."""
    if not _follows_rows(s):
        return [math.inf], [(int(s.rounds), {})]
    # Classes share the budget of a round.
    of_row = worth(s.unit_epsilon) / max(s.classes - 1, 1)
    of_row /= 1.0 if s.loss is None else s.loss.bound_ratio(s)
    kind = s.objective.sizes or s.kind
    sizes = [_with_less_noise(s, size) if kind == "binary" else size for size in SIZES[kind]]
    limits = [size.below / of_row for size in sizes]
    changes = [(_rounds(s, size), _changes(s, size)) for size in sizes]
    if s["dp_public_num_rows"] is not None:  # the choice is public
        changes = [changes[position(limits, float(s["dp_public_num_rows"]))]]
        limits = [math.inf]
    last = len(changes) - 1
    kept = [i for i in range(last + 1) if i == last or changes[i] != changes[i + 1]]
    limits, changes = [limits[i] for i in kept], [changes[i] for i in kept]
    if len(changes) > 1 and _may_start_from_columns(s):
        limits.append(MEETINGS / of_row)
        sparse = {"dp_start": "columns", **_changes(s, AFTER_COLUMNS)}
        changes.append((_rounds(s, AFTER_COLUMNS), sparse))
    return limits, changes


def _with_less_noise(s: Config, size: Size) -> Size:
    """The plan above epsilon 2: smaller and more steps, and fewer trees of one feature."""
    reduction = noise_reduction(s.unit_epsilon)
    if reduction > 1.0 and size.trees == _ONE_FEATURE:  # a second selection costs noise alone
        size = replace(size, below=size.below * worth(s.unit_epsilon) / reduction)
    if "eta" in s.given:
        return size
    more = math.sqrt(reduction)
    return replace(size, rounds=round(more * size.rounds), eta=size.eta / more)


def _may_start_from_columns(s: Config) -> bool:
    """Whether the plan may depend on the number of present cells."""
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


def _follows_rows(s: Config) -> bool:
    """Whether the number of rounds may depend on the number of rows."""
    return (
        s["dp_preset"] == "default"
        and not s.noise_free
        and s.delta > 0.0
        # Choices among plans are not proved for ensembles and sampling: docs/proofs/choice.md.
        and s["dp_ensemble"] == 1
        and s["subsample"] == 1.0
    )


def _rounds(s: Config, size: Size) -> int:
    """Number of rounds of a plan; more if the user's learning rate is below the plan's own."""
    if "eta" not in s.given:
        return size.rounds
    most = max(size.rounds, MOST_ROUNDS)
    mean = 0.5 * size.eta * (1.0 + size.start)
    return min(math.ceil(size.rounds * max(1.0, mean / max(s["eta"], 1e-3))), most)


def _changes(s: Config, size: Size) -> dict[str, Any]:
    """The values that a plan gives to parameters the user has not set."""
    changes: dict[str, Any] = {"eta": size.eta}
    # A learning rate from the user applies to all rounds; a geometric clip needs a constant rate.
    if "eta" not in s.given and not s["dp_geometric_clip"]:
        changes["dp_eta_warmup"] = size.start
    if not set(s.given) & OF_TREES:
        names = ("max_depth", "dp_tree_shape", "max_bin", "dp_split_levels")
        changes |= dict(zip(names, size.trees, strict=True))
        if "dp_candidates" in s.given:  # max_bin is also the number of cells of other candidates
            del changes["max_bin"]
    return {name: value for name, value in changes.items() if name not in s.given}
