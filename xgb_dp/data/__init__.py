"""What callers hand in, read row by row: cells, labels, frames, matrices and their checks.

Whether anything here raises is decided by one row alone, and no error holds a cell. Imports
``engine`` and ``request``.
"""
