"""The entry points that the patched ``xgboost`` package calls for private training.

``xgboost.train`` hands its arguments to :func:`before_train`, which checks them, calibrates the
noise, releases the intercept and returns ordinary low-level parameters. Order matters: everything
that can be wrong is found before any noise is drawn, and rows are read last.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xgboost.callback import EarlyStopping, LearningRateScheduler, TrainingCallback
from xgboost.core import Booster, DMatrix, ExtMemQuantileDMatrix, QuantileDMatrix

from . import agreement, ledger, masking, native, plan, rows, testing, workers
from .errors import PrivacyParameterError, PrivacyRefusal
from .features import read_schema
from .gate import before_release
from .params import OBJECTIVES
from .prepare import prepare
from .settings import Settings
from .sklearn_support import declared_classes, default_rounds, refuse_search

__all__ = [
    "LedgerCallback",
    "before_train",
    "check_matrix",
    "declared_classes",
    "default_rounds",
    "refuse_cv",
]


def refuse_cv(params: Any) -> None:
    """Refuse ``xgboost.cv`` for private parameters.

    Raises:
        PrivacyRefusal: Always: every fold's metric is an exact statistic of the rows held out.
    """
    del params
    raise PrivacyRefusal(
        "`xgboost.cv` is refused with dp_* parameters: it publishes exact metrics of rows that "
        "were held out, and trains several models on the same rows. Judge private models on "
        "public data or on a test set set aside for good, and count every training in the budget."
    )


class LedgerCallback(TrainingCallback):
    """Stores the privacy ledger in the booster.

    Before the first round it claims the whole plan as spent; after training, also when another
    callback ends it early, it writes what was really drawn.

    Args:
        before: Ledger to show while training, None for none.
        finish: Keyword arguments of :func:`xgb_dp.ledger.complete`, except ``rounds``.
        names: Names of the columns, None without.
        types: "c" for categorical columns and "float" for others, None where the data has none.
    """

    def __init__(
        self,
        before: dict[str, Any] | None,
        finish: dict[str, Any],
        names: list[str] | None,
        types: list[str] | None,
    ) -> None:
        super().__init__()
        self.before = before
        self.finish = finish
        self.names = names
        self.types = types
        self.start = 0

    def before_training(self, model: Any) -> Any:
        """Claim the plan as spent, and fix the public schema of the model."""
        if self.before is not None:
            ledger.store(model, self.before)
        # Names also for a matrix without rows, and types as declared: whether pandas calls a column
        # an integer or a float can hang on a single row.
        model.feature_names = self.names
        model.feature_types = self.types
        self.start = model.num_boosted_rounds()
        return model

    def after_training(self, model: Any) -> Any:
        """Write what was drawn."""
        rounds = model.num_boosted_rounds() - self.start
        record = ledger.complete(ledger.native_ledger(model), rounds=rounds, **self.finish)
        ledger.store(model, ledger.sign(model, record, rounds))
        return model


def _check_call_site(
    dtrain: Any,
    evals: Sequence[tuple[Any, str]],
    obj: Any,
    early_stopping_rounds: int | None,
    callbacks: Sequence[Any],
    public_evals: bool,
) -> None:
    """Refuse what is not a parameter but would release exact statistics or break the bound."""
    if obj is not None:
        raise PrivacyRefusal(
            "`obj` is refused in private training: nothing bounds how much one row changes the "
            f"gradients of the others. Use one of the objectives {', '.join(OBJECTIVES)}."
        )
    if any(data is dtrain for data, _ in evals):
        raise PrivacyRefusal(
            "`evals` holds the training data: its exact metrics would be published every round. "
            "Remove it."
        )
    if evals and not public_evals:
        raise PrivacyRefusal(
            "`evals` is refused: metrics of private rows are exact statistics. Remove it, or set "
            "dp_public_evals=True if every row in it is public."
        )
    stops = early_stopping_rounds or any(isinstance(c, EarlyStopping) for c in callbacks)
    if stops and not evals:
        raise PrivacyRefusal(
            "`early_stopping_rounds` is refused without public `evals`: the stopping time would "
            "follow exact metrics of private rows."
        )
    if any(isinstance(c, LearningRateScheduler) for c in callbacks):
        raise PrivacyRefusal(
            "`LearningRateScheduler` is refused: the learning rate is part of the calibrated plan. "
            "Set `eta`."
        )


def check_matrix(dtrain: Any) -> None:
    """Refuse what is not an ordinary matrix of independent rows.

    Raises:
        PrivacyParameterError: Not a DMatrix.
        PrivacyRefusal: A matrix with bins of exact quantiles, or with query groups.
    """
    if isinstance(dtrain, (QuantileDMatrix, ExtMemQuantileDMatrix)):
        raise PrivacyRefusal(
            f"`dtrain` is a {type(dtrain).__name__}, whose bins are built from exact data "
            "quantiles. Pass an xgboost.DMatrix; private training finds its own bins."
        )
    if not isinstance(dtrain, DMatrix):
        raise PrivacyParameterError(
            f"`dtrain` must be an xgboost.DMatrix; got {type(dtrain).__name__}."
        )
    if len(dtrain.get_uint_info("group_ptr")):
        raise PrivacyRefusal(
            "Query groups (`group`, `qid`) are refused: they couple rows, and weights would belong "
            "to groups. Remove them from the DMatrix."
        )


def _check_earlier(earlier: dict[str, Any] | None, s: Settings) -> None:
    """XGBoost keeps one objective and one number of parallel trees in a model."""
    for training in earlier["trainings"] if earlier else ():
        objective = training["public"].get("objective", s.objective)
        if objective != s.objective:
            raise PrivacyParameterError(
                f"`objective` is {s.objective}, but `xgb_model` was trained with {objective}: its "
                f"intercept and trees would mean something else. Set objective={objective!r}."
            )
        before = training["public"].get("hyperparameters", {}).get("num_parallel_tree", 1)
        if before != s.parallel_trees:
            raise PrivacyParameterError(
                f"`num_parallel_tree` is {s.parallel_trees}, but `xgb_model` was trained with "
                f"{before}: a model has one number. Set num_parallel_tree={before}."
            )


def _needs_unit_weights(s: Settings) -> str:
    """The choice whose bound is proved for weights of one only, or an empty text."""
    if s.score == "gain":
        return "dp_score='gain'"
    return "dp_leaf_noise='output'" if s.leaf_noise == "output" else ""


def _check_rows(dtrain: Any, s: Settings, plan_text: str) -> None:
    """Read the rows, each by itself, after everything public has been checked."""
    if s.masking.workers:
        masking.require_cryptography()
    labels = dtrain.get_label()
    n = dtrain.num_row()
    if labels.size != n:
        raise PrivacyParameterError(
            "`dtrain` must have one label for each row; several targets are not supported."
        )
    rows.check_labels(labels, s.kind, s.classes)
    rows.check_base_margin(dtrain.get_base_margin(), n, s.trees_per_round, declared=s.base_margin)
    rows.check_weights(
        dtrain.get_weight(),
        s.kind,
        unit=_needs_unit_weights(s),
        declared=s.weight_declared,
    )
    rows.check_features(dtrain, plan_text)


def _low_level(s: Settings) -> dict[str, Any]:
    """Ordinary XGBoost parameters with the private defaults."""
    low: dict[str, Any] = {
        **s.passed_on,
        "tree_method": "dp_hist",
        "booster": "gbtree",
        "objective": s.objective,
        "eta": s.eta,
        "max_depth": s.depth,
        "lambda": s.reg_lambda,
        "max_delta_step": s.max_delta_step,
        "min_child_weight": s.min_child_weight,
        "max_bin": s.max_bin,
        "num_parallel_tree": s.parallel_trees,
    }
    if s.kind == "binary":
        low["scale_pos_weight"] = s.scale_pos_weight
    if s.kind == "multiclass":
        low["num_class"] = s.classes
    return low


def before_train(
    params: Mapping[str, Any] | Iterable[tuple[str, Any]],
    dtrain: Any,
    num_boost_round: int,
    *,
    evals: Sequence[tuple[Any, str]] | None = None,
    obj: Any = None,
    early_stopping_rounds: int | None = None,
    xgb_model: Any = None,
    callbacks: Sequence[Any] | None = None,
) -> tuple[dict[str, Any], list[Any]]:
    """Turn the arguments of ``xgboost.train`` into those of a calibrated private training.

    Privacy: spends the intercept's share of the budget; the trees spend the rest.

    Args:
        params: The user's parameters, ``dp_*`` among them.
        dtrain: Training data, an ``xgboost.DMatrix``.
        num_boost_round: Rounds of this training; the noise is calibrated for exactly that many.
        evals: Only public sets, with ``dp_public_evals=True``.
        obj: Refused.
        early_stopping_rounds: Only with public sets.
        xgb_model: A private model to continue. ``dp_epsilon`` is the budget of the new trees
            alone; the ledger composes it with the earlier ones.
        callbacks: The user's callbacks.

    Returns:
        Low-level parameters with exactly one ``dp_plan``, and the callbacks with the ledger's
        in front.

    Raises:
        PrivacyParameterError: A parameter is missing, unknown or out of range.
        PrivacyRefusal: Something that would not be private.
        BudgetError: No noise meets the target.
        RowDomainError: A row lies outside the declared domain.
        NativeLibraryError: The loaded libxgboost is a stock build.
    """
    check_matrix(dtrain)
    schema = workers.common_schema(read_schema(dtrain))
    prepared = prepare(params, schema, num_boost_round, continues=xgb_model is not None)
    settings, noise = prepared.settings, prepared.noise
    user_callbacks = list(callbacks or [])
    _check_call_site(
        dtrain, list(evals or []), obj, early_stopping_rounds, user_callbacks, settings.public_evals
    )
    if not settings.public_evals:
        refuse_search()
    key = None if settings.noise_free else testing.noise_key()
    private = not settings.noise_free and key is None
    names, types = schema.names if schema.named else None, None
    if schema.typed:
        types = ["c" if f.kind == "categorical" else "float" for f in settings.features]
    earlier = ledger.earlier_ledger(xgb_model, private=private, names=names, types=types)
    _check_earlier(earlier, settings)
    native.lib()
    if settings.noise_free:
        warnings.warn(
            "`dp_epsilon` is infinite: this trains without noise, for debugging, and the model is "
            "NOT private.",
            UserWarning,
            stacklevel=4,
        )
    low_plan = plan.build_plan(
        settings, noise, key, earlier=len(earlier["trainings"]) if earlier else 0
    )
    text = plan.dump_plan(low_plan)
    request = None
    if settings.intercept == "released":
        request = plan.intercept_request(settings, noise, key, low_plan["id"])
    agreement.check(text, request, noise, settings)
    workers.check_agreement(text, schema)
    workers.check_together(lambda: _check_rows(dtrain, settings, text))

    low = _low_level(settings)
    # A first configuration finds whatever XGBoost itself refuses, before anything is released.
    trial = {"base_score": [0.5] * settings.trees_per_round, "dp_plan": text}
    Booster({**low, **trial}, [dtrain]).save_config()
    if settings.masking.workers:
        masking.agree_on_pads(low_plan["id"])
    event: dict[str, Any] | None = None
    try:
        before_release(noise.events, private=private)
        if settings.intercept == "public":
            low["base_score"] = settings.base_score
        elif settings.intercept == "base_margin":
            low["base_score"] = plan.neutral_base_score(settings)
        elif request is not None:
            answer = native.release_intercept(dtrain, request)
            low["base_score"] = plan.base_score_from_sums(settings, noise, answer["sums"])
            event = None if settings.noise_free else answer["event"]
    except BaseException:
        masking.drop_pads()
        raise
    low["dp_plan"] = text

    target = (settings.epsilon, settings.delta)
    public = plan.public_inputs(settings)
    claimed = [e.to_json() for e in noise.events]
    before = ledger.planned(
        claimed,
        plan_digest=low_plan["id"],
        earlier=earlier,
        target=target,
        public=public,
        rounds=settings.rounds,
        private=private,
        noise="none" if settings.noise_free else "os" if private else "fixed",
    )
    finish = {
        "intercept": event,
        "earlier": earlier,
        "target": target,
        "public": public,
        "plan_digest": low_plan["id"],
        "claimed": claimed,
        "planned": settings.rounds,
    }
    callback = LedgerCallback(before, finish, names, types)
    return low, [callback, *user_callbacks]
