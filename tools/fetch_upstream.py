"""Put the pinned, patched upstream source tree into a folder; do nothing when it is there already.

Usage: ``python tools/fetch_upstream.py FOLDER [--sdist FILE]``, ``--version`` or
``--runnable``

The releases that we build on are in ``patches/upstream.json``. The newest one that runs on this
Python is taken, or the one that the environment variable ``XGB_DP_UPSTREAM`` names. It comes as a
source distribution from the package index that the user configured for pip, or from ``--sdist`` (or
the environment variable ``XGB_DP_UPSTREAM_SDIST``) without any network. Either way its sha256 must
be the pinned one. The patches of ``patches/series`` are then applied strictly: no fuzz, no
whitespace leniency, and a patch that leaves one of its files unchanged is an error. A patch that
needs other words for a release has them in ``patches/<version>/``.

``FOLDER/source`` is the patched tree and ``FOLDER/stamp.json`` says what it was made from. When a
patch changes, only files with other content are rewritten, so that little is compiled again.
"""

from __future__ import annotations

import argparse
import configparser
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "patches"
SDIST_VARIABLE = "XGB_DP_UPSTREAM_SDIST"
VERSION_VARIABLE = "XGB_DP_UPSTREAM"
_TARGET = re.compile(r"^diff --git a/(?P<old>\S+) b/(?P<new>\S+)$", re.MULTILINE)


class UpstreamError(RuntimeError):
    """The pinned upstream tree cannot be made; the message says what to do."""


@dataclass(frozen=True)
class Upstream:
    """A pinned upstream release.

    Attributes
    ----------
    python
        The oldest Python that it runs on, as in ``3.12``.
    """

    name: str
    version: str
    sha256: str
    python: str

    @property
    def sdist_name(self) -> str:
        """File name of the source distribution."""
        return f"{self.name}-{self.version}.tar.gz"

    def runs_on(self, python: tuple[int, int]) -> bool:
        """Whether it runs on a Python, given as in ``(3, 12)``."""
        return tuple(map(int, self.python.split("."))) <= python


def read_releases() -> list[Upstream]:
    """The releases named in ``patches/upstream.json``, from the oldest to the newest."""
    content = json.loads((PATCHES / "upstream.json").read_text(encoding="utf-8"))
    return [Upstream(name=content["name"], **release) for release in content["releases"]]


def find_release(version: str) -> Upstream | None:
    """The pinned release of a version; None if there is none."""
    return next((r for r in read_releases() if r.version == version), None)


def runnable_releases() -> list[Upstream]:
    """The releases that run on this Python, from the oldest to the newest."""
    return [release for release in read_releases() if release.runs_on(sys.version_info[:2])]


def read_upstream(version: str | None = None) -> Upstream:
    """The release to build on.

    Parameters
    ----------
    version
        Its version. Without one, what the environment variable ``XGB_DP_UPSTREAM`` says; without
        that, the newest release that runs on this Python.

    Raises
    ------
    UpstreamError
        There is no such release, or it does not run on this Python.
    """
    python = sys.version_info[:2]
    version = version or os.environ.get(VERSION_VARIABLE) or ""
    if not version:
        running = runnable_releases()
        if not running:
            raise UpstreamError(f"no pinned release runs on Python {python[0]}.{python[1]}.")
        return running[-1]
    release = find_release(version)
    if release is None:
        known = ", ".join(release.version for release in read_releases())
        raise UpstreamError(
            f"xgboost {version} is not pinned in patches/upstream.json: take {known}."
        )
    if not release.runs_on(python):
        raise UpstreamError(
            f"xgboost {version} needs Python >= {release.python}, and this is "
            f"{python[0]}.{python[1]}: set PYTHON to another interpreter."
        )
    return release


def read_names() -> list[str]:
    """The names of ``patches/series`` in order; ``#`` starts a comment."""
    lines = (PATCHES / "series").read_text(encoding="utf-8").splitlines()
    return [name for line in lines if (name := line.split("#", 1)[0].strip())]


def read_series(version: str | None = None) -> list[Path]:
    """The patches for a release in the order in which they are applied.

    A fix that a release has by itself is in the folders of the others alone.
    """
    folder = PATCHES / (version or read_upstream().version)
    series = []
    for name in read_names():
        if (folder / name).is_file():
            series.append(folder / name)
        elif (PATCHES / name).is_file() or not list(PATCHES.glob(f"[0-9]*/{name}")):
            series.append(PATCHES / name)
    return series


def patch_targets(patch: Path) -> list[str]:
    """The files that a patch says it changes, relative to the root of the source tree."""
    return [match["new"] for match in _TARGET.finditer(patch.read_text(encoding="utf-8"))]


