"""A folder of rows with their schema, and a guard against noise."""

from pathlib import Path

import pytest

import xgb_dp

from .calls import SCHEMA, rows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows().to_csv("rows.csv", index=False)
    Path("schema.yaml").write_text(SCHEMA)
    return tmp_path


@pytest.fixture
def no_training(monkeypatch):
    """Fails the test if training gets as far as releasing something."""
    monkeypatch.setattr(
        xgb_dp.engine.native, "release_before_trees", lambda *_: pytest.fail("noise was drawn")
    )
