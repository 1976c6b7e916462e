"""From checked settings to noise: what is released, and the least noise that meets the target.

Reads no data. Imports ``request`` and ``accounting``.
"""

from .mechanisms import MechanismSpec, NoisePlan
from .search import calibrate

__all__ = ["MechanismSpec", "NoisePlan", "calibrate"]
