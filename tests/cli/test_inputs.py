"""No command writes over a file that it reads, by whatever name."""

import os
import shutil
from pathlib import Path

import pytest
import xgboost as xgb

pytest.importorskip("click")

import xgb_dp
from tests.conftest import OBJECTIVE, arrays, private
from xgb_dp.cli.standalone import verify_command

from .calls import TARGET, TRAIN, fails, run

COMMANDS = {
    "verify": (["verify", "model.json", "--policy", "rules.json", "--signer", "signers", "--out"],
               ["model.json", "model.json.sig", "rules.json", "signers"]),
    "report": (["report", "model.json", "--force", "--out"], ["model.json"]),
    "card": (["card", "model.json", "--force", "--out"], ["model.json"]),
    "predict": (["predict", "model.json", "rows.csv", "--schema", "schema.json", "--force",
                 "--out"], ["model.json", "rows.csv", "schema.json"]),
    "evaluate": (["evaluate", "model.json", "rows.csv", *TARGET, "--budget", "budget.json",
                  "--force", "--json"], ["model.json", "rows.csv", "budget.json"]),
    "train": ([*TRAIN, "--budget", "budget.json", "--param", "dp_secure_key=key", "--force",
               "--model"], ["rows.csv", "schema.yaml", "budget.json", "key"]),
    "schema": (["schema", "rows.csv", "--force", "--out"], ["rows.csv"]),
    "discover": (["discover", "rows.csv", *TARGET, "--text", "pet", "--budget", "budget.json",
                  "--force", "--out"], ["rows.csv", "budget.json"]),
}  # fmt: skip
LINKS = {
    "itself": lambda path: path,
    "relative": lambda path: Path("folder", "..", path),
    "symlink": lambda path: Path("link.json").symlink_to(path) or Path("link.json"),
    "hard link": lambda path: os.link(path, "hard.json") or Path("hard.json"),
}


@pytest.fixture(scope="module")
def model() -> bytes:
    X, y = arrays("binary")
    return bytes(xgb.train(private(**OBJECTIVE["binary"]), xgb.DMatrix(X, y), 1).save_raw("json"))


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_read_is_not_written(command, kind, folder, model, no_training, capsys):
    arguments, read = COMMANDS[command]
    Path("folder").mkdir()
    xgb_dp.Budget("budget.json", epsilon=5.0, delta=1e-5)
    Path("model.json").write_bytes(model)
    for name in ("model.json.sig", "rules.json", "signers", "schema.json", "key"):
        Path(name).write_text("precious")
    for name in read:
        content = Path(name).read_bytes()
        other = LINKS[kind](Path(name))
        if command == "verify":
            assert verify_command([*map(str, arguments[1:]), str(other)]) == 2
            output = capsys.readouterr().err
        else:
            output = fails(*arguments, other)
        assert "also read" in output
        assert Path(name).read_bytes() == content
        for link in ("link.json", "hard.json"):
            Path(link).unlink(missing_ok=True)


def test_the_policy_is_read_too(folder, monkeypatch):
    run(*TRAIN)
    Path("rules.json").write_text('{"format": 1}')
    monkeypatch.setenv("XGB_DP_POLICY", str(folder / "rules.json"))
    assert fails("report", "model.json", "--force", "--out", "rules.json")
    assert Path("rules.json").read_text() == '{"format": 1}'


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH signs")
def test_a_signature_replaces_nothing_by_accident(folder):
    run(*TRAIN)
    os.system("ssh-keygen -q -t ed25519 -N '' -f key")
    call = ["sign", "model.json", "--key", "key"]
    Path("model.json.sig").symlink_to("rows.csv")
    before = Path("rows.csv").read_bytes()
    assert "is a symbolic link" in fails(*call, "--force")
    assert Path("rows.csv").read_bytes() == before
    Path("model.json.sig").unlink()
    run(*call)
    first = Path("model.json.sig").read_bytes()
    assert "--force" in fails(*call)
    assert Path("model.json.sig").read_bytes() == first
    run(*call, "--force")
