"""What callers hand in, read row by row: cells, labels, frames, ids, matrices and their checks.

Whether anything here raises is decided by one row alone, by what is public, or by both, and no
error holds a cell. The page of the kernel says in which order to read the files.
"""
