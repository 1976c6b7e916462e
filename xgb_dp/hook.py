"""The entry points that the patched ``xgboost`` package calls for private training.

``xgboost.train`` hands its arguments to :func:`before_train`, which checks them, calibrates the
noise, releases the intercept and returns ordinary low-level parameters. Order matters: everything
that can be wrong is found before any noise is drawn, and rows are read last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xgboost.callback import TrainingCallback
from xgboost.core import Booster

from . import agreement, caution, ledger, masking, native, plan, rows, testing, workers
from .call_site import CallSite, check_dask, check_evals, check_matrix
from .errors import PrivacyParameterError, PrivacyRefusal
from .features import read_schema
from .gate import before_release
from .matrices import matrix_maker, private_matrix
from .params import PARAMETERS
from .prepare import prepare
from .settings import Settings
from .sklearn_support import declared_classes, default_rounds, refuse_search

__all__ = [
    "LedgerCallback",
    "before_train",
    "check_dask",
    "declared_classes",
    "default_rounds",
    "matrix_maker",
    "private_matrix",
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


def _check_earlier(earlier: dict[str, Any] | None, s: Settings) -> None:
    """XGBoost keeps one objective and one number of parallel trees in a model."""
    for training in earlier["trainings"] if earlier else ():
        objective = training["public"].get("objective", s["objective"])
        if objective != s["objective"]:
            raise PrivacyParameterError(
                f"`objective` is {s['objective']}, but `xgb_model` was trained with {objective}: "
                f"its intercept and trees would mean something else. Set objective={objective!r}."
            )
        before = training["public"].get("hyperparameters", {}).get("num_parallel_tree", 1)
        if before != s["num_parallel_tree"]:
            raise PrivacyParameterError(
                f"`num_parallel_tree` is {s['num_parallel_tree']}, but `xgb_model` was trained "
                f"with {before}: a model has one number. Set num_parallel_tree={before}."
            )


def _needs_unit_weights(s: Settings) -> str:
    """The choice whose bound is proved for weights of one only, or an empty text."""
    if s["dp_score"] == "gain":
        return "dp_score='gain'"
    return "dp_leaf_noise='output'" if s["dp_leaf_noise"] == "output" else ""


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
    rows.check_base_margin(
        dtrain.get_base_margin(), n, s.trees_per_round, declared=s["dp_base_margin"]
    )
    rows.check_weights(
        dtrain.get_weight(),
        n,
        s.kind,
        unit=_needs_unit_weights(s),
        declared="dp_max_weight" in s.given,
    )
    rows.check_unused(
        *(dtrain.get_float_info(f"label_{side}_bound") for side in ("lower", "upper"))
    )
    rows.check_features(dtrain, plan_text)


def _low_level(s: Settings) -> dict[str, Any]:
    """Ordinary XGBoost parameters with the private defaults."""
    low = {p.name: s[p.name] for p in PARAMETERS.values() if p.xgboost and s[p.name] is not None}
    low |= {"tree_method": "dp_hist", "booster": "gbtree"}
    if s.kind == "binary":
        low["scale_pos_weight"] = s["scale_pos_weight"]
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
    maximize: Any = None,
    early_stopping_rounds: int | None = None,
    evals_result: Any = None,
    verbose_eval: Any = False,
    xgb_model: Any = None,
    callbacks: Sequence[Any] | None = None,
    custom_metric: Any = None,
) -> tuple[dict[str, Any], list[Any]]:
    """Turn the arguments of ``xgboost.train`` into those of a calibrated private training.

    Privacy: spends the intercept's share of the budget; the trees spend the rest.

    Args:
        params: The user's parameters, ``dp_*`` among them.
        dtrain: Training data, an ``xgboost.DMatrix``.
        num_boost_round: Rounds of this training; the noise is calibrated for exactly that many.
        evals: Only public sets, with ``dp_public_evals=True``.
        obj: Refused.
        maximize: As for ``xgboost.train``.
        early_stopping_rounds: Only with public sets.
        evals_result: As for ``xgboost.train``.
        verbose_eval: As for ``xgboost.train``.
        xgb_model: A private model to continue. ``dp_epsilon`` is the budget of the new trees
            alone; the ledger composes it with the earlier ones.
        callbacks: The user's callbacks.
        custom_metric: A metric of the public sets. It is called once before training.

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
    call_site = CallSite(
        evals=list(evals or []),
        obj=obj,
        maximize=maximize,
        early_stopping_rounds=early_stopping_rounds,
        evals_result=evals_result,
        verbose_eval=verbose_eval,
        custom_metric=custom_metric,
        callbacks=list(callbacks or []),
    )
    workers.check_together(lambda: check_evals(dtrain, call_site.evals))
    schema = workers.common_schema(read_schema(dtrain))
    prepared = prepare(params, schema, num_boost_round, continues=xgb_model is not None)
    settings, noise = prepared.settings, prepared.noise
    call_site.refuse_leaks(public_evals=settings["dp_public_evals"])
    refuse_search()
    key = None if settings.noise_free else testing.noise_key()
    private = not settings.noise_free and key is None
    names, types = schema.names if schema.named else None, None
    if schema.typed:
        types = ["c" if f.kind == "categorical" else "float" for f in settings.features]
    earlier = ledger.earlier_ledger(xgb_model, private=private, names=names, types=types)
    _check_earlier(earlier, settings)
    native.lib()
    caution.warn(settings, stacklevel=4)
    low_plan = plan.build_plan(
        settings, noise, key, earlier=len(earlier["trainings"]) if earlier else 0
    )
    text = plan.dump_plan(low_plan)
    request = None
    if settings.intercept == "released":
        request = plan.intercept_request(settings, noise, key, low_plan["id"])
    agreement.check(text, request, noise, settings)
    workers.check_agreement(text, schema)
    native.check_sums(dtrain, text)
    workers.check_together(lambda: _check_rows(dtrain, settings, text))

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
    low = _low_level(settings)
    # A rehearsal finds whatever XGBoost itself refuses, before anything is released or booked.
    trial = {**low, "dp_plan": text}
    if xgb_model is None:
        trial["base_score"] = [0.5] * settings.trees_per_round
    booster = Booster(trial, [dtrain, *(data for data, _ in call_site.evals)], xgb_model)
    booster.save_config()
    LedgerCallback(before, {}, names, types).before_training(booster)
    call_site.rehearse(booster, dtrain)
    if settings.masking.workers:
        masking.agree_on_pads(low_plan["id"])
    event: dict[str, Any] | None = None
    try:
        before_release(noise.events, private=private)
        if settings.intercept == "public":
            low["base_score"] = settings["base_score"]
        elif settings.intercept == "base_margin":
            low["base_score"] = settings.neutral_base_score
        elif request is not None:
            answer = native.release_intercept(dtrain, request)
            low["base_score"] = plan.base_score_from_sums(settings, noise, answer["sums"])
            event = None if settings.noise_free else answer["event"]
    except BaseException:
        masking.drop_pads()
        raise
    low["dp_plan"] = text

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
    return low, [callback, *call_site.callbacks]
