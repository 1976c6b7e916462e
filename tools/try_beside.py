"""Try a wheel beside a stock XGBoost: ``python tools/try_beside.py WHEEL``.

Each case has a new virtual environment, in which pip installs, upgrades and removes the wheel and a
stock `xgboost` in some order. After each step it is checked which package ``import xgboost`` gives,
that it trains, that `xgb_dp` trains privately where it is installed, and that every file of the
stock package is the one that its wheel brought. NumPy and SciPy are installed once, for all cases.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from try_wheel import BIN, TrialError, bare_environment, run

STOCK = """
import sys
import numpy as np
import xgboost as xgb
assert hasattr(xgb.core._LIB, "XGDPBuildInfo") == (sys.argv[1] == "private"), xgb.__file__
d = xgb.DMatrix(np.arange(40.0).reshape(20, 2), np.arange(20) % 2)
assert xgb.train({"objective": "binary:logistic"}, d, 2).num_boosted_rounds() == 2
"""
PRIVATE = """
import warnings
warnings.simplefilter("error", RuntimeWarning)
from xgb_dp import xgboost as xgb
import numpy as np
import xgb_dp
d = xgb.DMatrix(np.arange(40.0).reshape(20, 2), np.arange(20) % 2)
p = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0, "dp_delta": 1e-6}
report = xgb_dp.privacy_report(xgb.train(p, d, 2))
assert report.private and 0.9 < report.epsilon <= 1.0
import xgboost
assert xgboost is xgb
import multiprocessing
with multiprocessing.get_context("spawn").Pool(1) as pool:  # a child that imports xgboost alone
    code = "hasattr(__import__('xgboost').core._LIB, 'XGDPBuildInfo')"
    assert pool.apply(eval, (code,)), "a child has another xgboost than its parent"
"""
WHOLE = """
import base64, csv, hashlib, pathlib
from importlib import metadata
stock = metadata.distribution("xgboost")
for name, digest, _ in csv.reader(stock.read_text("RECORD").splitlines()):
    mode, _, value = digest.partition("=")
    if value:
        data = pathlib.Path(stock.locate_file(name)).read_bytes()
        found = base64.urlsafe_b64encode(hashlib.new(mode, data).digest()).decode().rstrip("=")
        assert found == value, name
