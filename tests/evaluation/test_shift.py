"""The weights of persons leave room for the noise of every step of an evaluation."""

import math

import numpy as np
import pytest

from xgb_dp.evaluation.rows import events_for, shift_for
from xgb_dp.noisy_sums import Block, Later, Layout


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("later", [None, 1, 3, 4])
def test_the_noise_of_both_steps_fits_the_sampler(epsilon, later):
    blocks = (Block(64 * np.eye(128, dtype=np.int64)),)
    second = None if later is None else Later(norm2=later * blocks[0].norm2, sums=128)
    layout = Layout(blocks, later=second)
    shift = shift_for(layout, epsilon, 1e-6)
    events = events_for(Layout(blocks, shift, "person", second), epsilon, 1e-6)
    assert max(math.log2(event.sigma2) for event in events) <= 56
