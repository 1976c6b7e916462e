"""Command ``python -m xgb_dp``, also ``xgb-dp``."""

from __future__ import annotations

import importlib.util
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without its extra only ``doctor`` and ``verify`` run."""
    if sys.argv[1:2] == ["verify"]:  # loads no libxgboost, which the other commands do
        from .cli.verify import main as verify

        raise SystemExit(verify(sys.argv[2:]))
    absent = [m for m in ("click", "pandas", "yaml") if importlib.util.find_spec(m) is None]
    if not absent:
        from .cli.commands import cli

        cli(prog_name="xgb-dp")
    elif sys.argv[1:] == ["doctor"]:
        from .cli.doctor import main as doctor

        raise SystemExit(doctor())
    else:
        raise SystemExit(
            f"The command line needs packages that are not installed: {', '.join(absent)}. "
            "Install them with `pip install 'xgb-dp[cli]'`. `xgb-dp doctor` and `xgb-dp verify` "
            "run without them."
        )


if __name__ == "__main__":
    main()
