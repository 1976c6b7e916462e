"""Everything that a training may release, one file for each release.

A release says whether given settings want it, how often it is drawn, and which noise and which
event a part of the budget gives it. Imports ``accounting``; reads no rows.
"""

from .candidates import Candidates
from .column_sums import ColumnSums
from .correction import Correction
from .histograms import Histograms
from .intercept import Intercept
from .leaves import Leaves
from .release import Asked, Noise, Part, Release
from .splits import Splits

__all__ = ["RELEASES", "Asked", "Noise", "Part", "Release"]

RELEASES: tuple[type[Release], ...] = (
    Intercept,
    ColumnSums,
    Candidates,
    Correction,
    Splits,
    Histograms,
    Leaves,
)
"""In the order of the ledger: once in a training first, then those of rounds."""
