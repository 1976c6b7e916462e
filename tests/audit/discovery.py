"""Audits of a private look at the columns: one more row, alone with its text, or with its number.

The releases are those of :mod:`xgb_dp.noisy_sums`, called over and over.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from xgb_dp.accounting import make_accountant
from xgb_dp.audit import AuditResult, audit_scores
from xgb_dp.discovery.discover import plan_discovery
from xgb_dp.noisy_sums import ColumnPlan, release_numbers, release_strings

_KNOWN = 40  # rows that both neighbours have
Score = Callable[[ColumnPlan, npt.NDArray], float]


def _audit(
    claimed: ColumnPlan, score: Score, rest: npt.NDArray, new: float, statistic: str
) -> Callable[..., AuditResult]:
    """The audit of a score on the rows that all have, and on these with a new one."""
    more = np.append(rest, np.array([new], dtype=rest.dtype))

    def audit(
        name: str, draws: int, plan: ColumnPlan = claimed, *, confidence: float = 0.95
    ) -> AuditResult:
        return audit_scores(
            *([score(plan, rows) for _ in range(draws)] for rows in (rest, more)),
            make_accountant("exact", claimed.events),
            name=name,
            statistic=statistic,
            confidence=confidence,
        )

    return audit


def _of_text(plan: ColumnPlan, codes: npt.NDArray) -> float:
    """Whether a text of one row is shown, and else the count of a text that all name."""
    shown = release_strings(plan, {"text": (codes, ["known", "new"])})["text"].counts
    return 1e6 if "new" in shown else shown.get("known", 0.0)


def _of_numbers(plan: ColumnPlan, values: npt.NDArray) -> float:
    """The counts of a quantile tree, which may tell of a row far from all others."""
    (tree,) = release_numbers(plan, values[np.newaxis])
    return sum(count for *_, count in tree.leaves)


audit_strings = _audit(
    plan_discovery(1, 0, 1.0, 0.04), _of_text, np.zeros(_KNOWN, dtype=np.int64), 1,
    "a text of one row",
)  # fmt: skip
audit_numbers = _audit(
    plan_discovery(0, 1, 4.0, 1e-6), _of_numbers, np.full(_KNOWN, 1.0, dtype=np.float32), 1.0,
    "number of rows in a tree",
)  # fmt: skip
