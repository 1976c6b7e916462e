"""Building blocks of parameters: readers of values, rows of the parameter table, and rules.

The mechanisms and ``request`` define the parameters themselves.
"""
