"""The FLARE job of ``docs/howto/federated.md`` in its simulator: a process per site."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nvflare")
pytest.importorskip("cryptography")

from tests.children import light_environment
from tests.secure.cluster import make_parties
from tests.secure.test_flower import FAILS, check_budgets, check_model, program
from tests.secure.test_hosts import PAGE, PARTIES

TEXT = PAGE.read_text(encoding="utf-8")
SECTION = TEXT.split("\n## With NVIDIA FLARE\n")[1].split("\n## ")[0]
MODEL = "workspace/server/simulate_job/model.json"
pytestmark = pytest.mark.slow


def train(folder: Path, leaving: str | None = None) -> str:
    """Follow the page; return what the job printed."""
    make_parties(folder, PARTIES)
    program(folder, leaving)
    (job,) = re.findall(r"^```python\n(# job\.py\n.*?)^```", SECTION, re.M | re.S)
    (folder / "job.py").write_text(job.replace("Party()", "Party(timeout=8.0)"))
    lines = [
        line
        for block in re.findall(r"^```bash\n(.*?)^```", SECTION, re.M | re.S)
        for line in block.splitlines()
        if not line.startswith("pip")
    ]
    (folder / "light").mkdir()
    environment = light_environment(folder / "light") | {"OMP_NUM_THREADS": "1"}
    # The page sets the path of Python, which also names the tests' light start.
    script = "\n".join(lines).replace("PYTHONPATH=$PWD", f"PYTHONPATH=$PWD:{folder / 'light'}")
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_three_sites_train_one_model_with_one_ledger(tmp_path):
    said = train(tmp_path)
    check_model(tmp_path / MODEL, said)
    check_budgets(tmp_path)
    code = list((tmp_path / "workspace").rglob("simulate_job/**/*.py"))
    assert code == []  # of the parties; the job has none


@pytest.mark.parametrize(
    "how",
    ["os.kill(os.getpid(), signal.SIGKILL)", FAILS],
    ids=["its process is killed", "its program fails"],
)
def test_a_site_that_leaves_ends_the_job(how, tmp_path):
    said = train(tmp_path, how)
    assert "FATAL_SYSTEM_ERROR" in said, said
    assert "A party left, or this party's program failed" in said, said
    assert "a new training costs its full epsilon" in said
    assert not (tmp_path / MODEL).exists()
    logs = [path for path in (tmp_path / "workspace").rglob("*") if path.is_file()]
    assert len(logs) > 9
    assert not any(b"secret cell" in path.read_bytes() for path in logs)  # FLARE can send them
    check_budgets(tmp_path)
