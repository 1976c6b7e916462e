"""The table of persons: splits, scores and systems that know whom a row belongs to."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from experiments import core, datasets, synthetic, tables, train
from experiments.__main__ import main
from experiments.scoring import scores_of_persons, weights_of_persons

from .test_runner import rows_of

SMALL = datasets.VISITS.resized("60x8")


def parts_of(seed: int = 0) -> train.Split:
    return train.split(SMALL, core.DEFAULT, seed, 0.3, stratify=False)


def test_the_generated_persons_have_effects_of_rows_and_of_persons():
    who = synthetic.rows_of_persons(1500)
    rows = np.bincount(who)
    assert len(rows) == 1500
    assert rows.min() == 1
    assert 900 < rows.max() <= synthetic.MOST_ROWS
    assert 80_000 < len(who) < 120_000
    x, y, categories = datasets.load(SMALL)
    who = datasets.persons(SMALL)
    assert (x.shape, len(y), categories) == ((len(who), 8), len(who), {})
    of_person = x.groupby(who).nunique().to_numpy()[np.bincount(who) > 5]
    assert (of_person[:, : synthetic.OF_PERSON] == 1).all()
    assert (of_person[:, synthetic.OF_PERSON :] > 1).all()


def test_no_person_is_on_both_sides_of_a_split():
    parts = parts_of()
    assert parts.who_train is not None
    assert parts.who_test is not None
    assert not set(parts.who_train) & set(parts.who_test)
    assert len(set(parts.who_test)) == 18
    assert len(parts.x_test) == len(parts.who_test) == len(parts.y_test)
    one = parts.one_each(seed=0)
    assert one.who_train is not None
    assert sorted(one.who_train) == sorted(set(parts.who_train))
    row = parts.x_train.iloc[np.flatnonzero(parts.who_train == one.who_train[0])]
    assert (row.to_numpy() == one.x_train.iloc[0].to_numpy()).all(axis=1).any()
    weight = weights_of_persons(parts.who_train)
    assert np.bincount(parts.who_train, weight).max() == pytest.approx(1.0)
    assert weight.sum() == pytest.approx(len(one.y_train))


def test_scores_in_which_every_person_counts_one():
    y = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    p = np.array([0.2, 0.9, 0.4, 0.3, 0.8, 0.1])
    figures = scores_of_persons(y, p, np.array([7, 7, 7, 3, 3, 5]))
    weight = np.array([1 / 3, 1 / 3, 1 / 3, 0.5, 0.5, 1.0])
    assert figures["auc_persons"] == pytest.approx(roc_auc_score(y, p, sample_weight=weight))
    assert figures["ratio_persons"] == pytest.approx((0.5 + 0.55 + 0.1) / 1.5)


def test_what_each_system_is_told():
    table, parts = tables.get("persons"), parts_of()
    given = {
        s.name: train.parameters(table, SMALL, s, 1.0, parts) for s in table.systems if s.private
    }
    for name, params in given.items():
        assert params["dp_delta"] == 1e-6
        by_id = name == "default" or "rows a person" in name
        assert ("dp_privacy_id" in params) == by_id
        assert ("dp_group_size" in params) == (name == "group of all rows")
    assert given["group of all rows"]["dp_group_size"] == synthetic.MOST_ROWS
    assert given["2 rows a person"]["dp_max_rows_per_person"] == 2.0
    assert given["default"]["dp_privacy_id"] is parts.who_train


def test_a_tiny_table(tmp_path, capsys):
    command = ["persons", "--seeds", "1", "--epsilon", "4", "--jobs", "1", "--size", "60x6"]
    command += ["--data", "Visits", "--out", str(tmp_path)]
    assert main(command) == 0
    rows = {r["system"]: r for r in rows_of(tmp_path, "persons")}
    assert set(rows) == {s.name for s in tables.get("persons").systems}
    for row in rows.values():
        assert not row["note"], row["note"]
        assert 0 < float(row["auc"]) < 1
        assert float(row["ratio_persons"]) > 0
    assert int(rows["one row of each"]["n_train"]) == 42
    for name in ("default", "group of all rows"):
        assert 3.7 < float(rows[name]["spent_epsilon"]) <= 4.0
    text = capsys.readouterr().out
    assert "**Visits(60x6)**, test AUC, each person counting one" in text
    assert "mean prediction over mean label, each person counting one" in text
