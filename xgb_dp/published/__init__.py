"""Presets of published systems, one module per system.

``presets.py`` lists the systems. Their releases are planned in ``mechanisms/plan.py`` like all
others.
"""
