"""The audit of the table finds nothing, and finds noise that is too small."""

from __future__ import annotations

import pytest

from xgb_dp.audit import mechanisms


@pytest.mark.parametrize("halved, refuted", [(1, False), (2, True)])
def test_audit_of_the_table(halved: int, refuted: bool) -> None:
    made = mechanisms.evaluation(4.0, 1e-6, halved)
    result = mechanisms.audit(made, 200_000, name="evaluation")
    assert result.violated is refuted
