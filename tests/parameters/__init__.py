"""From a user's parameters to a calibrated plan: read, checked, defaulted, agreed upon."""
