"""The look at the columns passes its audits, and faults in it are found.

As in test_audit.py, a true claim is audited at confidence 1 - 1e-6.
"""

from dataclasses import replace

from xgb_dp.discovery.least_noise import plan_discovery

from . import discovery

SURE = 1.0 - 1e-6


def test_the_real_one_passes():
    assert not discovery.audit_texts("texts", 5000, confidence=SURE).violated
    assert not discovery.audit_numbers("numbers", 2000, confidence=SURE).violated


def test_a_threshold_that_is_too_low_is_found():
    plan = plan_discovery(1, 0, 1.0, 0.04)
    for threshold in (1, 2 * plan.threshold // 3):
        low = replace(plan, threshold=threshold)
        assert discovery.audit_texts("texts", 5000, low).violated


def test_thin_noise_is_found():
    plan = plan_discovery(0, 1, 4.0, 1e-6)
    thin = replace(plan, number_sigma2=plan.number_sigma2 // 49)
    assert discovery.audit_numbers("numbers", 3000, thin).violated
