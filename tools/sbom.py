"""Say what a wheel is made of, as a CycloneDX document: ``python tools/sbom.py WHEEL``.

A wheel holds the library, which is compiled from this repository and from the pinned source
distribution of XGBoost with our patches, and the shared libraries that a repair copied into it.
Packages that pip installs beside it are in its metadata, and not repeated here. The same wheel
gives the same document: it holds no time and no random number.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import fetch_upstream

VERSION = "_xgb_dp_xgboost/xgboost/VERSION"
"""The file of a wheel that says which release of XGBoost is inside."""
_LIBRARY = re.compile(r"(?:^|/)[^/]+\.(?:so[.\d]*|dylib|dll)$")
_APACHE = [{"license": {"id": "Apache-2.0"}}]


def hashes(content: bytes) -> list[dict[str, str]]:
    """The digest of a file, as the document holds it."""
    return [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]


def release_inside(version: str) -> fetch_upstream.Upstream:
    """The pinned release of XGBoost in a wheel.

    Args:
        version: What :data:`VERSION` says.

    Raises:
        ValueError: There is no such release.
    """
    release = fetch_upstream.find_release(version)
    if release is None:
        raise ValueError(f"xgboost {version} is not pinned in patches/upstream.json.")
    return release


def upstream_component(version: str) -> dict[str, Any]:
    """XGBoost: its source distribution, and the patches on it in their order."""
    upstream = release_inside(version)
    ref = f"pkg:pypi/{upstream.name}@{version}"
    patches = [
        {"type": "backport" if "fixes" in patch.parts else "unofficial", "diff": _text(patch)}
        for patch in fetch_upstream.read_series(version)
    ]
    return {
        "type": "library",
        "bom-ref": ref,
        "name": upstream.name,
        "version": version,
        "purl": f"{ref}?file_name={upstream.sdist_name}",
        "hashes": [{"alg": "SHA-256", "content": upstream.sha256}],
        "licenses": _APACHE,
        "pedigree": {"patches": patches},
        "components": [
            {
                "type": "library",
                "bom-ref": f"{ref}#dmlc-core",
                "name": "dmlc-core",
                "description": "Part of the source distribution of XGBoost.",
                "licenses": _APACHE,
            }
        ],
    }


def _text(patch: Path) -> dict[str, Any]:
    return {"text": {"contentType": "text/x-diff", "content": patch.read_text(encoding="utf-8")}}


def make_document(wheel: Path) -> dict[str, Any]:
    """The document of a wheel, CycloneDX 1.6.

    Args:
        wheel: The file, repaired or not.

    Raises:
        ValueError: The wheel has no xgboost of a pinned release inside.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(archive.namelist())
        if VERSION not in names:
            raise ValueError(f"{wheel.name} holds no {VERSION}: is it a wheel of xgb-dp?")
        version = archive.read(VERSION).decode().strip()
        files = [
            {
                "type": "file",
                "bom-ref": f"file:{name}",
                "name": name,
                "hashes": hashes(archive.read(name)),
            }
            for name in names
            if _LIBRARY.search(name)
        ]
    of_wheel = wheel.name.split("-")[1]
    root = f"pkg:pypi/xgb-dp@{of_wheel}"
    upstream = upstream_component(version)
    components = [upstream, *files]
    refs = [component["bom-ref"] for component in components]
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": "xgb-dp",
                "version": of_wheel,
                "purl": root,
                "licenses": _APACHE,
            }
        },
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": refs}, *({"ref": ref} for ref in refs)],
    }
    named = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))
    return {"serialNumber": f"urn:uuid:{named}", **document}


def check_document(text: str) -> str | None:
    """What the schema of CycloneDX finds wrong with a document; None if it is well.

    Raises:
        ImportError: cyclonedx-python-lib is missing, which the extra `release` brings.
    """
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return None if error is None else str(error)


def dump(document: dict[str, Any]) -> str:
    """The document as text."""
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: sbom.py WHEEL")
    print(dump(make_document(Path(sys.argv[1]))), end="")
