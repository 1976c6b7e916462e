"""Commands that run without the extra `cli`: ``xgb-dp verify`` and ``xgb-dp --version``.

``verify`` does not load libxgboost. ``--version`` also works if the library is missing or stock.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from ..engine import native
from ..engine.native import files_are_private, stock_origin
from ..errors import PrivacyError
from ..record.formatting import visible
from ..record.verify import signature_path, verify
from .files import check_outputs, save


def verify_command(arguments: Sequence[str] | None = None) -> int:
    """Run ``xgb-dp verify`` and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="xgb-dp verify",
        description="Verify the privacy claims of a model file, without loading XGBoost.",
        epilog="Exit code: 0 passed; 1 not private, above a limit, or the file has content "
        "that the ledger does not cover; 2 invalid call; 3 the file cannot be verified.",
    )
    parser.add_argument("model", type=Path, help="model saved as .json or .ubj")
    add = parser.add_argument
    add("--max-epsilon", type=float, help="largest epsilon that passes, in nats")
    add("--delta", type=float, help="delta at which epsilon is computed; by default the model's")
    add(
        "--group-size",
        type=int,
        help="number of rows or persons in which neighbours differ; default: dp_group_size",
    )
    add("--replace-one", action="store_true", help="use replace-one adjacency")
    add("--unit", choices=["row", "person"], help="expected privacy unit")
    add("--policy", type=Path, help="policy file that the model must comply with")
    add("--signer", type=Path, help="file of trusted SSH public keys; requires a signature")
    add(
        "--allow",
        action="append",
        default=[],
        metavar="ATTRIBUTE",
        help="additional attribute to allow in the file; repeatable",
    )
    add("--json", action="store_true", help="print JSON (verification.schema.json)")
    add("--out", type=Path, help="also write the JSON to this file; an existing file is replaced")
    add("--quiet", action="store_true", help="print nothing; only set the exit code")
    given = parser.parse_args(arguments)
    try:
        if given.out is not None:
            read = (given.model, given.policy, given.signer, signature_path(given.model))
            check_outputs([given.out], force=True, read=[path for path in read if path])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the checks report the same problems
            verification = verify(
                given.model,
                max_epsilon=given.max_epsilon,
                delta=given.delta,
                group_size=given.group_size,
                adjacency="replace_one" if given.replace_one else "add_remove",
                unit=given.unit,
                policy=given.policy,
                signers=given.signer,
                allow=given.allow,
            )
            text = verification.to_json() if given.json or given.out else str(verification)
        if given.out is not None:
            save((given.out, text + "\n"))
    except (PrivacyError, OSError) as error:
        print(visible(f"Error: {error}", "\n"), file=sys.stderr)
        return 2
    if not given.quiet:
        print(visible(text if given.json else str(verification), "\n"))
    return verification.exit_code


_REINSTALL = "Reinstall it: pip install --force-reinstall --no-deps xgb-dp"


def print_versions() -> int:
    """Print versions and install locations; return 0 if private training is available."""
    print(f"xgb-dp {__version__}, in {Path(__file__).resolve().parents[1]}")
    try:
        import xgboost

        library = getattr(xgboost.core._LIB, "path", None) or xgboost.core._LIB._name
        private = native.is_dp_build() and files_are_private()
    except Exception as error:  # any import failure
        print(f"XGBoost cannot be loaded ({type(error).__name__}). {_REINSTALL}")
        return 1
    kind = "private build" if private else "not the private build"
    print(f"XGBoost {xgboost.__version__}, {kind}: {library}")
    if not native.is_dp_build():
        print(native.stock_hint())
    elif not private:
        print(f"The Python files of `xgboost` are from a stock wheel. {_REINSTALL}")
    elif origin := stock_origin():
        print(
            f"`import xgboost` loads the stock package in {Path(origin).parent} unless xgb_dp is "
            f"imported first. Set {native.VARIABLE}=private to always load the private build."
        )
    return 0 if private else 1
