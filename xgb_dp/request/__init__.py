"""From a user's parameters to checked settings: the table of parameters, its readers, its rules.

Reads the public schema of the columns and no row. Imports ``accounting``, ``engine`` and
``published``, whose releases and presets enter by ``registry.py`` and ``dp_preset``.
"""
