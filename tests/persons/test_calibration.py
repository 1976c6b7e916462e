"""The noise of counts for persons: that of rows, on a grid on which nobody vanishes."""

import math
from dataclasses import replace
from typing import Any

import pytest

from xgb_dp.accounting import GaussianEvent, sensitivity
from xgb_dp.accounting.sensitivity import RowBound
from xgb_dp.calibrate import calibrate

from ..releases import Releases, releases

ROW = RowBound("prediction", 0.5, 0.25)
LEVELS = 17


def both(
    features: int,
    intercept: str | None = "multiclass",
    leaves: dict[str, Any] | None = None,
    **candidates: Any,
) -> tuple[Releases, Releases]:
    """The same training of rows and of persons."""
    rows, persons = (
        releases(
            30,
            4,
            bound,
            outputs=3,
            features=features,
            intercept=intercept,
            candidates={"cells": features * (2**LEVELS - 1), **candidates},
            leaves=leaves,
        )
        for bound in (ROW, replace(ROW, of_person=True))
    )
    return rows, persons


@pytest.mark.parametrize("features", [1, 14, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 100.0])
def test_counts_of_persons(epsilon, features):
    """The noise in units of one is that of rows, and a thousand rows count nearly one."""
    rows, persons = (calibrate(*planned, epsilon, 1e-6) for planned in both(features))
    for name in ("candidates", "intercept"):
        shift = persons[name].shift
        assert 0.97 < (1 << shift) // 1000 * 1000 / (1 << shift) <= 1.0
        noise = [math.ldexp(p[name].sigma2, -2 * p[name].shift) for p in (rows, persons)]
        # All cells are touched coordinates: the finer grid outweighs them in the slack.
        assert noise[1] == pytest.approx(noise[0], rel=1e-4)
    events = {e.label: e for e in persons.events if isinstance(e, GaussianEvent)}
    assert {e.unit for e in persons.events} == {"person"}
    assert events["candidates"].coordinates == features * (2**LEVELS - 1)
    assert events["intercept"].coordinates == 3
    assert events["intercept"].sensitivity2 == 4 ** persons["intercept"].shift


@pytest.mark.parametrize("epsilon", [1.0, 5e3])
@pytest.mark.parametrize("features", [1, 5000])
def test_integers_stay_in_their_limits(features, epsilon):
    """Sums of 2^35 units below 2^62, squared sensitivities and noise as the trainer takes them."""
    plan = calibrate(*both(features)[1], epsilon, 1e-6)
    assert max(plan["candidates"].shift, plan["intercept"].shift) <= 26
    for event in plan.events:
        if isinstance(event, GaussianEvent):
            assert event.sensitivity2 < 1 << 61
            assert 1 << 20 <= event.sigma2 <= 1 << 56


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
def test_laplace_counts_of_persons(epsilon):
    trainings = both(14, None, {"mechanism": "laplace"}, laplace=True)
    rows, persons = (calibrate(*planned, epsilon, 1e-6)["candidates"] for planned in trainings)
    assert (1 << persons.shift) // 1000 * 1000 >= 0.97 * (1 << persons.shift)
    noise = [math.ldexp(n.scale, -n.shift) for n in (rows, persons)]
    assert noise[1] == pytest.approx(noise[0], rel=1e-3)
    assert persons.scale <= 1 << 48


def test_labels_of_a_person_may_be_of_all_classes():
    def touched(kind: str, **changes: bool) -> int:
        return sensitivity.intercept_coordinates(
            kind, person=True, k=7, **{"public_num_rows": False} | changes
        )

    assert touched("multiclass") == 7
    assert touched("cells") == sensitivity.LABEL_CELLS
    assert touched("binary") == 2
    assert touched("regression", public_num_rows=True) == 1
    assert touched("rows") == 1
