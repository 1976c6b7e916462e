"""Noise is drawn, selections are made and released values leave a worker in one folder alone."""

import re
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[2] / "plugin_cpp"
SOURCES = sorted(p for p in PLUGIN.rglob("*") if p.suffix in (".h", ".cc"))
# From the bottom up. What is not in a folder may include everything.
# Files beside the folders, which any of them may include.
PLUMBING = {"json_reader.h", "simd.h", "upstream.h"}
LAYERS = ["random", "release", "loss", "plan", "rows", "grow", "mechanisms"]
# What only release/ may name. random/ defines the samplers, and their test entry points.
ROOM = {
    "noise": r"\b(?:DiscreteGaussian|DiscreteLaplace|BernoulliExp|UniformBelow128)\b",
    "selection": r"\bSelect(?:Exponential|Argmax)\b",
    "keys": r"\b(?:SystemKey|ChaCha20Source)\b",
    "masks": r"\b(?:SumMasked|MaskedSums|PairKeys|FindSums|Sha256|Hmac)\b",
    "exchange": r"\b(?:TakeFromRankZero|Broadcast|Allreduce|Allgather\w*|GetRank)\b"
    r"|\b(?:ExchangeAll|Chan)\b|GlobalCommGroup|workers\.h",
    "noisy numbers": r"\bNoisyInt\s*[({]\s*[^)}\s]|friend\s+class\s+(?!Release;)",
    "ledger": r"\bledger_\b|\bRecord\(",
}
# What release/ offers, and who may use words of its sources: choices that read no data, and coins.
SHARED = {"UniformBelow": {"grow/features.cc", "mechanisms/histograms.cc",
                           "mechanisms/sampling.cc", "mechanisms/splits/random_splits.cc",
                           "mechanisms/splits/splits.cc"},
          "Next64": {"mechanisms/sampling.cc"}}  # fmt: skip


def code(path: Path) -> str:
    """The file without comments."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"//.*", "", text)


def name(path: Path) -> str:
    return path.relative_to(PLUGIN).as_posix()


def outside() -> list[Path]:
    return [p for p in SOURCES if p.parts[len(PLUGIN.parts)] not in ("release", "random")]


@pytest.mark.parametrize("what", ROOM)
def test_only_the_release_draws_selects_and_tells(what):
    users = [name(p) for p in outside() if re.search(ROOM[what], code(p))]
    assert users == []
    inside = [p for p in SOURCES if p not in outside()]
    assert any(re.search(ROOM[what], code(p)) for p in inside)  # the words are those of today


@pytest.mark.parametrize("word", SHARED)
def test_words_of_sources_serve_public_choices_and_samples(word):
    users = {name(p) for p in outside() if re.search(rf"\b{word}\b", code(p))}
    assert users == SHARED[word]


def test_the_source_of_noise_is_named_nowhere_else():
    for path in SOURCES:
        if "rng_" in code(path):
            assert name(path).startswith("release/release."), path


@pytest.mark.parametrize("layer", LAYERS)
def test_folders_include_no_upper_ones(layer):
    allowed = {*LAYERS[: LAYERS.index(layer) + 1], *PLUMBING}
    for path in (PLUGIN / layer).rglob("*.*"):
        for part in re.findall(r'#include "plugin_cpp/([^/"]+)', path.read_text()):
            assert part in allowed, f"{name(path)} includes {part}"


def test_exact_numbers_of_all_workers_are_made_in_two_places():
    """By the sum over workers, and by the one value of exact sums that is released itself."""
    users = {name(p) for p in SOURCES if re.search(r"\bGlobal(?:Int|Sum)\s*[({]", code(p))}
    assert users == {"release/release.cc", "mechanisms/leaves/output_leaves.cc"}
