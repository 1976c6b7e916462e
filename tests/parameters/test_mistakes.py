"""What somebody gets wrong at first is answered with what was wrong and how to mend it."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp

PARAMS = {
    "tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0, "dp_delta": 1e-6,
}  # fmt: skip
FEW = {name: PARAMS[name] for name in ("tree_method", "objective")}


def table(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return frame, (frame.a > 0).astype(int)


def trained(**params):
    X, y = table()
    return xgb.train({**PARAMS, **params}, xgb.DMatrix(X, y), 2)


def fitted(columns, **settings):
    X, y = table()
    clf = xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=[0, 1], n_estimators=2)
    return clf.set_params(**settings).fit(X[columns], y)


def of_strings(**settings):
    clf = xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=[0, 1], n_estimators=2)
    return clf.set_params(**settings).fit(pd.DataFrame({"t": ["x", "y"] * 30}), [0, 1] * 30)


def own_loss():
    X, y = table()
    return xgb.train(PARAMS, xgb.DMatrix(X, y), 2, obj=lambda margin, data: (margin, margin))


def continued_without_privacy():
    X, y = table()
    stock = {"objective": "binary:logistic", "max_depth": 2}
    return xgb.train(stock, xgb.DMatrix(X, y), 2, xgb_model=trained())


def selected(**others):
    matrix, target = xgb.DMatrix(*table()), {"epsilon": 1.0, "delta": 1e-6}
    return xgb_dp.select(FEW, matrix, {"max_depth": [2, 3]}, **target, **others)


def discovered(**others):
    return xgb_dp.discover(table()[0], epsilon=1.0, delta=1e-6, **others)


def refitted(**others):
    return xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=2).fit(*table(), **others)


def array_after_names():
    model = of_strings(categories={"t": ["x", "y"]})
    return model.predict(np.array([["x"], ["y"]]))


def text_after_numbers():
    return fitted(["c"]).predict(pd.DataFrame({"c": ["x"]}))


def grouped():
    data = xgb.DMatrix(*table())
    data.set_group([60])
    return xgb.train(PARAMS, data, 2)


def evaluated(**others):
    X, y = table()
    model = xgb.train(
        {**PARAMS, "objective": "reg:squarederror", "dp_target_bounds": (0, 1)}, xgb.DMatrix(X, y)
    )
    return xgb_dp.evaluate(model, xgb.DMatrix(X, y), epsilon=1.0, delta=1e-6, **others)


MISTAKES = [
    (continued_without_privacy, "or a private `xgb_model` were passed"),
    (lambda: trained(n_estimators=10), "num_boost_round"),
    (lambda: trained(objective="binary:logistics"), "Did you mean 'binary:logistic'?"),
    (lambda: fitted(["c"], epsilon=None), "`epsilon` is missing"),
    (lambda: fitted(["c"], n_estimators=0), "`n_estimators` must be"),
    (lambda: fitted(["c"], num_boost_round=5), "`num_boost_round` is not a parameter"),
    (lambda: fitted(["c"], schema={"columns": {}}), "`schema` must be a result of xgb_dp.discover"),
    (lambda: selected(group_size=0), "`group_size` must be an integer"),
    (lambda: selected(privacy_id=[None] * 60), "no id in `privacy_id`"),
    (lambda: discovered(privacy_id=[None] * 60), "no id in `privacy_id`"),
    (lambda: fitted(["c"], privacy_id="c"), "Did you mean `fit(..., privacy_id=)`?"),
    (lambda: of_strings(), "categories={'t': ['a', 'b', ...]}. Use"),
    (lambda: of_strings(categories={"t": {"x", "y"}}), "in the order of their codes; got the set"),
    (lambda: of_strings(), "let xgb_dp.discover find"),
    (lambda: trained(num_leaves=31), "Did you mean `max_depth`?"),
    (lambda: fitted(["c"], num_leaves=31), "Did you mean `max_depth`?"),
    (lambda: fitted(["c"], bounds=(0, 1)), "Did you mean `feature_bounds`?"),
    (lambda: fitted(["c"], iterations=9), "Did you mean `n_estimators`?"),
    (own_loss, "dp_objective"),
    (lambda: fitted([]), "no columns"),
    (lambda: fitted(["c"], categories={"c": "abc"}), "got the string 'abc'"),
    (lambda: of_strings(categories={"t": "abc"}), "got the string 'abc'"),
    (
        lambda: of_strings(categories={"t": ["x", np.nan]}),
        "missing value, which is not a valid name",
    ),
    (lambda: fitted(["c"], tree_method="hist"), "use xgboost.XGBClassifier"),
    (
        lambda: fitted(["c"], categories={"c": ["x", np.nan]}),
        "missing value, which is not a valid name",
    ),
    (lambda: trained(dp_feature_cuts={"f0": [0.0]}), "Use the name of a column"),
    (lambda: trained(nthread="many"), "`nthread` must be an integer"),
    (lambda: trained(nthread=1.5), "`nthread` must be an integer"),
    (lambda: trained(seed_per_iteration=2), "`seed_per_iteration` must be True or False"),
    (lambda: trained(eval_metric="error@x"), "`eval_metric` contains 'error@x'"),
    (lambda: trained(eval_metric=["auc", "nope"]), "`eval_metric` contains 'nope'"),
    (lambda: trained(max_features=2), "Did you mean `colsample_bytree`?"),
    (lambda: trained(cat_features=["a"]), "Did you mean `dp_categories`?"),
    (lambda: trained(max_grad_norm=1.0), "Did you mean `dp_gradient_bound`?"),
    (lambda: trained(groups=[1]), "Did you mean `dp_privacy_id`?"),
    (lambda: trained(validation_fraction=0.1), "Remove it."),
    (lambda: trained(schema="schema.yaml"), "**discovery.params()"),
    (lambda: fitted(["c"], epsilonn=1), "Did you mean `epsilon`?"),
    (lambda: fitted(["c"], learning_rate=-1), "`learning_rate` must be"),
    (lambda: fitted(["c"], n_jobs="all"), "`n_jobs` must be an integer"),
    (lambda: fitted(["c"], missing="NA"), "`missing` must be a number"),
    (lambda: fitted(["c"], feature_types=["q"] * 2), "expected 1, got 2"),
    (lambda: fitted(["c"], objective="reg:squarederror"), "Use DPXGBRegressor"),
    (lambda: of_strings(), "such as '1,234', convert them"),
    (array_after_names, "Pass a data frame with the columns ['t']"),
    (text_after_numbers, "is not a column of numbers, but was one"),
    *(
        (lambda name=name: refitted(**{name: [1] * 60}), "as `privacy_id`")
        for name in ("groups", "group", "qid", "privacy_ids", "user_id")
    ),
    (lambda: refitted(weights=[1] * 60), "Did you mean `sample_weight`?"),
    (lambda: refitted(early_stopping_rounds=3), "pass it to the constructor"),
    (lambda: refitted(random_state=3), "cannot be repeated"),
    (lambda: refitted(sample_weight=[1]), "`sample_weight` must have one entry per row"),
    (grouped, "pass one id per row as `dp_privacy_id`"),
    (lambda: xgb.train(PARAMS, table()[0], 2), "xgboost.DMatrix(X, label=y)"),
    (lambda: xgb.train(PARAMS, xgb.DMatrix(table()[0]), 2), "has no labels"),
    (lambda: selected(cv=5), "Did you mean `validation`?"),
    (lambda: selected(max_depth=5), "pass it in `params`"),
    (lambda: xgb_dp.split(table(), test_size=0.2), "Did you mean `test`?"),
    (lambda: xgb_dp.split(table(), groups=[1] * 60), "as `privacy_id`"),
    (lambda: xgb_dp.split(table(), stratify=[1] * 60), "Its arguments are `data`, `test`"),
    (lambda: evaluated(metric="auc"), "Its arguments are `model`, `data`"),
    (lambda: evaluated().threshold((1, 5)), "requires the report of a binary classifier"),
    (lambda: xgb_dp.Budget.reserve(None, 1.0), "an epsilon is not an event"),
    (lambda: xgb_dp.Budget.reserve(None, [(1.0, 1e-6)]), "an epsilon is not an event"),
]


EXPECTED = (xgb_dp.PrivacyParameterError, xgb_dp.PrivacyRefusal, xgb_dp.RowDomainError)


@pytest.mark.parametrize(("mistake", "answer"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_answered_with_what_fixes_it(mistake, answer):
    with pytest.raises(EXPECTED) as error:
        mistake()
    assert answer in str(error.value)


def test_rows_and_labels_are_one_argument():
    for function in (xgb_dp.split, lambda X, y: xgb_dp.evaluate(None, X, y)):
        with pytest.raises(TypeError, match=r"Pass X and y as one pair \(X, y\)"):
            function(*table())
    with pytest.raises(AttributeError, match=r"xgboost\.train"):
        _ = xgb_dp.train


@pytest.mark.parametrize("name", ["seed", "random_state"])
def test_a_seed_has_no_effect(name):
    with pytest.warns(xgb_dp.PrivacyWarning, match="`seed` has no effect"):
        trained(**{name: 3})
    with pytest.warns(xgb_dp.PrivacyWarning, match="`random_state` has no effect"):
        fitted(["c"], random_state=3)


def test_columns_without_names_have_those_of_xgboost():
    X, y = table()
    data = xgb.DMatrix(X.to_numpy(), y)
    by_name, by_index = (
        xgb.train({**PARAMS, "dp_feature_cuts": {key: [0.0]}}, data, 2) for key in ("f0", 0)
    )
    kinds = [xgb_dp.privacy_report(m).record.trainings[0].public for m in (by_name, by_index)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(
    ("persons", "message", "absent"),
    [(True, "is already declared", "--privacy-id"), (False, "--privacy-id", "already declared")],
)
def test_a_column_of_ids_is_told_by_what_was_declared(persons, message, absent):
    X, y = table()
    data = xgb.DMatrix(X.assign(patient_id=np.arange(60)), y)
    ids = {"dp_privacy_id": np.arange(60)} if persons else {}
    with pytest.warns(xgb_dp.PrivacyWarning) as seen:
        xgb.train({**PARAMS, **ids}, data, 2)
    (text,) = [str(w.message) for w in seen if "looks like an id" in str(w.message)]
    assert message in text
    assert absent not in text


def test_a_model_of_noise_says_so_when_it_is_made_and_in_its_statement():
    X, y = table()
    with pytest.warns(xgb_dp.PrivacyWarning, match="little more than noise"):
        model = xgb.train(
            {**PARAMS, "dp_epsilon": 0.1, "dp_public_num_rows": 60}, xgb.DMatrix(X, y)
        )
    assert "there are only about 60 in total" in xgb_dp.privacy_report(model).statement()


def test_noise_is_told_before_it_is_drawn_where_the_rows_are_public(monkeypatch):
    X, y = table()
    monkeypatch.setattr(
        xgb_dp.engine.native, "release_before_trees", lambda *_: pytest.fail("drawn")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", xgb_dp.PrivacyWarning)
        with pytest.raises(xgb_dp.PrivacyWarning, match="little more than noise"):
            xgb.train({**PARAMS, "dp_epsilon": 0.1, "dp_public_num_rows": 60}, xgb.DMatrix(X, y))


PRECISE = {"dp_budget_shares": {"base_score": 0.2}}
"""A noisy number of rows that is too precise to change an expected warning by chance."""


def doubts_of(n, **params):
    """Warnings of one training of 20 rounds, whose record has no number of rows."""
    X, y = table(n)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        xgb.train({**PARAMS, **PRECISE, **params}, xgb.DMatrix(X, y), 20)
    return [str(w.message) for w in seen if "private training number" not in str(w.message)]


def test_too_few_rows_are_told_once_also_with_fixed_rounds():
    for params in ({}, {"dp_public_num_rows": 60}):
        (text,) = doubts_of(60, **params, dp_epsilon=0.5)
        assert "hides differences between groups of" in text and text.count(". ") == 0
    assert doubts_of(3000) == []


def test_released_rows_are_those_of_the_first_release():
    """The number in the warning is the noisy one, not the exact one."""
    counts = set()
    for _ in range(4):
        (text,) = doubts_of(60, dp_epsilon=0.3)
        counts.add(int(text.split("only about ")[1].split(" in total")[0]))
    assert len(counts) > 1


def test_a_delta_that_is_needlessly_small():
    (text,) = doubts_of(3000, dp_delta=1e-13)
    assert "far below the inverse of the number of rows" in text
    assert "would need" in text and text.endswith("less noise.")
    assert doubts_of(3000, dp_delta=1e-8) == []


def test_the_command_line_warns_once(tmp_path):
    X, y = table(60)
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    schema = "target: y\nclasses: [0, 1]\nparams: {dp_budget_shares: {base_score: 0.2}}\n"
    (tmp_path / "s.yaml").write_text(schema)
    done = subprocess.run(
        [sys.executable, "-m", "xgb_dp", "train", "rows.csv", "--schema", "s.yaml",
         "--epsilon", "0.3", "--delta", "1e-6", "--rounds", "20"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr.count("little more than noise") == done.stderr.count("Warning") == 1


def test_a_group_has_the_word_of_other_calls():
    report = fitted(["a"], group_size=5).privacy_report_
    assert report.unit.phrase == "5 rows of one person"
    assert report.epsilon <= 1.0


def test_a_model_of_many_persons_has_no_doubts_and_counts_persons():
    X, y = table(6000)
    ids = np.repeat(np.arange(3000), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", xgb_dp.PrivacyWarning)
        model = xgb.train({**PARAMS, "dp_privacy_id": ids}, xgb.DMatrix(X, y))
    assert "noisy count of persons (about" in xgb_dp.privacy_report(model).statement()


def test_released_labels_tell_of_target_bounds_that_are_far_too_wide():
    X, _ = table(3000)
    params = {**PARAMS, "objective": "reg:squarederror", "dp_target_bounds": [-1000.0, 1000.0]}
    with pytest.warns(xgb_dp.PrivacyWarning, match="far too wide"):
        model = xgb.train(params, xgb.DMatrix(X, X.a + X.b))
    assert "The target bounds, -1000 to 1000, are far too wide" in (
        xgb_dp.privacy_report(model).statement()
    )


def test_delta_is_compared_with_the_released_number_of_rows():
    X, y = table(3000)
    with pytest.warns(xgb_dp.PrivacyWarning, match="inverse of the released number of rows"):
        xgb.train({**PARAMS, "dp_delta": 9e-4}, xgb.DMatrix(X, y))


def test_the_number_of_persons_is_told_as_that_of_persons():
    X, y = table()
    ids = {
        "dp_privacy_id": np.repeat(np.arange(30), 2),
        "dp_public_num_rows": 2000,
        "dp_delta": 9e-4,
    }
    with pytest.warns(xgb_dp.PrivacyWarning, match="inverse of the declared number of persons"):
        model = xgb.train({**PARAMS, **ids}, xgb.DMatrix(X, y), 2)
    assert "the declared number of persons" in xgb_dp.privacy_report(model).statement()


def test_margins_of_the_rows_are_told():
    X, y = table()
    data = xgb.DMatrix(X, y, base_margin=np.zeros(60))
    warning = "such as another private model"
    model = xgb.train({**PARAMS, "dp_base_margin": True}, data, 2)
    assert warning in xgb_dp.privacy_report(model).statement()
    assert warning not in xgb_dp.privacy_report(trained()).statement()


def test_an_ensemble_is_told_to_be_several_models():
    ensemble = pytest.importorskip("sklearn.ensemble")
    X, y = table()
    member = xgb_dp.DPXGBRegressor(epsilon=1.0, delta=1e-6, target_bounds=(0, 1), n_estimators=2)
    voting = ensemble.VotingRegressor([("a", member), ("b", member)]).fit(X, y)
    for ask in (xgb_dp.privacy_report, xgb_dp.verify, xgb_dp.model_card):
        with pytest.raises(xgb_dp.PrivacyParameterError, match=r"model\.estimators_"):
            ask(voting)
    assert 1.3 < xgb_dp.privacy_report(voting.estimators_).epsilon < 1.6
