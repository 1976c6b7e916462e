"""One private training, from its calibrated noise to the parameters of XGBoost and the ledger."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from xgboost.callback import TrainingCallback
from xgboost.core import Booster, XGBoostError

from ..accounting import Event, event_from_json
from ..budget.gate import before_release
from ..engine import native, tape
from ..errors import PrivacyParameterError
from ..record import ledger
from ..record.form import Ledger, TrainingRecord
from ..request import masking
from ..request.settings import Settings
from . import agreement, plan
from .call_site import CallSite
from .prepare import Prepared

__all__ = ["LedgerCallback", "Training"]


@dataclass(frozen=True)
class Training:
    """What a training is about to do; nothing was drawn and no row was read.

    Attributes:
        prepared: Checked settings and calibrated noise.
        key: Key of a fixed noise tape (tests only); None for noise of the operating system.
        names: Names of the columns, None without.
        types: "c" for categorical columns and "float" for others, None where the data has none.
        earlier: Ledger of the continued model.
        plan: What the C++ trainer is told.
        text: The same as JSON.
        request: What the release of the intercept is asked for; None if there is none.
    """

    prepared: Prepared
    key: str | None
    names: list[str] | None
    types: list[str] | None
    earlier: Ledger | None
    plan: dict[str, Any]
    text: str
    request: dict[str, Any] | None

    @classmethod
    def of(cls, prepared: Prepared, xgb_model: Any) -> Training:
        """A training with these settings, on top of an earlier model or of none.

        Raises:
            PrivacyParameterError: The earlier model does not fit.
            PrivacyRefusal: It is not private.
            BudgetError: Calibration and trainer do not agree. Nothing was released.
        """
        s, noise = prepared.settings, prepared.noise
        key = None if s.noise_free else tape.noise_key()
        names, types = s.schema.names if s.schema.named else None, None
        if s.schema.typed:
            types = ["c" if f.kind == "categorical" else "float" for f in s.features]
        private = not s.noise_free and key is None
        earlier = ledger.earlier_ledger(xgb_model, private=private, names=names, types=types)
        _check_earlier(earlier, s)
        low_plan = plan.build_plan(s, noise, key, earlier=len(earlier.trainings) if earlier else 0)
        text = plan.dump_plan(low_plan)
        request = None
        if s.intercept == "released":
            request = plan.intercept_request(s, noise, key, low_plan["id"])
        agreement.check(text, request, noise, s)
        return cls(prepared, key, names, types, earlier, low_plan, text, request)

    @property
    def settings(self) -> Settings:
        """What the user asked for."""
        return self.prepared.settings

    @property
    def private(self) -> bool:
        """Whether all noise is drawn, from the operating system's key."""
        return not self.settings.noise_free and self.key is None

    def claim(self) -> Ledger:
        """The ledger while it goes on, which claims its whole plan as spent."""
        s = self.settings
        plan_record = TrainingRecord(
            plan_digest=self.plan["id"],
            complete=False,
            events=self.prepared.events,
            rounds=s.rounds,
            target=(s.epsilon, s.delta),
            public=plan.public_inputs(s),
        )
        noise = "none" if s.noise_free else "os" if self.private else "fixed"
        return ledger.claim(self.earlier, plan_record, private=self.private, noise=noise)

    def rehearse(self, dtrain: Any, xgb_model: Any, call_site: CallSite) -> None:
        """Find whatever XGBoost itself refuses, before anything is released or booked.

        Raises:
            PrivacyParameterError: Training would fail.
            xgboost.core.XGBoostError: So says XGBoost.
        """
        trial = {**plan.low_level(self.settings), "dp_plan": self.text}
        if xgb_model is None:
            trial["base_score"] = [0.5] * self.settings.trees_per_round
        booster = Booster(trial, [dtrain, *(data for data, _ in call_site.evals)], xgb_model)
        _configure(booster)
        LedgerCallback(self, None).before_training(booster)
        call_site.rehearse(booster, dtrain)

    def start(self, dtrain: Any) -> tuple[dict[str, Any], LedgerCallback]:
        """Ask the gate, release the intercept, and say how XGBoost grows the trees.

        Privacy: spends the intercept's share of the budget; the trees spend the rest.

        Returns:
            Parameters with exactly one ``dp_plan``, and the keeper of the ledger.

        Raises:
            PrivacyError: A budget or a selection refuses. Nothing was released.
        """
        s = self.settings
        low = {**plan.low_level(s), "dp_plan": self.text}
        event: Event | None = None
        if s.masking.workers:
            masking.agree_on_pads(self.plan["id"])
        try:
            before_release(self.prepared.events, private=self.private)
            if self.request is not None:
                answer = native.release_intercept(dtrain, self.request)
                low["base_score"] = plan.base_score_from_sums(
                    s, self.prepared.noise, answer["sums"]
                )
                event = None if s.noise_free else event_from_json(answer["event"])
            elif s.intercept == "public":
                low["base_score"] = s["base_score"]
            elif s.intercept == "base_margin":
                low["base_score"] = s.neutral_base_score
        except BaseException:
            masking.drop_pads()
            raise
        return low, LedgerCallback(self, event)


