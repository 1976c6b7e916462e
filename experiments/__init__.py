"""Published tables and figures beside our own runs: ``python -m experiments NAME``.

``tables`` has one module for each table; the other modules run, keep and draw them. ``pages`` has
what came out.
"""
