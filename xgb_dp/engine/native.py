"""The C functions of the private build of libxgboost (``plugin_cpp/c_api.cc``), through ctypes.

Noise is drawn in C++ alone, under fresh keys of the operating system, and coins come from its
generator. All arithmetic is on integers, so every law is exact.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import ctypes
import json
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
"""Environment variable that, as ``private``, gives the private build the name from the start."""
_LOADED = (
    "This process has loaded a stock xgboost{where} before xgb_dp. It does not train privately. "
    "Import xgb_dp first, best as `from xgb_dp import xgboost as xgb`; or set the environment "
    f"variable {VARIABLE}=private, and `import xgboost` gives the private build from the start."
)
_MISSING = (
    "The private build of xgboost is not where `import xgboost` looks for it{where}. Mend the "
    "installation with: pip install --force-reinstall --no-deps xgb-dp"
)


def _raw() -> ctypes.CDLL:
    """The library that the `xgboost` package has loaded, whatever build it is."""
    try:
        from xgboost.core import _LIB
    except ModuleNotFoundError as error:
        if error.name != "xgboost":
            raise
        raise NativeLibraryError(_MISSING.format(where="")) from None
    return _LIB


def stock_hint() -> str:
    """What to do about a stock build of libxgboost, in words."""
    if not is_seen():
        return _MISSING.format(where="")
    path = getattr(_raw(), "path", None) or getattr(_raw(), "_name", None)
    return _LOADED.format(where=f" (from {path})" if path else "")


def is_dp_build() -> bool:
    """Whether the loaded libxgboost is the private build.

    Returns:
        True if it exports ``XGDPBuildInfo``. Has no privacy effect.

    Examples:
        >>> xgb_dp.is_dp_build()
        True
    """
    return hasattr(_raw(), "XGDPBuildInfo")


def lib() -> ctypes.CDLL:
    """The loaded libxgboost, checked to be the private build."""
    if not is_dp_build():
        raise NativeLibraryError(stock_hint())
    return _raw()


def private_xgboost() -> Any:
    """The package ``xgboost`` of the private build."""
    lib()
    return sys.modules["xgboost"]


def is_loaded() -> bool:
    """Whether this process has loaded the private build; loads nothing."""
    return is_seen() and is_dp_build()


def is_seen() -> bool:
    """Whether this process has imported any `xgboost`."""
    return sys.modules.get("xgboost") is not None


def call(name: str, *args: Any) -> None:
    """Call a C function of the private build; its message becomes an XGBoostError."""
    from xgboost.core import _check_call

    function = getattr(lib(), name)
    function.restype = ctypes.c_int
    _check_call(function(*args))


@contextmanager
def threads(most: int | None) -> Iterator[None]:
    """Let the calls of this thread use at most so many threads; None or 0 for no limit.

    A matrix keeps the number of threads that it was made with, and a forked child hangs where it
    asks for more than one: the threads of its parent are not there.
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


def answer(name: str, *args: Any) -> bytes:
    """The text with which a C function of the private build answers."""
    out = ctypes.c_char_p()
    call(name, *args, ctypes.byref(out))
    return out.value or b""


def training_id() -> str:
    """A random identifier for a training, of 128 bits in hexadecimal digits."""
    return answer("XGDPTrainingId").decode()


def open_claim(dtrain: Any, text: str) -> None:
    """Allow one training of this matrix, in this process, to draw what this ledger claims."""
    call("XGDPOpenClaim", dtrain.handle, ctypes.c_char_p(text.encode()))


def close_claim(dtrain: Any, text: str) -> None:
    """Forget a claim that no training has taken."""
    call("XGDPCloseClaim", dtrain.handle, ctypes.c_char_p(text.encode()))


def model_content(booster: Any) -> dict[str, Any]:
    """A model as its file holds it, without its trees."""
    content: dict[str, Any] = json.loads(answer("XGDPModelContent", booster.handle))
    return content


def is_plain(matrix: Any) -> bool:
    """Whether a DMatrix holds its rows as they are, and not only their bins."""
    return _is("XGDPIsPlain", matrix)


def is_paged(matrix: Any) -> bool:
    """Whether a DMatrix keeps its rows in pages, which one thread reads at a time."""
    return _is("XGDPIsPaged", matrix)


def _is(name: str, matrix: Any) -> bool:
    out = ctypes.c_int()
    call(name, matrix.handle, ctypes.byref(out))
    return bool(out.value)


