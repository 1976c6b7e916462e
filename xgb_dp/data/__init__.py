"""Read the caller's data row by row: cells, labels, frames, ids, matrices and their checks.

Whether code in this package raises an error depends on a single row, on public inputs, or on both.
No error message contains a cell.
"""
