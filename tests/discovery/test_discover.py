"""A discovery from front to back: arguments, cost, what it finds, and the schema that it writes."""

import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import xgb_dp
from xgb_dp import BudgetError, PrivacyParameterError, PrivacyRefusal, RowDomainError
from xgb_dp.accounting import Unit
from xgb_dp.discovery import discover
from xgb_dp.discovery.column_reader import read_strings
from xgb_dp.discovery.discover import plan_discovery
from xgb_dp.discovery.result import summarize_number
from xgb_dp.domain.columns import format_yaml
from xgb_dp.domain.domain import from_mapping, read_domain
from xgb_dp.noisy_sums import CountTree
from xgb_dp.testing import fixed_noise

DELTA = 1e-6
TARGET = {"epsilon": 1.0, "delta": DELTA}


def table(n: int = 20_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    city = rng.choice(["Rome", "Oslo", "Bern", None], n, p=[0.5, 0.3, 0.15, 0.05])
    city[0] = "SECRET"
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(10, 1, n)),
            "city": city,
            "joined": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), "D"),
            "pays": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
            "person": np.arange(n) // 2,
        }
    )


DATA = table()
DISCOVERED = ["age", "income", "city", "joined", "pays"]


@pytest.fixture(scope="module")
def discovered() -> xgb_dp.Discovery:
    return xgb_dp.discover(DATA, DISCOVERED, epsilon=1.0, delta=DELTA)


def test_what_is_found(discovered):
    columns = discovered.columns
    assert [c.kind for c in columns.values()] == ["number", "number", "text", "datetime", "text"]
    city = columns["city"]
    assert list(city.categories) == ["Rome", "Oslo", "Bern"]
    assert city.categories["Rome"] == pytest.approx(10_000, rel=0.05)
    assert city.missing == pytest.approx(0.05, abs=0.01)
    assert columns["income"].missing == pytest.approx(0.2, abs=0.03)
    assert discovered.units == pytest.approx(len(DATA), rel=0.05)
    for name, q, slack in (("age", 0.5, 4), ("age", 0.95, 8)):
        exact = float(DATA[name].quantile(q))
        assert columns[name].quantiles[q] == pytest.approx(exact, abs=slack)
    low, high = columns["age"].range
    assert 8 <= low <= 20 and 85 <= high <= 200
    days = (DATA["joined"] - pd.Timestamp("1970-01-01")).dt.days
    low, high = columns["joined"].range
    assert low <= days.quantile(0.05) and high >= days.quantile(0.95)


def test_what_it_costs(discovered):
    assert 0.95 <= discovered.epsilon <= 1.0
    assert discovered.get_epsilon(1e-9) == math.inf  # below the failures of the thresholds
    assert discovered.get_epsilon(DELTA, 2) > 1.5 * discovered.epsilon
    assert "one row" in discovered.statement()


def test_persons():
    rows = pd.concat([DATA, DATA.iloc[:1].assign(person=-1)] + [DATA.iloc[:1]] * 3000)
    discovery = xgb_dp.discover(rows, DISCOVERED, **TARGET, privacy_id="person")
    assert discovery.unit.name == "person" and {e.unit for e in discovery.events} == {"person"}
    # 3,000 rows of one person are no reason to show what they say.
    assert "SECRET" not in str(discovery)
    assert discovery.units == pytest.approx(10_000, rel=0.1)
    assert discovery.schema()["privacy_id"] == "person"
    given = xgb_dp.discover(DATA, ["age"], **TARGET, privacy_id=DATA["person"].to_numpy())
    assert given.unit.name == "person" and "privacy_id" not in given.schema()


