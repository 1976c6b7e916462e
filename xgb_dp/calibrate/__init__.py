"""From checked settings to noise: what is released, and the least noise that meets the target.

Reads no data. Imports ``request`` and ``accounting``.
"""

from .mechanisms import FamilyNoise, MechanismSpec, NoisePlan
from .search import calibrate, calibrate_family

__all__ = ["FamilyNoise", "MechanismSpec", "NoisePlan", "calibrate", "calibrate_family"]
