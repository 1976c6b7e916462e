"""Checked settings from the user's parameters: the parameter table, its readers and rules.

This package reads the public schema of the columns but no rows. It imports ``accounting``,
``engine`` and ``published``, mechanisms through ``mechanisms/plan.py``, and presets through
``dp_preset``.
"""