def test_groups_and_their_budgets(tmp_path):
    """Epsilon is that of the group, by default of the budget's, and the book charges as much."""
    of_three = xgb_dp.discover(DATA, {"age": "number"}, **TARGET, group_size=3)
    assert of_three.unit == Unit("row", 3) and 0.95 <= of_three.epsilon <= 1.0
    assert of_three.get_epsilon(DELTA) < 0.5 and "3 rows of one person" in of_three.statement()
    budget = xgb_dp.Budget(
        tmp_path / "b.json", epsilon=1.0, delta=1e-5, unit="person", group_size=2
    )
    more = {"delta": DELTA, "privacy_id": "person", "budget": budget}
    discovery = xgb_dp.discover(DATA, DISCOVERED, epsilon=0.9, **more)
    assert discovery.unit == Unit("person", 2, "person") and 0.85 <= discovery.epsilon <= 0.9
    (entry,) = budget.entries
    assert (entry.unit, entry.charged) == (discovery.unit, 2)
    with pytest.raises(BudgetError, match="group_size=2"):
        xgb_dp.discover(DATA, DISCOVERED, epsilon=0.1, **more, group_size=1)
    with pytest.raises(PrivacyParameterError, match="`group_size`"):
        xgb_dp.discover(DATA, DISCOVERED, epsilon=0.1, delta=DELTA, group_size=0)


def test_the_schema_is_ready_for_training(discovered, tmp_path):
    for ending in ("yaml", "json"):
        path = tmp_path / f"schema.{ending}"
        discovered.save(path, target="pays", use="cuts")
        domain = read_domain(path)
        assert domain.target == "pays" and domain.classes == ("no", "yes")
        assert list(domain.features) == [
            "age", "income", "city", "joined_days", "joined_month", "joined_weekday", "joined_hour",
        ]  # fmt: skip
        assert domain.columns["city"].categories == ("Rome", "Oslo", "Bern", "other")
        assert domain.columns["city"].other == "other"
        assert domain.discovered["epsilon"] == pytest.approx(discovered.epsilon, abs=1e-3)
        named = domain.parameters()["dp_feature_cuts"]
        assert set(named) >= {"age", "income", "joined_days", "joined_hour"}
    assert from_mapping(json.loads(domain.to_json())).discovered == domain.discovered
    bounds = discovered.schema("pays", use="bounds")["columns"]["age"]
    assert set(bounds) == {"bounds"}
    assert discovered.schema("pays")["columns"]["age"] == "number"
    assert discovered.schema(least=0.2)["columns"]["city"]["categories"] == [
        "Rome",
        "Oslo",
        "other",
    ]
    regression = discovered.schema("age")
    assert regression["target_bounds"] == list(discovered.columns["age"].range)


def test_wrong_schemas(discovered, tmp_path):
    for target, message in (("nobody", "not examined"), ("joined", "yourself")):
        with pytest.raises(PrivacyParameterError, match=message):
            discovered.schema(target)
    with pytest.raises(PrivacyParameterError, match="use"):
        discovered.schema("pays", use="all")
    with pytest.raises(PrivacyParameterError, match=r"\.yaml"):
        discovered.save(tmp_path / "schema.toml")


def test_nothing_is_said_where_noise_hides_all():
    # With this delta a text of 21 rows passes the threshold with a chance below 1e-9.
    few = xgb_dp.discover(DATA.iloc[:30], DISCOVERED, epsilon=0.1, delta=1e-10)
    assert all(not column.categories for column in few.columns.values())
    assert few.columns["age"].range is None
    schema = few.schema()
    assert "city" not in schema["columns"]
    assert schema["columns"]["income"] == "number"
    assert "hidden by noise" in str(few)
    none = xgb_dp.discover(DATA.iloc[:0], DISCOVERED, epsilon=1.0, delta=DELTA)
    assert not none.columns["city"].categories


def test_noise_in_empty_cells_begins_no_range():
    """Beyond the rows lie cells of many powers of two, which show the positive part of noise."""
    plan = plan_discovery(0, 1, 0.5, DELTA)
    noise = math.sqrt(plan.number_sigma2) / 2**plan.number_shift
    ends = [0, 1 << 30, *range(1 << 31, (1 << 31) + 21 * (1 << 23), 1 << 23), 0xE0000000, 1 << 32]
    empty, full = [1.4 * noise, 1.3 * noise], [3.0 * noise] * 20
    counts = [*empty, *full, *empty[::-1]]
    tree = CountTree(tuple(zip(ends[:-1], ends[1:], counts, strict=True)), (), 0.0)
    discovery = summarize_number(tree, "number", plan)
    assert discovery.range is not None
    assert discovery.range[0] >= 0.0
    assert discovery.range[1] <= 1e-30  # the cells of 20 powers of two from the smallest float on


