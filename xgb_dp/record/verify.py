"""Verify a saved model and its signature from the file alone.

This module does not load libxgboost. It parses the file as JSON or UBJSON, compares the trees with
the ledger, and recomputes epsilon from the events in the ledger. The result follows
``templates/verification.schema.json``.

A signature is a separate file in the format of ``ssh-keygen -Y sign``, so it can be checked without
this package. It covers the whole model file, including the ledger.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..accounting.events import release_counts
from ..accounting.units import UNITS
from ..engine import model_json, ubjson
from ..engine.saved_model import SavedModel, is_json, read_model_bytes
from ..errors import LedgerError, PrivacyParameterError
from ..parameters.parse import Number, OneOf
from ..request.names import takes
from . import ledger
from .authorization import read_policy
from .consistency import contradictions
from .content import uncovered
from .formatting import json_number, visible
from .ledger import ATTRIBUTE, check_trees, parse_ledger
from .ledger_model import VERSION as LEDGER_VERSION
from .ledger_model import Ledger
from .pipelines import fitted_in
from .privacy_report import PrivacyReport, as_booster, as_dict

# Namespaces of signatures, which express the signer's statement about a model.
BUDGETED, SIGNED = "budgeted@xgb-dp", "signed@xgb-dp"
_STATEMENTS = {
    BUDGETED: "who states that a budget recorded every release of the model",
    SIGNED: "without a statement about a budget",
}
_LIMITS = "the signature cannot prove that the ledger is true"
_ENDING = ".sig"


def signature_path(model: str | os.PathLike[str]) -> Path:
    """Path of the signature of a model file."""
    return Path(f"{os.fspath(model)}{_ENDING}")


def create_signature(data: bytes, key: Path, *, budgeted: bool) -> bytes:
    """Sign a model file with a private key, or with the agent's key for a given public key."""
    name = BUDGETED if budgeted else SIGNED
    process = _ssh_keygen("-Y", "sign", "-f", key.resolve(), "-n", name, data=data)
    if process.returncode != 0:
        raise PrivacyParameterError(
            f"OpenSSH could not sign with {key}: {_reason(process)}. Pass an OpenSSH private key, "
            "such as ~/.ssh/id_ed25519, or the public key of a private key in the SSH agent."
        )
    return process.stdout


def signer(model: Path, data: bytes, signers: str | os.PathLike[str]) -> tuple[bool, str]:
    """Check the signature of a model file; return whether it is valid, and the finding."""
    allowed, signature = Path(signers).resolve(), signature_path(model).resolve()
    if not allowed.is_file():
        raise PrivacyParameterError(
            f"The file of signers {os.fspath(signers)!r} does not exist. Each line of this file is "
            "a name and a public key: `holder@hospital ssh-ed25519 AAAA...` (man ssh-keygen, "
            "ALLOWED SIGNERS)."
        )
    if not signature.is_file():
        return False, f"there is no signature {signature.name} next to the model"
    of_file = ("-s", signature, "-f", allowed)
    who = _ssh_keygen("-Y", "find-principals", *of_file).stdout.decode(errors="replace")
    for name in who.splitlines():
        for namespace, statement in _STATEMENTS.items():
            checked = _ssh_keygen("-Y", "verify", *of_file, "-I", name, "-n", namespace, data=data)
            if checked.returncode == 0:
                return True, f"signed by {name}, {statement}; {_LIMITS}"
    return False, f"{signature.name} is not a valid signature of this file by a listed signer"


def _ssh_keygen(
    *arguments: str | os.PathLike[str], data: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *arguments], input=data, capture_output=True)
    except FileNotFoundError:
        raise PrivacyParameterError(
            "Signatures need ssh-keygen of OpenSSH 8.2 or later, which was not found. Install the "
            "OpenSSH client."
        ) from None


def _reason(process: subprocess.CompletedProcess[bytes]) -> str:
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {process.returncode}"


