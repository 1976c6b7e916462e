"""Objectives with losses of the plugin's own, from xgboost.train to the saved model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb

import xgb_dp
from tests.training.plans import plan_of as followed_plan
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal, RowDomainError
from xgb_dp.planning import with_noise
from xgb_dp.request.params import DEFAULT_ROUNDS
from xgb_dp.request.schema import read_schema
from xgb_dp.training.hook import prepare
from xgb_dp.training.start import label_quantiles, label_spread

Floats = npt.NDArray[np.float64]


def tanh_loss(prediction: Any, label: Any, weight: Any) -> tuple[Any, Any]:
    """Nearly the absolute error."""
    residual = np.tanh(prediction - label)
    return residual, np.maximum(1 - residual**2, 0.05)


CASES: dict[str, dict[str, Any]] = {
    "absolute": {"objective": "reg:absoluteerror"},
    "quantile": {"objective": "reg:quantileerror", "quantile_alpha": 0.8},
    "quantiles": {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.5, 0.8]},
    "pseudo_huber": {"objective": "reg:pseudohubererror", "huber_slope": 1.0},
    "squared_log": {"objective": "reg:squaredlogerror"},
    "logistic": {"objective": "reg:logistic"},
    "own": {"dp_objective": tanh_loss},
}
BOUNDS = {"squared_log": (0.0, 20.0), "logistic": (0.0, 1.0)}
USUAL = {"tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": 1e-5, "nthread": 1}


def rows(name: str, n: int = 1500) -> tuple[Floats, Floats]:
    """Columns and labels that the objective knows."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, 4))
    y = 2 * X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(size=n)
    if name == "squared_log":
        y = np.exp(0.5 * y)
    if name == "logistic":
        y = 1 / (1 + np.exp(-y))
    return X, y


def train(name: str, rounds: int | None = 12, data: Any = None, **changes: Any) -> xgb.Booster:
    """A training on these rows, with the bounds of its labels."""
    X, y = rows(name) if data is None else data
    more = {k: changes.pop(k) for k in ("xgb_model",) if k in changes}
    weight = changes.pop("weight", None)
    params = {**USUAL, "dp_target_bounds": BOUNDS.get(name, (-8.0, 8.0)), **CASES[name], **changes}
    return xgb.train(params, xgb.DMatrix(X, y, weight=weight), rounds, **more)


def loss(name: str, y: Floats, p: Floats) -> float:
    """Mean loss of the objective; of several quantiles their sum."""
    if name in ("quantile", "quantiles", "absolute"):
        levels = np.atleast_1d(CASES[name].get("quantile_alpha", 0.5))
        off = y[:, None] - p.reshape(len(y), -1)
        return float(np.maximum(levels * off, (levels - 1) * off).sum(axis=1).mean())
    if name == "squared_log":
        return float(np.mean((np.log1p(np.maximum(p, 0)) - np.log1p(y)) ** 2))
    if name == "logistic":
        p = np.clip(p, 1e-6, 1 - 1e-6)
        return float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
    return float(np.mean(np.hypot(1, p - y)))


@pytest.mark.parametrize("name", CASES)
def test_models_are_better_than_their_intercept(name):
    X, y = rows(name)
    model = train(name, rounds=30, dp_epsilon=20.0)
    few = train(name, rounds=1, dp_epsilon=20.0, eta=1e-6)
    start, end = (loss(name, y, m.predict(xgb.DMatrix(X))) for m in (few, model))
    floor = 0.0 if name != "logistic" else loss(name, y, y)
    assert end - floor < 0.8 * (start - floor)
    report = xgb_dp.privacy_report(model)
    assert report.private
    assert report.epsilon <= 20.0


