"""Which lines of some files each test runs, and how long it takes."""

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

__all__ = ["Recorder"]


class Recorder:
    """A plugin of pytest that writes down the lines of each test.

    Lines that fixtures run count for the whole file. Those that imports run do not count.
    """

    def __init__(self, files: set[str], out: Path) -> None:
        self._files, self._out = files, out
        self._running: set[tuple[str, int]] = set()
        self._lines: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self._seconds: dict[str, float] = defaultdict(float)

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        self._running.add((frame.f_code.co_filename, frame.f_lineno))
        return self._trace

    def _belong_to(self, test: str) -> None:
        self._lines[test] |= self._running
        self._running.clear()

    def pytest_collection_finish(self) -> None:
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        self._belong_to(item.nodeid.partition("::")[0])
        yield
        self._belong_to(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for test in (report.nodeid, report.nodeid.partition("::")[0]):
            self._seconds[test] += report.duration

    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)
        tests = []
        for test, lines in self._lines.items():
            by_file = defaultdict(list)
            for name, line in sorted(lines):
                by_file[name].append(line)
            tests.append({"test": test, "seconds": self._seconds[test], "lines": by_file})
        self._out.write_text(json.dumps(tests), encoding="utf-8")
