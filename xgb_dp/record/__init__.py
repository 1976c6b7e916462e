"""What a model says of its privacy: the ledger, the report computed from it, the model card.

Imports ``accounting`` and ``engine``, and what is said of public settings from ``request``.
"""
