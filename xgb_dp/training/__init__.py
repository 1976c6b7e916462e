"""What ``xgboost.train`` calls for private parameters: preparing, checking, releasing, recording.

``hook`` is the door. Imports everything below it: ``budget``, ``record``, ``calibrate``,
``request``, ``data``, ``engine``; nothing that trains with
it, such as ``selection`` or ``sklearn``.
"""