CASES = [
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": math.inf}, "epsilon"),
    ({"delta": 0}, "delta"),
    ({"delta": 1.0}, "delta"),
    ({"columns": []}, "is empty"),
    ({"columns": "age"}, "columns"),
    ({"columns": ["age", "nobody"]}, "nobody"),
    ({"columns": ["age", "age"]}, "twice"),
    ({"columns": {"age": "integer"}}, "kind"),
    ({"columns": {"nobody": "text"}}, "nobody"),
    ({"columns": {3: "text"}}, "3"),
    ({"privacy_id": "nobody"}, "nobody"),
    ({"privacy_id": "age"}, "Remove it"),
    ({"privacy_id": [1, 2]}, "id"),
    ({"missing": "NA"}, "missing"),
    ({"since": "yesterday"}, "since"),
]


@pytest.mark.parametrize(("changes", "message"), CASES)
def test_wrong_arguments(changes, message, monkeypatch):
    monkeypatch.setattr(discover, "_release", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(PrivacyParameterError, match=message):
        xgb_dp.discover(DATA, **{"columns": DISCOVERED, **TARGET, **changes})


@pytest.mark.parametrize("privacy_id", [None, "person"])
@pytest.mark.parametrize("data", [3, [1, 2], np.zeros((3, 2)), "rows.csv", None])
def test_no_table(data, privacy_id):
    with pytest.raises(PrivacyParameterError, match="data frame"):
        xgb_dp.discover(data, epsilon=1.0, delta=DELTA, privacy_id=privacy_id)


def test_cells_that_do_not_fit_are_not_shown(monkeypatch):
    monkeypatch.setattr(discover, "_release", lambda *_: pytest.fail("noise was drawn"))

    class Odd:
        def __str__(self):
            raise ValueError("SECRET")

    tables = [
        ({"a": ["1", "SECRET"]}, {"a": "number"}),
        ({"a": [1.0, math.inf]}, {"a": "number"}),
        ({"a": [1.0, 1e300]}, {"a": "number"}),
        ({"a": ["2020-01-01", "SECRET"]}, {"a": "date"}),
        ({"a": [Odd(), "x"]}, {"a": "text"}),
        ({"a": [["SECRET"], "x"]}, {"a": "text"}),
        ({"a": [[1, 2], [3, 4]]}, {"a": "number"}),
        ({"a": [[1, 2], [3]]}, {"a": "number"}),
        ({"a": np.array([b"1", b"SECRET\xff"])}, {"a": "number"}),
    ]
    for data, columns in tables:
        with pytest.raises(RowDomainError) as error:
            xgb_dp.discover(data, columns, epsilon=1.0, delta=DELTA)
        assert "SECRET" not in str(error.value), data
        assert "0xff" not in str(error.value), data
    with pytest.raises(PrivacyParameterError, match="same number"):
        xgb_dp.discover({"a": [1], "b": [1, 2]}, {"a": "number", "b": "number"}, **TARGET)
    with pytest.raises(PrivacyParameterError, match="type"):
        xgb_dp.discover({"a": [1]}, **TARGET)


def test_containers_agree(monkeypatch):
    """Texts of numbers, arrays, lists and frames are the same cells."""
    seen = []

    def kept(cells, *_):
        strings = {
            n: ([k[i] for i in c if i >= 0], list(c == -1)) for n, (c, k) in cells.strings.items()
        }
        seen.append((strings, {n: v.tolist() for n, v in cells.numbers.items()}))

    monkeypatch.setattr(discover, "_release", kept)
    kinds = {"a": "number", "t": "text"}
    a, t = [1.0, 2.5, math.nan], ["x", "7", ""]
    for data in (
        {"a": a, "t": t},
        {"a": np.array(a), "t": np.array(t)},
        pd.DataFrame({"a": a, "t": t}),
        pd.DataFrame({"a": ["1", " 2.5 ", "NA"], "t": ["x ", "7", None]}),
        pd.DataFrame({"a": pd.array([1, 2.5, None], "Float64"), "t": pd.array(t, "string")}),
        pd.DataFrame({"a": a, "t": ["x", 7, None]}, dtype=object),
        pd.DataFrame({"a": a, "t": pd.Categorical(["x", "7", None])}),
        pd.DataFrame({"a": a, "t": ["x", 7.0, math.nan]}),
    ):
        xgb_dp.discover(data, kinds, epsilon=1.0, delta=DELTA)
    assert len({repr(each) for each in seen}) == 1


def test_it_draws_on_a_budget(tmp_path):
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=0.5, delta=2e-6)
    discovery = xgb_dp.discover(
        DATA, DISCOVERED, epsilon=0.2, delta=DELTA, budget=budget, note="look"
    )
    (entry,) = budget.entries
    assert (entry.note, entry.state, entry.events) == ("look", "spent", discovery.events)
    budget.verify()
    with pytest.raises(BudgetError, match="exceed"):
        xgb_dp.discover(
            DATA, DISCOVERED, epsilon=0.49, delta=DELTA, budget=tmp_path / "budget.json"
        )
    assert len(budget.entries) == 1
    with budget.drawing("block"):
        xgb_dp.discover(DATA, ["age"], epsilon=0.1, delta=1e-7)
        with pytest.raises(BudgetError, match="nest"):
            xgb_dp.discover(DATA, ["age"], epsilon=0.1, delta=1e-7, budget=budget)
    assert [e.note for e in budget.entries] == ["look", "block"]


