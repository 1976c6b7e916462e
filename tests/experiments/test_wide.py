"""The table of wide data: texts as counts, which stay sparse."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from experiments import synthetic, tables
from experiments.__main__ import main
from experiments.tables import wide
from experiments.workers import descent

from .test_runner import rows_of


@pytest.mark.parametrize("kind", ["few words", "many words", "topics", "presence"])
def test_texts_are_sparse_and_their_words_tell_the_label(kind):
    x, y = synthetic.words(kind, 4000, 400)
    assert x.shape == (4000, 400)
    assert 10 < x.nnz / 4000 < 60
    assert (x.data >= 1.0).all()
    assert (x.data.max() == 1.0) == (kind == "presence")
    assert set(y) == {0.0, 1.0}
    assert 0.3 < y.mean() < 0.7
    of_words = np.sort(np.asarray((x > 0).sum(axis=0)).ravel())[::-1]
    assert of_words[0] > 5 * of_words[200]
    # Without noise nearly, a linear model finds what they say.
    rows = descent.unit_rows(x)
    assert np.allclose(rows.multiply(rows).sum(axis=1), 1.0, atol=1e-5)
    weights = descent.fit(rows[:3000], y[:3000], 1e6, 200, 32.0, 1.0)
    assert roc_auc_score(y[3000:], rows[3000:] @ weights) > 0.7


def test_there_are_no_other_strings():
    with pytest.raises(ValueError, match="No texts"):
        synthetic.words("letters", 10, 10)


def test_the_table_runs(tmp_path, monkeypatch):
    small = wide.strings("many words", 600, 60)
    # So little noise that every system beats chance: means of 0.75 to 0.78, deviations of 0.016.
    table = replace(wide.TABLE, datasets=(small,), epsilons=(8.0,))
    monkeypatch.setattr(tables, "get", lambda name, size="": table)
    command = ["wide", "--epsilon", "8", "--seeds", "1", "--out", str(tmp_path), "--jobs", "1"]
    assert main(command) == 0
    by_system = {r["system"]: r for r in rows_of(tmp_path, "wide")}
    assert set(by_system) == {s.name for s in wide.TABLE.systems}
    assert all(0.6 < float(r["auc"]) < 1.0 for r in by_system.values())
    assert 7.5 < float(by_system["default"]["spent_epsilon"]) <= 8.0
    assert float(by_system["not private"]["auc"]) > 0.6
    assert "many words, 60 columns" in (tmp_path / "wide.md").read_text()