CHOICES: list[dict[str, Any]] = [
    {"dp_leaf_noise": "laplace"},
    {"dp_leaf": "gradient"},
    {"dp_gradient_clip": "clip"},
    {"dp_public_num_rows": 1500},
    {"tree_method": "dp_approx"},
    {"subsample": 0.5},
    {"dp_ensemble": 3},
    {"monotone_constraints": [1, 0, 0, -1]},
    {"interaction_constraints": [[0, 1], [2, 3]]},
    {"dp_split": "random"},
    {"dp_split": "histogram"},
    {"dp_accountant": "rdp"},
    {"num_parallel_tree": 2},
    {"dp_group_size": 2},
]
# Bounds and intercepts follow from the loss; of the other choices each is tried with three losses.
TRIED = [
    (name, changes)
    for i, name in enumerate(CASES)
    for j, changes in enumerate(CHOICES)
    if j < 4 or (i + 3 * j) % 7 < 3
]


@pytest.mark.parametrize(("name", "changes"), TRIED, ids=str)
def test_what_others_take(name, changes):
    """Every choice of the engine works, or is refused by name; the ledger holds the target."""
    if name == "quantiles" and "dp_gradient_clip" in changes:
        with pytest.raises(PrivacyRefusal, match="dp_gradient_clip"):
            train(name, rounds=3, **changes)
        return
    model = train(name, rounds=3, **changes)
    assert np.isfinite(model.predict(xgb.DMatrix(rows(name)[0]))).all()
    assert xgb_dp.privacy_report(model).epsilon <= 4.0


@pytest.mark.parametrize("name", [n for n in CASES if n != "own"])
def test_the_saved_model_has_the_objective_of_xgboost(name):
    model = train(name, rounds=3)
    config = model.save_config()
    assert f'"name":"{CASES[name]["objective"]}"' in config
    again = xgb.Booster(model_file=model.save_raw())
    d = xgb.DMatrix(rows(name)[0])
    np.testing.assert_array_equal(again.predict(d), model.predict(d))


@pytest.mark.parametrize(
    "name, label", [("squared_log", -1.0), ("squared_log", -3.0), ("logistic", 1.5),
                    ("logistic", -0.1)],
)  # fmt: skip
def test_labels_that_an_objective_does_not_know(name, label):
    X, y = rows(name, 50)
    y[7] = label
    with pytest.raises(RowDomainError) as error:
        train(name, rounds=2, data=(X, y))
    assert "7" not in str(error.value)


def test_quantiles_cover_their_share():
    X, y = rows("quantiles", 4000)
    model = train("quantiles", rounds=None, data=(X, y), dp_epsilon=8.0)
    covered = (y[:, None] < model.predict(xgb.DMatrix(X))).mean(axis=0)
    np.testing.assert_allclose(covered, [0.2, 0.5, 0.8], atol=0.06)


def loss_in_plan(rounds: int, **changes: Any) -> dict[str, Any]:
    """The loss of the plan for several quantiles, of some rounds."""
    params = {**USUAL, "dp_target_bounds": (-8.0, 8.0), **CASES["quantiles"], **changes}
    schema = read_schema(xgb.DMatrix(*rows("quantiles", 10)))
    prepared = prepare(params, schema, rounds)
    return dict(with_noise(prepared.draft, prepared.noise)["loss"])


@pytest.mark.parametrize(
    ("rounds", "changes", "expected"),
    [
        (30, {}, 18),
        (100, {}, 60),
        (14, {}, 2),
        (12, {}, 0),  # the quantiles need so many to part
        (30, {"base_score": 0.5}, 18),
        (30, {"base_score": [0.1, 0.5, 0.9]}, 0),
        (30, {"dp_base_margin": True}, 0),
        (30, {"dp_class_trees": "per_class"}, 0),
        (30, {"dp_leaf": "gradient"}, 0),
        (30, {"quantile_alpha": [0.5]}, 0),
        (30, {"quantile_alpha": [0.9]}, 18),
    ],
)
def test_how_many_rounds_fit_the_median(rounds, changes, expected):
    loss = loss_in_plan(rounds, **changes)
    assert loss["centre_rounds"] == expected
    levels = np.array([float(a) for a in loss["levels"]])
    largest = np.sqrt(max((levels**2).sum(), ((1 - levels) ** 2).sum()))
    assert float(loss["centre_scale"]) == pytest.approx(2 * largest)


