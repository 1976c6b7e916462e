"""Published tables and figures beside our own runs: ``python -m experiments NAME``.

One module for each table; docs/tables.md discusses what came out.
"""
