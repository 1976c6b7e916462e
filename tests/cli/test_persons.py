"""The column that says who a row belongs to: declared, read as it is, and never a feature."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("click")

import xgboost as xgb

from xgb_dp.cli.tables import read_table
from xgb_dp.domain.domain import read_domain

from ..persons.conftest import codes_used, same_partition
from .calls import SCHEMA, SPENT, TRAIN, fails, rows, run

__all__ = ["codes_used"]

WHO = [f"00{i % 70}" for i in range(200)]
PERSONS = SCHEMA.replace("drop: [id]", "drop: [id]\nprivacy_id: patient")
CHOSEN = ["--target", "buys", "--classes", "no,yes", "--drop", "zip", "--drop", "pet"]


@pytest.fixture
def visits(folder: Path) -> Path:
    """A file of rows of patients, whose ids are texts that look like numbers."""
    rows().assign(patient=WHO).to_csv("rows.csv", index=False)
    Path("schema.yaml").write_text(PERSONS)
    return folder


def test_the_column_of_a_schema_file(visits, codes_used):
    run(*TRAIN)
    assert same_partition(codes_used[0], WHO)
    model = xgb.Booster(model_file="model.json")
    assert model.feature_names == ["age", "height", "zip", "pet"]
    run("predict", "model.json", "rows.csv", "--out", "with.csv")
    rows().to_csv("without.csv", index=False)
    run("predict", "model.json", "without.csv", "--out", "out.csv")
    assert Path("with.csv").read_text() == Path("out.csv").read_text()


def test_the_column_of_an_option(visits, codes_used):
    """It is taken out of a schema file; all other columns of a file alone are features."""
    given = [*CHOSEN, "--drop", "id", "--drop", "height", "--privacy-id", "patient"]
    run("train", "rows.csv", *given, *SPENT)
    assert xgb.Booster(model_file="model.json").feature_names == ["age"]
    Path("schema.yaml").write_text(SCHEMA.replace("  age:", "  patient: number\n  age:"))
    run(*TRAIN, "--privacy-id", "patient", "--force")
    assert len(codes_used) == 2 and all(same_partition(codes, WHO) for codes in codes_used)


@pytest.mark.parametrize("kind", ["text", "number", "category"])
def test_columns_of_parquet_files_are_exact(kind, visits, codes_used):
    ids = np.arange(200) % 70 + 2**60
    column = {"text": WHO, "number": ids, "category": pd.Categorical(WHO)}[kind]
    rows().assign(patient=column).to_parquet("rows.parquet")
    run("train", "rows.parquet", "--schema", "schema.yaml", *SPENT)
    assert same_partition(codes_used[0], WHO)


def test_spaces_around_ids_of_text_files_are_no_part_of_them(visits):
    Path("s.csv").write_text(
        "patient,age,height,zip,pet,buys,id\n7 , 1,1,on,cat,no,1\n7,1,1,on,cat,no,1\n"
    )
    table = read_table(Path("s.csv"), read_domain(Path("schema.yaml")), training=True)
    assert table.ids is not None
    assert table.ids.tolist() == ["7", "7"]


@pytest.mark.parametrize("cell", ["", "?"])
def test_a_row_without_an_id_is_refused(cell, visits, no_training):
    rows().assign(patient=[*WHO[:-1], cell]).to_csv("rows.csv", index=False)
    shown = fails(*TRAIN)
    assert "no id" in shown
    assert "0068" not in shown


def test_declarations_that_contradict_each_other(visits, no_training):
    def train(text: str, *more: str) -> str:
        Path("schema.yaml").write_text(text)
        return fails(*TRAIN, *more)

    feature = PERSONS.replace("  age:", "  patient: number\n  age:")
    assert "'patient' is declared as a feature" in train(feature)
    assert "has two of these roles" in train(PERSONS, "--privacy-id", "buys")
    assert "`privacy_id` must be the name" in train(PERSONS.replace(": patient", ": [patient]"))
    assert "no column 'nobody'" in train(PERSONS, "--privacy-id", "nobody")
    assert "--privacy-id" in train(SCHEMA, "--param", "dp_privacy_id=patient")
    near = train(PERSONS.replace("privacy_id", "privacy_ids"))
    assert "Did you mean 'privacy_id'" in near


def test_a_column_that_looks_like_an_id_is_warned_of(visits):
    shown = run("train", "rows.csv", *CHOSEN, "--drop", "height", *SPENT).stderr
    assert "'id', 'patient' look like ids" in shown
    assert "--privacy-id" in shown


def test_the_template_asks_for_the_unit_of_protection(visits):
    """From the names alone; as it stands, it declares none."""
    text = run("schema", "rows.csv", "--target", "buys").stdout
    assert "# Privacy unit:" in text
    assert '# privacy_id: "id"\n# privacy_id: "patient"\n' in text
    assert '"patient": number    # looks like an id: a feature?' in text
    Path("made.yaml").write_text(text)
    assert read_domain(Path("made.yaml")).privacy_id is None
    Path("made.yaml").write_text(text.replace('# privacy_id: "p', 'privacy_id: "p'))
    assert read_domain(Path("made.yaml")).privacy_id == "patient"
    rows()[["age", "buys"]].to_csv("few.csv", index=False)
    assert '# privacy_id: "NAME OF' in run("schema", "few.csv", "--target", "buys").stdout


def test_no_id_is_in_the_files_of_a_training(visits):
    secret = [f"SECRET{i % 70}" for i in range(200)]
    rows().assign(patient=secret).to_csv("rows.csv", index=False)
    written = ["--report", "r.json", "--report", "r.html", "--card", "card.md"]
    run("calibrate", "--schema", "schema.yaml", *SPENT)  # needs no rows
    shown = run(*TRAIN, *written)
    for path in ("model.json", "r.json", "r.html", "card.md"):
        assert "SECRET" not in Path(path).read_text()
    assert "SECRET" not in shown.output
