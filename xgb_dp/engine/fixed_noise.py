"""Fixed noise for tests, generated from a known key instead of a key of the operating system.

Models trained with it are marked as not private in the plan, the ledger and the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import PrivacyParameterError

_KEY: ContextVar[str | None] = ContextVar("xgb_dp_test_key", default=None)
_process_key: str | None = None


def noise_key() -> str | None:
    """Return the key of the fixed noise as 64 hexadecimal digits; None outside of tests."""
    return _KEY.get() or _process_key


@contextmanager
def fixed_noise(key: int | bytes | str) -> Iterator[str]:
    """Draw all noise inside the block from a known key, so that trainings are reproducible.

    Privacy: none. Whoever knows the key can subtract the noise, so the models are marked as not
    private.

    Args:
        key: A non-negative integer, 32 bytes, or 64 hexadecimal digits.

    Yields:
        str: The key as 64 hexadecimal digits.

    Raises:
        PrivacyParameterError: The key has another form.
    Examples:
        >>> with xgb_dp.testing.fixed_noise(7):
        ...     first = xgb.train(params, data, 2)
        >>> with xgb_dp.testing.fixed_noise(7):
        ...     second = xgb.train(params, data, 2)
        >>> first.save_raw() == second.save_raw(), xgb_dp.privacy_report(first).private
        (True, False)
    """
    token = _KEY.set(_hex(key))
    try:
        yield _hex(key)
    finally:
        _KEY.reset(token)


def fix_noise_of_process(key: int | bytes | str | None) -> None:
    """Draw all noise of this process from a known key from now on; for workers of a cluster.

    Privacy: none, as with :func:`fixed_noise`.
    """
    global _process_key
    _process_key = None if key is None else _hex(key)


def _hex(key: int | bytes | str) -> str:
    try:
        raw = key.to_bytes(32, "little") if isinstance(key, int) else key
        raw = bytes.fromhex(raw) if isinstance(raw, str) else bytes(raw)
    except (ValueError, TypeError, OverflowError):
        raw = b""
    if len(raw) != 32:
        raise PrivacyParameterError("`key` must be an integer >= 0, 32 bytes or 64 hex digits.")
    return raw.hex()
