"""The policy of the holder of the rows: what it refuses, at every interface."""
