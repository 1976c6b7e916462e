"""From a user's parameters to checked settings: the table of parameters, its readers, its rules.

Reads the public schema of the columns and no row. Imports ``accounting``, ``engine`` and
``published``, whose mechanisms and presets enter by ``mechanisms/plan.py`` and ``dp_preset``.
"""