def set_persons(dtrain: Any, codes: np.ndarray | None) -> None:
    """Say who the rows of a matrix belong to; it is kept beside the matrix, and in no model."""
    if codes is None:
        call("XGDPSetPersons", dtrain.handle, None, ctypes.c_uint64(0), ctypes.c_uint64(0))
        return
    codes = np.ascontiguousarray(codes, dtype=np.uint32)
    if not codes.size:
        codes = np.zeros(1, dtype=np.uint32)[:0]  # an address that is not null
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
    """Refuse more rows than can be summed exactly; all workers of a cluster call it together."""
    call("XGDPCheckSums", dtrain.handle, ctypes.c_char_p(text.encode()))


def check_rows(matrix: Any, text: str | None = None) -> None:
    """Look for whatever in the matrix would end the training, before anything is released."""
    from xgboost.core import XGBoostError

    plan = None if text is None else ctypes.c_char_p(text.encode())
    try:
        call("XGDPCheckRows", matrix.handle, plan)
    except XGBoostError as error:
        refusal = re.search(r"A row has [^\n]*", str(error))
        if not refusal:
            raise
        raise RowDomainError(refusal.group()) from None


def release_intercept(dtrain: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Release what a request before the trees asks for (``plugin_cpp/mechanisms/label_sums.h``)."""
    text = ctypes.c_char_p(json.dumps(request).encode())
    return json.loads(answer("XGDPReleaseBeforeTrees", dtrain.handle, text))


def discover_numbers(
    values: npt.NDArray[np.float32], weights: npt.NDArray[np.int64], request: Mapping[str, Any]
) -> dict[str, Any]:
    """Release rough quantiles of columns (``plugin_cpp/mechanisms/candidates/discovery.cc``)."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    weights = np.ascontiguousarray(weights, dtype=np.int64)
    columns, rows = values.shape
    if weights.shape != (rows,):
        raise ValueError("Every row must have a weight.")
    text = answer(
        "XGDPDiscoverNumbers",
        values.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
        weights.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
        ctypes.c_uint64(rows),
        ctypes.c_uint64(columns),
        json.dumps(dict(request)).encode(),
    )
    return json.loads(text)


def draw_words(size: int) -> npt.NDArray[np.uint32]:
    """Independent uniform 32-bit numbers of the operating system's generator."""
    return np.frombuffer(secrets.token_bytes(4 * size), dtype=np.uint32)


def split_rows(
    rows: int, share_num: int, persons: npt.NDArray[np.uint32] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Divide rows by a secret coin for each of them, or for each person."""
    tossed = rows if persons is None else int(persons.max(initial=0)) + 1
    apart = draw_words(tossed) < np.uint64(share_num)
    if persons is not None:
        apart = apart[persons]
    return np.flatnonzero(~apart), np.flatnonzero(apart)


def discrete_gaussian(sigma2: int, size: int) -> npt.NDArray[np.int64]:
    """Independent discrete Gaussian numbers, from a fresh key of the operating system."""
    out = np.empty(size, dtype=np.int64)
    call(
        "XGDPDiscreteGaussian",
        ctypes.c_uint64(sigma2),
        ctypes.c_size_t(size),
        out.ctypes.data_as(ctypes.c_void_p),
    )
    return out


def _redirect() -> Any:
    """The installed module, or None where xgb_dp was copied and not installed."""
    try:
        import _xgb_dp_import_redirect
    except ImportError:
        return None
    return _xgb_dp_import_redirect


def use_private_build() -> None:
    """Let ``import xgboost`` give the private build from now on, also beside a stock package."""
    redirect = _redirect()
    if redirect is not None:
        redirect.take()


def stock_origin() -> str | None:
    """Where a stock package of the name lies that this process would see without us; or None."""
    redirect = _redirect()
    return None if redirect is None else redirect.stock_origin()


def warn_if_stock() -> None:
    """Warn, at import time, when private training cannot work with the installed `xgboost`.

    A library that is not loaded yet stays so, since reading a model needs none: whether it is the
    private build is then told by the Python files that came with it.
    """
    if not (is_dp_build() if is_seen() else files_are_private()):
        warnings.warn(stock_hint(), RuntimeWarning, stacklevel=3)


def files_are_private() -> bool:
    """Whether the installed `xgboost`, if there is one, hands private parameters to us."""
    try:
        spec = find_spec("xgboost")
        if spec is None or spec.origin is None:
            return True
        return b"xgb_dp" in Path(spec.origin).with_name("training.py").read_bytes()
    except (OSError, ImportError, ValueError):
        return True  # what it is will show once it is loaded
