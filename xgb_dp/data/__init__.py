"""What callers hand in, read row by row: cells, labels, frames, ids, matrices and their checks.

Whether anything here raises is decided by one row alone, by what is public, or by both, and no
error holds a cell. Of the package it imports ``errors``, ``engine.native`` and ``engine.workers``.

Read the files in this order. What one cell is, and what a column or a table of cells:

1. ``cells``: a missing cell, a number or a text; codes of declared names.
2. ``columns``: columns of every library as arrays of cells, and what their types say.
3. ``sparse``: sparse matrices whose rows are functions of themselves.
4. ``frames``: tables of features, with declared categories only.
5. ``dates``: dates as numbers.

Then what belongs to a row, and whose it is:

6. ``labels``: labels as codes of declared classes.
7. ``rows``: the domain of labels, weights and margins, checked row by row.
8. ``matrices``: all of this as an ``xgboost.DMatrix``.
9. ``ids``: ids of persons as codes, exactly.
10. ``persons``: the persons of a matrix while it is trained on.

Then where rows are: ``parts`` (which part of a secret division) and ``unchanged`` (whether it still
is that part); ``worker_rows``, ``dask_rows`` and ``spark_rows`` (partitions of a cluster).
"""