def test_it_is_booked_before_anything_is_drawn(tmp_path, monkeypatch):
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=0.5, delta=2e-6)

    def broken(*_):
        assert [e.state for e in budget.entries] == ["reserved"]
        raise KeyboardInterrupt

    monkeypatch.setattr(discover, "_release", broken)
    with pytest.raises(KeyboardInterrupt):
        xgb_dp.discover(DATA, DISCOVERED, epsilon=0.2, delta=DELTA, budget=budget)
    assert [e.state for e in budget.entries] == ["reserved"]


def test_fixed_noise_is_refused():
    with fixed_noise(1), pytest.raises(PrivacyRefusal, match="fixed key"):
        xgb_dp.discover(DATA, ["age"], epsilon=1.0, delta=DELTA)


def test_a_warning_where_it_protects_hardly_anybody():
    with pytest.warns(xgb_dp.PrivacyWarning, match="Epsilon is above"):
        xgb_dp.discover(DATA[:50], ["age"], epsilon=20.0, delta=DELTA)


def test_names_and_texts_survive_yaml(tmp_path):
    strings = ["no", "null", "é", "a\tb\x7f", "\U0001f600", 'say"so\\', "1e3", "~", " x", "a: b #c"]
    content = {"columns": {text: {"categories": strings} for text in strings}}
    path = tmp_path / "schema.yaml"
    path.write_text(format_yaml(content), encoding="utf-8")
    columns = read_domain(path).columns
    assert list(columns) == strings
    assert columns["no"].categories == tuple(text.strip() for text in strings)


def test_no_row_names_the_cells_of_others():
    """A number is named by its digits, and a text or truth value as it is, whichever is first."""
    cells = [1, 1.0, True, "1", "1.0", -0.0, 0, Decimal("1.00")]
    named = ["1", "1", "True", "1", "1.0", "0", "0", "1"]
    for some in (cells, cells[::-1]):
        codes, names = read_strings(some, ())
        assert [names[code] for code in codes] == (named if some is cells else named[::-1])
