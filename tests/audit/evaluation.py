"""Audits of evaluations: of every kind of model, the row that moves the released sums most.

The models are stock ones of one tree on made rows. The blocks are those that an evaluation of such
a model releases; the row adds the column of the largest norm of each of them.

Proof: docs/proofs/evaluation.md
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xgb_dp.accounting import ExactAccountant
from xgb_dp.evaluation.measure import plan_evaluation
from xgb_dp.evaluation.rows import Groups, events_for, read_evaluated_model
from xgb_dp.noisy_sums import Layout

from .mechanisms import Mechanism, gaussian_scores

_GROUPS = Groups(0, (0, 1, 2))


def _model(objective: str, **params: Any) -> Any:
    """A tree on made rows, of which nothing is hidden."""
    from xgboost import DMatrix, train

    rng = np.random.default_rng(0)
    table, labels = rng.normal(size=(200, 2)), rng.integers(0, 2, 200) + 1.0
    if objective.startswith(("binary", "multi")):
        labels -= 1.0
    data = DMatrix(table, labels)
    if objective == "survival:aft":
        for end in ("lower", "upper"):
            data.set_float_info(f"label_{end}_bound", labels)
    return read_evaluated_model(
        train({"objective": objective, "nthread": 1, "verbosity": 0, **params}, data, 1)
    )


def _layout(models: list[Any], groups: Groups | None = None, bounds: Any = None) -> Layout:
    plan = plan_evaluation(tuple(models), groups, None, bounds)
    return Layout(plan.blocks, later=plan.later)


KINDS: dict[str, Callable[[], Layout]] = {
    "two classes": lambda: _layout([_model("binary:logistic")]),
    "two classes in groups": lambda: _layout([_model("binary:logistic")], _GROUPS),
    "two models": lambda: _layout([_model("binary:logistic"), _model("binary:logistic")]),
    "two models of counts": lambda: _layout(
        [_model("count:poisson"), _model("count:poisson")], None, (0.0, 4.0)
    ),
    "several classes": lambda: _layout([_model("multi:softprob", num_class=3)]),
    "errors": lambda: _layout([_model("reg:squarederror")], None, (0.0, 4.0)),
    "errors in groups": lambda: _layout([_model("reg:squarederror")], _GROUPS, (0.0, 4.0)),
    "quantiles": lambda: _layout(
        [_model("reg:quantileerror", quantile_alpha=[0.1, 0.5, 0.9])], None, (0.0, 4.0)
    ),
    "counts": lambda: _layout([_model("count:poisson")], None, (0.0, 4.0)),
    "amounts": lambda: _layout([_model("reg:gamma")], None, (0.5, 40.0)),
    "times": lambda: _layout([_model("survival:aft")], None, (0.5, 40.0)),
}
"""What evaluations of models of each kind release, by the name of the kind."""


def layout_of(kind: str) -> Layout:
    """The blocks of a kind of evaluation; see :data:`KINDS`."""
    return KINDS[kind]()


def evaluation(
    epsilon: float, delta: float, halved: int = 1, kind: str = "two classes"
) -> Mechanism:
    """All steps of an evaluation: the row adds columns of the largest norm.

    The columns of a second step may be any of a norm that was fixed before, so a fixed one of that
    norm is the worst case.
    """
    layout = layout_of(kind)
    events = events_for(layout, epsilon, delta)
    added: list[int] = []
    for block in layout.blocks:
        column = block.matrix[:, int((block.matrix**2).sum(axis=0).argmax())]
        added += column[column != 0].tolist()
    if layout.later is not None:
        added += [math.isqrt(layout.later.norm2 // layout.later.sums)] * layout.later.sums
    scores = gaussian_scores(added, events[0].sigma2 // halved)
    return Mechanism(f"evaluation of {kind}", "likelihood ratio", ExactAccountant(events), scores)
