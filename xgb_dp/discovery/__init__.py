"""A first private look at a table: what its columns may contain, as a schema, for a stated cost.

Everything is drawn in ``noisy_sums``.
"""
