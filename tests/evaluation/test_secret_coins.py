"""Splits whose coins stay secret: what is promised, refused, said and written."""

import json
import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.audit import mechanisms
from tests.evaluation.tasks import PRIVATE, TARGET, rows
from xgb_dp.accounting import GaussianEvent
from xgb_dp.accounting.secret import SecretSplit
from xgb_dp.data.parts import Part, is_secret, part_of
from xgb_dp.engine.native import discrete_gaussian, rows_apart
from xgb_dp.record.ledger import read_ledger

NUM = round(0.3 * 2**32)


@pytest.fixture(scope="module")
def parts() -> Any:
    return xgb_dp.split(xgb.DMatrix(*rows(3000)), test=0.3, coins_stay_secret=True)


@pytest.fixture(scope="module")
def model(parts: Any) -> Any:
    return xgb.train(PRIVATE, parts.train, 3)


@pytest.fixture(scope="module")
def judged(model: Any, parts: Any) -> Any:
    return xgb_dp.evaluate(model, parts, epsilon=0.2, delta=1e-6)


def test_a_promise_is_kept_in_the_part(parts, model):
    assert part_of(parts.train) == Part(parts.name, "train", "row", NUM)
    stored = read_ledger(model).trainings[-1].public["part"]
    assert stored == {"split": parts.name, "name": "train", "unit": "row", "test_num": NUM}
    assert Part.from_json(stored) == part_of(parts.train)
    usual = xgb_dp.split(xgb.DMatrix(*rows(100)), test=0.3)
    assert set(part_of(usual.train).to_json()) == {"split", "name", "unit"}
    for num in (0, 1 << 32, True, 0.3, "1"):
        with pytest.raises(ValueError, match="part"):
            Part.from_json({**stored, "test_num": num})
    with pytest.raises(xgb_dp.PrivacyParameterError, match="coins_stay_secret"):
        xgb_dp.split(rows(100), coins_stay_secret=0.3)


def test_parts_of_very_few_hide_nothing(tmp_path):
    """Delta would hide whatever is released of them. Without the promise they are parts as any."""
    data = xgb.DMatrix(*rows(300))
    for share in (0.001, 0.9999):
        with pytest.raises(xgb_dp.PrivacyRefusal, match="less than 1%"):
            xgb_dp.split(data, test=share, coins_stay_secret=True)
        with pytest.raises(xgb_dp.PrivacyRefusal, match="less than 1%"):
            xgb_dp.Budget(tmp_path / "book", epsilon=1.0, delta=1e-6, secret_test=share)
        assert not is_secret(Part("a", "train", "row", round(share * 2**32)), "row")
    assert xgb_dp.split(data, test=0.001).train.num_row() > 200


def test_reports_say_what_both_cost(model, judged):
    report = xgb_dp.privacy_report(model)
    assert 0.99 < report.epsilon <= 1.0  # what adds up with others stays what it is
    assert 0.76 < report.secret_epsilon < 0.79
    assert report.secret_epsilon < judged.cost.together < 0.82
    assert judged.cost.parallel
    assert "both together cost epsilon 0.8" in judged.statement()
    assert "does not add up" in report.statement()
    truth = SecretSplit(NUM, tuple(report.record.events), judged.cost.events)
    assert truth.get_epsilon(1e-6) == judged.cost.together


def test_where_nobody_promised_nothing_is_claimed(model, judged, parts):
    usual = xgb_dp.split(xgb.DMatrix(*rows(1000)), test=0.3)
    other = xgb.train(PRIVATE, usual.train, 2)
    report = xgb_dp.evaluate(other, usual, **TARGET)
    assert report.cost.parallel and report.cost.together is None
    assert xgb_dp.privacy_report(other).secret_epsilon is None
    assert xgb_dp.evaluate(model, usual, **TARGET).cost.together is None
    assert xgb_dp.evaluate(model, rows(500), **TARGET).cost.together is None
    twice = xgb.train(PRIVATE, usual.train, 2, xgb_model=model)
    assert xgb_dp.privacy_report(twice).secret_epsilon is None
    assert xgb_dp.privacy_report(judged.calibrated(model)).secret_epsilon is None


