"""Entry points of private training: the patched ``xgboost`` package calls all in ``__all__``.

``xgboost.train`` passes its arguments to :func:`before_train`, which checks them, calibrates the
noise, releases the intercept and returns ordinary low-level parameters. The order of steps matters:
all errors are raised before any noise is drawn, and rows are read last.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import Any

from xgboost.callback import TrainingCallback

from ..data import matrices
from ..data.matrices import id_column
from ..data.row_checks import check_columns
from ..engine import native, workers
from ..engine.saved_model import ModelFile
from ..errors import PrivacyRefusal, alias
from ..parameters.config import Config
from ..planning import Prepared, calibrated
from ..record import privacy_warnings
from ..record.authorization import Context, PolicyRules, check_here, policy_in_force
from ..record.content import check_margins
from ..record.pipelines import fitted_step_warnings
from ..request.names import Request
from ..request.params import ARGUMENTS, DEFAULT_ROUNDS, resolve, with_public_cuts
from ..request.schema import Schema, common_schema
from .call_stack import fitted_steps, refuse_meta_estimators
from .input_checks import (
    CallSite,
    check_rows,
    declared_classes,
    default_rounds,
    estimator_matrix,
    read_matrix,
    read_public_rows,
)
from .run import Training

__all__ = [
    "before_train",
    "check_columns",
    "check_here",
    "check_prediction",
    "declared_classes",
    "default_rounds",
    "estimator_matrix",
    "id_column",
    "refuse_cv",
]


_FOR_CLUSTERS = {"before_dask", "spark_matrices", "spark_rows"}


def __getattr__(name: str) -> Any:
    """Load the entry points for Dask and Spark on demand."""
    if name in _FOR_CLUSTERS:
        return resolve_name(f"xgb_dp.clusters:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _HoldIds(TrainingCallback):
    """Callback that holds the privacy ids of a matrix until its training ends.

    As the first callback, it stops the training before any other callback sees a tree that may
    have used changed ids. As the last callback, no Python code runs between its check and the next
    tree.
    """

    def __init__(self, hold: matrices.Hold) -> None:
        super().__init__()
        self.hold = hold

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Check that the ids are unchanged."""
        del model, epoch, evals_log
        self.hold.check()
        return False

    after_iteration = before_iteration

    def after_training(self, model: Any) -> Any:
        """Release the matrix for other trainings."""
        self.hold.release()
        return model


def check_prediction(booster: Any, rows: Any, margin: Any) -> None:
    """Check the columns and base margins of rows before a private booster predicts them."""
    check_columns(booster, rows)
    if margin is None and hasattr(rows, "get_base_margin"):  # a DMatrix
        if rows.num_row() == 0:
            return  # it has no place for margins
        margins = rows.get_base_margin()
        margin = margins if margins.size else None
    check_margins(booster, margin)


def refuse_cv(params: Any) -> None:
    """Refuse ``xgboost.cv`` for private parameters."""
    del params
    raise PrivacyRefusal(
        "`xgboost.cv` is refused with dp_* parameters: it publishes exact metrics of held-out rows "
        "and trains several models on the same rows. Evaluate private models on public data, "
        "or on private rows with xgb_dp.evaluate, and record every training in a budget."
    )


