"""The report's tables: the budget by mechanism, epsilon(delta), groups; as text, JSON and HTML."""

import json
import math
import re
from collections import Counter
from xml.etree import ElementTree

import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.record.formatting import round_up


@pytest.fixture
def report(params, matrix):
    return xgb_dp.privacy_report(xgb.train(params(), matrix(), 4))


def test_shares_are_those_of_the_budget(report):
    shares_set = report.ledger["trainings"][0]["public"]["hyperparameters"]["budget_shares"]
    expected = {k: shares_set[k] for k in ("candidates", "splits", "leaves")}
    shares = {s.release: s.share for s in report.spending()}
    assert shares == pytest.approx({"intercept": shares_set["base_score"], **expected}, rel=1e-4)
    counts = {s.release: s.count for s in report.spending()}
    # One selection fills the two levels of a tree.
    assert counts == {"intercept": 1, "candidates": 1, "splits": 4, "leaves": 4}
    parts = [s.epsilon for s in report.spending()]
    assert all(0 < e < report.epsilon for e in parts)
    assert sum(parts) > report.epsilon


@pytest.mark.parametrize(
    ("changes", "releases"),
    [
        ({"subsample": 0.3}, {"intercept", "candidates", "splits", "leaves"}),
        ({"dp_split": "histogram"}, {"intercept", "candidates", "histograms"}),
        (
            {"dp_preset": "sarus", "dp_feature_bounds": dict.fromkeys(range(4), (-4.0, 4.0))},
            {"candidates", "splits", "leaves"},
        ),
    ],
)
def test_spending_of_sampled_and_laplace_releases(params, matrix, changes, releases):
    report = xgb_dp.privacy_report(xgb.train(params(**changes), matrix(), 3))
    spent = report.spending()
    assert {s.release for s in spent} == releases
    assert math.fsum(s.share for s in spent) == pytest.approx(1.0)
    assert all(0 < s.epsilon <= report.epsilon * (1 + 1e-9) for s in spent)


def test_two_trainings_are_added_up(params, matrix):
    first = xgb.train(params(), matrix(), 3)
    both = xgb_dp.privacy_report(xgb.train(params(dp_epsilon=2.0), matrix(), 2, xgb_model=first))
    leaves = next(s for s in both.spending() if s.release == "leaves")
    assert leaves.count == 5
    assert leaves.noise.count("noise multiplier") == 2


def test_spending_of_a_selection(params, matrix):
    given = params(dp_epsilon=None, dp_delta=None)
    chosen = xgb_dp.select(given, matrix(), [{}], epsilon=2.0, delta=1e-5, num_boost_round=2)
    (spent,) = chosen.report.spending()
    assert (spent.release, spent.count, spent.share) == ("selection", 1, 1.0)
    assert spent.epsilon == chosen.report.epsilon
    assert "expected runs" in spent.noise
    assert "| selection |" in xgb_dp.model_card(chosen.booster)


def test_delta_falls_with_epsilon(report):
    assert report.get_delta(report.epsilon) == pytest.approx(report.delta, rel=0.05)
    assert report.get_delta(0.0) > report.get_delta(0.5) > report.get_delta(0.5 + report.epsilon)
    assert report.get_delta(0.5, group_size=2) > report.get_delta(0.5)
    # The bound from (epsilon, delta) alone is weaker.
    weak = (math.exp(report.epsilon) + report.delta) / (math.exp(report.epsilon) + 1)
    assert 0.5 < report.attack_success < weak
    for bad in ((-0.1, 1), (math.nan, 1), (1.0, 0), ("1", 1)):
        with pytest.raises(PrivacyParameterError):
            report.get_delta(*bad)
    values = [e for _, e in report.epsilon_curve()]
    assert values == sorted(values)
    assert report.epsilon_curve([1e-6]) == [(1e-6, report.epsilon)]


def test_printed_figures_never_promise_more():
    for value in (0.99928, 1.00004, 12.3401, 0.000123449, 1e-9, 99999.5):
        assert float(round_up(value)) >= value
        assert float(round_up(value)) == pytest.approx(value, rel=2e-3)
    assert round_up(0.0) == "0"
    assert round_up(math.inf) == "inf"


