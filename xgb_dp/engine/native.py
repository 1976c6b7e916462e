"""C functions of the private build of libxgboost (``plugin_cpp/c_api.cc``), called through ctypes.

Mechanism noise is drawn only in C++, with fresh keys of the operating system. Random assignments
use the operating system's generator directly. All sampling uses integer arithmetic, so every
distribution is exact.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import secrets
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import NativeLibraryError, RowDomainError

VARIABLE = "XGB_DP_XGBOOST"
"""Environment variable; if set to ``private``, ``import xgboost`` always imports this build."""
_LOADED = (
    "This process loaded the stock xgboost{where} before xgb_dp, so it cannot train privately. "
    "Import xgb_dp first, preferably as `from xgb_dp import xgboost as xgb`; or set the "
    f"environment variable {VARIABLE}=private, so that `import xgboost` always imports the private "
    "build."
)
_MISSING = (
    "The private build of xgboost is not where `import xgboost` looks for it{where}. Repair the "
    "installation: pip install --force-reinstall --no-deps xgb-dp"
)


def _raw() -> ctypes.CDLL:
    """Return the library that the imported `xgboost` package uses, private or not."""
    try:
        from xgboost.core import _LIB
    except ModuleNotFoundError as error:
        if error.name != "xgboost":
            raise
        raise NativeLibraryError(_MISSING.format(where="")) from None
    return _LIB


def stock_hint() -> str:
    """Explain how to replace a stock build of libxgboost by the private one."""
    if not is_imported():
        return _MISSING.format(where="")
    path = getattr(_raw(), "path", None) or getattr(_raw(), "_name", None)
    return _LOADED.format(where=f" (from {path})" if path else "")


def is_dp_build() -> bool:
    """Return whether the loaded libxgboost is the private build.

    Returns:
        True if it exports ``XGDPBuildInfo``. Privacy: no effect.

    Examples:
        >>> xgb_dp.is_dp_build()
        True
    """
    return hasattr(_raw(), "XGDPBuildInfo")


def lib() -> ctypes.CDLL:
    """Return the loaded libxgboost; raise NativeLibraryError if it is not the private build."""
    if not is_dp_build():
        raise NativeLibraryError(stock_hint())
    return _raw()


def private_xgboost() -> Any:
    """Return the ``xgboost`` package of the private build."""
    lib()
    return sys.modules["xgboost"]


def is_loaded() -> bool:
    """Return whether this process has loaded the private build, without loading it."""
    return is_imported() and is_dp_build()


def is_imported() -> bool:
    """Return whether this process has imported any `xgboost`."""
    return sys.modules.get("xgboost") is not None


def call(name: str, *args: Any) -> None:
    """Call a C function of the private build; raise XGBoostError if it fails."""
    from xgboost.core import _check_call

    function = getattr(lib(), name)
    function.restype = ctypes.c_int
    _check_call(function(*args))


@contextmanager
def threads(most: int | None) -> Iterator[None]:
    """Limit the number of threads for calls from this thread; None or 0 for no limit.

    A matrix remembers the number of threads that it was built with. A forked child process, which
    does not inherit its parent's threads, would hang if it used more than one.
    """
    before, unused = ctypes.c_int(), ctypes.c_int()
    call("XGDPSetThreads", ctypes.c_int(0), ctypes.byref(before))
    if most is None or not 0 < most < before.value:
        yield
        return
    call("XGDPSetThreads", ctypes.c_int(most), ctypes.byref(unused))
    try:
        yield
    finally:
        call("XGDPSetThreads", before, ctypes.byref(unused))


def call_for_string(name: str, *args: Any) -> bytes:
    """Call a C function of the private build and return the string that it outputs."""
    out = ctypes.c_char_p()
    call(name, *args, ctypes.byref(out))
    return out.value or b""


def training_id() -> str:
    """Return a random 128-bit identifier for a training, in hexadecimal digits."""
    return call_for_string("XGDPTrainingId").decode()


def open_claim(dtrain: Any, text: str) -> None:
    """Allow one training on this matrix, in this process, to draw what the ledger `text` claims."""
    call("XGDPOpenClaim", dtrain.handle, ctypes.c_char_p(text.encode()))


def close_claim(dtrain: Any, text: str) -> None:
    """Withdraw a claim that no training has used."""
    call("XGDPCloseClaim", dtrain.handle, ctypes.c_char_p(text.encode()))


def model_content(booster: Any) -> dict[str, Any]:
    """Return the content of a model file without the trees."""
    content: dict[str, Any] = json.loads(call_for_string("XGDPModelContent", booster.handle))
    return content


def is_plain(matrix: Any) -> bool:
    """Return whether a DMatrix stores its original rows, and not only quantized bins."""
    return _query_flag("XGDPIsPlain", matrix)


def is_paged(matrix: Any) -> bool:
    """Return whether a DMatrix stores its rows in pages, which only one thread reads at a time."""
    return _query_flag("XGDPIsPaged", matrix)


def _query_flag(name: str, matrix: Any) -> bool:
    out = ctypes.c_int()
    call(name, matrix.handle, ctypes.byref(out))
    return bool(out.value)


def set_persons(dtrain: Any, codes: np.ndarray | None) -> None:
    """Set the person of each row of a matrix; the codes never become part of a model."""
    if codes is None:
        call("XGDPSetPersons", dtrain.handle, None, ctypes.c_uint64(0), ctypes.c_uint64(0))
        return
    codes = np.ascontiguousarray(codes, dtype=np.uint32)
    if not codes.size:
        codes = np.zeros(1, dtype=np.uint32)[:0]  # empty, but with a non-null address
    pointer = codes.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32))
    persons = int(codes.max()) + 1 if codes.size else 0
    call(
        "XGDPSetPersons",
        dtrain.handle,
        pointer,
        ctypes.c_uint64(codes.size),
        ctypes.c_uint64(persons),
    )


def check_sums(dtrain: Any, text: str) -> None:
    """Refuse too many rows for exact sums; all workers of a cluster must call this together."""
    call("XGDPCheckSums", dtrain.handle, ctypes.c_char_p(text.encode()))


def check_rows(matrix: Any, text: str | None = None) -> None:
    """Check the matrix for any row that would stop the training, before anything is released."""
    from xgboost.core import XGBoostError

    plan = None if text is None else ctypes.c_char_p(text.encode())
    try:
        call("XGDPCheckRows", matrix.handle, plan)
    except XGBoostError as error:
        refusal = re.search(r"A row has [^\n]*", str(error))
        if not refusal:
            raise
        raise RowDomainError(refusal.group()) from None


def release_before_trees(dtrain: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Make the releases that precede the first tree (``plugin_cpp/mechanisms/label_sums.h``)."""
    text = ctypes.c_char_p(json.dumps(request).encode())
    return json.loads(call_for_string("XGDPReleaseBeforeTrees", dtrain.handle, text))


