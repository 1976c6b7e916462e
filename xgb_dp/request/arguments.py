"""Checks the types of arguments of public functions."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

from ..data.cells import is_unicode
from ..errors import PrivacyParameterError

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _is_text(value: Any) -> bool:
    """Whether a value is a string that UTF-8 can encode, as every file and model requires."""
    return isinstance(value, str) and is_unicode(value)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and _is_text(os.fspath(value))


def _is_strings(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(map(_is_text, value))


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "path": (_is_path, "a path as text or os.PathLike, in UTF-8"),
    "text": (_is_text, "a text in UTF-8"),
    "texts": (_is_strings, "a list of texts in UTF-8"),
}


def takes(**kinds: str) -> Callable[[_Function], _Function]:
    """Refuse arguments of the wrong kind with an error that names them."""

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:
                return function(*args, **kwargs)  # Python's own error names the argument
            for name in (name for name in kinds if name in given):
                (is_kind, words), value = _KINDS[kinds[name]], given[name]
                optional = signature.parameters[name].default is None
                if not (is_kind(value) or (value is None and optional)):
                    raise PrivacyParameterError(
                        f"`{name}` must be {words}; got a value of type {type(value).__name__} "
                        "that is not."
                    )
            return function(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate
