"""A model's privacy record: the ledger, and the report and model card computed from it.

This folder imports ``accounting`` and ``engine``, and public settings from ``request``.
"""
