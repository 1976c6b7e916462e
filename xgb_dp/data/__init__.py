"""Read the caller's data row by row: cells, labels, frames, ids, matrices and their checks.

Every error that this package raises is caused by a single row, by public inputs, or by both.
No error message contains a cell.
"""
