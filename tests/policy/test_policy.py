"""What a policy lets through and refuses, and who can change it: nobody in the process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp import policy
from xgb_dp.errors import POLICY

from .conftest import TEXT, matrix, params, table

CLOSED = (xgb_dp.BudgetError, xgb_dp.PrivacyRefusal, xgb_dp.PrivacyParameterError)


def spent() -> int:
    return len(xgb_dp.Budget("budget.json").entries)


def test_a_permitted_training_names_the_policy(enforce):
    path = enforce()
    model = xgb_dp.Budget("budget.json").train(params(), matrix(), 3)
    [training] = xgb_dp.privacy_report(model).record.trainings
    assert training.public["policy"] == policy.Policy.read(path).digest
    model.save_model("model.json")
    assert xgb_dp.verify("model.json", policy=path).verdict == "passed"


def test_without_a_policy_the_ledger_names_none(enforce):
    model = xgb.train(params(), matrix(), 3)
    [training] = xgb_dp.privacy_report(model).record.trainings
    assert "policy" not in training.public
    model.save_model("model.json")
    assert xgb_dp.verify("model.json", policy=enforce()).verdict == "failed"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("epsilon: 1\n", "epsilon: 0.4\n", "epsilon 0.4"),
        ("id: patient", "id: ward", "person of the policy"),
        ("height: number", "height: {bounds: [0, 300]}", "name this policy"),
    ],
)
def test_a_model_of_another_policy_fails(enforce, old, new, fault):
    enforce()
    xgb_dp.Budget("budget.json").train(params(), matrix(), 3).save_model("model.json")
    Path("other.yaml").write_text(TEXT.replace(old, new, 1))
    checks = {c.name: c for c in xgb_dp.verify("model.json", policy="other.yaml").checks}
    assert not checks["policy"].passed and fault in checks["policy"].detail


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dp_epsilon": 1.01}, "epsilon 1"),
        ({"dp_epsilon": 1.0, "dp_delta": 1e-5}, "epsilon 1"),
        ({"dp_privacy_id": None}, "person"),
        ({"dp_privacy_id": np.arange(400)}, "column 'patient'"),
        ({"dp_privacy_id": table()["patient"].rename("row")}, "column 'patient'"),
        ({"dp_public_evals": True}, "public evals"),
        ({"dp_public_data": True}, "public rows"),
        ({"dp_public_model": True}, "public rows"),
        ({"dp_objective": lambda row: row.margin**2, "objective": None}, "own objectives"),
        ({"dp_public_num_rows": 90}, "`dp_public_num_rows`"),
        ({"dp_max_weight": 2.0}, "`dp_max_weight`"),
        ({"dp_feature_bounds": {"age": (18, 120)}}, "`dp_feature_bounds`"),
        ({"dp_feature_cuts": {"height": [170.0]}}, "`dp_feature_cuts`"),
        ({"dp_categories": {"sex": ["f", "m", "x"]}}, "`dp_categories`"),
        ({"dp_classes": 3, "objective": "multi:softprob"}, "`"),
        ({"dp_target_bounds": (0, 1), "objective": "reg:squarederror"}, "`"),
        ({"verbosity": 3}, "`verbosity`"),
        ({"verbosity": None}, "`verbosity`"),  # the process has it
        ({"dp_epsilon": float("inf")}, "cannot be charged"),
    ],
)
def test_a_parameter_raises_nothing(enforce, changes, says):
    enforce()
    talk = 3 if changes == {"verbosity": None} else 1
    with xgb.config_context(verbosity=talk), pytest.raises(CLOSED) as refused:
        xgb_dp.Budget("budget.json").train(params(**changes), matrix(), 3)
    assert says in str(refused.value)
    assert not spent()


@pytest.mark.parametrize("choice", [{"dp_score": "gain"}, {"dp_leaf_noise": "output"}])
def test_nobody_asks_whether_weights_are_one(enforce, choice):
    text = TEXT.replace("unit: person\nid: patient", "unit: row")
    enforce(text.replace("  target: ill", "  target: ill\n  weight: w"), unit="row")
    config = params(dp_privacy_id=None, dp_leaf="gradient", dp_epsilon=5.0, **choice)
    data = matrix()
    for weights in (np.ones(400), np.full(400, 0.5)):
        data.set_weight(weights)
        with pytest.raises(xgb_dp.PrivacyRefusal, match="all row weights are 1"):
            xgb_dp.Budget("budget.json").train(config, data, 3)


@pytest.mark.parametrize(
    "same",
    [
        {"dp_feature_bounds": {"age": [0, 120]}},
        {"dp_categories": {"sex": ("f", "m")}, "dp_public_num_rows": None},
        {"dp_classes": 2, "dp_base_margin": False},
    ],
)
def test_what_the_policy_declares_may_be_repeated(enforce, same):
    enforce()
    xgb_dp.Budget("budget.json").train(params(**same), matrix(), 2)


def test_what_is_allowed_passes(enforce):
    enforce(TEXT + "allow: [public evals, exact errors]\n")
    budget, d = xgb_dp.Budget("budget.json"), matrix()
    budget.train(params(dp_public_evals=True), d, 2, evals=[(matrix(age=50), "public")])
    d.set_label(np.full(400, 7.0))
    with pytest.raises(xgb_dp.RowDomainError, match="label"):
        budget.train(params(), d, 2)


def test_a_continued_model_counts_whole(enforce):
    enforce()
    budget, d = xgb_dp.Budget("budget.json"), matrix()
    first = budget.train(params(), d, 2)
    more = budget.train(params(dp_epsilon=0.3), d, 2, xgb_model=first)
    with pytest.raises(xgb_dp.BudgetError, match="with its earlier trainings"):
        budget.train(params(dp_epsilon=0.9), d, 2, xgb_model=more)
    assert spent() == 2


def test_other_columns_are_refused(enforce):
    enforce()
    budget, plain = xgb_dp.Budget("budget.json"), np.zeros((400, 3))
    for other in (matrix(ward=1.0), xgb.DMatrix(plain, np.zeros(400))):
        with pytest.raises(xgb_dp.PrivacyRefusal, match="not in the schema of the policy"):
            budget.train(params(), other, 2)


@pytest.mark.parametrize("make", [{"epsilon": 5.0}, {"unit": "row"}, {}])
def test_the_book_is_that_of_the_policy_and_no_larger(enforce, make):
    enforce(**make)
    budget = xgb_dp.Budget("budget.json")
    if not make:
        budget = xgb_dp.Budget("other.json", epsilon=9.0, delta=1e-5, unit="person")
    with pytest.raises(CLOSED, match="" if make else "charged to its budget"):
        budget.train(params(), matrix(), 2)
    assert not budget.entries and not spent()


def test_a_second_policy_is_refused(enforce, monkeypatch):
    enforce()
    budget = xgb_dp.Budget("budget.json")
    budget.train(params(), matrix(), 2)
    Path("raised.yaml").write_text(TEXT.replace("epsilon: 1\n", "epsilon: 3\n", 1))
    monkeypatch.setenv(POLICY, "raised.yaml")
    with pytest.raises(xgb_dp.PrivacyRefusal, match="another policy"):
        budget.train(params(), matrix(), 2)
    monkeypatch.delenv(POLICY)
    with pytest.raises(xgb_dp.BudgetError, match="epsilon 1 at"):
        budget.train(params(dp_epsilon=2.0), matrix(), 2)
    Path("policy.yaml").write_text(Path("raised.yaml").read_text())
    with pytest.raises(xgb_dp.BudgetError, match="epsilon 1 at"):
        budget.train(params(dp_epsilon=2.0), matrix(), 2)


def test_public_rows_that_are_allowed_give_the_candidates(enforce):
    """Their cuts are made by the library, so that the policy need not declare them."""
    enforce(TEXT + "allow: [public rows]\n")
    model = xgb_dp.Budget("budget.json").train(params(dp_public_data=matrix()), matrix(), 3)
    assert "candidates" not in {s.release for s in xgb_dp.privacy_report(model).spending()}


@pytest.mark.parametrize(
    "broken",
    [
        None,
        "",
        "unnamed",
        "unit: person",
        TEXT.replace("unit: person", "unit: ward"),
        TEXT.replace("id: patient\n", ""),
        TEXT.replace("unit: person", "unit: row"),
        TEXT.replace("epsilon: 1\n", "epsilon: inf\n", 1),
        TEXT.replace("delta: 1e-6", "delta: 1"),
        TEXT + "allow: [everything]\n",
        TEXT + "largest: 3\n",
        TEXT + "epsilon: 3\n",
        TEXT[: TEXT.index("  columns:")],
        TEXT.replace("  target: ill\n", "  target: ill\n  privacy_id: ward\n"),
        TEXT.replace("  target: ill\n", "  target: ill\n  params: {dp_wrong: 1}\n"),
    ],
)
def test_a_policy_that_is_not_understood_stops_everything(enforce, broken, monkeypatch):
    path = enforce(broken or "")
    if broken is None:
        path.unlink()
    if broken == "unnamed":
        monkeypatch.setenv(POLICY, "")
    with pytest.raises(xgb_dp.PrivacyParameterError, match="cannot be read"):
        xgb_dp.Budget("budget.json").train(params(), matrix(), 2)
    assert not spent()


def test_every_claim_has_its_parameters():
    from xgb_dp.request.params import PARAMETERS

    claimed = {name for names in policy._CLAIMS.values() for name in names}
    assert claimed | set(policy._DECLARING) <= set(PARAMETERS)


def test_verify_needs_no_library_for_a_policy_in_json(enforce):
    enforce()
    xgb_dp.Budget("budget.json").train(params(), matrix(), 2).save_model("model.json")
    from xgb_dp.domain.columns import read_schema_file

    Path("policy.json").write_text(json.dumps(read_schema_file(Path("policy.yaml"))))
    code = (
        "import sys; from xgb_dp.cli.standalone import verify_command;"
        "code = verify_command(['model.json', '--policy', 'policy.json', '--quiet']);"
        "assert not {'xgboost', 'yaml', 'click'} & set(sys.modules); sys.exit(code)"
    )
    clean = {k: v for k, v in os.environ.items() if k != POLICY}
    assert subprocess.run([sys.executable, "-c", code], env=clean, check=False).returncode == 0
