"""Finds what a training releases, and the least noise that meets the target.

This package reads checked settings and no data. It imports ``request`` and what is below.
"""

from .mechanisms import FamilyNoise, NoisePlan, Releases
from .search import calibrate, calibrate_family

__all__ = ["FamilyNoise", "NoisePlan", "Releases", "calibrate", "calibrate_family"]
