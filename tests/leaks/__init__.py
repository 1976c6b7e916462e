"""Nothing un-noised leaves training: scans of everything that does, and one test per leak.

The table of all leaks, how each is closed, and by which test, is in `docs/leaks.md`.
"""