class LedgerCallback(TrainingCallback):
    """Stores the privacy ledger in the booster.

    Before the first round it claims the whole plan as spent; after training, also when another
    callback ends it early, it writes what was really drawn.

    Args:
        training: What is being trained.
        intercept: Event of the intercept's release, None if nothing was released.
    """

    def __init__(self, training: Training, intercept: Event | None) -> None:
        super().__init__()
        self.training = training
        self.claimed = training.claim()
        self.intercept = intercept
        self.start = 0

    def before_training(self, model: Any) -> Any:
        """Claim the plan as spent, and fix the public schema of the model."""
        ledger.store(model, self.claimed)
        # Names also for a matrix without rows, and types as declared: whether pandas calls a column
        # an integer or a float can hang on a single row.
        model.feature_names = self.training.names
        model.feature_types = self.training.types
        self.start = model.num_boosted_rounds()
        return model

    def after_training(self, model: Any) -> Any:
        """Write what was drawn."""
        rounds = model.num_boosted_rounds() - self.start
        record = ledger.complete(self.claimed, ledger.drawn(model), self.intercept, rounds)
        ledger.store(model, ledger.sign(model, record))
        return model


def _check_earlier(earlier: Ledger | None, s: Settings) -> None:
    """XGBoost keeps one objective and one number of parallel trees in a model."""
    for training in earlier.trainings if earlier else ():
        objective = training.public.get("objective", s["objective"])
        if objective != s["objective"]:
            raise PrivacyParameterError(
                f"`objective` is {s['objective']}, but `xgb_model` was trained with {objective}: "
                f"its intercept and trees would mean something else. Set objective={objective!r}."
            )
        before = training.hyperparameters.get("num_parallel_tree", 1)
        if before != s["num_parallel_tree"]:
            raise PrivacyParameterError(
                f"`num_parallel_tree` is {s['num_parallel_tree']}, but `xgb_model` was trained "
                f"with {before}: a model has one number. Set num_parallel_tree={before}."
            )


def _configure(booster: Booster) -> None:
    """Let XGBoost read its parameters.

    Raises:
        PrivacyParameterError: A name in `eval_metric` is none of its metrics.
        xgboost.core.XGBoostError: So says XGBoost of anything else.
    """
    try:
        booster.save_config()
    except XGBoostError as error:
        unknown = re.search(r"Unknown metric function ([^\n]*)", str(error))
        if unknown is None:
            raise
        raise PrivacyParameterError(
            f"`eval_metric` names {unknown[1].strip()!r}, which is no metric of XGBoost. Take "
            "names such as 'logloss', 'auc' or 'rmse', or give your own function as "
            "`custom_metric`. Nothing was released."
        ) from None
