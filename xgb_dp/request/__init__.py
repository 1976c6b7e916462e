"""Checked settings from a user's parameters: the table of parameters, its readers, its rules.

This folder reads the public schema of the columns and no row. It imports ``accounting``, ``engine``
and ``published``. Mechanisms enter by ``mechanisms/plan.py``, and presets by ``dp_preset``.
"""
