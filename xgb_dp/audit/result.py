"""What an audit answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AuditResult:
    """Outcome of one audit.

    Attributes:
        name: What was audited.
        statistic: What the attacker looked at.
        draws: Independent outputs or, for one run, canaries.
        delta: Point of the claimed curve at which the bound is stated.
        claimed_epsilon: Claimed epsilon at `delta`, in nats.
        lower_bound: The true epsilon at `delta` is at least this, with `confidence`; in nats.
            Negative or -inf where the draws show nothing.
        confidence: A true claim is called violated with probability at most 1 - confidence.

    Examples:
        >>> from xgb_dp.audit import audit_scores
        >>> claim = xgb_dp.privacy_report(model)
        >>> result = audit_scores(np.zeros(2000), np.ones(2000), claim)  # a row decides
        >>> result.verdict
        'VIOLATED'
    """

    name: str
    statistic: str
    draws: int
    delta: float
    claimed_epsilon: float
    lower_bound: float
    confidence: float

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.lower_bound > self.claimed_epsilon

    @property
    def verdict(self) -> str:
        """In words."""
        return "VIOLATED" if self.violated else "no violation"

    def cells(self) -> list[str]:
        """Cells of its row in :func:`table`."""
        return [
            self.name,
            self.statistic,
            f"{self.draws:,}",
            f"{self.delta:g}",
            f"{self.claimed_epsilon:.3f}",
            f"{max(self.lower_bound, 0.0):.3f}",
            self.verdict,
        ]


def table(results: list[AuditResult]) -> str:
    """Results as a Markdown table; negative bounds are shown as 0."""
    head = ["audited", "statistic", "draws", "δ", "claimed ε(δ)", "lower bound", "verdict"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|--:|--:|--:|--:|---|"]
    lines += ["| " + " | ".join(result.cells()) + " |" for result in results]
    return "\n".join(lines)
