"""Entry point of ``python -m xgb_dp`` and ``xgb-dp``."""

from __future__ import annotations

import importlib.util
import os
import sys

from .data.cells import is_unicode

__all__ = ["main"]


def main() -> None:
    """Run the command line; without the extra ``cli``, only ``--version`` and ``verify`` work."""
    if sys.stdout is None:
        raise SystemExit("Error: Standard output is closed. Redirect it, for example to /dev/null.")
    for position, text in enumerate(sys.argv[1:], 1):
        if not is_unicode(text):
            raise SystemExit(
                f"Error: Argument {position} is not valid UTF-8. Names of files, columns and "
                "categories must be valid UTF-8. Rename the file, or pass the name in UTF-8."
            )
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()  # here, so that its errors are handled below
    except KeyboardInterrupt:  # before a command has started; commands handle it themselves
        print("Error: Interrupted. Nothing was spent.", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        _drop_output()
        raise SystemExit(141) from None  # 128 + SIGPIPE: an unread verdict must not count as passed
    except OSError as error:
        _drop_output()
        print(f"Error: The output cannot be written: {error.strerror}.", file=sys.stderr)
        raise SystemExit(1) from None


def _drop_output() -> None:
    """Redirect stdout to the null device, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run() -> None:
    if sys.argv[1:2] == ["verify"]:  # must not load libxgboost, unlike the other commands
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

        # Prevents xgboost from importing scikit-learn, which is slow and which no command uses.
        sys.modules.setdefault("sklearn", None)  # type: ignore[arg-type]
        cli(prog_name="xgb-dp")
    else:
        raise SystemExit(
            f"The command line needs packages that are not installed: {', '.join(absent)}. "
            "Install them with `pip install 'xgb-dp[cli]'`. `xgb-dp --version` and `xgb-dp "
            "verify` work without them."
        )


if __name__ == "__main__":
    main()
