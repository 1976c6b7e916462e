"""The patch series: small, documented, applied strictly, and outside upstream's hot files."""

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.upstream.stock import ROOT, fetch_upstream, pinned_sdist

HEADER_FIELDS = ("Subject", "Why", "Checked", "Test")
MAX_CHANGED_LINES = 120  # of what private training needs
# Of fixes that stock XGBoost needs as well, which a release will make obsolete: ten of some 12.
MAX_FIXED_LINES = 120
HOT_FILES = {"evaluate_splits.h", "quantile.cc", "updater_quantile_hist.cc", "param.h"}

SERIES = fetch_upstream.read_series()
VERSIONS = [release.version for release in fetch_upstream.read_releases()]
FILES = sorted(fetch_upstream.PATCHES.rglob("*.patch"))


def place(patch: Path) -> str:
    """A patch within its folder, as messages name it."""
    return patch.relative_to(fetch_upstream.PATCHES).as_posix()


each_patch = pytest.mark.parametrize("patch", FILES, ids=place)
each_version = pytest.mark.parametrize("version", VERSIONS)


def header(patch: Path) -> dict[str, str]:
    """The fields above the first diff; a continued field has indented lines."""
    fields: dict[str, str] = {}
    name = ""
    for line in patch.read_text(encoding="utf-8").splitlines():
        if line.startswith("diff --git "):
            return fields
        match = re.match(r"(\w+):\s*(.*)", line)
        if match:
            name = match[1]
            fields[name] = match[2]
        elif line.strip():
            assert line.startswith(" "), (
                f"{patch.name}: neither a field nor its continuation: {line}"
            )
            assert name, f"{patch.name}: text before the first field"
            fields[name] += " " + line.strip()
    raise AssertionError(f"{patch.name} holds no diff")


def changed_lines(patch: Path) -> int:
    """Lines added and removed, counted inside the hunks only."""
    count = left_old = left_new = 0
    for line in patch.read_text(encoding="utf-8").splitlines():
        hunk = re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line)
        if hunk:
            assert left_old == left_new == 0, f"{patch.name}: a hunk is shorter than it says"
            left_old, left_new = (int(size or "1") for size in hunk.groups())
        elif left_old or left_new:
            left_old -= not line.startswith(("+", "\\"))
            left_new -= not line.startswith(("-", "\\"))
            count += line.startswith(("+", "-"))
    return count


def defined_tests(path: Path) -> set[str]:
    """`test_x` and `TestY::test_z` for every test function of a file."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{m.name}" for m in node.body if isinstance(m, ast.FunctionDef)}
    return names


def test_series_lists_every_patch_once():
    names = fetch_upstream.read_names()
    assert len(names) == len(set(names))
    used = {patch for version in VERSIONS for patch in fetch_upstream.read_series(version)}
    files = {path for path in fetch_upstream.PATCHES.rglob("*") if path.is_file()}
    assert {place(path) for path in files - used} == {"series", "upstream.json"}
    assert used <= files
    assert fetch_upstream.read_series(fetch_upstream.read_upstream().version) == SERIES


def test_folders_of_releases_hold_what_differs_only():
    """A patch is shared, or has words of its own for every release; never both.

    Only a fix may be for some releases alone, where the others have it by themselves.
    """
    for name in fetch_upstream.read_names():
        for_release = [(fetch_upstream.PATCHES / version / name).is_file() for version in VERSIONS]
        shared = (fetch_upstream.PATCHES / name).is_file()
        assert any(for_release) != shared, name
        assert name.startswith("fixes/") or len(set(for_release)) == 1, name


def calls(patch: Path) -> list[str]:
    """What a patch calls of ours, in added lines."""
    added = (line for line in patch.read_text(encoding="utf-8").splitlines() if line[:1] == "+")
    return sorted(re.findall(r"\b_?dp(?:_hook)?(?:\.|::)\w+", "\n".join(added)))


@pytest.mark.parametrize("name", fetch_upstream.read_names())
def test_words_for_all_releases_call_the_same(name):
    """A check that one release makes and another leaves out is a hole in the other."""
    folders = [fetch_upstream.PATCHES / version for version in VERSIONS]
    by_release = [calls(folder / name) for folder in folders if (folder / name).is_file()]
    assert all(names == by_release[0] for names in by_release)


@each_version
def test_fixes_stand_alone(version):
    """They come first, and touch no file that the rest of the series touches."""
    series = fetch_upstream.read_series(version)
    fixes = [patch for patch in series if patch.parent.name == "fixes"]
    assert fixes
    assert series[: len(fixes)] == fixes
    targets = [set(fetch_upstream.patch_targets(patch)) for patch in series]
    assert not set().union(*targets[: len(fixes)]) & set().union(*targets[len(fixes) :])


@each_patch
def test_each_patch_says_why_and_leaves_hot_files_alone(patch):
    fields = header(patch)
    also = {"Upstream"} if patch.parent.name == "fixes" else set()
    assert set(fields) == set(HEADER_FIELDS) | also
    assert all(fields.values())
    assert not {Path(name).name for name in fetch_upstream.patch_targets(patch)} & HOT_FILES
    for node in fields["Test"].replace(",", " ").split():
        file, _, name = node.partition("::")
        assert (ROOT / file).is_file(), f"{node}: no such file"
        assert re.sub(r"\[.*\]$", "", name) in defined_tests(ROOT / file), f"{node}: no such test"


@each_version
def test_series_is_small(version):
    series = fetch_upstream.read_series(version)
    fixes = {p.name: changed_lines(p) for p in series if p.parent.name == "fixes"}
    needed = {p.name: changed_lines(p) for p in series if p.name not in fixes}
    assert sum(needed.values()) < MAX_CHANGED_LINES, needed
    assert sum(fixes.values()) < MAX_FIXED_LINES, fixes


def test_series_applies_to_the_pinned_sdist_without_fuzz_or_offset(tmp_path):
    tree = tmp_path / "source"
    release = fetch_upstream.read_upstream()
    fetch_upstream.unpack(release, pinned_sdist(), tree)
    for patch in SERIES:
        output = fetch_upstream.apply_patch(patch, tree)
        checked = header(patch)["Checked"].split(";")[0].split(", ")
        assert release.version in checked, f"{place(patch)} was not checked with this release"
        # A shared patch has the lines of the first release that it was checked with.
        if checked[0] == release.version:
            assert "offset" not in output, f"{place(patch)}: {output}"
            assert "succeeded at" not in output, f"{place(patch)}: {output}"


# -- the tool that applies them -------------------------------------------------------------------

PATCH = """Subject: x
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree inside a repository that ignores it, as a build folder is."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("build/\n")
    folder = tmp_path / "build" / "source"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    return folder


