"""Published systems, and what only they and rarely used features need.

A system is a file (``sarus.py``, ``dpboost.py``, ``dp_xgb.py``, ``maddock.py``) that ``systems.py``
lists. Its releases stand in ``mechanisms/plan.py`` among all others. Importing another module of
this package makes its events known to the reader of ledgers and to the accountants, and its
accountants known by name; ``accounting/events.py`` says which module to import for a name.
"""
