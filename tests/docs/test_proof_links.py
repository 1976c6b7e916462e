"""Every header of a mechanism names its proof, and the proof names the header."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "docs" / "proofs"
PAGES = sorted(p for p in PROOFS.glob("*.md") if p.name != "index.md")
# Plumbing: neither draws noise, nor bounds, nor accounts for what a row can change.
PLUMBING = {
    "binned_pages.h",
    "checks.h",
    "grower.h",
    "guard.h",
    "json_reader.h",
    "page_file.h",
    "plan.h",
    "source.h",
}
HEADERS = sorted(p for p in (ROOT / "plugin_cpp").rglob("*.h") if p.name not in PLUMBING)


def pages_of(text: str) -> list[str]:
    return re.findall(r"^(?: ?(?:\*|//) )?Proof: (docs/proofs/\S+\.md)$", text, re.MULTILINE)


# Mechanisms that are in Python altogether.
MODULES = sorted(p for p in (ROOT / "xgb_dp").rglob("*.py") if pages_of(p.read_text()))


@pytest.mark.parametrize("header", HEADERS + MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_header_and_proof_point_at_each_other(header: Path) -> None:
    pages = pages_of(header.read_text())
    assert pages
    for page in pages:
        assert header.relative_to(ROOT).as_posix() in (ROOT / page).read_text(), page


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page_is_the_proof_of_some_header(page: Path) -> None:
    named = {p for h in HEADERS + MODULES for p in pages_of(h.read_text())}
    assert page.relative_to(ROOT).as_posix() in named


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_paths_on_a_page_exist(page: Path) -> None:
    for path in re.findall(r"(?:plugin_cpp|xgb_dp)/[\w/]+\.(?:h|cc|py)", page.read_text()):
        assert (ROOT / path).exists(), path