"""
GONE = """
from importlib import metadata
import importlib.util, os, sysconfig
assert importlib.util.find_spec("xgb_dp") is None
left = [n for n in os.listdir(sysconfig.get_path("purelib")) if "xgb_dp" in n]
assert not left, left
"""


class Environment:
    """A virtual environment with what the packages need, and nothing of them."""

    def __init__(self, python: str, base: Path, folder: Path) -> None:
        self.home, self.work = folder / "environment", folder / "work"
        self.work.mkdir(parents=True)
        run([python, "-m", "venv", self.home], self.work)
        self.python = self.home / BIN / "python"
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.site = Path(run([self.python, "-I", "-c", where], self.work).strip())
        (self.site / "base.pth").write_text(f"{base}\n")

    def pip(self, *words: str | Path) -> None:
        """Run pip without dependencies."""
        run([self.python, "-m", "pip", "--disable-pip-version-check", *words], self.work)

    def install(self, *wheels: str | Path) -> None:
        """Install or upgrade wheels."""
        self.pip("install", "-q", "--no-deps", *wheels)

    def says(self, code: str, *words: str) -> str:
        """Output of code that sees this environment alone; an error of it is one of the trial."""
        command: list[str | Path] = [self.python, "-I", "-c", code, *words]
        return run(command, self.work, bare_environment(self.home))

    def version(self) -> str:
        """What ``xgb-dp --version`` prints, which must end well."""
        return run(
            [self.home / BIN / "xgb-dp", "--version"], self.work, bare_environment(self.home)
        )

    def check(self, stock: bool, private: bool) -> None:
        """Check which package `import xgboost` gives, and that every file is there and works."""
        if stock:
            self.says(WHOLE)
        self.says(STOCK, "stock" if stock else "private")
        if not private:
            self.says(GONE)
            return
        self.says(PRIVATE)
        output = self.version()
        if ", private build: " not in output or stock is not ("unless xgb_dp is" in output):
            raise TrialError(f"the version does not say what is installed:\n{output}")


def before(e: Environment, wheel: Path, stock: Path) -> None:
    """The stock package is there first; ours is removed again."""
    e.install(stock)
    e.install(wheel)
    e.check(stock=True, private=True)
    e.pip("uninstall", "-q", "-y", "xgb-dp")
    e.check(stock=True, private=False)


def after(e: Environment, wheel: Path, stock: Path) -> None:
    """Ours is there first; the stock package comes, is reinstalled and is removed again."""
    e.install(wheel)
    e.check(stock=False, private=True)
    e.install(stock)
    e.check(stock=True, private=True)
    e.install("--force-reinstall", stock)
    e.install("--force-reinstall", wheel)
    e.check(stock=True, private=True)
    e.pip("uninstall", "-q", "-y", "xgboost")
    e.check(stock=False, private=True)


def upgraded(e: Environment, wheel: Path, stock: Path) -> None:
    """Ours takes the place of an older version of the same layout, beside the stock package."""
    e.install(stock)
    e.install(older(wheel, e.work))
    e.check(stock=True, private=True)
    e.install("--upgrade", wheel)
    e.check(stock=True, private=True)


def overwritten(e: Environment, wheel: Path, stock: Path) -> None:
    """Another wheel has written over the stock package; ours does not use its files."""
    e.install(stock)
    e.install(wheel)
    (e.site / "xgboost" / "training.py").write_text("# of another wheel\n")
    (e.site / "xgboost" / "sklearn.py").unlink()
    e.says(PRIVATE)
    e.install("--force-reinstall", stock)
    e.check(stock=True, private=True)


CASES: dict[str, Callable[[Environment, Path, Path], None]] = {
    "before": before,
    "after": after,
    "upgraded": upgraded,
    "overwritten": overwritten,
}


def older(wheel: Path, folder: Path) -> Path:
    """The same wheel as an older version, with one file more."""
    name, version, *tags = wheel.name.split("-")
    old = "0.0.1"
    out = folder / "-".join([name, old, *tags])
    record = []
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            if info.is_dir():
                continue
            path = info.filename.replace(f"{name}-{version}.dist-info", f"{name}-{old}.dist-info")
            if path.endswith(".dist-info/RECORD"):
                last = path
                continue
            data = source.read(info)
            if path.endswith(".dist-info/METADATA"):
                data = data.replace(
                    f"\nVersion: {version}\n".encode(), f"\nVersion: {old}\n".encode()
                )
            if path == "xgb_dp/__init__.py":
                data = data.replace(f'"{version}"'.encode(), f'"{old}"'.encode())
            record.append(_line(path, data))
            target.writestr(path, data)
        extra = "xgb_dp/only_in_the_old_one.py"
        target.writestr(extra, b"")
        target.writestr(last, "".join([*record, _line(extra, b""), f"{last},,\n"]))
    return out


def _line(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(data)}\n"


def fetch_stock(python: str, folder: Path, version: str) -> Path:
    """The wheel of a stock release, from the package index that pip is configured for."""
    words = ["-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps"]
    run(
        [python, *words, "--only-binary", ":all:", "-d", str(folder), f"xgboost=={version}"], folder
    )
    (wheel,) = folder.glob("xgboost-*.whl")
    return wheel


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all cases; 0 if all hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable, help="interpreter to try with")
    parser.add_argument("--stock", required=True, help="version of the stock XGBoost")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    args = parser.parse_args(arguments)
    wheel = args.wheel.resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        stock = fetch_stock(args.python, scratch, args.stock)
        base = scratch / "base"
        needed = ["numpy", "scipy"]
        pip = [args.python, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        run([*pip, "--only-binary", ":all:", "--target", base, *needed], scratch)
        for case in args.cases:
            folder = scratch / case
            try:
                CASES[case](Environment(args.python, base, folder), wheel, stock)
                print(f"beside a stock XGBoost {args.stock}, {case}: well", flush=True)
            except TrialError as error:
                failed += 1
                print(f"beside a stock XGBoost {args.stock}, {case}: FAILED\n{error}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