def file_sha256(path: Path) -> str:
    """Hex digest of a file, or an empty string when there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


# -- where the sdist comes from -------------------------------------------------------------------


def _pip_config_files() -> list[Path]:
    """pip's configuration files, weakest first."""
    home = Path.home()
    config_home = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    if os.name == "nt":
        name = "pip.ini"
        machine = [Path(os.environ.get("PROGRAMDATA", "C:\\ProgramData")) / "pip" / name]
        user = [home / "pip" / name, Path(os.environ.get("APPDATA", home)) / "pip" / name]
    else:
        name = "pip.conf"
        machine = [Path("/etc/xdg/pip") / name, Path("/etc") / name]
        user = [home / ".pip" / name, config_home / "pip" / name]
        if sys.platform == "darwin":
            machine.insert(0, Path("/Library/Application Support/pip") / name)
            user.append(home / "Library" / "Application Support" / "pip" / name)
    override = os.environ.get("PIP_CONFIG_FILE")
    if override == os.devnull:
        return []
    environment = [Path(sys.prefix) / name]
    return machine + user + environment + ([Path(override)] if override else [])


def _pip_option(name: str) -> list[str]:
    """The words of one pip option: ``PIP_*`` wins over ``[install]``, that over ``[global]``."""
    from_environment = os.environ.get("PIP_" + name.upper().replace("-", "_"))
    if from_environment:
        return shlex.split(from_environment)
    words: list[str] = []
    for section in ("global", "install"):
        for path in _pip_config_files():
            parser = configparser.RawConfigParser()
            try:
                parser.read(path, encoding="utf-8")
            except (configparser.Error, UnicodeDecodeError) as error:
                print(f"ignored: {path}: {error}", file=sys.stderr)
            for key in (name, name.replace("-", "_")):
                if parser.has_option(section, key):
                    words = shlex.split(parser.get(section, key))
    return words


def _as_url(location: str) -> str:
    return location if "://" in location else Path(location).expanduser().resolve().as_uri()


def download(upstream: Upstream, folder: Path) -> Path:
    """Download the sdist from the user's package index, without building it."""
    try:
        from unearth import PackageFinder
    except ImportError as error:
        raise UpstreamError(
            "downloading the upstream sdist needs the build requirement 'unearth': install it, or "
            f"point {SDIST_VARIABLE} at a copy of {upstream.sdist_name}."
        ) from error

    certificate = os.environ.get("PIP_CERT") or "".join(_pip_option("cert"))
    if certificate:
        os.environ.setdefault("SSL_CERT_FILE", certificate)
    # With no source configured, unearth takes the public index, as pip does.
    default = [source["url"] for source in PackageFinder().sources]
    no_index = "".join(_pip_option("no-index")).lower() in {"1", "true", "yes", "on"}
    indexes = [] if no_index else (_pip_option("index-url") or default)
    indexes = [*indexes, *([] if no_index else _pip_option("extra-index-url"))]
    finder = PackageFinder(
        index_urls=[_as_url(url) for url in indexes],
        find_links=[_as_url(url) for url in _pip_option("find-links")],
        trusted_hosts=_pip_option("trusted-host"),
        no_binary=[upstream.name],
        ignore_compatibility=True,  # of Python: only the source is wanted
    )
    try:
        matches = [
            match
            for match in finder.find_matches(f"{upstream.name}=={upstream.version}")
            if match.link.filename == upstream.sdist_name
        ]
        if matches:
            return Path(finder.download(matches[0].link, folder))
    except Exception as error:  # of the HTTP library, which is another one in each unearth release
        raise UpstreamError(
            f"{upstream.sdist_name} could not be downloaded ({type(error).__name__}: {error}). "
            f"Without a network, point {SDIST_VARIABLE} at a copy of the file."
        ) from error
    raise UpstreamError(
        f"the configured package index has no {upstream.sdist_name}: configure pip's index-url, or "
        f"point {SDIST_VARIABLE} at a copy of the file."
    )


def obtain_sdist(upstream: Upstream, folder: Path, given: str | None = None) -> Path:
    """Path of the sdist, checked against the pinned sha256; downloaded at most once.

    Parameters
    ----------
    upstream
        The pinned release.
    folder
        Where the file is kept.
    given
        A local copy of the sdist to use; nothing is downloaded then.

    Raises
    ------
    UpstreamError
        The file is missing, cannot be found, or is not the pinned one.
    """
    kept = folder / upstream.sdist_name
    if given:
        path = Path(given)
        if not path.is_file():
            raise UpstreamError(f"{SDIST_VARIABLE}={given} is not a file.")
    elif file_sha256(kept) == upstream.sha256:
        return kept
    else:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            path = download(upstream, Path(scratch))
            _check_sha256(upstream, path)
            os.replace(path, kept)
        return kept
    _check_sha256(upstream, path)
    if path.resolve() != kept.resolve():
        shutil.copyfile(path, kept)  # the tests read it from the build folder
    return kept


def _check_sha256(upstream: Upstream, path: Path) -> None:
    sha256 = file_sha256(path)
    if sha256 != upstream.sha256:
        raise UpstreamError(
            f"{path.name} has sha256 {sha256}, but {upstream.sha256} is pinned in "
            "patches/upstream.json: this is not the file that the patches were checked against."
        )


# -- the patched tree -----------------------------------------------------------------------------


