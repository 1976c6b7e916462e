"""A first private look at a table: what its columns may contain, as a schema, at a stated cost.

All noise is drawn in ``noisy_sums``.
"""
