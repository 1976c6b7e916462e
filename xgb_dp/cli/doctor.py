"""Whether this installation can train privately: ``xgb-dp doctor``.

Checks the loaded library and its Python part, a stock XGBoost beside it, versions, the
operating system's random numbers, and a small private training from front to back. No data of the
user is read.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from ..engine import native
from ..engine.door import stock_origin
from ..engine.native import VARIABLE

OK, WARNING, FAILED = "ok", "warning", "FAILED"


@dataclass(frozen=True)
class Check:
    """Result of one check: what was checked, and what was found and how to mend it."""

    name: str
    status: str
    found: str


def check_installation() -> list[Check]:
    """Run all checks."""
    checks = (_versions, _library, _own_files, _beside, _entropy, _training, _extras)
    results: list[Check] = []
    for check in checks:
        try:
            results += check()
        except Exception as error:  # the doctor reports whatever is wrong
            name = check.__name__.strip("_").replace("_", " ")
            results.append(Check(name, FAILED, f"{type(error).__name__}: {error}"))
    return results


def _either(name: str, fault: str | None, well: str) -> Check:
    return Check(name, OK, well) if fault is None else Check(name, FAILED, fault)


def _versions() -> Iterator[Check]:
    from .. import __version__

    python = f"Python {platform.python_version()} on {platform.platform()}"
    yield Check("system", OK if sys.version_info >= (3, 10) else FAILED, python)
    installed, folder = _version("xgb-dp"), Path(__file__).resolve().parents[1]
    if installed is None:
        yield Check("xgb-dp", WARNING, f"{__version__} in {folder}, not installed by pip")
        return
    fault = (
        f"pip knows {installed}, but {folder} is {__version__}: another copy is in the way. Run "
        "from another folder, or reinstall."
    )
    same = installed == __version__
    yield _either("xgb-dp", None if same else fault, f"{__version__} in {folder}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _library() -> Iterator[Check]:
    """The loaded library, and whether the Python part in front of it is the patched one."""
    import xgboost
    from xgboost.core import _LIB

    private, where = native.is_dp_build(), getattr(_LIB, "path", None)
    where = where or getattr(_LIB, "_name", "an unknown place")
    plan = json.loads(native.answer("XGDPBuildInfo")).get("plan_version") if private else None
    well = f"private build on XGBoost {xgboost.__version__}, plan version {plan}, in {where}"
    yield _either("library", None if private else native.stock_hint(), well)
    folder = Path(xgboost.__file__).resolve().parent
    files = ("training.py", "sklearn.py")
    stock = [f for f in files if "_dp_hook" not in (folder / f).read_text(encoding="utf-8")]
    fault = f"{', '.join(stock)} in {folder} come from a stock wheel. {native.stock_hint()}"
    well = f"hands private trainings to xgb_dp, in {folder}"
    yield _either("xgboost package", fault if stock else None, well)


def _own_files() -> Iterator[Check]:
    """Whether the files of this distribution are as they were installed."""
    try:
        changed = _changed_files(metadata.distribution("xgb-dp"))
    except metadata.PackageNotFoundError:
        return  # the check of versions has said so
    fault = None
    if changed:
        fault = (
            f"{len(changed)} files of xgb-dp are missing or were changed, such as {changed[0]}. "
            "Mend it with: pip install --force-reinstall --no-deps xgb-dp"
        )
    yield _either("own files", fault, "as they were installed")


def _beside() -> Iterator[Check]:
    """A stock ``xgboost`` beside the private one: is it whole, and which import gives it."""
    owners = {
        (str(d.metadata["Name"]), d.version): d
        for d in metadata.distributions()
        if d.metadata["Name"] in ("xgboost", "xgboost-cpu")
    }
    damaged = False
    for (name, version), distribution in sorted(owners.items()):
        if changed := _changed_files(distribution):
            damaged = True
            yield Check(
                "stock xgboost",
                WARNING,
                f"{len(changed)} files of {name} {version} are missing or belong to another wheel, "
                f"such as {changed[0]}. Private training does not use them. Mend the stock package "
                f"with: pip install --force-reinstall --no-deps {name}=={version}",
            )
    if damaged:
        return
    names = " and ".join(" ".join(owner) for owner in sorted(owners))
    origin, status = stock_origin(), OK
    if origin is not None:
        text = f"{names or 'a copy of no wheel'}, in {Path(origin).parent}. {_which()}"
    elif owners:
        status, text = WARNING, f"pip knows {names}, but nothing can be imported of it"
    else:
        text = "none; `import xgboost` gives the private build"
    yield Check("stock xgboost", status, text)


def _which() -> str:
    private = "`from xgb_dp import xgboost as xgb` gives the private build"
    if os.environ.get(VARIABLE) == "private":
        return f"{private}, and so does `import xgboost`, since {VARIABLE}=private"
    return (
        f"{private}. `import xgboost` gives the stock package until xgb_dp is imported, and then "
        "the private build, also in processes that multiprocessing starts; to have it from the "
        f"start, as workers of a cluster must, set {VARIABLE}=private in the environment"
    )


def _changed_files(distribution: metadata.Distribution) -> list[str]:
    """Files of a distribution that are not as its record says; of large ones by their sizes.

    The record is read here: `Distribution.files` leaves out files that are missing.
    """
    changed = []
    for name, recorded, size in csv.reader((distribution.read_text("RECORD") or "").splitlines()):
        mode, _, value = recorded.partition("=")
        if not value:
            continue  # the record itself, and compiled Python
        path = Path(str(distribution.locate_file(name)))
        try:
            same = not size or path.stat().st_size == int(size)
            if same and path.suffix in (".py", ".pth"):
                digest = hashlib.new(mode, path.read_bytes()).digest()
                same = base64.urlsafe_b64encode(digest).decode().rstrip("=") == value
        except OSError:
            same = False
        if not same:
            changed.append(name)
    return changed


def _entropy() -> Iterator[Check]:
    first, second = os.urandom(32), os.urandom(32)
    fault, source = None, "os.urandom"
    if first == second or first == bytes(32):
        fault = "the operating system gives the same random bytes twice"
    elif hasattr(os, "getrandom"):
        source = "getrandom(2), initialised"
        try:
            os.getrandom(32, os.GRND_NONBLOCK)
        except BlockingIOError:
            fault = (
                "the kernel's generator is not initialised yet, so training would wait for it. "
                "Wait after boot, or give the machine a source of entropy (e.g. virtio-rng)."
            )
    yield _either(
        "entropy", fault, f"{source}; every training takes a fresh key of 256 bits from it"
    )


def _training() -> Iterator[Check]:
    """Two private trainings on the same made-up rows: within the budget, with different noise."""
    import numpy as np
    import xgboost

    from ..record.report import privacy_report

    X = np.linspace(-1.0, 1.0, 400, dtype=np.float32).reshape(-1, 2)
    y = (X[:, 0] > 0).astype(np.float32)
    params: dict[str, Any] = {
        "tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
        "dp_delta": 1e-6, "max_depth": 2, "nthread": 1, "verbosity": 0, "seed": 0,
    }  # fmt: skip
    models = [xgboost.train(params, xgboost.DMatrix(X, y), 2) for _ in range(2)]
    report, fault = privacy_report(models[0]), None
    if not report.private or not 0.0 < report.epsilon <= 1.0:
        fault = f"asked for epsilon 1, the ledger says {report.epsilon:g}"
    elif models[0].get_dump() == models[1].get_dump():
        fault = "two trainings drew the same noise"
    certified = f"asked for epsilon 1, certified {report.epsilon:.4f}; fresh noise each time"
    yield _either("training", fault, certified)


_EXTRAS = {
    "cli": ("click", "pandas", "pyarrow", "yaml"),
    "sklearn": ("sklearn",),
    "dask": ("dask", "distributed"),
    "plot": ("matplotlib",),
}


def _extras() -> Iterator[Check]:
    for extra, modules in _EXTRAS.items():
        absent = ", ".join(m for m in modules if importlib.util.find_spec(m) is None)
        advice = f"not installed ({absent}): pip install 'xgb-dp[{extra}]'"
        yield Check(f"extra {extra}", OK, advice if absent else "installed")


def main() -> int:
    """Print the checks."""
    checks = check_installation()
    width = max(len(c.name) for c in checks)
    for c in checks:
        print(f"{c.status:>7}  {c.name:<{width}}  {c.found}")
    failed = [c.name for c in checks if c.status == FAILED]
    print()
    if failed:
        print(f"Private training cannot be relied on here: {', '.join(failed)}.")
        return 1
    print("Private training works here.")
    return 0
