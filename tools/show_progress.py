"""Run a build command and show how far it is: ``show_progress.py LOG COMMAND...``.

Writes all output to LOG. Ninja's counter becomes a line that is overwritten on a terminal, and a
line for every tenth elsewhere. If the command fails, prints the end of LOG.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

STEP = re.compile(r"\[([1-9]\d*)/(\d+)\]")  # [0/2] looks for new files
LAST_LINES = 40


def main(log: Path, command: list[str]) -> int:
    """Run COMMAND, write its output to LOG, and show its progress; returns its exit status."""
    log.parent.mkdir(parents=True, exist_ok=True)
    terminal, start, tenth = sys.stderr.isatty(), time.monotonic(), -1
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            if not (step := STEP.search(line)):
                continue
            done, total = int(step[1]), int(step[2])
            if tenth < 0 and total > 75:
                note = "Compiling XGBoost with private training: about 6 minutes on two cores."
                print(note, file=sys.stderr)
            if terminal or 10 * done // total > tenth:
                tenth = 10 * done // total
                seconds = time.monotonic() - start
                text = f"  {done}/{total} files, {seconds // 60:.0f}:{seconds % 60:02.0f}"
                print(text, end="\r" if terminal else "\n", file=sys.stderr, flush=True)
    if terminal and tenth >= 0:
        print(file=sys.stderr)
    if process.returncode:
        lines = log.read_text(encoding="utf-8").splitlines()[-LAST_LINES:]
        print("\n".join([*lines, f"The build failed. All of its output: {log}"]), file=sys.stderr)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