def write_patch(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "change.patch"
    path.write_text(text)
    return path


def test_patch_is_applied_inside_an_ignored_folder(tmp_path, tree):
    fetch_upstream.apply_patch(write_patch(tmp_path, PATCH), tree)
    assert (tree / "a.txt").read_text() == "one\n2\nthree\n"
    mode_only = "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n"
    with pytest.raises(fetch_upstream.UpstreamError, match=r"did not change a\.txt"):
        fetch_upstream.apply_patch(write_patch(tmp_path, mode_only), tree)


@pytest.mark.parametrize(
    "context", ["uno\ntwo\nthree\n", " one\ntwo\nthree\n", "one\ntwo\nthree \n"]
)
def test_other_context_or_whitespace_is_refused(tmp_path, tree, context):
    (tree / "a.txt").write_text(context)
    with pytest.raises(fetch_upstream.UpstreamError, match="does not apply"):
        fetch_upstream.apply_patch(write_patch(tmp_path, PATCH), tree)
    assert (tree / "a.txt").read_text() == context


def test_other_sdist_is_refused(tmp_path):
    other = tmp_path / "other.tar.gz"
    other.write_bytes(pinned_sdist().read_bytes()[:-1])
    with pytest.raises(fetch_upstream.UpstreamError, match="sha256"):
        fetch_upstream.obtain_sdist(fetch_upstream.read_upstream(), tmp_path, str(other))


def test_changed_patch_rewrites_only_the_files_it_changes(tmp_path, monkeypatch):
    folder = tmp_path / "upstream"
    sdist = str(pinned_sdist())
    source = fetch_upstream.make_tree(folder, sdist)
    names = fetch_upstream._files(source)
    before = {name: (source / name).stat().st_mtime_ns for name in names}
    generated = source / "cpp_src" / "include" / "xgboost" / "generated.h"
    generated.touch()  # as CMake does

    assert fetch_upstream.make_tree(folder, sdist) == source
    assert before == {name: (source / name).stat().st_mtime_ns for name in names}

    monkeypatch.setattr(fetch_upstream, "read_series", lambda: SERIES[:-1])
    fetch_upstream.make_tree(folder, sdist)
    touched = {name for name in names if (source / name).stat().st_mtime_ns != before[name]}
    assert touched == set(fetch_upstream.patch_targets(SERIES[-1]))
    assert generated.exists()


@pytest.mark.skipif(not (ROOT / ".gitattributes").is_file(), reason="no checkout")
def test_checkouts_on_windows_have_the_same_patches(tmp_path):
    """Runners there set core.autocrlf, and a patch with other ends of lines does not apply."""
    first, second = tmp_path / "first", tmp_path / "second"
    patch = FILES[0]
    first.mkdir()
    for file in (ROOT / ".gitattributes", patch):
        shutil.copyfile(file, first / file.name)
    who = {f"GIT_{kind}_{what}": "a" for kind in ("AUTHOR", "COMMITTER") for what in
           ("NAME", "EMAIL")}  # fmt: skip
    commands = [
        ["git", "-C", str(first), "init", "-q"],
        ["git", "-C", str(first), "add", "."],
        ["git", "-C", str(first), "commit", "-q", "-m", "all"],
        ["git", "-c", "core.autocrlf=true", "clone", "-q", str(first), str(second)],
    ]
    for command in commands:
        subprocess.run(command, env=os.environ | who, check=True)
    assert (second / patch.name).read_bytes() == patch.read_bytes()
