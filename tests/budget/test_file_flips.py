"""A model file with a flipped bit or a wrong index is an error: no crash, no smaller epsilon."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import xgb_dp
from tests.children import answer_of
from xgb_dp.errors import LedgerError
from xgb_dp.testing import fixed_noise

from . import flips

# The models spend much, so that their trees split and there is something to damage.
pytestmark = pytest.mark.filterwarnings("ignore:Epsilon is above 10")

Model = dict[str, Any]
FLIPS = 300


@pytest.mark.parametrize("kind", flips.KINDS)
def test_a_flipped_bit_ends_no_process(kind):
    """Every report is refused with a LedgerError, or tells the true epsilon; what it speaks of
    predicts, or says why not."""
    printed = answer_of(
        "-W", "ignore", "-m", "tests.budget.flips", kind, "ubj,json", "1", FLIPS
    ).splitlines()
    assert len(printed) == 2 * (FLIPS + 1)
    counts = [tuple(map(int, printed[last].split())) for last in (FLIPS, -1)]
    for refused, useless in counts:
        assert refused > 0.85 * FLIPS
        assert useless < 0.02 * FLIPS
    # A flip in the name of a column changes no number. Of the two files 16 flips or more do so on
    # average, in places that depend on the trees, so that there is none with a chance of e^-16.
    assert sum(refused for refused, _ in counts) < 2 * FLIPS


def whole() -> Model:
    """A model whose first tree asks for a category; noise decides where trees do."""
    while True:
        content: Model = json.loads(flips.model("names").save_raw("json"))
        if parts(content)["trees"][0]["categories_nodes"]:
            return content


def parts(model: Model) -> Any:
    return model["learner"]["gradient_booster"]["model"]


def node(field: str, value: int) -> Callable[[Model], Any]:
    return lambda model: parts(model)["trees"][0][field].__setitem__(1, value)


def first(field: str, value: int) -> Callable[[Model], Any]:
    return lambda model: parts(model)["trees"][0][field].__setitem__(0, value)


def circle(model: Model) -> None:
    """A node below the root becomes a child of itself, so that rows would go round for ever."""
    left = parts(model)["trees"][0]["left_children"]
    inner = next(i for i, child in enumerate(left) if i and child != -1)
    left[inner] = inner


# What XGBoost's own loader has to find; it crashed, or would crash later.
TREES: dict[str, Callable[[Model], Any]] = {
    "a parent that is none": node("parents", 1 << 30),
    "a left child beyond the tree": first("left_children", 1 << 20),
    "a left child before the tree": first("left_children", -5),
    "a right child beyond the tree": first("right_children", 1 << 20),
    "no right child": first("right_children", -1),
    "a circle": circle,
    "a feature that is none": first("split_indices", 3),
    "a category below 0": first("categories", -7),
    "a category beyond all": first("categories", 1 << 24),
    "categories that begin nowhere": first("categories_segments", 1 << 40),
    "categories that begin before the first": first("categories_segments", -1),
    "too many categories": first("categories_sizes", 1 << 40),
    "no sizes": lambda model: parts(model)["trees"][0]["categories_sizes"].clear(),
    "no beginnings": lambda model: parts(model)["trees"][0]["categories_segments"].clear(),
    "a leaf of categories": lambda model: parts(model)["trees"][0]["split_type"].__setitem__(-1, 1),
    "one id twice": lambda model: parts(model)["trees"][1].update(id=0),
    "leaves of three numbers": lambda model: parts(model)["trees"][0]["tree_param"].update(
        size_leaf_vector="3"
    ),
}
LOAD = """
import sys, xgboost
for path in sys.argv[1:]:
    try:
        booster = xgboost.Booster(model_file=path)
        booster.save_raw()
        print("read")
    except xgboost.core.XGBoostError:
        print("refused", flush=True)
"""


def test_indices_out_of_range_are_refused(tmp_path):
    good = json.dumps(whole())
    paths = [tmp_path / "good.json"]
    paths[0].write_text(good)
    for number, change in enumerate(TREES.values()):
        model = json.loads(good)
        change(model)
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(model))
    printed = answer_of("-W", "ignore", "-c", LOAD, *paths).split()
    assert printed[0] == "read"
    assert dict(zip(TREES, printed[1:], strict=True)) == dict.fromkeys(TREES, "refused")


LENGTHS = """
import sys, xgboost
raw = open(sys.argv[1], "rb").read()
at = 0
while (at := raw.find(b"L", at) + 1) and at + 8 <= len(raw):
    if int.from_bytes(raw[at : at + 8], "big") < 256:  # a length
        for place, bit in ((at, 0x80), (at, 0x40), (at + 3, 0x01), (at + 5, 0x10)):
            damaged = bytearray(raw)
            damaged[place] ^= bit
            try:
                xgboost.Booster(model_file=damaged)
            except ValueError:  # an XGBoostError, or one whose text quotes what is no UTF-8
                continue
            print("read", flush=True)
"""


def test_lengths_beyond_the_end_are_refused(tmp_path):
    """Of texts and arrays in a UBJSON file: nothing is read, or allocated for, beyond the end."""
    path = tmp_path / "model.ubj"
    with fixed_noise(1):  # some other noise makes numbers whose bytes look like a length
        flips.model("names").save_model(path)
    assert answer_of("-W", "ignore", "-c", LENGTHS, path) == ""


# What XGBoost reads, and would crash of as it predicts.
OTHERS: dict[str, Callable[[Model], Any]] = {
    "a class that is none": lambda model: parts(model)["tree_info"].__setitem__(0, 9),
    "a class below 0": lambda model: parts(model)["tree_info"].__setitem__(0, -1),
    "rounds in no order": lambda model: parts(model)["iteration_indptr"].__setitem__(1, 1000),
    "more features": lambda model: model["learner"]["learner_model_param"].update(num_feature="7"),
    "names in no order": lambda model: parts(model)["cats"]["sorted_idx"].__setitem__(0, 1 << 20),
    "names of no feature": lambda model: parts(model)["cats"]["feature_segments"].pop(),
    "too few names": lambda model: parts(model)["cats"]["feature_segments"].__setitem__(2, 1),
    "a name without an end": lambda model: parts(model)["cats"]["enc"][1]["offsets"].__setitem__(
        1, 1 << 20
    ),
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_parts_that_do_not_fit_each_other_are_refused(name, tmp_path):
    path = tmp_path / "model.json"
    model = whole()
    path.write_text(json.dumps(model))
    assert xgb_dp.privacy_report(path).private
    OTHERS[name](model)
    path.write_text(json.dumps(model))
    with pytest.raises(LedgerError, match="damaged"):
        xgb_dp.privacy_report(path)


def test_slices_and_copies_are_whole():
    booster = flips.model("classes")
    for model in (booster, booster[1:2], booster.copy()):
        assert xgb_dp.privacy_report(model).private