VERSION = 1
"""Version of :meth:`Verification.to_json`; increases when a field changes or is removed."""
EXIT_CODES = {"passed": 0, "failed": 1, "unknown": 3}
"""Exit code of ``xgb-dp verify`` by verdict; 2 is a usage error."""


@dataclass(frozen=True)
class Check:
    """One check of a file.

    Attributes:
        name: Name of the check; see ``docs/howto/deploy.md``.
        passed: Whether the file passed.
        detail: The finding.

    Examples:
        >>> model.save_model("model.json")
        >>> checks = xgb_dp.verify("model.json").checks
        >>> all(check.passed for check in checks)
        True
    """

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """The result of verifying a model file.

    Attributes:
        verdict: "passed"; "failed" if the model is not private, exceeds a limit, or the file
            contains something that the ledger does not cover; "unknown" if the ledger is missing or
            damaged, or belongs to other trees.
        checks: All checks, up to the first failure that makes further checks impossible.
        file: Name, size in bytes, SHA-256 and format of the file.
        report: The privacy report of the model; None if the verdict is "unknown".

    Examples:
        >>> model.save_model("model.json")
        >>> verification = xgb_dp.verify("model.json", max_epsilon=0.5, delta=1e-6)
        >>> verification.verdict, verification.exit_code
        ('failed', 1)
    """

    verdict: str
    checks: tuple[Check, ...]
    file: Mapping[str, Any]
    report: PrivacyReport | None = field(default=None, repr=False)
    _extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def claim(self) -> Mapping[str, Any] | None:
        """The guarantee and its basis, as a JSON object. The computation takes seconds."""
        return None if self.report is None else {**_claim(self.report), **self._extra}

    @property
    def exit_code(self) -> int:
        """0 for "passed", 1 for "failed", 3 for "unknown"."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values; infinity becomes the string "inf"."""
        return {
            "format": "xgb-dp verification",
            "format_version": VERSION,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "file": dict(self.file),
            "checks": [vars(check) for check in self.checks],
            "claim": None if self.claim is None else dict(self.claim),
        }

    def to_json(self) -> str:
        """:meth:`to_dict` as a string, in the form of ``verification.schema.json``."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def __str__(self) -> str:
        lines = [f"{self.file['name']}: {self.verdict.upper()}"]
        lines += [f"  {'ok ' if c.passed else 'NO '} {c.name}: {c.detail}" for c in self.checks]
        shown = list(map(visible, lines))
        if self.report is not None:
            shown += ["", self.report.statement()]
        return "\n".join(shown)


@takes(adjacency="text", unit="text", policy="path", signers="path", allow="texts")
def verify(
    model: Any,
    *,
    max_epsilon: float | None = None,
    delta: float | None = None,
    group_size: int | None = None,
    adjacency: str = "add_remove",
    unit: str | None = None,
    policy: str | os.PathLike[str] | None = None,
    signers: str | os.PathLike[str] | None = None,
    allow: Sequence[str] = (),
) -> Verification:
    """Verify the privacy claims of a model file, or of a model in memory.

    A file is checked without libxgboost.

    Privacy: free post-processing of the ledger.

    Args:
        model: Path of a JSON or UBJSON model, saved by the XGBoost that trained it; or a booster,
            an estimator or a pipeline, checked as it would be saved. Pipeline steps that were
            fitted on rows are reported as not covered.
        max_epsilon: The largest epsilon that passes, in nats; no limit by default.
        delta: Delta for `max_epsilon`; by default the delta of the model.
        group_size: Number of rows or persons added or removed together; by default the group size
            of the model.
        adjacency: "add_remove" or "replace_one".
        unit: The required privacy unit, "row" or "person"; either by default.
        policy: Path of a policy that the model must satisfy (docs/howto/policy.md).
        signers: Path of a file of SSH public keys; one of them must have signed the model file
            (``xgb-dp sign``).
        allow: Names of other attributes that the file can contain. The ledger does not cover them,
            so inspect them yourself.

    Returns:
        Verification: The verdict and all checks. It assumes that the ledger is honest: the ledger
        is not protected by a key.

    Raises:
        PrivacyParameterError: An argument is out of range, the file does not exist, or a signature
            is required but OpenSSH is missing or the model is in memory.

    Examples:
        >>> model.save_model("model.json")
        >>> xgb_dp.verify("model.json", max_epsilon=1.0, delta=1e-6).verdict
        'passed'
    """
    if max_epsilon is not None:
        max_epsilon = Number(0.0, open_low=True, finite=False)("max_epsilon", max_epsilon)
    if unit is not None:
        OneOf(tuple(UNITS))("unit", unit)
    checks: list[Check] = []
    data, file = _content(model, signed=signers is not None)
    described = {
        "name": file.name,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "form": "json" if is_json(data) else "ubj",
    }
    try:
        saved, ledger = _opened(data, checks)
    except LedgerError as error:
        fault = Check(("file", "ledger", "trees")[len(checks)], False, str(error))
        return Verification("unknown", (*checks, fault), described)
    report = PrivacyReport(ledger.to_json())
    delta = report.delta if delta is None else delta
    group_size = ledger.unit.group_size if group_size is None else group_size
    epsilon = report.get_epsilon(delta, group_size, adjacency=adjacency)
    queried: dict[str, Any] = {
        "epsilon": epsilon, "delta": delta, "group_size": group_size, "adjacency": adjacency,
    }  # fmt: skip
    checks += _ledger_checks(report, saved)
    checks += _within(ledger, queried, max_epsilon, unit, policy)
    if signers is not None:
        checks.append(Check("signature", *signer(file, data, signers)))
    allowed = {f"attribute {name}" for name in allow}
    not_covered = sorted({*uncovered(saved, ledger, data)} - allowed)
    not_covered += [f"step {name}" for name, _ in fitted_in(model)]
    more = [f"not covered: {', '.join(not_covered)}"] if not_covered else []
    covered = "the file contains only the model, and the ledger has digests of all its parts"
    checks.append(_check("content", more, covered))
    queried["epsilon"] = json_number(epsilon)
    extra = _describe_file(saved, ledger) | {"query": queried, "not_covered": not_covered}
    verdict = "passed" if all(check.passed for check in checks) else "failed"
    return Verification(verdict, tuple(checks), described, report, extra)


def _check(name: str, faults: Sequence[str], success: str) -> Check:
    return Check(name, not faults, "; ".join(faults) or success)


def _content(model: Any, *, signed: bool) -> tuple[bytes, Path]:
    """The bytes and name of a model file, or of a model in memory as it would be saved."""
    if isinstance(model, (str, os.PathLike)):
        return read_model_bytes(model), Path(model)
    if signed:
        raise PrivacyParameterError(
            "`signers` needs a model file, but this model is in memory. Pass the path of the file."
        )
    return bytes(as_booster(model).save_raw("json")), Path(type(model).__name__)


def _opened(data: bytes, checks: list[Check]) -> tuple[SavedModel, Ledger]:
    """Parse the model and its ledger, and append each passed check to `checks`."""
    saved = read_model(data)
    checks.append(Check("file", True, f"a model in {'JSON' if is_json(data) else 'UBJ'}"))
    ledger = parse_ledger(saved.attributes.get(ATTRIBUTE))
    steps = len(ledger.trainings)
    detail = f"{steps} training{'' if steps == 1 else 's'}; every event is known"
    checks.append(Check("ledger", True, detail))
    check_trees(ledger, saved)
    listed = "all listed" if ledger.is_complete else "not yet listed"
    detail = f"{saved.tree_count} trees, {listed} in the ledger"
    if ledger.start is not None:
        source = "released sums" if ledger.start.released else "a public model"
        detail += f"; {len(ledger.start.trees)} trees come from {source}"
    checks.append(Check("trees", True, detail))
    return saved, ledger


def _ledger_checks(report: PrivacyReport, saved: SavedModel) -> Iterator[Check]:
    record, known, unfinished = report.record, [], []
    if record.noise != "os" or not record.private:
        known.append("trained without noise, or with noise that can be subtracted")
    yield _check("private", known, "all noise has a secret key from the operating system")
    if not record.is_complete:
        unfinished.append(
            "a checkpoint of an unfinished training, which does not list its trees; use the model "
            "that the training returns"
        )
    yield _check("complete", unfinished, "every training has finished")
    wrong = contradictions(record, saved)[:3]
    yield _check("settings", wrong, "every release follows from the settings in the ledger")


def _within(
    ledger: Ledger,
    queried: Mapping[str, Any],
    max_epsilon: float | None,
    unit: str | None,
    policy: str | os.PathLike[str] | None,
) -> Iterator[Check]:
    """Check the limits that the caller set."""
    if max_epsilon is not None:
        epsilon, delta = queried["epsilon"], queried["delta"]
        protected = replace(ledger.unit, group_size=int(queried["group_size"])).phrase
        detail = f"epsilon {epsilon:.6g} at delta {delta:g} for {protected}, limit {max_epsilon:g}"
        yield Check("max_epsilon", epsilon <= max_epsilon, detail)
    if unit is not None:
        detail = f"one {ledger.unit.name}, expected {unit}"
        yield Check("unit", ledger.unit.name == unit, detail)
    if policy is not None:
        rules = read_policy(policy)
        follows = f"every training follows the policy {rules.digest[:16]}"
        yield _check("policy", rules.faults(ledger), follows)


def _describe_file(saved: SavedModel, ledger: Ledger) -> dict[str, Any]:
    return {
        "unit": unit_of(ledger),
        "columns": saved.feature_names,
        "attributes": {k: v for k, v in saved.attributes.items() if k != ATTRIBUTE},
        "rounds": saved.rounds,
        "trees": saved.tree_count,
    }


def read_model(data: bytes) -> SavedModel:
    """Parse a saved model."""
    try:
        if is_json(data):
            model = SavedModel(
                model_json.loads(data, object_pairs_hook=ledger.refuse_duplicate_keys)
            )
        else:
            model = SavedModel(ubjson.loads(data))
        model.check_form()
    except (ValueError, TypeError, KeyError) as error:
        known = type(error) is ValueError
        raise LedgerError(
            "The file is not an XGBoost model in JSON or UBJSON"
            f"{f': {error}' if known else ''}. Save the model as .json or .ubj, or use an "
            "undamaged copy."
        ) from None
    return model


def unit_of(ledger: Ledger) -> dict[str, Any]:
    """Describe the privacy unit of a model as a JSON object."""
    unit, public = ledger.unit, ledger.trainings[-1].public
    return {
        "name": unit.name,
        "column": unit.column,
        "max_rows_per_person": public.get("max_rows_per_person", 1) if unit.of_persons else None,
    }


def _claim(report: PrivacyReport) -> dict[str, Any]:
    """Describe the guarantee and its basis, from the ledger alone."""
    fields, ledger = as_dict(report), report.record
    shown = (
        "private",
        "epsilon",
        "delta",
        "group_size",
        "epsilon_curve",
        "groups",
        "attack_success",
    )
    start = ledger.start
    return {
        **{name: fields[name] for name in shown},
        "adjacency": "add_remove",
        "accountant": "exact",
        "released": release_counts(e for t in ledger.trainings for e in t.released),
        "mechanisms": fields["budget"],
        "public": [dict(training.public) for training in ledger.trainings],
        "public_start": None if start is None or start.released else start.summary(),
        "trainings": len(ledger.trainings),
        "complete": all(training.complete for training in ledger.trainings),
        "ledger_version": LEDGER_VERSION,
        "statement": fields["statement"],
    }
