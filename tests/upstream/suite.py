"""Run upstream's own tests with our build and with the stock wheel, and compare what fails.

``make test-upstream`` calls it. Nothing is fetched: ``XGB_DP_UPSTREAM_TESTS`` names a checkout of
the pinned release of XGBoost (or its folder ``tests``). Tests that fail with one build alone are
run a second time, so that a test that fails now and then is not taken for a difference.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.upstream.stock import stock_environment

VARIABLE = "XGB_DP_UPSTREAM_TESTS"
FOLDERS = ("python", "test_distributed/test_with_dask")
BUILDS = ("ours", "stock")
Outcomes = dict[str, str]  # test -> "passed", "failed" or "skipped"


class SuiteError(RuntimeError):
    """The tests could not be run; the message says what to do."""


def tests_folder(given: str | None) -> Path:
    """The folder ``tests`` of the checkout that the variable names."""
    if not given:
        raise SuiteError(
            f"{VARIABLE} is not set: let it name a checkout of XGBoost at the pinned release, "
            "whose tests are then run. Nothing is fetched."
        )
    for folder in (Path(given), Path(given) / "tests"):
        if any((folder / name).is_dir() for name in FOLDERS):
            return folder.resolve()
    raise SuiteError(f"{VARIABLE}={given} holds neither {FOLDERS[0]} nor tests/{FOLDERS[0]}.")


def run(build: str, folder: Path, arguments: Sequence[str]) -> Outcomes:
    """Outcome of every test under one build."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        interpreter = [sys.executable, *(["-S"] if build == "stock" else [])]
        pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
        pytest += ["--continue-on-collection-errors"]
        done = subprocess.run(
            [*interpreter, *pytest, f"--junitxml={report}", *arguments],
            cwd=folder.parent,
            env=stock_environment() if build == "stock" else {**os.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if not report.is_file():
            raise SuiteError(f"pytest made no report with {build}:\n{done.stdout[-3000:]}")
        return read_report(report)


def read_report(report: Path) -> Outcomes:
    """Outcomes by test from a file that pytest wrote; an error counts as a failure."""
    outcomes: Outcomes = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname') or ''}::{case.get('name')}".lstrip(":")
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            outcomes[name] = "failed"
        else:
            outcomes.setdefault(name, "skipped" if "skipped" in kinds else "passed")
    return outcomes


def different(private: Outcomes, stock: Outcomes) -> list[str]:
    """Tests that fail with one build alone."""
    failed = [
        {name for name, what in side.items() if what == "failed"} for side in (private, stock)
    ]
    return sorted(failed[0] ^ failed[1])


def node_ids(names: Sequence[str], folder: Path) -> list[str]:
    """What pytest calls tests that a report names; the whole file for one that did not load."""
    out = []
    for name in names:
        dotted, _, test = name.partition("::")
        path, inner = dotted.split(".") if test else name.split("."), []
        while path and not (folder.parent / Path(*path)).with_suffix(".py").is_file():
            inner.insert(0, path.pop())
        if not path:  # named from the folder of pytest's configuration
            path, inner = ["tests", *inner], []
            while len(path) > 1 and not (folder.parent / Path(*path)).with_suffix(".py").is_file():
                inner.insert(0, path.pop())
        file = str(Path(*path).with_suffix(".py"))
        out.append("::".join([file, *inner, *([test] if test else [])]))
    return out


def compare(folder: Path, arguments: Sequence[str]) -> int:
    """Run both builds, print what differs, and return the exit status: 1 for a difference."""
    where = [str(Path(folder.name) / name) for name in FOLDERS if (folder / name).is_dir()]
    outcomes = {build: run(build, folder, [*arguments, *where]) for build in BUILDS}
    for build in BUILDS:
        counts = Counter(outcomes[build].values())
        print(f"{build}: {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}")
        if not counts["passed"]:
            raise SuiteError(f"No test passed with {build}: the checkout is not of this release.")
    last, names = outcomes, different(outcomes["ours"], outcomes["stock"])
    if names:
        again = node_ids(names, folder)
        last = {build: outcomes[build] | run(build, folder, again) for build in BUILDS}
        names = different(last["ours"], last["stock"])
    both = sum(outcomes["ours"].get(n) == what == "failed" for n, what in outcomes["stock"].items())
    print(f"{both} fail with both, {len(names)} with one alone")
    for name in names:
        private, stock = (last[build].get(name) for build in BUILDS)
        print(f"  {name}: {private} with ours, {stock} with stock")
    return 1 if names else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line entry; returns the exit status, 2 where the tests could not be run."""
    parser = argparse.ArgumentParser(description="Compare upstream's tests on ours and on stock.")
    parser.add_argument("pytest", nargs="*", help="further arguments of pytest, after --")
    try:
        folder = tests_folder(os.environ.get(VARIABLE))
        return compare(folder, parser.parse_args(arguments).pytest)
    except SuiteError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
