"""Check the style of prose (``make lint``) and wrap the lines of pages (``make format``).

The phrases to avoid are in the table of ``docs/style.md``. They are searched for in pages, and in
docstrings, messages, help texts and comments of code. Pages outside ``REFERENCE`` have at most
``LONGEST_PAGE`` words, and lines of prose at most ``WIDTH`` characters. Tables, code blocks and
links have no limit.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

WIDTH = 100
LONGEST_PAGE = 1500
# Pages to look things up in, without a limit on words.
REFERENCE = re.compile(
    r"experiments/|docs/(?:proofs|api)/|"
    r"docs/(?:commands|glossary|guarantee|leaks|parameters|peers|presets)\.md"
)
# Generated pages, with one line per paragraph.
WRITTEN = re.compile(r"experiments/|docs/(?:commands|parameters|presets)\.md")
STYLE = Path("docs/style.md")
_ROW = re.compile(r"^\| (`[^|]+`) \| .+ \|$", re.MULTILINE)
_TOKEN = re.compile(r"(?:`+[^`]+`+|\]\([^)]*\)|\S)+")
_ITEM = re.compile(r"^(\s*)([*+-]|\d+\.)(\s+)")
# Table rows, headings and comments: each line is its own block.
_SINGLE = re.compile(r"\s*(?:\||#|<!--)")
_READ_IN_CPP = re.compile(r'(?<=")(?:[^"\\]|\\.)*(?=")|//.*|^ \*.*')  # messages and comments
# At the start of a line these would start a list, heading, quotation or table.
_MARK = re.compile(r"[*+|>=#-]+$|#|>|\||\d+[.)]$")


def phrases(text: str) -> dict[str, re.Pattern[str]]:
    """Return the phrases in the table of the style page; ``...`` matches one to four words.

    Phrases with a capital first letter match case-sensitively, others in any case.
    """
    patterns = {}
    for row in _ROW.findall(text):
        for phrase in re.findall(r"`([^`]+)`", row):
            words = [r"\S+(?:\s+\S+){0,3}?" if w == "..." else re.escape(w) for w in phrase.split()]
            pattern = r"(?<![\w-])" * phrase[0].isalpha() + r"\s+".join(words) + r"(?![\w-])"
            patterns[phrase] = re.compile(pattern, re.IGNORECASE if phrase[0].islower() else 0)
    return patterns


def pages(root: Path) -> list[Path]:
    """Return the paths of all pages of prose, relative to the root."""
    folders = ((root, "*.md"), (root / "docs", "**/*.md"), (root / "experiments/pages", "*.md"))
    listed = [page for folder, names in folders for page in sorted(folder.glob(names))]
    return [page.relative_to(root) for page in listed]


def blocks(text: str) -> Iterator[tuple[int, list[str], bool]]:
    """Yield line number, lines, and whether the block may be wrapped, for each block of a page."""
    fence, block, start = "", list[str](), 0
    after_list = False

    def ended() -> Iterator[tuple[int, list[str], bool]]:
        if block:
            first = block[0]
            code = first.startswith("    ") and not after_list
            plain = not code and not first.lstrip().startswith(("|", "#", "<", "```", "!["))
            yield start, block, plain

    for number, line in enumerate(text.splitlines()):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if fence:
            yield number, [line], False
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = ""
            continue
        item, single = _ITEM.match(line), _SINGLE.match(line)
        alone = mark or single or not line.strip()
        if alone or item:
            yield from ended()
            block = []
        if alone:
            fence = mark[1] if mark else ""
            after_list = after_list and not single
            yield number, [line], False
            continue
        if not block:
            start = number
            after_list = bool(item) or (after_list and line.startswith(" "))
        block.append(line)
    yield from ended()


def wrap(text: str) -> str:
    """Wrap every block of prose that has a line longer than ``WIDTH``."""
    if not text:
        return ""
    out: list[str] = []
    for _, lines, prose in blocks(text):
        out += _wrapped(lines) if prose and max(map(len, lines)) > WIDTH else lines
    return "\n".join(out) + "\n"


def _wrapped(lines: list[str]) -> list[str]:
    item = _ITEM.match(lines[0])
    first = item[0] if item else re.match(r"\s*", lines[0])[0]  # type: ignore[index]
    rest = " " * len(first)
    body = " ".join(line.strip() for line in [lines[0][len(first) :], *lines[1:]])
    out, line = list[str](), first
    for token in _TOKEN.findall(body):
        gap = "" if line in (first, rest) and line.strip() in ("", first.strip()) else " "
        if gap and len(line) + 1 + len(token) > WIDTH and not _MARK.match(token):
            out.append(line)
            line, gap = rest, ""
        line += gap + token
    return [*out, line]


def _prose(text: str) -> list[tuple[int, str]]:
    """Return line number and text of every line outside code blocks, without code spans."""
    lines = []
    fence = False
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(?:`{3,}|~{3,})", line)
        fence ^= bool(mark)
        if not fence and not mark:
            lines.append((number, re.sub(r"`[^`]*`", "``", line)))
    return lines


def _strings(path: Path, text: str) -> list[tuple[int, str]]:
    """Return line number and text of all prose in a file."""
    if path.suffix == ".md":
        return _prose(text)
    if path.suffix == ".py":
        constants = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant))
        strings = [(n.lineno, n.value) for n in constants if isinstance(n.value, str)]
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        return strings + [(t.start[0], t.string[1:]) for t in tokens if t.type == tokenize.COMMENT]
    lines = enumerate(text.splitlines(), 1)
    return [(number, t) for number, line in lines for t in _READ_IN_CPP.findall(line)]


def odd_phrases(path: Path, text: str, listed: dict[str, re.Pattern[str]]) -> Iterator[str]:
    """Yield the listed phrases found in one file."""
    parts = _strings(path, text)
    if path.suffix == ".md":  # a phrase may go over the end of a line
        whole = "\n".join(line for _, line in parts)
        numbers = [number for number, _ in parts]
        for phrase, pattern in listed.items():
            for hit in pattern.finditer(whole):
                line = numbers[whole.count("\n", 0, hit.start())]
                yield f"{path}:{line}: {phrase!r}"
        return
    for number, part in parts:
        for phrase, pattern in listed.items():
            if pattern.search(part):
                yield f"{path}:{number}: {phrase!r}"


def form(path: Path, text: str) -> Iterator[str]:
    """Yield faults of form: an empty page, long lines, too many words."""
    if not text.strip():
        yield f"{path}: the page is empty"
    for number, lines, prose in blocks(text):
        if prose and not WRITTEN.search(path.as_posix()) and _wrapped(lines) != lines:
            for place, line in enumerate(lines, number + 1):
                if len(line) > WIDTH:
                    yield f"{path}:{place}: {len(line)} characters; at most {WIDTH} are allowed"
    if not REFERENCE.search(path.as_posix()):
        lines_ = [line for _, line in _prose(text) if not line.lstrip().startswith("|")]
        words = len(" ".join(lines_).split())
        if words > LONGEST_PAGE:
            yield f"{path}: {words} words; at most {LONGEST_PAGE} are allowed"


def faults(root: Path) -> list[str]:
    """Return all faults in the repository."""
    listed = phrases((root / STYLE).read_text(encoding="utf-8"))
    wrong = list[str]()
    for path in pages(root):
        text = (root / path).read_text(encoding="utf-8")
        wrong += form(path, text)
        if path != STYLE:
            wrong += odd_phrases(path, text, listed)
    sources = [*root.glob("xgb_dp/**/*.py"), *root.glob("examples/*.py")]
    sources += [p for end in ("h", "cc") for p in root.glob(f"plugin_cpp/**/*.{end}")]
    sources += root.glob("tests/cpp/*.cc")
    for source in sorted(sources):
        path = source.relative_to(root)
        wrong += odd_phrases(path, source.read_text(encoding="utf-8"), listed)
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Print the faults, or wrap lines; return 1 if there are faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wrap", action="store_true", help="wrap long lines of pages in place")
    root = Path()
    if parser.parse_args(arguments).wrap:
        for path in pages(root):
            text = path.read_text(encoding="utf-8")
            if not WRITTEN.search(path.as_posix()) and (new := wrap(text)) != text:
                path.write_text(new, encoding="utf-8")
        return 0
    wrong = faults(root)
    print("\n".join(wrong))
    if wrong:
        print(f"{STYLE} says what to write instead. To wrap long lines: make format")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
