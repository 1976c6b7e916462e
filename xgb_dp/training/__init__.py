"""Private training behind ``xgboost.train``: prepare, check, release, record.

``hook`` is the entry point. This folder imports ``budget``, ``record``, ``calibrate``, ``request``,
``data`` and ``engine``. It imports nothing that trains with it, such as ``selection`` or
``sklearn``.
"""
