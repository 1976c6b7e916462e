"""The mechanisms of private training, one module each: all noisy releases of rows.

A mechanism has parameters, a section of the plan, a sensitivity, noise and an event in the ledger.
``plan.py`` lists all mechanisms and is the only place that converts a plan to events. This package
imports ``accounting`` and ``parameters`` and reads no rows.
"""
