"""Private training behind ``xgboost.train``: prepare, check, release, record.

``hook`` is the entry point. This package imports ``budget``, ``record``, ``calibrate``,
``request``, ``data`` and ``engine``. It does not import packages that call it, such as
``selection`` or ``sklearn``.
"""
