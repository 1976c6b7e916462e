"""Linear algebra on one thread.

Threads of BLAS wait for each other by spinning. On matrices of some hundreds of rows they save
little on an idle machine, and where other programs want the same cores a factorization takes fifty
times as long as on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS of this process take one thread meanwhile, where threadpoolctl is installed."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield
