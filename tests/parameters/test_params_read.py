"""Whatever is given for a parameter, it is read or refused by an error that names it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import private
from xgb_dp.errors import PrivacyError, PrivacyParameterError
from xgb_dp.planning import dump, public_inputs
from xgb_dp.request.names import ALIASES, REFUSED, Request
from xgb_dp.request.params import PARAMETERS
from xgb_dp.request.schema import Schema
from xgb_dp.training.hook import checked

SURROGATE = "\ud800"
SCHEMA = Schema(["a", "b", "c"], named=True, categorical=frozenset({2}), dictionaries={})
USUAL = private(objective="binary:logistic", dp_epsilon=0.5, dp_categories={2: 4})
CALM = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Hostile:
    """Raises whatever one does with it."""

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("hostile")

    __str__ = __repr__ = __float__ = __int__ = __index__ = __bool__ = __len__ = _fail
    __iter__ = __getitem__ = __lt__ = __le__ = __format__ = _fail

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("hostile")

    __hash__ = object.__hash__


class HostileList(list):
    def __iter__(self) -> Any:
        raise RuntimeError("hostile")


class HostileText(str):
    def __str__(self) -> str:
        raise RuntimeError("hostile")


class HostileMapping(Mapping):
    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("hostile")

    def __iter__(self) -> Any:
        raise RuntimeError("hostile")

    def __len__(self) -> int:
        return 3


STRANGE: list[Any] = [
    10**400, float("nan"), float("inf"), -0.0, 1e-320, 1 + 2j, True, "", SURROGATE, "1e999",
    f"[[0, 1], {'[' * 100_000}", "[" * 100_000 + "]" * 100_000, "(" + "9" * 5000 + ",)",
    b"dp_hist", np.array(3), np.array([1.0, 2.0]), np.array(["l1", "gain"]),
    np.array([[0.0, 1.0]]), np.array(None), np.ma.masked, np.datetime64("2026-01-01"), pd.NA,
    pd.Series([1.0, 2.0]), pd.DataFrame({"a": [1]}), object, len, {}, {SURROGATE: 1},
    {0: 10**400}, {0: (0, 10**400)}, {2: [SURROGATE]}, {(1,): 2}, {float("nan"): 1},
    {"leaves": 10**400, 3: 4}, [[[0]]], [{"a": 1}], [None], {1, 2}, range(3),
]  # fmt: skip
"""Values that no parameter is meant to have."""
HOSTILE: list[Any] = [
    -(10**5000), HostileText("a"), Hostile(), HostileList([1, 2]), HostileMapping(),
    {"a": Hostile()}, {"a": HostileList([0, 1])}, {2: [Hostile()]}, {2: HostileList([1, 2])},
    {"leaves": Hostile()}, [Hostile()], [[Hostile()]], [{0, 1}, {Hostile()}], (0, Hostile()),
    (1, 2, Hostile()), iter([1, 2]),
]  # fmt: skip
"""Values that cannot even be printed, or read twice."""


def _garbage() -> st.SearchStrategy[Any]:
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters(), max_size=8),
        st.sampled_from(["dp_hist", "l1", "a", "b", "c", "log", "leaves", "true", "0", "1"]),
        st.sampled_from(STRANGE),
    )
    keys = st.one_of(st.integers(-1, 4), st.text(max_size=3), st.sampled_from(["a", "leaves"]))
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.tuples(inner, inner),
            st.dictionaries(keys, inner, max_size=3),
        ),
        max_leaves=6,
    )


def read(params: Any, rounds: Any = 3) -> str:
    """Check parameters, and give the message of an error of ours; it can be printed.

    What passes can be written down, and then the message is empty.
    """
    try:
        settings = checked(Request.parse(params, rounds), SCHEMA, None)
    except PrivacyError as error:
        message = str(error)
    else:
        dump(public_inputs(settings))
        return ""
    message.encode()
    assert "hostile" not in message
    assert len(message) < 1000
    return message


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_strange_values(name):
    for value in STRANGE + HOSTILE:
        message = read(USUAL | {name: value})
        assert not message or name in message


@pytest.mark.parametrize("name", list(PARAMETERS))
@given(value=_garbage())
@CALM
def test_random_values(name, value):
    message = read(USUAL | {name: value})
    assert not message or name in message


@given(
    params=st.dictionaries(
        st.one_of(st.sampled_from([*PARAMETERS, *ALIASES, *REFUSED]), st.text(max_size=9)),
        _garbage(),
        max_size=5,
    ),
    rounds=st.one_of(st.integers(-1, 4), _garbage()),
)
@CALM
def test_random_sets_of_parameters(params, rounds):
    for user in (params, USUAL | params, list((USUAL | params).items())):
        read(user, rounds)


@pytest.mark.parametrize(
    "params",
    [
        {1: 2}, {None: 2}, {("a",): 2}, {Hostile(): 1}, [("eta",)], [3], 5, "eta", None,
        HostileMapping(), HostileList([1]), [(["eta"], 1)], {"eta" + SURROGATE: 1},
        {"dp_" + SURROGATE: 1}, {"x" * 10_000: 1}, [("eta", Hostile()), ("eta", 1)],
        [("eta", np.ones(3)), ("learning_rate", np.ones(3))],
    ],
    ids=range(17),
)  # fmt: skip
def test_names_that_are_no_names(params):
    assert read(params)


def test_an_unset_parameter_is_not_given():
    every = dict.fromkeys(PARAMETERS, None)
    settings_of: Callable[..., Any] = lambda p: checked(Request.parse(p, 3), SCHEMA, None)  # noqa: E731
    one, two = settings_of(every | USUAL), settings_of(USUAL)
    assert {name: one[name] for name in PARAMETERS} == {name: two[name] for name in PARAMETERS}
    with pytest.raises(PrivacyParameterError, match="dp_epsilon"):
        settings_of({k: v for k, v in USUAL.items() if k != "dp_epsilon"})
