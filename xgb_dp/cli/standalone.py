"""The programs that run without the extra `cli`: ``xgb-dp verify`` and ``xgb-dp --version``.

The first loads no libxgboost. The second also runs where the library is missing or is stock.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import __version__
from ..engine import native
from ..engine.native import files_are_private, stock_origin
from ..errors import PrivacyError
from ..record.formatting import visible
from ..record.verify import signature_path, verify
from .files import check_places, save


def verify_command(arguments: Sequence[str] | None = None) -> int:
    """Check a model file."""
    parser = argparse.ArgumentParser(
        prog="xgb-dp verify",
        description="Check what a model file claims about its privacy. Loads no XGBoost.",
        epilog="Exit code: 0 passed; 1 not private, above a limit, or the file contains something "
        "that the ledger does not mention; 2 wrong call; 3 nothing can be said.",
    )
    parser.add_argument("model", type=Path, help="saved as .json or .ubj")
    add = parser.add_argument
    add("--max-epsilon", type=float, help="the largest epsilon that passes, in nats")
    add("--delta", type=float, help="the delta at which epsilon is stated; by default the model's")
    add(
        "--group",
        type=int,
        help="rows or persons added or removed together; default: dp_group_size",
    )
    add("--replace-one", action="store_true", help="neighbours have them replaced instead")
    add("--unit", choices=["row", "person"], help="the unit of privacy that is expected")
    add("--policy", type=Path, help="the policy of the rows' holder, which it has to follow")
    add("--signer", type=Path, help="file of SSH public keys, one of which has to have signed it")
    add(
        "--allow",
        action="append",
        default=[],
        metavar="ATTRIBUTE",
        help="further attribute that the file may contain; may be repeated",
    )
    add("--json", action="store_true", help="print JSON (verification.schema.json)")
    add("--out", type=Path, help="also write the JSON to this file, which is replaced")
    add("--quiet", action="store_true", help="print nothing; see the exit code")
    given = parser.parse_args(arguments)
    try:
        if given.out is not None:
            read = (given.model, given.policy, given.signer, signature_path(given.model))
            check_places([given.out], force=True, read=[path for path in read if path])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is among the checks
            verification = verify(
                given.model,
                max_epsilon=given.max_epsilon,
                delta=given.delta,
                group=given.group,
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
    """Print versions and places; 0 if private training works with them."""
    print(f"xgb-dp {__version__}, in {Path(__file__).resolve().parents[1]}")
    try:
        import xgboost

        library = getattr(xgboost.core._LIB, "path", None) or xgboost.core._LIB._name
        private = native.is_dp_build() and files_are_private()
    except Exception as error:  # whatever keeps it from loading
        print(f"no XGBoost can be loaded ({type(error).__name__}). {_REINSTALL}")
        return 1
    kind = "private build" if private else "not the private build"
    print(f"XGBoost {xgboost.__version__}, {kind}: {library}")
    for line in _advice(private):
        print(line)
    return 0 if private else 1


def _advice(private: bool) -> Iterator[str]:
    if not private:
        yield (
            native.stock_hint()
            if not native.is_dp_build()
            else (f"The Python files of `xgboost` come from a stock wheel. {_REINSTALL}")
        )
    elif origin := stock_origin():
        yield (
            f"`import xgboost` gives the stock package in {Path(origin).parent} until xgb_dp is "
            f"imported, or always the private build with {native.VARIABLE}=private."
        )