def unpack(upstream: Upstream, sdist: Path, destination: Path) -> None:
    """Unpack the sdist so that its top folder becomes ``destination``."""
    with tempfile.TemporaryDirectory(dir=destination.parent) as scratch:
        with tarfile.open(sdist, "r:gz") as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(scratch, filter="data")
            else:  # Python before 3.10.12 and 3.11.4; the content is pinned by its sha256
                archive.extractall(scratch)
        os.replace(Path(scratch) / f"{upstream.name}-{upstream.version}", destination)


def apply_patch(patch: Path, tree: Path) -> str:
    """Apply one patch to a source tree strictly.

    Returns
    -------
    str
        What git said, so that a caller can see offsets.

    Raises
    ------
    UpstreamError
        The patch does not apply exactly, or a file it names stays as it was.
    """
    targets = patch_targets(patch)
    if not targets:
        raise UpstreamError(f"{patch.name}: no 'diff --git a/... b/...' line in it.")
    before = {target: file_sha256(tree / target) for target in targets}
    # git must not see a repository around the build folder: it would take the paths as relative
    # to that repository's root, find them ignored, and report success without touching a file.
    # The user's git configuration must not loosen the whitespace rules either.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment["GIT_CEILING_DIRECTORIES"] = str(tree.resolve().parent)
    environment["GIT_CONFIG_GLOBAL"] = os.devnull
    environment["GIT_CONFIG_NOSYSTEM"] = "1"
    environment["LC_ALL"] = "C"
    try:
        run = subprocess.run(
            ["git", "apply", "--verbose", "--whitespace=error-all", str(patch.resolve())],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise UpstreamError("git is needed to apply the patches, and was not found.") from error
    if run.returncode != 0:
        raise UpstreamError(f"{patch.name} does not apply:\n{run.stdout}{run.stderr}")
    unchanged = [target for target in targets if file_sha256(tree / target) == before[target]]
    if unchanged:
        raise UpstreamError(f"{patch.name} was applied but did not change {', '.join(unchanged)}.")
    return run.stdout + run.stderr


def _stamp(upstream: Upstream, series: list[Path]) -> str:
    parts = [upstream.sha256, file_sha256(Path(__file__)), *map(file_sha256, series)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _files(tree: Path) -> list[str]:
    paths = (path for path in tree.rglob("*") if path.is_file())
    return sorted(path.relative_to(tree).as_posix() for path in paths)


def _sync(fresh: Path, tree: Path, previous: list[str]) -> int:
    """Make ``tree`` equal to ``fresh``; files that are equal keep their modification time."""
    required = _files(fresh)
    changed = 0
    for name in required:
        source, target = fresh / name, tree / name
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            changed += 1
    for name in set(previous) - set(required):  # not files that a build generated in the tree
        (tree / name).unlink(missing_ok=True)
        changed += 1
    return changed


def make_tree(folder: Path, given: str | None = None) -> Path:
    """Make or refresh the patched tree ``folder/source`` and return its path.

    Raises
    ------
    UpstreamError
        See `obtain_sdist` and `apply_patch`.
    """
    upstream, series = read_upstream(), read_series()
    tree, stamp_file = folder / "source", folder / "stamp.json"
    stamp = _stamp(upstream, series)
    previous: dict[str, object] = {}
    if stamp_file.is_file() and tree.is_dir():
        previous = json.loads(stamp_file.read_text(encoding="utf-8"))
        if previous.get("stamp") == stamp:
            return tree

    folder.mkdir(parents=True, exist_ok=True)
    sdist = obtain_sdist(upstream, folder, given)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fresh = Path(scratch) / "source"
        unpack(upstream, sdist, fresh)
        for patch in series:
            apply_patch(patch, fresh)
        files = _files(fresh)
        stamp_file.unlink(missing_ok=True)  # an interrupted refresh must start again
        if previous:
            known = previous.get("files")
            changed = _sync(fresh, tree, known if isinstance(known, list) else [])
            print(f"upstream: {changed} files changed, {len(series)} patches applied")
        else:
            shutil.rmtree(tree, ignore_errors=True)
            os.replace(fresh, tree)
            print(f"upstream: {sdist.name} unpacked, {len(series)} patches applied")
    content = {"stamp": stamp, "version": upstream.version, "files": files}
    stamp_file.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return tree


def main() -> int:
    """Command line entry; returns the exit status."""
    parser = argparse.ArgumentParser(description="Fetch, check, unpack and patch upstream.")
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder that holds the sdist and the tree"
    )
    parser.add_argument("--version", action="store_true", help="print the release and do nothing")
    parser.add_argument(
        "--runnable", action="store_true", help="print the releases that run on this Python"
    )
    parser.add_argument("--pinned", action="store_true", help="print all releases")
    parser.add_argument("--sdist", help="local copy of the sdist, for builds without a network")
    arguments = parser.parse_args()
    if arguments.runnable or arguments.pinned:
        releases = read_releases() if arguments.pinned else runnable_releases()
        print(*(release.version for release in releases))
        return 0
    if arguments.folder is None and not arguments.version:
        parser.error("name the folder")
    try:
        if arguments.version:
            print(read_upstream().version)
            return 0
        make_tree(arguments.folder, arguments.sdist or os.environ.get(SDIST_VARIABLE))
    except UpstreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
