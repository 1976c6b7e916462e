"""The callers' data, read row by row: cells, labels, frames, ids, matrices and their checks.

Whether anything here raises an error depends on one row alone, on public inputs, or on both, and no
error shows a cell. The page of the kernel says in which order to read the files.
"""
