"""What a user gives is read by the table of parameters, and by no other module."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import xgb_dp
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal
from xgb_dp.request.names import ALIASES, read_one
from xgb_dp.request.params import PARAMETERS

PACKAGE = Path(xgb_dp.__file__).parent
NAMES = {*PARAMETERS, *ALIASES}
READERS = ("get", "pop", "setdefault")

CHECKED = re.compile(r"(.*\.)?(s|settings)(\.given)?")
"""Names of :class:`Config`, whose values the table has read."""

OTHERS = {
    # XGBoost's own record of a model, which uses the same words.
    ("engine/saved_model.py", "self._numbers"),
    ("engine/saved_model.py", "self._trees['gbtree_model_param']"),
    # The ledger of a model.
    ("record/model_card.py", "last.hyperparameters"),
    ("record/model_card.py", "last.public"),
    ("record/ledger.py", "t.hyperparameters"),
    ("record/consistency.py", "given"),
    ("record/consistency.py", "public"),
    ("record/consistency.py", "public"),
    ("record/privacy_report.py", "p"),
    ("record/consistency.py", "training.hyperparameters"),
    ("record/consistency.py", "training.public"),
    ("training/continuation.py", "training.hyperparameters"),
    ("training/continuation.py", "then"),
    ("training/continuation.py", "now"),  # what the ledger will say
    # XGBoost's own settings of the process.
    ("policy.py", "get_config()"),
    # Whether ids of persons are given at all, whatever they are.
    ("cli/options.py", "params"),
    # Which table was given, before it is read.
    ("sklearn/estimators.py", "self.get_xgb_params()"),
    # Parameters of XGBoost itself, for a booster.
    ("training/start.py", "params"),
    ("training/run.py", "params"),
    # A private plan.
    ("plotting/explanations.py", "leaf"),
    ("plotting/explanations.py", "plan"),
    ("testing.py", "plan"),
    ("mechanisms/candidates.py", "counts"),
    ("mechanisms/histograms.py", "counts"),
    ("mechanisms/histograms.py", "plan"),
    ("mechanisms/leaves.py", "plan"),
    ("mechanisms/splits.py", "plan"),
    ("accounting/sensitivity.py", "request"),
}
"""Dictionaries that hold no parameters of a user, by file: they have some of the words."""


def reads(source: str) -> Iterator[tuple[int, str]]:
    """Line and dictionary of every read whose key is the name of a parameter."""

    def named(node: ast.expr) -> bool:
        return isinstance(node, ast.Constant) and node.value in NAMES

    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=held, slice=key, ctx=ast.Load()) if named(key):
                yield node.lineno, ast.unparse(held)
            case ast.Call(func=ast.Attribute(value=held, attr=name), args=[key, *_]) if (
                name in READERS and named(key)
            ):
                yield node.lineno, ast.unparse(held)
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[held]) if named(
                key
            ):
                yield node.lineno, ast.unparse(held)


def test_only_the_table_reads_parameters():
    reads_elsewhere, used = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(("request/", "presets.py", "parameters/config.py")):
            continue
        for line, held in reads(path.read_text(encoding="utf-8")):
            if (name, held) in OTHERS:
                used.add((name, held))
            elif not CHECKED.fullmatch(held):
                reads_elsewhere.append(f"{name}:{line} reads {held}")
    assert not reads_elsewhere, "ask xgb_dp.request.names.read_one, or the settings"
    assert used == OTHERS


@pytest.mark.parametrize(
    "source",
    [
        'params["dp_classes"]',
        'params.get("objective")',
        'self.get_xgb_params().pop("learning_rate", None)',
        '"dp_categories" in params',
        'x = 1 if "eta" not in user else 2',
    ],
)
def test_a_read_is_found(source):
    ((_, held),) = reads(source)
    assert not CHECKED.fullmatch(held)


@pytest.mark.parametrize("source", ['params["eta"] = 1', '{"eta": 1}', 's["eta"]', "params[eta]"])
def test_other_code_is_not(source):
    assert all(CHECKED.fullmatch(held) for _, held in reads(source))


def test_one_parameter_is_read_as_the_training_reads_it():
    assert read_one({"learning_rate": "0.25"}, "eta") == 0.25
    assert read_one([("dp_classes", [0, 1, 2])], "dp_classes") == 3
    assert read_one({"dp_categories": {"colour": ["red", "blue"]}}, "dp_categories") == {
        "colour": ["red", "blue"]
    }
    assert read_one({"eta": None}, "eta") is None


@pytest.mark.parametrize(
    "params, name, message",
    [
        ({"eta": 2.0}, "eta", "`eta`.*must be"),
        ({"eta": 0.1, "learning_rate": 0.2}, "eta", "given twice"),
        ({"dp_categories": [4]}, "dp_categories", "`dp_categories` must be a mapping"),
        ({"dp_classes": 1}, "dp_classes", "`dp_classes` must"),
    ],
)
def test_one_parameter_is_refused_as_the_training_refuses_it(params, name, message):
    with pytest.raises(PrivacyParameterError, match=message):
        read_one(params, name)
    with pytest.raises(PrivacyRefusal, match="depends on other rows"):
        read_one({"objective": "rank:ndcg"}, "objective")


def test_one_reader_knows_the_keys_of_xgboosts_models():
    keys = ("learner", "gradient_booster", "learner_model_param", "split_conditions", "num_target")
    knowing = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(f'"{key}"' in path.read_text(encoding="utf-8") for key in keys)
    }
    readers = ("model_json", "saved_model")
    assert knowing == {f"engine/{name}.py" for name in readers}
