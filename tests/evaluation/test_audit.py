"""The audit of the table finds nothing, and finds noise that is too small.

The claim is exact, so an audit at 95% would alarm falsely in up to one run of twenty. At confidence
1 - 1e-6 it does so with a chance of at most 1e-6. The bound for halved noise is far above the
claim at that confidence too: 1.04 to 1.09 in three runs, where the claim is .84.
"""

from __future__ import annotations

import pytest

from xgb_dp.audit import mechanisms

SURE = 1.0 - 1e-6


@pytest.mark.parametrize("halved, refuted", [(1, False), (2, True)])
def test_audit_of_the_table(halved: int, refuted: bool) -> None:
    made = mechanisms.evaluation(4.0, 1e-6, halved)
    result = mechanisms.audit(made, 200_000, confidence=SURE, name="evaluation")
    assert result.violated is refuted
