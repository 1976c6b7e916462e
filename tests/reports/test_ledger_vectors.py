"""Ledgers that are kept with the tests: readers of every version agree on what they cost."""

import json
from pathlib import Path

import pytest

from xgb_dp.errors import LedgerError
from xgb_dp.record.ledger import dump_checksummed, parse_ledger
from xgb_dp.record.ledger_model import VERSION
from xgb_dp.record.privacy_report import PrivacyReport

from .make_ledgers import INVALID, LEDGERS, VALID

FILES = {kind: sorted((LEDGERS / kind).glob("*.json")) for kind in ("valid", "invalid")}


def test_there_is_a_vector_of_every_kind() -> None:
    assert {path.stem for path in FILES["valid"]} == set(VALID)
    assert {name.replace(" ", "-") for name in INVALID} < {p.stem for p in FILES["invalid"]}


@pytest.mark.parametrize("path", FILES["valid"], ids=lambda path: path.stem)
def test_a_valid_ledger_is_read_and_written_unchanged(path: Path) -> None:
    vector = json.loads(path.read_text(encoding="utf-8"))
    ledger = parse_ledger(vector["text"])
    assert json.loads(vector["text"])["version"] == VERSION
    assert json.loads(dump_checksummed(ledger.to_json())) == json.loads(vector["text"])
    report = PrivacyReport(ledger.to_json())
    assert report.private and report.delta == vector["delta"]
    assert report.epsilon == pytest.approx(vector["epsilon"], rel=1e-6)


@pytest.mark.parametrize("path", FILES["invalid"], ids=lambda path: path.stem)
def test_an_invalid_ledger_is_refused(path: Path) -> None:
    with pytest.raises(LedgerError):
        parse_ledger(json.loads(path.read_text(encoding="utf-8"))["text"])
