"""Command ``python -m tests.fuzz``: random cases in worker processes, faults with reproducers."""

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

from .judge import run
from .pool import LIMIT, run_all

PARSER = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
PARSER.add_argument("--cases", type=int, default=10_000, help="how many (10,000)")
PARSER.add_argument("--seed", type=int, default=1, help="of all cases (1)")
PARSER.add_argument("--workers", type=int, default=4, help="processes (4)")
PARSER.add_argument("--case", type=int, help="run this one alone, here")
PARSER.add_argument("--endings", action="store_true", help="also count how the cases ended")


def main() -> int:
    """Run, print faults and a summary."""
    args = PARSER.parse_args()
    if args.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            result = run(args.seed, args.case, Path(folder))
        print(result["text"], result["end"], result["fault"] or "sound", sep="\n")
        return bool(result["fault"])
    started = time.monotonic()
    faults, ends = 0, collections.Counter[str]()
    for result in run_all(args.seed, args.cases, args.workers, run):
        ends[result["end"].split(":")[0]] += 1
        if args.endings:
            ends[f"  {result['end']}"] += 1
        if result["fault"]:
            faults += 1
            print(
                f"{result['fault']}\n    {result['text']}\n    python -m tests.fuzz --seed "
                f"{args.seed} --case {result['number']}",
                flush=True,
            )
    spent = time.monotonic() - started
    print(f"{args.cases} cases of seed {args.seed} in {spent:.0f} s (limit of one: {LIMIT} s)")
    for end, count in sorted(ends.items(), key=lambda item: -item[1]):
        print(f"{count:6} {end}")
    print(f"{faults} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