def test_a_continued_training_does_not_start_at_the_median_again():
    first = train("quantiles", rounds=30)
    X, _ = rows("quantiles")
    again = train("quantiles", rounds=30, xgb_model=first)
    assert again.num_boosted_rounds() == 60
    d = xgb.DMatrix(X)
    steps = again[:31].predict(d) - first.predict(d)
    assert not (steps == steps[:, :1]).all(axis=1).any()


def test_widths_fall_over_the_rounds_of_the_plan_that_is_taken():
    """Where rounds are open, and the number of rows says how many there are."""
    taken = followed_plan(train("quantiles", rounds=DEFAULT_ROUNDS, data=rows("quantiles", 6000)))
    loss, rounds = taken["loss"], taken["rounds"]
    assert rounds > 60  # which is the smallest plan
    first, last, decay = (
        float(loss[name]) for name in ("first_width", "last_width", "width_decay")
    )
    at_the_end = first * decay ** (rounds - loss["centre_rounds"] - 1)
    assert at_the_end == pytest.approx(last, rel=1e-6)


def test_continuation_needs_the_same_own_objective():
    first = train("own", rounds=2)
    other: Callable[..., Any] = lambda p, y, w: (p - y, 1.0)  # noqa: E731
    with pytest.raises(PrivacyParameterError, match="dp_objective"):
        train("own", rounds=2, dp_objective=other, xgb_model=first)
    assert train("own", rounds=2, xgb_model=first).num_boosted_rounds() == 4


def test_quantiles_of_cells():
    sums = [0] * 10 + [100] * 10 + [0] * 44
    assert label_quantiles(sums, (0.25, 0.5), 0.0, 64.0, 1.0) == pytest.approx([12.5, 15.0])
    assert label_spread(sums, 0.0, 64.0, 1.0) == pytest.approx(8.0 / 2.5631)
    noisy = [-5, 9, -12, 4] * 16
    values = label_quantiles(noisy, (0.1, 0.5, 0.9), 0.0, 1.0, 1e9)  # nothing is known
    assert values == pytest.approx([0.1, 0.5, 0.9])
    levels = tuple(np.linspace(0.05, 0.95, 19))
    values = label_quantiles([3, -50, 200, 10, -30, 500] + [0] * 58, levels, -1.0, 1.0, 1.0)
    assert values == sorted(values)
    assert min(values) >= -1.0
    assert max(values) <= 1.0


def test_the_median_is_the_quantile_where_none_is_given():
    """XGBoost itself has no default."""
    X, y = rows("quantile")
    d = xgb.DMatrix(X, y)
    params = USUAL | {"objective": "reg:quantileerror", "dp_target_bounds": (-8, 8)}
    model = xgb.train(params, d, 12)
    assert (y < model.predict(d)).mean() == pytest.approx(0.5, abs=0.1)
    assert '"quantile_alpha":["0.5"]' in (model.attr("dp_ledger") or "")


@pytest.mark.parametrize("n", [0, 60])
@pytest.mark.parametrize("levels", [0.5, [0.2, 0.9, 0.95], [0.2, 0.5]])
def test_other_levels_do_not_continue_a_model(levels, n):
    """XGBoost would find that out after the release, and print how many rows there are."""
    X, y = rows("quantiles", 60)
    data = X[:n], y[:n]
    first = train("quantiles", rounds=2, data=data)
    with pytest.raises(PrivacyParameterError, match="`quantile_alpha` differs"):
        train("quantiles", rounds=2, data=data, quantile_alpha=levels, xgb_model=first)
    again = train("quantiles", rounds=2, data=data, xgb_model=first)
    assert again.num_boosted_rounds() == 4