def test_both_parts_may_train_a_model(model, parts):
    """Each unit is in the trainings of one part, which the split keeps apart."""
    again = xgb.train({**PRIVATE, "dp_epsilon": 0.3}, parts.test, 2, xgb_model=model)
    report = xgb_dp.privacy_report(again)
    assert 0.8 < report.secret_epsilon < 0.9 < 1.0 < report.epsilon


def test_rows_of_persons_have_no_coins_of_their_own():
    X, y = rows(1200)
    split = xgb_dp.split(
        (X, y), test=0.3, privacy_id=np.repeat(np.arange(400), 3), coins_stay_secret=True
    )
    assert is_secret(part_of(split.train), "person") and not is_secret(part_of(split.train), "row")
    matrix = xgb.DMatrix(*split.train)
    xgb_dp.data.parts.mark(matrix, part_of(split.train))
    model = xgb.train(PRIVATE, matrix, 2)
    assert read_ledger(model).trainings[-1].public["part"]["unit"] == "person"
    assert xgb_dp.privacy_report(model).secret_epsilon is None


def test_what_would_publish_the_coins_is_refused(parts):
    more = {**PRIVATE, "dp_public_evals": True}
    with pytest.raises(xgb_dp.PrivacyRefusal, match="coins are to stay secret"):
        xgb.train(more, parts.train, 2, evals=[(parts.test, "test")])
    with pytest.raises(xgb_dp.PrivacyRefusal, match="dp_n_public"):
        xgb.train({**PRIVATE, "dp_n_public": 2100}, parts.train, 2)
    bounds = {k: v for k, v in PRIVATE.items() if k != "dp_feature_bounds"}
    with pytest.raises(xgb_dp.PrivacyRefusal, match="coins are to stay secret"):
        xgb.train({**bounds, "dp_public_data": parts.test}, parts.train, 2)
    table = xgb_dp.split(rows(500), test=0.3, coins_stay_secret=True)
    bounds = PRIVATE["dp_feature_bounds"]
    tree = xgb_dp.DPXGBClassifier(classes=2, feature_bounds=bounds, n_estimators=2, **TARGET)
    with pytest.raises(xgb_dp.PrivacyRefusal, match="coins are to stay secret"):
        tree.fit(*table.train, eval_set=[table.test])


def test_nothing_that_is_written_depends_on_the_coins(tmp_path):
    """Two splits of the same rows: ledger and book say the same but for the name of the split."""
    texts = []
    for number in range(2):
        split = xgb_dp.split(xgb.DMatrix(*rows(600)), test=0.3, coins_stay_secret=True)
        path = tmp_path / f"{number}.json"
        book = xgb_dp.Budget(path, epsilon=1.0, delta=1e-6, secret_test=0.3)
        model = book.train(PRIVATE, split.train, 2)
        public = read_ledger(model).trainings[0].public
        text = json.dumps([dict(public), [e.events for e in book.entries]], default=str)
        texts.append(text.replace(split.name, "name"))
        for size in (split.train.num_row(), split.test.num_row()):
            assert f" {size}," not in text and f" {size}}}" not in text
    assert texts[0] == texts[1]


# ------------------------------------------------------------------------------------------- audit
SIZE, SHARE = 2.0, 0.5
SIGMA2 = (1 << 40) // int(SIZE**2)
EVENTS = (GaussianEvent("leaves", 1 << 40, SIGMA2, 1, 1),)
SPLIT = SecretSplit(1 << 31, EVENTS, ())


@pytest.mark.parametrize(("published", "violated"), [(False, False), (True, True)])
def test_audit_of_a_split(published, violated):
    """A noisy sum of the first part; the broken one prints the size of the part besides."""

    def sample(with_row: bool, n: int) -> np.ndarray:
        _, apart = rows_apart(n, 1 << 31)
        inside = np.ones(n, dtype=bool)
        inside[apart] = False
        inside &= with_row
        out = discrete_gaussian(SIGMA2, n) + inside * (1 << 20)
        shift = (1 << 20) / SIGMA2
        loss = out * shift - SIZE**2 / 2
        if published:  # one more row than there would be
            return np.where(inside, 1e3 + loss, -1e3)
        return np.logaddexp(math.log(SHARE) + loss, math.log(1 - SHARE))

    audited = mechanisms.Mechanism("a part", "likelihood ratio", SPLIT, sample)
    assert mechanisms.audit(audited, 40_000, confidence=1 - 1e-6).violated is violated
