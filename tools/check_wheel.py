"""Check a wheel before it is given to anybody: ``python tools/check_wheel.py WHEEL...``.

A wheel for others must hold the two packages and nothing of the build, bring its own OpenMP
runtime, and name the oldest glibc that it runs on. ``make release-wheel`` makes such wheels.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

MOST_BYTES = 30 << 20
_TAG = re.compile(
    r"-py3\d*-none-(manylinux_\d+_\d+_\w+|musllinux_\d+_\d+_\w+|macosx_\w+|win_\w+)\.whl$"
)
_NEEDED = (
    "xgb_dp/__init__.py",
    "xgb_dp/py.typed",
    "xgb_dp/record/templates/model_card.md",
    "xgb_dp/record/templates/verification.schema.json",
    "_xgb_dp_import_redirect.py",
    "xgb_dp_import_redirect.pth",
    "_xgb_dp_xgboost/xgboost/__init__.py",
    "_xgb_dp_xgboost/xgboost/LICENSE",
)
_LIBRARY = r"_xgb_dp_xgboost/xgboost/lib/(lib)?xgboost\.(so|dylib|dll)"
_COPY = r"_xgb_dp_xgboost/xgboost/lib/(lib)?xgboost[.\d]*\.(so|dylib|dll)[.\d]*"
_BUILD_ONLY = (".h", ".hpp", ".cc", ".cmake", ".a", ".pc", ".o")


def faults(wheel: Path) -> list[str]:
    """What is wrong with a wheel, in words; empty if nothing is."""
    out = []
    if not _TAG.search(wheel.name):
        out.append("its name has no tag of a portable platform: repair it (make release-wheel)")
    if wheel.stat().st_size > MOST_BYTES:
        out.append(f"it is larger than {MOST_BYTES >> 20} MiB: was it built with debug symbols?")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        damaged = archive.testzip()
    if damaged:
        out.append(f"{damaged} is damaged")
    tops = {name.split("/")[0] for name in names}
    allowed = {
        "_xgb_dp_xgboost",
        "_xgb_dp_import_redirect.py",
        "xgb_dp_import_redirect.pth",
        "xgb_dp",
        "xgb_dp.libs",
    }
    strange = {top for top in tops - allowed if not top.endswith(".dist-info")}
    if strange:
        out.append(f"it would install {', '.join(sorted(strange))} beside what belongs to it")
    out += [f"{name} is missing" for name in _NEEDED if name not in names]
    if not any(re.fullmatch(_LIBRARY, name) for name in names):
        out.append("the library libxgboost is missing")
    elif (copies := sum(re.fullmatch(_COPY, name) is not None for name in names)) > 1:
        out.append(f"the library libxgboost is in it {copies} times: build it without a version")
    if not any(re.search(r"\.dist-info/(licenses/)?LICENSE$", name) for name in names):
        out.append("the licence is missing")
    linux = "linux" in wheel.name
    if linux and not any(re.match(r"xgb_dp\.libs/libgomp[-.\w]*\.so", name) for name in names):
        out.append("libgomp is not inside, and machines without it could not load the library")
    if not any(name.endswith(".dist-info/sboms/xgb-dp.cdx.json") for name in names):
        out.append("it does not say what it is made of: repair it (make release-wheel)")
    built = [name for name in names if name.endswith(_BUILD_ONLY)]
    if built:
        out.append(f"it holds files of the build, such as {built[0]}")
    return out


def main(arguments: Sequence[str]) -> int:
    """Check the wheels of a command line; 0 if all are well."""
    if not arguments:
        print("usage: check_wheel.py WHEEL...", file=sys.stderr)
        return 2
    bad = 0
    for name in arguments:
        wrong = faults(Path(name))
        bad += bool(wrong)
        print(f"{Path(name).name}: {'; '.join(wrong) or 'well'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
