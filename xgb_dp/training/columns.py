"""Whether few columns matter for the label, from noisy sums of it in the cells of each column.

Reads what was released and public numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..accounting.sensitivity import COLUMN_SHIFT
from ..calibrate.mechanisms import NoisePlan

__all__ = ["few_columns_matter"]

_LEAST = 3.0  # deviations of noise: the least weight of a column's cells, so that rare ones are few
_SEEN = 2.5  # standard errors by which columns must differ more than noise and chance make them
_FEW = 45.0  # columns


def few_columns_matter(noise: NoisePlan, sums: Sequence[int]) -> bool:
    """Whether a part of the columns is seen to carry most of what one column says of the label.

    With w the noisy weight of the cells of a column, and g that of its positive ones less those
    expected, g^2 / w less its part of noise and chance is what the column says. Columns that say
    as much each would be the square of the sum of this over the sum of its squares: fewer than 45
    are few. The sum of squares is that of fourth powers of g, and must be seen in the noise.

    Post-processing, costs nothing.

    Args:
        noise: Calibrated noise of the release.
        sums: Noisy integers of the release: of labels in [-1, 1], of rows, and of the share of its
            cells that each row has, in units of ``2**-shift``; then of its cells, each weighing 1
            over the root of how many the row has, by column for label 0 and then for label 1, in
            units of ``2**-(shift + COLUMN_SHIFT)``.
    """
    labels, rows, present = (math.ldexp(float(v), -noise.intercept_shift) for v in sums[:3])
    cells = np.ldexp(np.array(sums[3:], dtype=np.float64), -noise.intercept_shift - COLUMN_SHIFT)
    zeros, ones = cells.reshape(2, -1)
    variance = math.ldexp(
        float(noise.intercept_sigma2), -2 * (noise.intercept_shift + COLUMN_SHIFT)
    )
    width = len(ones)
    rows = max(rows, 1.0)
    share = 0.5 + 0.5 * min(max(labels / rows, -1.0), 1.0)
    each = min(max(present / rows * width, 1.0), float(width))  # columns that a row has
    weight = np.maximum(zeros + ones, _LEAST * math.sqrt(2.0 * variance))
    off = (1.0 - share) * ones - share * zeros
    # Of noise, and of the chance of which rows are there.
    odd = share * (1.0 - share)
    spread = variance * (1.0 - 2.0 * odd) + weight * odd / math.sqrt(each)
    said = (off**2 - spread) / weight
    squares = (off**4 - 6.0 * off**2 * spread + 3.0 * spread**2) / weight**2  # without their noise
    error = math.sqrt(24.0 * float(np.sum((spread / weight) ** 4)))
    total, square = float(np.sum(said)), float(np.sum(squares))
    return square > _SEEN * error and total > 0.0 and total**2 < _FEW * square