def before_train(
    params: Mapping[str, Any] | Iterable[tuple[str, Any]],
    dtrain: Any,
    num_boost_round: int,
    *,
    xgb_model: Any = None,
    evals: Sequence[tuple[Any, str]] | None = None,
    callbacks: Sequence[Any] | None = None,
    **others: Any,
) -> tuple[dict[str, Any], list[Any], int, Any]:
    """Convert the arguments of ``xgboost.train`` to a calibrated private training.

    Privacy: spends the intercept's share of the budget; the trees spend the rest.
    """
    native.lib()
    if isinstance(xgb_model, (str, os.PathLike)):  # check and continue the same file
        xgb_model = ModelFile(xgb_model)
    call_site = CallSite(evals=list(evals or []), callbacks=list(callbacks or []), **others)
    context = Context.current()

    # 1. Public inputs: the schema of the columns and the public rows. Reads no training row.
    schema = common_schema(workers.check_together(lambda: read_matrix(dtrain)))
    request = Request.parse(params, num_boost_round, continues=xgb_model is not None)
    mark, ids = matrices.take_ids(request.ids, dtrain)
    part = matrices.find_part(dtrain, ids)
    with native.threads(request.threads):
        public_rows = workers.check_together(
            lambda: read_public_rows(request, call_site.evals, dtrain, schema)
        )

        # 2. Settings, plans and their noise.
        settings = checked(request, schema, context.policy, mark)
        settings = with_public_cuts(settings, public_rows)
        call_site.refuse_leaks(public_evals=settings["dp_public_evals"])
        refuse_meta_estimators(binary=settings.kind == "binary", recorded=context.in_force)
        prepared = calibrated(settings)

        # 3. The claim, and warnings about it.
        steps = fitted_steps()
        training = Training.of(prepared, context, xgb_model, part, [name for name, _ in steps])
        claimed, without_budget = training.claim(), not context.in_force
        strings = [
            *fitted_step_warnings(steps),
            *privacy_warnings.training_warnings(settings, claimed, without_budget=without_budget),
        ]
        privacy_warnings.warn(strings)

        # 4. The rows. Each row is checked independently. All workers must use the same plan.
        workers.check_agreement(f"{training.strings}\n{schema.names}")
        training = training.with_id()
        training.check_sums(dtrain)
        notify = partial(privacy_warnings.keep, schema, object())
        hold = matrices.hold_ids(dtrain, ids)
        try:
            workers.check_together(lambda: check_rows(dtrain, training.settings, training.widest))
            # Raise the errors that XGBoost would raise later, after a release.
            training.rehearse(dtrain, xgb_model, call_site)
            workers.check_together(hold.check)
            if without_budget:  # even an interrupted training may have released something
                notify(claimed)

            # 5. The authorization, and the releases before the first tree.
            low, callback = training.start(dtrain, [data for data, _ in call_site.evals])
            workers.check_together(hold.check)
        except BaseException:
            hold.release()
            raise

    # 6. XGBoost's parameters, and the callbacks that complete the ledger.
    callback.warned, callback.notify = strings, notify if without_budget else None
    every = [callback, _HoldIds(hold), *call_site.callbacks, _HoldIds(hold)]
    return low, every, callback.rounds, xgb_model


def prepare(
    user: Mapping[str, Any] | Iterable[tuple[str, Any]], schema: Schema, rounds: Any
) -> Prepared:
    """Check the parameters of one training and calibrate its noise.

    Selection, the command line and the audit use this function, to agree with
    :func:`before_train` on the plan.

    Privacy: reads no rows and spends nothing.
    """
    return calibrated(checked(Request.parse(user, rounds), schema, policy_in_force()))


def checked(
    request: Request,
    schema: Schema,
    policy: PolicyRules | None,
    privacy_id: str | bool | None = None,
) -> Config:
    """Resolve the parameters of one training, and check them against the policy.

    Args:
        request: The parameters.
        schema: The columns of the training data.
        policy: The policy in force, if any.
        privacy_id: Name of the id column, or True, to replace the ids themselves.
    """
    given = {name: value for name, value in request.params.items() if value is not None}
    if privacy_id is not None:
        given["dp_privacy_id"] = privacy_id
    if policy is not None:
        policy.check_params(given, schema.names if schema.width else [])
    rounds = DEFAULT_ROUNDS if request.rounds is None else request.rounds
    count = ARGUMENTS["num_boost_round"].read(alias("num_boost_round"), rounds, None)
    settings = resolve(given, schema, count, request.continues)
    if policy is not None:
        policy.check_weights(settings.unit_weights)
    return settings
