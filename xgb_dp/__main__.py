"""Command ``python -m xgb_dp``, also ``xgb-dp``."""

from __future__ import annotations

import importlib.util
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without its extra only ``--version`` and ``verify`` run."""
    if sys.stdout is None:
        raise SystemExit("Error: Standard output is closed. Redirect it, for example to /dev/null.")
    for position, text in enumerate(sys.argv[1:], 1):
        if not _is_text(text):
            raise SystemExit(
                f"Error: Argument {position} is not UTF-8 text. Names of files, columns and "
                "categories are UTF-8: rename the file, or write the name in UTF-8."
            )
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()  # while an error of it is still ours
    except KeyboardInterrupt:  # before a command has begun, which says more
        print("Error: Interrupted. Nothing was spent.", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        _drop_output()
        raise SystemExit(141) from None  # as shells say it: a verdict that was not read is no pass
    except OSError as error:
        _drop_output()
        print(f"Error: The output cannot be written: {error.strerror}.", file=sys.stderr)
        raise SystemExit(1) from None


def _drop_output() -> None:
    """Leave nothing to be flushed at the end, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _run() -> None:
    if sys.argv[1:2] == ["verify"]:  # loads no libxgboost, which the other commands do
        from .cli.standalone import verify_command

        raise SystemExit(verify_command(sys.argv[2:]))
    if sys.argv[1:] == ["--version"]:
        from .cli.standalone import print_versions

        raise SystemExit(print_versions())
    absent = [
        m for m in ("click", "pandas", "pyarrow", "yaml") if importlib.util.find_spec(m) is None
    ]
    if not absent:
        from .cli.commands import cli

        # It takes a second to load, and no command uses it.
        sys.modules.setdefault("sklearn", None)  # type: ignore[arg-type]
        cli(prog_name="xgb-dp")
    else:
        raise SystemExit(
            f"The command line needs packages that are not installed: {', '.join(absent)}. "
            "Install them with `pip install 'xgb-dp[cli]'`. `xgb-dp --version` and `xgb-dp "
            "verify` run without them."
        )


if __name__ == "__main__":
    main()
