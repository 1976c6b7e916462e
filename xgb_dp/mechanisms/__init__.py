"""The mechanisms of private training, one module for each: everything that reads rows with noise.

A mechanism has parameters, a place in the plan, a sensitivity, noise and an event in the ledger.
``plan.py`` lists all of them and is the only place where a plan becomes events. Imports
``accounting`` and ``parameters``; reads no rows.
"""
