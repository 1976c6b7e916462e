"""All releases of a training: those that it makes by itself, and those of published systems."""

from __future__ import annotations

from ..published.noisy_splits import Histograms
from ..published.row_samples import Ensembles, Samples
from ..releases.candidates import Candidates
from ..releases.column_sums import ColumnSums
from ..releases.correction import Correction
from ..releases.intercept import Intercept
from ..releases.label_range import LabelRange
from ..releases.leaves import Leaves
from ..releases.release import Reading, Release
from ..releases.splits import Splits

RELEASES: tuple[type[Release], ...] = (
    LabelRange,
    Intercept,
    ColumnSums,
    Candidates,
    Correction,
    Splits,
    Histograms,
    Leaves,
)
"""In the order of the ledger: once in a training first, then those of rounds."""
READINGS: tuple[type[Reading], ...] = (Samples, Ensembles)
"""Ways in which rounds read some of the rows; others read all."""
