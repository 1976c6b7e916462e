"""Finds what a training releases, and the least noise that meets the target.

This package reads checked settings and no data. It imports ``request`` and ``accounting``.
"""

from .mechanisms import FamilyNoise, MechanismSpec, NoisePlan
from .search import calibrate, calibrate_family

__all__ = ["FamilyNoise", "MechanismSpec", "NoisePlan", "calibrate", "calibrate_family"]
