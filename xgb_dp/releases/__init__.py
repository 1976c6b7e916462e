"""Everything that a training may release, one file for each release.

A release says whether given settings want it, how often it is drawn, and which noise and which
event a part of the budget gives it. Imports ``accounting``; reads no rows. The list of all of them
is in ``request/registry.py``.
"""
