"""A model file is signed by an SSH key, and `verify` says who has signed it, and for what."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.cli.calls import fails, run
from tests.conftest import arrays, private
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.record import verify

if shutil.which("ssh-keygen") is None:
    pytest.skip("OpenSSH makes and checks signatures", allow_module_level=True)


def key_of(folder: Path, name: str, kind: str = "ed25519") -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path], check=True)
    return path


def signers_of(folder: Path, **keys: Path) -> Path:
    path = folder / "signers"
    lines = [f"{n} {key.with_suffix('.pub').read_text()}" for n, key in keys.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def check_of(model: Path, signers: Path) -> xgb_dp.Verification:
    verification = xgb_dp.verify(model, signers=signers)
    [check] = [c for c in verification.checks if c.name == "signature"]
    assert (verification.verdict == "passed") == check.passed
    return check


@pytest.fixture
def with_budget(tmp_path):
    """A saved model, and the book that holds it."""
    X, y = arrays("binary")
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=2.0, delta=1e-5)
    params = private(objective="binary:logistic", nthread=1, verbosity=0)
    model = budget.train(params, xgb.DMatrix(X, y), 3)
    model.save_model(tmp_path / "m.json")
    return tmp_path / "m.json"


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_the_holder_of_the_book_signs(with_budget, kind):
    key = key_of(with_budget.parent, "holder", kind)
    signers = signers_of(with_budget.parent, holder=key)
    book = str(with_budget.parent / "budget.json")
    run("sign", str(with_budget), "--key", str(key), "--budget", book)
    check = check_of(with_budget, signers)
    assert check.passed and "signed by holder, who states that a budget recorded" in check.detail
    shown = json.loads(run("verify", str(with_budget), "--signer", str(signers), "--json").stdout)
    assert [c["passed"] for c in shown["checks"] if c["name"] == "signature"] == [True]


def test_a_signature_without_a_book_says_so(with_budget):
    key = key_of(with_budget.parent, "holder")
    run("sign", str(with_budget), "--key", str(key))
    check = check_of(with_budget, signers_of(with_budget.parent, holder=key))
    assert check.passed and "without a statement about a budget" in check.detail


def test_what_is_no_signature_of_the_file(with_budget):
    folder = with_budget.parent
    key, other = key_of(folder, "holder"), key_of(folder, "other")
    signers = signers_of(folder, holder=key)
    assert "no signature m.json.sig" in check_of(with_budget, signers).detail
    signed = verify.create_signature(with_budget.read_bytes(), key, budgeted=True)
    verify.signature_path(with_budget).write_bytes(signed)
    assert check_of(with_budget, signers).passed
    assert not check_of(with_budget, signers_of(folder, other=other)).passed
    with_budget.write_text(with_budget.read_text() + " ")  # the same model, in other bytes
    assert not check_of(with_budget, signers_of(folder, holder=key)).passed
    verify.signature_path(with_budget).write_text("no signature")
    assert not check_of(with_budget, signers).passed
    # What the key has signed for another purpose says nothing of a model.
    verify.signature_path(with_budget).unlink()
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "file", with_budget], check=True
    )
    assert not check_of(with_budget, signers).passed


def test_only_what_passes_and_is_booked_is_signed(with_budget, tmp_path):
    key, X = key_of(tmp_path, "holder"), np.zeros((200, 1))
    xgb_dp.Budget(tmp_path / "empty.json", epsilon=2.0, delta=1e-5)
    signing = ["sign", str(with_budget), "--key", str(key)]
    assert "does not contain" in fails(*signing, "--budget", str(tmp_path / "empty.json"))
    xgb.train({}, xgb.DMatrix(X, X[:, 0]), 1).save_model(tmp_path / "stock.json")
    assert "does not pass" in fails("sign", str(tmp_path / "stock.json"), "--key", str(key))
    assert not list(tmp_path.glob("*.sig"))


def test_wrong_calls(with_budget, monkeypatch):
    content, key = with_budget.read_bytes(), with_budget.parent / "key"
    key.write_text("no key")
    with pytest.raises(PrivacyParameterError, match="could not sign with"):
        verify.create_signature(content, key, budgeted=False)
    with pytest.raises(PrivacyParameterError, match="file of signers"):
        xgb_dp.verify(with_budget, signers=with_budget.parent / "nobody")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PrivacyParameterError, match="Install the OpenSSH client"):
        verify.create_signature(content, key, budgeted=False)


def test_a_model_in_memory_has_no_signature(with_budget):
    signers = signers_of(with_budget.parent, holder=key_of(with_budget.parent, "holder"))
    with pytest.raises(PrivacyParameterError, match="needs a model file"):
        xgb_dp.verify(xgb.Booster(model_file=with_budget), signers=signers)
