"""Every header of a mechanism names its proof, and the proof names the header."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "docs" / "proofs"
PAGES = sorted(p for p in PROOFS.glob("*.md") if p.name != "index.md")
NAMING = [
    *PAGES,
    PROOFS / "index.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("glossary", "leaks", "guarantee")),
]
SOURCES = ("plugin_cpp", "xgb_dp", "tests")
# Plumbing: neither draws noise, nor bounds, nor accounts for what a row can change.
PLUMBING = {
    "digests.h",
    "disk_space.h",
    "grower.h",
    "guard.h",
    "json_reader.h",
    "page_file.h",
    "source.h",
    "upstream.h",
}
HEADERS = sorted(p for p in (ROOT / "plugin_cpp").rglob("*.h") if p.name not in PLUMBING)


def pages_of(text: str) -> list[str]:
    return re.findall(r"^(?: ?(?:\*|//) )?Proof: (docs/proofs/\S+\.md)$", text, re.MULTILINE)


# Mechanisms that are in Python altogether, or in C++ without a header.
MODULES = sorted(
    p
    for pattern in ("xgb_dp/**/*.py", "plugin_cpp/**/*.cc")
    for p in ROOT.glob(pattern)
    if pages_of(p.read_text())
)


@pytest.mark.parametrize("header", HEADERS + MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_header_and_proof_point_at_each_other(header):
    pages = pages_of(header.read_text())
    assert pages
    for page in pages:
        assert header.relative_to(ROOT).as_posix() in (ROOT / page).read_text(), page


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page_is_the_proof_of_some_header(page):
    named = {p for h in HEADERS + MODULES for p in pages_of(h.read_text())}
    assert page.relative_to(ROOT).as_posix() in named


@pytest.fixture(scope="module")
def strings() -> dict[Path, str]:
    """All code, by the file that has it."""
    files = [p for folder in SOURCES for p in (ROOT / folder).rglob("*.*")]
    return {p: p.read_text("utf-8") for p in files if p.suffix in (".h", ".cc", ".py")}


@pytest.fixture(scope="module")
def words(strings: dict[Path, str]) -> set[str]:
    return {word for text in strings.values() for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize("page", NAMING, ids=lambda p: p.name)
def test_files_and_tests_that_a_page_names_exist(page, strings):
    """In whole, from `plugin_cpp`, `xgb_dp` or `tests` on, or by the last name alone."""
    text = page.read_text(encoding="utf-8")
    quoted = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
    paths = {q for q in quoted if re.fullmatch(r"[\w./-]+\.(?:h|cc|py|patch|md)|[\w./-]+/", q)}
    paths |= set(re.findall(r"(?:plugin_cpp|xgb_dp|tests)/[\w/]+\.(?:h|cc|py)", text))
    files = {p.name for folder in (*SOURCES, "docs") for p in (ROOT / folder).rglob("*.*")}
    lost = {
        path
        for path in paths
        if not any((ROOT / folder / path).exists() for folder in ("", *SOURCES))
        and ("/" in path or path not in files)
    }
    code = "\n".join(t for p, t in strings.items() if p.is_relative_to(ROOT / "tests"))
    tests = set(re.findall(r"(?<!\w)test_\w+", " ".join(q for q in quoted if q not in paths)))
    lost |= {name for name in tests if f"def {name}(" not in code}
    assert not lost


@pytest.mark.parametrize("page", NAMING, ids=lambda p: p.name)
def test_names_of_code_on_a_page_exist(page, words):
    """Names of types and functions, which have capitals inside."""
    quoted = " ".join(re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")))
    names = set(re.findall(r"(?<!\w)[A-Z]\w*[a-z]\w*[A-Z]\w*", quoted))
    assert not names - words


def test_each_claim_is_checked_in_two_ways():
    text = (PROOFS / "index.md").read_text(encoding="utf-8")
    table = text.partition("## How each claim is checked")[2].partition("```{toctree}")[0]
    rows = [line.strip("| \n").split("|") for line in table.splitlines() if line[:2] == "| "][1:]
    theorems = " ".join(p.read_text() for p in (ROOT / "tests" / "theorems").glob("*.v"))
    lemmas = " ".join(p.read_text() for p in (ROOT / "tests" / "lemmas").glob("*.py"))
    assert len(rows) >= 20
    for claim, *kinds in rows:
        assert sum("`" in kind for kind in kinds) >= 2, claim
        for name in re.findall(r"`(\w+)`", kinds[0]):
            assert f"def {name}(" in lemmas or f"Theorem {name} " in theorems, name
