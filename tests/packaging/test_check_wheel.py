"""What is wrong with a wheel is found before it is given away, and what it says of itself."""

import base64
import copy
import hashlib
import json
import platform
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.scripts import script

check = script("tools/check_wheel.py")
trial = script("tools/try_wheel.py")
tool = script("tools/repair_wheel.py")
ROOT = Path(__file__).resolve().parents[2]
GOOD = [
    "xgb_dp/__init__.py",
    "xgb_dp/py.typed",
    "xgb_dp/record/templates/model_card.md",
    "xgb_dp/record/templates/verification.schema.json",
    "_xgb_dp_import_redirect.py",
    "xgb_dp_import_redirect.pth",
    "_xgb_dp_xgboost/xgboost/__init__.py",
    "_xgb_dp_xgboost/xgboost/LICENSE",
    "_xgb_dp_xgboost/xgboost/lib/libxgboost.so",
    "xgb_dp.libs/libgomp-f9a9ad78.so.1.0.0",
    "xgb_dp-0.1.0.dist-info/licenses/LICENSE",
    "xgb_dp-0.1.0.dist-info/sboms/xgb-dp.cdx.json",
]
NAME = "xgb_dp-0.1.0-py3-none-manylinux_2_28_x86_64.whl"


def wheel(folder: Path, files: list[str], name: str = NAME) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.writestr(file, b"content")
    return path


def test_a_good_wheel(tmp_path, capsys):
    assert check.main([str(wheel(tmp_path, GOOD))]) == 0
    assert "well" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [
        "xgboost/__init__.py",
        "tests/test_x.py",
        "_xgb_dp_xgboost/xgboost/lib/x.a",
        "_xgb_dp_xgboost/xgboost/lib/libxgboost.so.3.4.1",  # a link of a build, copied
        "_xgb_dp_xgboost/xgboost/lib/libxgboost.3.dylib",
    ],
)
def test_something_is_too_much(tmp_path, more):
    assert len(check.faults(wheel(tmp_path, [*GOOD, more]))) == 1


@pytest.mark.parametrize("lost", GOOD)
def test_something_is_missing(tmp_path, lost):
    assert len(check.faults(wheel(tmp_path, [f for f in GOOD if f != lost]))) == 1


def test_a_wheel_for_this_machine_only(tmp_path, capsys):
    path = wheel(tmp_path, GOOD, "xgb_dp-0.1.0-py3-none-linux_x86_64.whl")
    assert check.main([str(path)]) == 1
    assert "make release-wheel" in capsys.readouterr().out


def test_damage_and_size(tmp_path, monkeypatch):
    path = wheel(tmp_path, GOOD)
    monkeypatch.setattr(check, "MOST_BYTES", 10)
    assert "larger" in check.faults(path)[0]
    monkeypatch.setattr(check, "MOST_BYTES", 1 << 20)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"content")] ^= 1
    path.write_bytes(raw)
    assert "damaged" in check.faults(path)[0]


def test_interpreters_are_found_once_each(monkeypatch):
    version = platform.python_version()
    assert trial.interpreters([sys.executable, sys.executable]) == {version: sys.executable}
    with pytest.raises(trial.TrialError, match="no-such-python does not start"):
        trial.interpreters([sys.executable, "no-such-python"])
    monkeypatch.setattr(trial, "candidates", lambda: ["no-such-python", sys.executable])
    assert trial.interpreters([]) == {version: sys.executable}
    monkeypatch.setattr(trial, "candidates", lambda: ["no-such-python"])
    with pytest.raises(trial.TrialError, match="PYTHONS="):
        trial.interpreters([])


def test_a_trial_fails_if_a_command_does(tmp_path, monkeypatch, capsys):
    path = str(wheel(tmp_path, GOOD))
    here = ["--pythons", sys.executable]

    def step(code: str) -> None:
        command = [sys.executable, "-c", code]
        monkeypatch.setattr(trial, "try_wheel", lambda *_: trial.run(command, tmp_path))

    step("print('all is well')")
    assert trial.main([path, *here]) == 0
    assert "all is well" in capsys.readouterr().out
    step("print('the reason'); raise SystemExit(3)")
    assert trial.main([path, *here]) == 1
    assert "the reason" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        trial.main([path + ".missing", *here])


def test_the_private_build_is_used_beside_a_stock_package(tmp_path, monkeypatch):
    steps = []

    def note(command, folder, environment=None):
        steps.append((" ".join(map(str, command)), (environment or {}).get("XGB_DP_XGBOOST")))
        if command[-1] == "extras":  # it keeps files, which another run does not overwrite
            (folder / "model.json").touch(exist_ok=False)
        return "well\n"

    monkeypatch.setattr(trial, "run", note)
    monkeypatch.setattr(trial.shutil, "copytree", lambda *_, **__: None)
    trial.try_wheel(wheel(tmp_path, GOOD), sys.executable, "3.2.0", ["tests/cli"], tmp_path)
    at = next(i for i, (command, _) in enumerate(steps) if command.endswith("xgboost==3.2.0"))
    assert not any(build for _, build in steps[:at])
    used, *_, tested = steps[at + 1 :]
    assert used[0].endswith("extras") and tested[0].endswith("-m not slow tests/cli")
    assert used[1] == tested[1] == "private"


