"""Check commit messages since a fixed commit (``make lint``) and say how to fix them.

Subject: imperative, at most 72 characters, no full stop. Body: after an empty line. No local
paths. The check is skipped if the clone lacks the fixed commit (a shallow clone or an archive).
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

START = "6e97119"
LONGEST = 72
_PATH = re.compile(r"(?<![\w./~])(?:/(?:work|tmp|home|root|mnt|Users)/|[A-Z]:\\)")
_FORMS = re.compile(r"(?!(?:Bring|Embed|Feed|Need|Seed|Speed|Focus|Process)$)\w+(?:ing|ed|[^s]s)$")

_NONE: Mapping[str, re.Pattern[str]] = {}


def faults(message: str, odd: Mapping[str, re.Pattern[str]] = _NONE) -> list[str]:
    """Return the faults of a commit message; phrases to avoid are listed in docs/style.md."""
    subject, _, rest = message.strip().partition("\n")
    wrong = []
    if len(subject) > LONGEST:
        wrong.append(f"the subject has {len(subject)} characters; at most {LONGEST} are allowed")
    if subject.endswith("."):
        wrong.append("the subject ends with a full stop")
    word = subject.partition(" ")[0]
    if not word[:1].isupper() or _FORMS.match(word):
        wrong.append(f"the subject is not imperative: it starts with {word!r} (write 'Add')")
    if rest and not rest.startswith("\n"):
        wrong.append("no empty line follows the subject")
    wrong += [f"the subject says {phrase!r}" for phrase in odd if odd[phrase].search(subject)]
    if _PATH.search(message):
        wrong.append("it contains a local path")
    return wrong


def commits(folder: Path, start: str = START) -> Iterator[tuple[str, str]]:
    """Yield short hash and message of the commits after `start`, if the clone has it."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    if git("merge-base", "--is-ancestor", start, "HEAD").returncode:
        return
    log = git("log", "--no-merges", "--format=%x00%h%n%B", f"{start}..HEAD")
    for entry in log.stdout.split("\0")[1:]:
        name, _, message = entry.partition("\n")
        yield name, message


def main(folder: Path = Path()) -> int:
    """Print the faults; return 1 if there are any."""
    tools = Path(__file__).resolve().parent
    sys.path.insert(0, str(tools))
    from check_prose import STYLE, phrases

    bad, odd = False, phrases((tools.parent / STYLE).read_text(encoding="utf-8"))
    for name, message in commits(folder):
        for fault in faults(message, odd):
            bad = True
            print(f"{name} {message.partition(chr(10))[0]}\n    {fault}")
    if bad:
        print(
            "Fix commits that are not shared yet: `git commit --amend` for the last one, `git "
            "rebase -i` and `reword` for others. The form is in CONTRIBUTING.md, under 'Commits'."
        )
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
