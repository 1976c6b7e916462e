"""Install a wheel into clean environments and use it: ``python tools/try_wheel.py WHEEL``.

    make test-wheel
    make test-wheel PYTHONS="python3.10 python3.13"
    make test-wheel WHEEL_TESTS="tests/accounting tests/cli/test_cli.py"
    make test-wheels

Every interpreter gets a new virtual environment in a temporary folder, and what the wheel asks for
from the package index that pip is configured for. Then `use_wheel.py` works there as a user does:
in an empty folder, with nothing but the environment on the path. Neither the repository nor a
compiler can help. With `--stock`, a stock XGBoost is installed too, and the tests run beside it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from find_python import candidates

ROOT = Path(__file__).resolve().parent.parent
USE = ROOT / "tools" / "use_wheel.py"
EXTRAS = "cli,plot,sklearn"
BIN = "Scripts" if os.name == "nt" else "bin"


class TrialError(RuntimeError):
    """Something that did not work; the message holds what was run and what it said."""


def run(
    command: Sequence[str | Path], folder: Path, environment: dict[str, str] | None = None
) -> str:
    """Run a command and return what it printed.

    Raises:
        TrialError: It ended with an error, or could not be started.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError as error:
        raise TrialError(f"{words[0]}: {error}") from error
    if done.returncode:
        raise TrialError(f"{' '.join(words)}\n{done.stdout}")
    return done.stdout


def version_of(python: str) -> str | None:
    """Version of an interpreter, or None if there is no such, or it does not start."""
    try:
        code = "import platform; print(platform.python_version())"
        return run([python, "-I", "-c", code], Path.cwd()).strip()
    except TrialError:  # such as a shim for a version that is not chosen
        return None


def interpreters(given: Sequence[str]) -> dict[str, str]:
    """The interpreters to try, by version: the given ones, else all that are at hand.

    Raises:
        TrialError: A given one does not start, or none was found.
    """
    starting: dict[str, str] = {}
    for name in given or candidates():
        version = version_of(name)
        if version is not None:
            starting.setdefault(version, name)
        elif given:
            raise TrialError(f"{name} does not start. Give names or paths of interpreters.")
    if not starting:
        raise TrialError(
            "no Python is on the path, nor kept by pyenv. Name interpreters: "
            'make test-wheel PYTHONS="/path/to/python3.12 ..."'
        )
    return starting


def runs_on(wheel: Path, version: str) -> bool:
    """Whether the tag of a wheel, such as ``py312``, is for a version of Python or an older one."""
    tag = wheel.name.split("-")[-3]
    oldest = int(tag.removeprefix("py3") or 0)
    return int(version.split(".")[1]) >= oldest


def bare_environment(folder: Path) -> dict[str, str]:
    """Variables with which only the virtual environment in `folder` can be found."""
    kept = {k: os.environ[k] for k in ("SYSTEMROOT", "OMP_WAIT_POLICY") if k in os.environ}
    return {**kept, "PATH": str(folder / BIN), "HOME": str(folder), "LANG": "C.UTF-8"}


def try_wheel(wheel: Path, python: str, stock: str, tests: Sequence[str], scratch: Path) -> str:
    """Everything for one interpreter.

    Args:
        wheel: The file to install.
        python: Name or path of the interpreter.
        stock: Version of the stock XGBoost to install beside it; empty for none.
        tests: Files or folders of the repository's tests to run as well.
        scratch: An empty folder.

    Returns:
        What was tried, in one line.

    Raises:
        TrialError: Something does not work.
    """
    home, work = scratch / "environment", scratch / "work"
    work.mkdir()
    run([python, "-m", "venv", home], work)
    inside, bare = home / BIN / "python", bare_environment(home)
    pip: list[str | Path] = [inside, "-m", "pip", "--disable-pip-version-check", "install", "-q"]

    run([*pip, "--only-binary", ":all:", wheel], work)
    output = [run([inside, "-I", USE, "alone"], work, bare).strip()]
    run([*pip, "--only-binary", ":all:", f"{wheel}[{EXTRAS}]"], work)
    run([inside, "-m", "pip", "check"], work)
    output.append(run([inside, "-I", USE, "extras"], work, bare).strip())
    beside = {"XGB_DP_XGBOOST": "private"} if stock else {}
    if stock:
        run([*pip, "--no-deps", "--only-binary", ":all:", f"xgboost=={stock}"], work)
        again = scratch / "beside"  # models are not overwritten
        again.mkdir()
        run([inside, "-I", USE, "extras"], again, bare | beside)
        output.append(f"beside xgboost {stock}")
    if tests:
        run([*pip, f"{wheel}[test,{EXTRAS}]"], work)
        output.append(run_tests(inside, pip, tests, scratch / "checkout", os.environ | beside))
    return "; ".join(output)


def run_tests(
    python: Path,
    pip: Sequence[str | Path],
    tests: Sequence[str],
    folder: Path,
    environment: dict[str, str],
) -> str:
    """Run fast tests from a copy of the repository without the package: the wheel's is imported."""
    left_out = shutil.ignore_patterns(".*", "build", "dist", "xgb_dp", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=left_out)
    # Tests load our models with the stock wheels of all releases that run on this Python.
    for version in run([python, "tools/fetch_upstream.py", "--runnable"], folder).split():
        target = folder / "build" / f"stock-{version}"
        only = ["--no-deps", "--only-binary", ":all:", f"xgboost=={version}"]
        run([*pip, *only, "--target", target], folder)
    environment = {k: v for k, v in environment.items() if k != "XGB_DP_STOCK"}
    command: list[str | Path] = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        *tests,
    ]
    output = run(command, folder, environment)
    return output.strip().splitlines()[-1].strip("= ")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try one wheel with every interpreter; 0 if it works with all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--pythons", nargs="*", default=[], help="names or paths of interpreters")
    parser.add_argument("--stock", default="", help="version of a stock XGBoost to put beside it")
    parser.add_argument("--tests", nargs="*", default=[], help="fast tests to run with the wheel")
    args = parser.parse_args(arguments)
    wheel = args.wheel.resolve()
    if not wheel.is_file():
        parser.error(f"{args.wheel} is not a file")
    try:
        pythons = interpreters(args.pythons)
    except TrialError as error:
        parser.error(str(error))
    print(f"{wheel.name}, {wheel.stat().st_size / 2**20:.1f} MiB", flush=True)
    failed = []
    for version, python in pythons.items():
        if not runs_on(wheel, version):
            print(f"Python {version}: too old for this wheel")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            try:
                result = try_wheel(wheel, python, args.stock, args.tests, Path(scratch))
                print(f"Python {version}: {result}")
            except TrialError as error:
                failed.append(version)
                print(f"Python {version}: FAILED\n{error}")
        sys.stdout.flush()
    if failed:
        print(f"The wheel does not work with Python {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
