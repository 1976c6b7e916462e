"""Ids of persons: equal codes exactly where ids are equal, whatever holds them; none is shown."""

import datetime
import traceback
from collections import UserList, deque
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sensitivity.strategies import EXAMPLES
from xgb_dp.data.ids import encode_persons, join_persons
from xgb_dp.errors import PrivacyParameterError, RowDomainError

WHO = [3, 0, 1, 3, 2, 0, 0, 4, 1]
NUMBERS = [7, -1, 0, 2**53 + 1, 2**53]
STRINGS = ["", "1", "1 ", "\u00e9", "e\u0301"]  # the last two look alike
NAMES = ["Ann", "Bob", "Cy", "Di", "Ed"]


def of(persons: list[Any]) -> list[Any]:
    return [persons[i] for i in WHO]


def same(codes: np.ndarray, who: list[int]) -> bool:
    """Whether codes are dense and tell the same rows apart."""
    pairs = set(zip(codes.tolist(), who, strict=True))
    return len(pairs) == len(set(who)) == len(set(codes.tolist())) == codes.max() + 1


UUIDS = [UUID(int=i << 90) for i in range(5)]
BYTES = [b"", b"a", b"\0", b"a\0", b"\xff"]
HUGE = [2**64, 2**64 + 1, -(2**64), 2**200, 10**5000]
CONTAINERS: dict[str, Any] = {
    "list of numbers": of(NUMBERS),
    "tuple of numbers": tuple(of(NUMBERS)),
    "huge numbers": of(HUGE),
    "huge numbers as objects": np.array(of(HUGE), dtype=object),
    "int64": np.array(of(NUMBERS)),
    "uint64": np.array(of([2**64 - 1, 2**64 - 2, 0, 2**63, 1]), dtype=np.uint64),
    "int8": np.array(of([-128, 127, 0, 1, 2]), dtype=np.int8),
    "numpy scalars": [np.uint64(v) for v in of([2**64 - 1, 2**64 - 2, 0, 2**63, 1])],
    "float64": np.array(of([2.0**53 - 1, 2.0**53 - 2, -1.0, 0.0, 5.0])),
    "float32": np.array(of([2.0**24 - 1, 2.0**24 - 2, -1.0, 0.0, 5.0]), dtype=np.float32),
    "floats": of([2.0**53 - 1, 2.0**53 - 2, -1.0, 0.0, 5.0]),
    "masked": np.ma.masked_array(of(NUMBERS), mask=False),
    "texts": of(STRINGS),
    "text array": np.array(of(NAMES)),
    "text objects": np.array(of(STRINGS), dtype=object),
    "sequence": deque(of(STRINGS)),
    "another sequence": UserList(of(NUMBERS)),
    "bytes": of(BYTES),
    "byte array": np.array(of([b"a", b"b", b"c", b"d", b"e"])),
    "16 raw bytes": np.array([u.bytes for u in of(UUIDS)], dtype="V16"),
    "UUIDs": of(UUIDS),
    "UUID objects": pd.Series(of(UUIDS)),
    "pandas": pd.Series(of(NUMBERS), index=[5] * len(WHO)),
    "pandas index": pd.Index(of(NAMES)),
    "pandas nullable": pd.Series(of([2**64 - 1, 2**64 - 2, 0, 2**63, 1]), dtype="UInt64"),
    "pandas nullable floats": pd.Series(of([1.0, 2.0, 3.0, 4.0, 0.0]), dtype="Float64"),
    "pandas str": pd.Series(of(STRINGS), dtype="str"),
    "pandas string": pd.Series(of(STRINGS), dtype="string"),
    "pandas objects": pd.Series(of(STRINGS), dtype=object),
    "pandas category": pd.Series(of(STRINGS), dtype="category"),
    "pandas unused categories": pd.Categorical(of(NAMES), categories=["x", *NAMES[::-1], "y"]),
    "pandas categories of numbers": pd.Series(of(NUMBERS)).astype("category"),
    "pandas arrow": pd.Series(of(STRINGS), dtype=pd.ArrowDtype(pa.string())),
    "pandas arrow numbers": pd.Series(of(NUMBERS), dtype=pd.ArrowDtype(pa.int64())),
    "polars": pl.Series(of(STRINGS)),
    "polars numbers": pl.Series(of(NUMBERS)),
    "polars category": pl.Series(of(NAMES)).cast(pl.Categorical),
    "polars enum": pl.Series(of(NAMES)).cast(pl.Enum(NAMES)),
    "polars bytes": pl.Series(of(BYTES)),
    "polars objects": pl.Series(of(UUIDS), dtype=pl.Object),
    "arrow": pa.array(of(STRINGS)),
    "arrow numbers": pa.array(of(NUMBERS)),
    "arrow chunks": pa.chunked_array([of(STRINGS)[:4], [], of(STRINGS)[4:]]),
    "arrow dictionary": pa.array(of(STRINGS)).dictionary_encode(),
    "arrow dictionary chunks": pa.chunked_array(
        [pa.array(part).dictionary_encode() for part in (of(NAMES)[:3], of(NAMES)[3:])]
    ),
    "arrow bytes": pa.array([u.bytes for u in of(UUIDS)], pa.binary(16)),
    "arrow large": pa.array(of(STRINGS), pa.large_string()),
    "arrow view": pa.array(of(STRINGS), pa.string_view()),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_codes_are_exact_in_every_container(name):
    codes = encode_persons(CONTAINERS[name]).codes
    assert codes.dtype == np.uint32
    assert same(codes, WHO)


@EXAMPLES
@given(st.lists(st.integers()) | st.lists(st.text()) | st.lists(st.binary()) | st.lists(st.uuids()))
def test_codes_are_those_of_a_dictionary(ids):
    table = {v: i for i, v in enumerate(dict.fromkeys(ids))}
    codes = encode_persons(ids).codes
    assert len(codes) == len(ids)
    assert not ids or same(codes, [table[v] for v in ids])


@pytest.mark.parametrize(
    "ids",
    [[], (), np.array([]), np.array([], dtype=object), pd.Series([], dtype="str"), pl.Series([]),
     pa.chunked_array([], pa.string())],
)  # fmt: skip
def test_no_rows_have_no_persons(ids):
    persons = encode_persons(ids, 0)
    assert (len(persons.codes), persons.kind, persons.listed) == (0, "", [])


SECRET = "SECRET" + "-91"
ALONE: dict[str, Any] = {  # wrong by a row alone
    "None": [SECRET, None],
    "NaN among texts": [SECRET, float("nan")],
    "NaN": [91.0, float("nan")],
    "NaN in an array": np.array([91, np.nan]),
    "masked": np.ma.masked_array([91, 92], mask=[0, 1]),
    "pandas NA": pd.Series([91, pd.NA], dtype="Int64"),
    "pandas float NA": pd.Series([91, pd.NA], dtype="Float64"),
    "pandas missing text": pd.Series([SECRET, None], dtype="str"),
    "pandas missing string": pd.Series([SECRET, None], dtype="string"),
    "pandas missing category": pd.Series([SECRET, None], dtype="category"),
    "pandas missing object": pd.Series([SECRET, pd.NaT], dtype=object),
    "polars null": pl.Series([SECRET, None]),
    "polars missing category": pl.Series([SECRET, None]).cast(pl.Categorical),
    "arrow null": pa.array([91, None]),
    "arrow missing in a dictionary": pa.DictionaryArray.from_arrays([0, 1], [SECRET, None]),
    "fraction": [91.5, 1.0],
    "fraction in an array": np.array([91.5, 1.0]),
    "infinity": np.array([np.inf, 91.0]),
    "2^53": np.array([2.0**53]),
    "2^53 in a list": [2.0**53],
    "2^24 as 32 bits": np.array([2.0**24], dtype=np.float32),
    "2^24 as 32 bits of arrow": pa.array([2.0**24], pa.float32()),
    "2^11 as 16 bits": np.array([2.0**11], dtype=np.float16),
    "decimal": [Decimal(91), Decimal(92)],
    "date": [datetime.date(1991, 1, 1)],
    "truth": [True, False],
    "list": [[SECRET], [SECRET]],
    "number and truth": [91, True],
    "mixed": [91, "91"],
    "mixed bytes": [SECRET, SECRET.encode()],
    "mixed UUIDs": [UUIDS[0], str(UUIDS[0])],
    "mixed objects": pd.Series([91, "91"], dtype=object),
    "mixed categories": pd.Series([91, "91"], dtype="category"),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_wrong_id_is_refused_and_not_shown(name):
    with pytest.raises(RowDomainError, match="dp_privacy_id") as caught:
        encode_persons(ALONE[name])
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert "91" not in str(caught.value)


def test_what_is_no_column_of_ids_is_refused_by_its_type():
    for ids in (
        "patient", b"ab", 5, object(), {"a": 1}, {1, 2}, iter([1, 2]), np.zeros((2, 1), dtype=int),
        np.array(3), np.array([True, False]), np.array(["1991-01-01"], dtype="datetime64[D]"),
        np.array([1j]), np.array([(1, 2)], dtype=[("a", int), ("b", int)]),
        pd.DataFrame({"a": [1]}), pd.MultiIndex.from_tuples([(1, 2)]),
        pd.Series(pd.to_datetime(["1991-01-01"])), pl.DataFrame({"a": [1]}),
        pl.Series([datetime.date(1991, 1, 1)]), pl.Series([[1], [2]]), pa.table({"a": [1]}),
        pa.array([True]),
    ):  # fmt: skip
        with pytest.raises(PrivacyParameterError, match="dp_privacy_id") as caught:
            encode_persons(ids)
        assert "1991" not in str(caught.value)


def test_another_number_of_ids_than_rows_is_refused_without_a_number():
    with pytest.raises(PrivacyParameterError, match="one id per row") as caught:
        encode_persons([1, 2, 3], rows=4)
    assert not any(c.isdigit() for c in str(caught.value))


class Strange(str):
    """A text that is equal to every other one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_ids_with_an_equality_of_their_own_are_refused():
    with pytest.raises(RowDomainError, match="not an integer"):
        encode_persons([Strange("a"), Strange("b")])


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series], ids=lambda f: f.__name__)
def test_hashes_of_persons_agree_between_workers_of_one_training(make):
    """However each of them holds the ids, and in whichever order; another key, other hashes."""
    key = bytes(range(32))
    one, other = encode_persons([5, 2**60, -3, 5]), encode_persons(make([-3, 7, 2**60]))
    first, second = (
        dict(zip(p.listed, map(tuple, p.hashes(key).tolist()), strict=True)) for p in (one, other)
    )
    assert first[-3] == second[-3] and first[2**60] == second[2**60]
    assert len({*first.values(), *second.values()}) == 4
    again = {tuple(h) for h in one.hashes(key[::-1]).tolist()}
    assert not again & set(first.values())


@pytest.mark.parametrize("name", CONTAINERS)
def test_parts_are_joined_as_if_they_were_one(name):
    """Also those that a worker makes of the rows of some of the persons."""
    whole = encode_persons(CONTAINERS[name])
    rows = np.isin(whole.codes, [0, 2])
    persons = join_persons([whole.select(rows), whole.select(~rows), whole.select(rows & ~rows)])
    who = np.concatenate([whole.codes[rows], whole.codes[~rows]])
    assert same(persons.codes, who.tolist())
    assert [persons.listed[c] for c in persons.codes] == [whole.listed[c] for c in who]
    assert persons.kind == whole.kind


def test_parts_of_several_kinds_are_not_joined():
    with pytest.raises(RowDomainError, match="mixed kinds"):
        join_persons([encode_persons([1]), encode_persons(["1"])])
    assert join_persons([encode_persons([1]), encode_persons([])]).kind == "integers"
    assert join_persons([]).listed == []


@pytest.mark.parametrize(
    "persons",
    [[str(i) for i in range(70)], range(70), [UUID(int=i << 64 | i) for i in range(70)]],
    ids=["texts", "numbers", "UUIDs"],
)
def test_persons_have_a_place_by_their_id_and_a_key(persons):
    """The same in every part, whatever it is held in; another key, other places."""
    keys = [bytes([k]) * 32 for k in range(4)]
    whole = encode_persons(list(persons))
    assert len({tuple(whole.places(key, 2)) for key in keys}) == 4
    for key in keys:
        place = dict(zip(whole.listed, whole.places(key, 2).tolist(), strict=True))
        assert 15 < sum(place.values()) < 55
        huge = encode_persons([*persons, *([2**70] if whole.kind == "integers" else [])][::-2])
        for value, place_now in zip(huge.listed, huge.places(key, 2), strict=True):
            assert place.get(value, place_now) == place_now


def test_ids_are_in_no_text_of_persons():
    persons = encode_persons([SECRET])
    assert SECRET not in repr(persons) + str(persons)
