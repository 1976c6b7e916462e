"""Audits of a private look at the columns: one more row, alone with its text, or with its number.

The releases are those of :mod:`xgb_dp.noisy_sums`, called over and over.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from xgb_dp.accounting import make_accountant
from xgb_dp.audit import AuditResult, audit_scores
from xgb_dp.discovery.least_noise import plan_discovery
from xgb_dp.noisy_sums import ColumnPlan, release_numbers, release_texts

_KNOWN = 40  # rows that both neighbours have


def _of_text(plan: ColumnPlan) -> tuple[Callable[[], float], Callable[[], float]]:
    """Whether a text of one row is shown, and else the count of a text that all name."""
    rest = np.zeros(_KNOWN, dtype=np.int64)

    def score(codes: npt.NDArray[np.int64]) -> float:
        shown = release_texts(plan, {"text": (codes, ["known", "new"])})["text"].counts
        return 1e6 if "new" in shown else shown.get("known", 0.0)

    return lambda: score(rest), lambda: score(np.append(rest, 1))


def audit_texts(
    name: str, draws: int, plan: ColumnPlan | None = None, *, confidence: float = 0.95
) -> AuditResult:
    """Whether a text that one row alone names is shown more often than claimed."""
    claimed = plan_discovery(1, 0, 1.0, 0.04)
    without, with_row = _of_text(plan or claimed)
    return audit_scores(
        [without() for _ in range(draws)],
        [with_row() for _ in range(draws)],
        make_accountant("exact", claimed.events),
        name=name,
        statistic="a text of one row",
        confidence=confidence,
    )


def audit_numbers(
    name: str, draws: int, plan: ColumnPlan | None = None, *, confidence: float = 0.95
) -> AuditResult:
    """Whether the counts of a quantile tree tell of a row far from all others."""
    claimed = plan_discovery(0, 1, 4.0, 1e-6)
    used = plan or claimed
    rest = np.full((1, _KNOWN), 1.0, dtype=np.float32)
    more = np.append(rest, rest[:, :1], axis=1)

    def score(values: npt.NDArray[np.float32]) -> float:
        (tree,) = release_numbers(used, values)
        return sum(count for *_, count in tree.leaves)

    return audit_scores(
        [score(rest) for _ in range(draws)],
        [score(more) for _ in range(draws)],
        make_accountant("exact", claimed.events),
        name=name,
        statistic="number of rows in a tree",
        confidence=confidence,
    )