def test_text_has_statement_and_tables(report):
    text = report.summary(width=80)
    assert " ".join(report.statement().split())[:200] in " ".join(text.split())
    for part in (
        "Budget by mechanism",
        "noise multiplier",
        "groups of rows of one person",
        "1e-12",
    ):
        assert part in text
    assert max(len(line) for line in text.split("Budget by")[0].splitlines()) <= 80


def test_json_has_the_same_figures(report):
    content = json.loads(report.to_json())
    assert content["private"] is True
    assert 0.9 < content["epsilon"] == report.epsilon <= 1.0
    assert content["ledger"]["trainings"][0]["public"]["hyperparameters"]["rounds"] == 4
    assert content["attack_success"] == report.attack_success
    assert [b["release"] for b in content["budget"]] == [s.release for s in report.spending()]
    assert {p["delta"]: p["epsilon"] for p in content["epsilon_curve"]}[1e-6] == report.epsilon
    assert content["groups"][1] == {"rows": 2, "epsilon": report.get_epsilon(1e-6, group_size=2)}


def test_html_is_whole_and_loads_nothing(report):
    piece, page = report._repr_html_(), report.to_html()
    root = ElementTree.fromstring(piece)  # well formed, without HTML's laxness
    tags = Counter(element.tag for element in root.iter())
    assert tags["table"] == 3
    assert piece in page and page.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "img", "iframe"} & set(tags)
    names = {name for element in root.iter() for name in element.attrib}
    assert not {"src", "href", "onclick"} & names
    assert not re.search("<(script|link|img|iframe)|src=|href=|onclick=", page)
    assert f"epsilon = {round_up(report.epsilon)}" in page


def test_a_release_can_be_signed_from_the_top(report):
    class Judged:
        def figures(self):
            return {"auc": "0.91 (0.90 to 0.92)", "brier": "0.1"}

        def statement(self):
            return "It cost epsilon = 0.2."

    text = report.summary(name="Who pays", evaluation=Judged())
    top, details = text.split("Full statement")
    assert top.startswith("Privacy report: Who pays")
    for part in ("Date of this report: 20", "Privacy unit:", "one row, added or removed",
                 "Meaning:", "Assumed public:", "Not covered:", "AUC 0.91 (0.90 to 0.92)",
                 "It cost epsilon = 0.2."):  # fmt: skip
        assert part in top
    assert "brier" not in text
    assert "Budget by mechanism" in details
    page = ElementTree.fromstring(report._repr_html_(name="<a>"))
    assert "Privacy report: <a>" in "".join(page.itertext())
    folded = page.findall(".//details")
    titles = [d.find("summary/b").text for d in folded]
    assert titles == ["Full statement", "Budget and further figures"]
    assert not any(d.get("open") for d in folded)
    assert len(page.findall(".//dt")) == 6
    assert "Evaluation" not in report.to_html()


def test_html_escapes_what_the_ledger_holds(report):
    training = report.ledger["trainings"][0]
    events = training["events"]
    events.append({**events[-1], "release": "<script>alert(1)</script>"})
    training["public"]["evaluations"] = [{"events": 1}]  # of which no plan says the names
    html = xgb_dp.PrivacyReport(report.ledger).to_html()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_a_model_without_privacy_says_so_everywhere(params, matrix):
    with pytest.warns(UserWarning, match="NOT private"):
        model = xgb.train(params(dp_epsilon=math.inf), matrix(), 2)
    report = xgb_dp.privacy_report(model)
    assert not report.private
    assert report.epsilon == math.inf
    for text in (report.statement(), report.summary(), report.to_html(), report._repr_html_()):
        assert "NOT differentially private" in text
        assert "Budget by mechanism" not in text
    content = json.loads(report.to_json())
    assert content["private"] is False
    assert content["epsilon"] == "inf" == content["epsilon_curve"][0]["epsilon"]
    assert content["budget"] == []
    assert report.attack_success == 1.0
