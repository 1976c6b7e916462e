"""``xgb-dp verify``: check a model file without libxgboost and without the extras of training."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from ..errors import PrivacyError
from ..record.escaping import visible
from ..record.signature import beside
from ..record.verify import verify
from .places import check_places, save


def main(arguments: Sequence[str] | None = None) -> int:
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
    add("--group", type=int, help="rows or persons added or removed together; default: dp_group")
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
            read = (given.model, given.policy, given.signer, beside(given.model))
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