def discover_numbers(
    values: npt.NDArray[np.float32], weights: npt.NDArray[np.int64], request: Mapping[str, Any]
) -> dict[str, Any]:
    """Release rough quantiles of columns (``plugin_cpp/mechanisms/candidates/discovery.cc``)."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    weights = np.ascontiguousarray(weights, dtype=np.int64)
    columns, rows = values.shape
    if weights.shape != (rows,):
        raise ValueError("There must be one weight per row.")
    text = call_for_string(
        "XGDPDiscoverNumbers",
        values.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
        weights.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
        ctypes.c_uint64(rows),
        ctypes.c_uint64(columns),
        json.dumps(dict(request)).encode(),
    )
    return json.loads(text)


def draw_words(size: int) -> npt.NDArray[np.uint32]:
    """Draw independent uniform 32-bit integers from the operating system's generator."""
    return np.frombuffer(secrets.token_bytes(4 * size), dtype=np.uint32)


def split_rows(
    rows: int, share_num: int, persons: npt.NDArray[np.uint32] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Assign every row, or every person, to a part at random, independently and secretly.

    The probability of the second part is `share_num` / 2^32.
    """
    units = rows if persons is None else int(persons.max(initial=0)) + 1
    selected = draw_words(units) < np.uint64(share_num)
    if persons is not None:
        selected = selected[persons]
    return np.flatnonzero(~selected), np.flatnonzero(selected)


def discrete_gaussian(sigma2: int, size: int) -> npt.NDArray[np.int64]:
    """Draw independent discrete Gaussian integers with a fresh key of the operating system."""
    out = np.empty(size, dtype=np.int64)
    call(
        "XGDPDiscreteGaussian",
        ctypes.c_uint64(sigma2),
        ctypes.c_size_t(size),
        out.ctypes.data_as(ctypes.c_void_p),
    )
    return out


def _redirect() -> Any:
    """Return the import redirect, or None if xgb_dp was copied instead of installed."""
    try:
        import _xgb_dp_import_redirect
    except ImportError:
        return None
    return _xgb_dp_import_redirect


def use_private_build() -> None:
    """Make ``import xgboost`` return the private build from now on, even with a stock package.

    XGBoost reads the variable for every error: without it, a list of addresses ends the message.
    """
    os.environ.setdefault("DMLC_LOG_STACK_TRACE_DEPTH", "0")
    redirect = _redirect()
    if redirect is not None:
        redirect.take()


def stock_origin() -> str | None:
    """Return the path of an installed stock `xgboost` that the private build hides, or None."""
    redirect = _redirect()
    return None if redirect is None else redirect.stock_origin()


def warn_if_stock() -> None:
    """Warn at import time if private training cannot work with the installed `xgboost`.

    A library that is not loaded stays unloaded, because reading a model does not need it. In this
    case the Python files of the package show whether it is the private build.
    """
    if not (is_dp_build() if is_imported() else files_are_private()):
        warnings.warn(stock_hint(), RuntimeWarning, stacklevel=3)


def files_are_private() -> bool:
    """Return whether the installed `xgboost`, if any, passes private parameters to xgb_dp."""
    try:
        spec = find_spec("xgboost")
        if spec is None or spec.origin is None:
            return True
        return b"xgb_dp" in Path(spec.origin).with_name("training.py").read_bytes()
    except (OSError, ImportError, ValueError):
        return True  # checked again once it is loaded
