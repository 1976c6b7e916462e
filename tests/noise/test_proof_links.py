"""Every header of the noise names its proof, and the proof names the header."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADERS = sorted((ROOT / "plugin_cpp" / "noise").glob("*.h"))


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_header_and_proof_point_at_each_other(header):
    pages = re.findall(r"^// Proof: (docs/proofs/\S+\.md)$", header.read_text(), re.MULTILINE)
    assert len(pages) == 1
    assert header.relative_to(ROOT).as_posix() in (ROOT / pages[0]).read_text()