def test_only_the_environment_is_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    bare = trial.bare_environment(tmp_path)
    assert bare["PATH"] == str(tmp_path / trial.BIN)
    assert "PYTHONPATH" not in bare


LIBRARIES = ("_xgb_dp_xgboost/xgboost/lib/libxgboost.so", "xgb_dp.libs/libgomp-f9a9ad78.so.1.0.0")


def built(folder: Path, version: str, content: bytes = b"library") -> Path:
    """A wheel as auditwheel leaves it, as far as tools read it."""
    info = "xgb_dp-0.1.0.dist-info"
    tags = ("py3-none-manylinux_2_28_x86_64",)
    files: dict[str, bytes] = {name: content + name.encode() for name in LIBRARIES} | {
        "xgb_dp/__init__.py": b"",
        "_xgb_dp_xgboost/xgboost/VERSION": f"{version}\n".encode(),
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: xgb-dp\nVersion: 0.1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\n"
        + "".join(f"Tag: {tag}\n" for tag in tags).encode(),
    }
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    files[f"{info}/RECORD"] = ("\n".join(lines) + f"\n{info}/RECORD,,\n").encode()
    folder.mkdir(exist_ok=True)
    path = folder / f"xgb_dp-0.1.0-{tags[0]}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def finish(given: Path, folder: Path) -> Path:
    scratch, out = folder / "scratch", folder / "out"
    scratch.mkdir(parents=True)
    out.mkdir()
    done: Path = tool.describe_and_tag(given, out, scratch)
    return done


def document_of(done: Path) -> dict[str, Any]:
    with zipfile.ZipFile(done) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/sboms/xgb-dp.cdx.json"))
        assert f"{name}," in archive.read("xgb_dp-0.1.0.dist-info/RECORD").decode()
        read: dict[str, Any] = json.loads(archive.read(name))
    return read


@pytest.mark.parametrize("version, tag", [("3.2.0", "py310"), ("3.4.1", "py312")])
def test_pip_tells_the_wheels_of_two_upstream_releases_apart(tmp_path, version, tag):
    from packaging.tags import compatible_tags

    done = finish(built(tmp_path / "in", version), tmp_path)
    assert done.name == f"xgb_dp-0.1.0-{tag}-none-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(done) as archive:
        metadata = archive.read("xgb_dp-0.1.0.dist-info/WHEEL").decode()
    assert f"Tag: {tag}-none-manylinux_2_28_x86_64" in metadata and "Tag: py3-" not in metadata
    # The order of pip on Python 3.13, which runs both: the newer release first.
    order = [t.interpreter for t in compatible_tags((3, 13), "cp313", ["linux"]) if t.abi == "none"]
    assert order.index("py312") < order.index("py310")


def test_the_same_build_gives_the_same_file_at_any_time(tmp_path):
    given = [built(tmp_path / name, "3.2.0") for name in ("one", "two")]
    done = [finish(path, tmp_path / f"of-{path.parent.name}") for path in given]
    assert done[0].read_bytes() == done[1].read_bytes()
    with zipfile.ZipFile(done[0]) as archive:
        assert {entry.date_time[0] for entry in archive.infolist()} == {1980}
    other = finish(built(tmp_path / "three", "3.2.0", b"other"), tmp_path / "of-three")
    assert document_of(other)["serialNumber"] != document_of(done[0])["serialNumber"]


def test_the_document_names_what_is_inside(tmp_path):
    done = finish(built(tmp_path / "in", "3.4.1"), tmp_path)
    document = document_of(done)
    upstream, *files = document["components"]
    pinned = json.loads((ROOT / "patches" / "upstream.json").read_text())["releases"][-1]
    assert (upstream["name"], upstream["version"]) == ("xgboost", "3.4.1") == (
        "xgboost", pinned["version"],
    )  # fmt: skip
    assert upstream["hashes"] == [{"alg": "SHA-256", "content": pinned["sha256"]}]
    names = [
        line
        for line in (ROOT / "patches" / "series").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    folders = (ROOT / "patches" / "3.4.1", ROOT / "patches")
    applied = [name for name in names if any((folder / name).is_file() for folder in folders)]
    assert len(applied) < len(names)  # 3.4 has a fix by itself that 3.2 needs
    assert len(upstream["pedigree"]["patches"]) == len(applied)
    with zipfile.ZipFile(done) as archive:
        for file in files:
            digest = hashlib.sha256(archive.read(file["name"])).hexdigest()
            assert file["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert {file["name"] for file in files} == set(LIBRARIES)


def test_a_document_that_is_not_cyclonedx_is_refused(tmp_path):
    sbom = sys.modules["sbom"]
    document = sbom.make_document(built(tmp_path, "3.2.0"))
    assert sbom.check_document(sbom.dump(document)) is None
    wrong = copy.deepcopy(document)
    wrong["components"][0]["type"] = "booster"
    assert sbom.check_document(sbom.dump(wrong)) is not None


def test_a_wheel_of_an_unknown_release_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"99.0.0 is not pinned"):
        finish(built(tmp_path / "in", "99.0.0"), tmp_path)
