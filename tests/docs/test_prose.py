"""The check of prose finds what the page of style lists, and wraps lines without changing words."""

from pathlib import Path

import pytest

from tests.scripts import script

ROOT = Path(__file__).resolve().parents[2]


check = script("tools/check_prose.py")
LISTED = check.phrases((ROOT / check.STYLE).read_text(encoding="utf-8"))


@pytest.mark.parametrize("phrase", LISTED)
def test_every_listed_phrase_is_found(phrase):
    sentence = f"It says: {phrase.replace('...', 'some words')} of it."
    over_two_lines = sentence.replace(" ", "\n", 4)
    for text in (sentence, over_two_lines):
        assert list(check.odd_phrases(Path("page.md"), text, {phrase: LISTED[phrase]}))
    code = f'"""{sentence}"""\n'
    assert list(check.odd_phrases(Path("module.py"), code, {phrase: LISTED[phrase]}))


def test_code_in_pages_is_not_prose():
    text = "Use `what it may hold`.\n\n```python\nx = 'may hold'\n```\n"
    assert not list(check.odd_phrases(Path("page.md"), text, LISTED))


def test_a_capital_is_the_start_of_a_sentence():
    listed = check.phrases("| `Of a` | x |")
    assert not list(check.odd_phrases(Path("page.md"), "the rows of a person", listed))
    assert list(check.odd_phrases(Path("page.md"), "Rows. Of a person", listed))


def test_an_empty_page():
    assert list(check.form(Path("docs/x.md"), "\n")) == ["docs/x.md: the page is empty"]
    assert check.wrap("") == ""


def test_long_lines_and_pages():
    long = "word " * 30
    assert [f.split(":")[1] for f in check.form(Path("docs/x.md"), f"One.\n\n{long}\n")] == ["3"]
    assert not list(check.form(Path("docs/x.md"), f"| {long} |\n\n```\n{long}\n```\n"))
    many = "word\n" * (check.LONGEST_PAGE + 1)
    assert "words" in next(check.form(Path("docs/x.md"), many))
    assert not list(check.form(Path("docs/proofs/x.md"), many))


def test_wrapping_keeps_the_text():
    words = " ".join(f"word{i}" for i in range(40))
    text = (
        f"# Head {words}\n\n{words} `a span of code` [a link]({'u' * 90})\n\n"
        f"* {words}\n  {words}\n\n```\n{words}\n```\n\n| {words} |\n\n    {words}\n"
    )
    new = check.wrap(text)
    assert new.split() == text.split()
    assert check.wrap(new) == new
    assert "`a span of code`" in new
    kept = {line for line in text.splitlines() if line.startswith(("#", "|", "    ", "word0"))}
    assert {line for line in new.splitlines() if len(line) > check.WIDTH} <= kept
    assert all(line.startswith(("* ", "  ")) for line in new.split("* ")[1].splitlines()[1:4])


@pytest.mark.parametrize("mark", ["-", "+", "#", "1.", "|"])
def test_no_wrapped_line_becomes_a_list(mark):
    text = "x" * 95 + f" and {mark} " + "y " * 20
    assert not any(line.startswith(mark) for line in check.wrap(text).splitlines())
