"""The audit of each table finds nothing, and finds noise that is too small.

The claim is exact, so an audit at 95% would alarm falsely in up to one run of twenty. At confidence
1 - 1e-6 it does so with a chance of at most 1e-6. The bound for halved noise is far above the
claim at that confidence too: with 200,000 draws 1.07 with a deviation of .035 in eight runs, where
the claim is .84. The test draws half as many again.
"""

import pytest

from tests.audit import evaluation, mechanisms
from xgb_dp.evaluation.rows import events_for

SURE = 1.0 - 1e-6


@pytest.mark.parametrize("kind", evaluation.KINDS)
@pytest.mark.parametrize("divided, refuted", [(1, False), (3, True)])
def test_audit_of_the_table(kind, divided, refuted):
    audited = evaluation.evaluation(4.0, 1e-6, divided, kind)
    result = mechanisms.audit(audited, 50_000, confidence=SURE)
    assert result.violated is refuted


def test_audit_finds_half_of_the_variance():
    audited = evaluation.evaluation(4.0, 1e-6, 2)
    assert mechanisms.audit(audited, 300_000, confidence=SURE).violated


@pytest.mark.parametrize("kind", evaluation.KINDS)
def test_the_row_of_the_audit_is_the_worst(kind):
    """Its columns have the norm that is claimed, but for the rounding of the second step."""
    layout = evaluation.layout_of(kind)
    event, *_ = events_for(layout, 4.0, 1e-6)
    moved = sum(int((b.matrix.astype(object) ** 2).sum(axis=0).max()) for b in layout.blocks)
    assert moved == event.sensitivity2
    audited = evaluation.evaluation(4.0, 1e-6, 1, kind)
    mean = audited.sample(True, 4_000).mean() - audited.sample(False, 4_000).mean()
    whole = sum(norm2 for norm2, _ in layout.steps) / event.sigma2
    # The mean moves by the squared norm over the variance; its error has a deviation below .03.
    assert mean == pytest.approx(whole, abs=0.2)
