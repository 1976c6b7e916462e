"""Private column discovery: find what the columns of a table may contain and write it as a schema.

All noise is drawn in ``noisy_sums``.
"""
