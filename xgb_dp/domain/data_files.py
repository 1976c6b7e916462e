"""Find the files of a table: one file, several files, or folders with hive partitions.

Names of files and folders are public.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from ..errors import PrivacyParameterError

Source: TypeAlias = "Path | tuple[Path, ...]"
"""The path of a table, or several paths: CSV or Parquet files, or folders of such files."""
Parts: TypeAlias = "dict[str, str | None]"
"""Partition columns of a file: the cell that all its rows have, by column."""

_TYPED = (".parquet", ".pq")
_DATA = re.compile(r".+\.(parquet|pq|(csv|tsv)(\.(gz|bz2|xz))?)", re.IGNORECASE)
_NULL_PART = "__HIVE_DEFAULT_PARTITION__"


def is_parquet(source: Source) -> bool:
    """Return whether a table is in Parquet files, by their extension."""
    return _is_typed(find_files(source)[0][0])


def _is_typed(path: Path) -> bool:
    return path.suffix.lower() in _TYPED


def name_of(source: Source) -> str:
    """Return a short name for messages."""
    if isinstance(source, Path):
        return source.name
    return f"{source[0].name} and {len(source) - 1} more"


def find_files(source: Source) -> list[tuple[Path, Parts]]:
    """Return the files of a table, each with the partition columns of its path.

    The folders below the given folder, or below the common folder of several paths, can be
    partitions such as ``town=Rome``. A file that occurs twice is refused, because its rows would
    count twice.
    """
    if isinstance(source, Path) and not source.is_dir():
        return [(source, {})]
    paths = [path.absolute() for path in ([source] if isinstance(source, Path) else source)]
    base = paths[0] if len(paths) == 1 else Path(os.path.commonpath([p.parent for p in paths]))
    files = [file for path in paths for file in (_in_folder(path) if path.is_dir() else [path])]
    if len({_is_typed(file) for file in files}) > 1:
        raise PrivacyParameterError(
            f"{name_of(source)}: the files have different formats. Pass either Parquet files or "
            "CSV files."
        )
    if len({(s.st_dev, s.st_ino) for s in (file.stat() for file in files)}) < len(files):
        raise PrivacyParameterError(
            f"{name_of(source)}: a file occurs twice, so its rows would count twice. Pass each "
            "file once."
        )
    parts = [_parts(file.relative_to(base)) for file in files]
    if len({tuple(sorted(names)) for names in parts}) > 1:
        raise PrivacyParameterError(
            f"The files in {name_of(source)} are partitioned by different columns. Partition all "
            "files by the same columns."
        )
    return list(zip(files, parts, strict=True))


def _in_folder(folder: Path) -> list[Path]:
    """Return the data files below a folder, without hidden ones."""
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if not any(name[0] in "._" for name in file.relative_to(folder).parts)
        and _DATA.fullmatch(file.name)
        and file.is_file()
    ]
    if not files:
        raise PrivacyParameterError(
            f"{folder.name} is a folder without .parquet or .csv files. Pass a data file, or a "
            "folder of such files."
        )
    return files


def _parts(path: Path) -> Parts:
    pairs = [name.partition("=") for name in path.parts[:-1] if "=" in name]
    return {key: None if value == _NULL_PART else unquote(value) for key, _, value in pairs}
