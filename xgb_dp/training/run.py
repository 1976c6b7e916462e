"""Run one private training, from calibrated noise to XGBoost's parameters and the ledger.

This module includes the callback that stores the ledger in the booster.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from xgboost.callback import TrainingCallback
from xgboost.core import Booster, XGBoostError

from .. import planning
from ..data.ids import SplitPart
from ..engine import native, workers
from ..engine.model_json import ModelJson, check_carried
from ..errors import (
    BudgetError,
    LedgerError,
    PrivacyParameterError,
    PrivacyRefusal,
    PrivacyWarning,
    named,
)
from ..mechanisms.column_sums import ColumnSums
from ..mechanisms.label_range import LabelRange
from ..mechanisms.label_sums import LabelSums
from ..mechanisms.plan import Plan
from ..parameters.config import Config, ReleasedRange
from ..parameters.parse import show
from ..planning import Prepared
from ..record import ledger, privacy_warnings
from ..record.authorization import POLICY_KEY, Context, ReleaseRequest
from ..record.claim import ReleaseRecorder
from ..record.content import content_of_booster, store_bound
from ..record.ledger_model import DISCOVERY, Ledger, PublicStart, RecordedRelease, TrainingRecord
from ..request import masking
from ..request.params import with_released_range
from . import start
from .continuation import grown_on
from .input_checks import CallSite
from .start import ColumnEffects, booster_with, trees_of

Draw: TypeAlias = Callable[..., list[Any]]
"""Function that draws one release of the plan at a given index."""


@dataclass(frozen=True)
class Option:
    """A plan that a training can follow from its first tree on."""

    prepared: Prepared  # checked settings and calibrated noise
    plan: Plan  # immutable plan for the C++ trainer
    # Values derived from releases before the first tree; see Plan::Apply in plan.cc.
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Config:
        """Checked settings."""
        return self.prepared.settings

    def with_released_range(self, released: ReleasedRange | None, weight_unit: float) -> Option:
        """Return the option with the released units of labels and weights."""
        settings = with_released_range(self.settings, released, weight_unit)
        prepared = replace(self.prepared, settings=settings)
        return replace(self, prepared=prepared, state=start.state_in_unit(settings, self.plan.body))


@dataclass(frozen=True)
class Training:
    """A training before its start; no noise has been drawn and no row has been read."""

    prepared: Prepared  # checked settings and calibrated noise
    context: Context  # budget, policy and test key
    names: list[str] | None  # column names, if any
    # "c" for categorical columns and "float" for others; None for untyped data.
    types: list[str] | None
    earlier: Ledger | None  # ledger of the continued model
    # The plan, or several plans if the noisy number of rows determines which one is used.
    options: tuple[Option, ...]
    draws: ReleaseRecorder  # the claim, and the releases before the first tree
    # The part of an :func:`xgb_dp.split` with the training rows; None if unknown.
    part: SplitPart | None = None
    id: str = ""  # random id of this training, equal on all workers
    # Names of pipeline steps fitted on the rows without noise; see ``pipelines.py``.
    steps: tuple[str, ...] = ()
    public_start: PublicStart | None = None  # the public model to start from

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        context: Context,
        xgb_model: Any = None,
        part: SplitPart | None = None,
        steps: Sequence[str] = (),
    ) -> Training:
        """Build a training from its settings, with or without an earlier model."""
        s = prepared.settings
        key = None if s.noise_free else context.noise_key
        names, types = s.schema.names if s.schema.named else None, None
        if s.schema.typed:
            types = ["c" if f.kind == "categorical" else "float" for f in s.features]
        private = not s.noise_free and key is None
        earlier, start = grown_on(xgb_model, s, private, names, types)
        before = len(earlier.trainings) if earlier else 0
        plans = [planning.with_noise(p.draft, p.noise, key, before) for p in prepared.plans]
        planning.name_together(plans)
        options = tuple(
            Option(p, Plan(planning.dump(plan)))
            for p, plan in zip(prepared.plans, plans, strict=True)
        )
        draws = ReleaseRecorder([option.plan for option in options])
        if draws.claimed != prepared.events:
            raise BudgetError(
                "The noise of the plan differs from the calibrated noise. Nothing was released. "
                "This is a bug in xgb_dp; please report it."
            )
        return cls(
            prepared,
            context,
            names,
            types,
            earlier,
            options,
            draws,
            part,
            steps=tuple(steps),
            public_start=start,
        )

    @property
    def settings(self) -> Config:
        """The checked settings of the first plan."""
        return self.prepared.settings

    @property
    def strings(self) -> str:
        """All plans and the digest of a public start, as text that must agree on all workers."""
        start = [] if self.public_start is None else [self.public_start.digest]
        return "\n".join([*(option.plan.text for option in self.options), *start])

    @property
    def plan_id(self) -> str:
        """The id of the plan, or of the family of plans."""
        return str(self.options[0].plan.body["id"])

    def with_id(self) -> Training:
        """Return the training with an id, random if private; all workers must call this."""
        if self.private:
            return replace(self, id=str(workers.broadcast_first(native.training_id())))
        text = f"{self.plan_id} {None if self.settings.noise_free else self.context.noise_key}"
        return replace(self, id=hashlib.sha256(text.encode()).hexdigest()[:32])

    @property
    def private(self) -> bool:
        """Whether all noise uses a key from the operating system."""
        return not self.settings.noise_free and self.context.noise_key is None

    def claim(self, position: int = 0, count: float | None = None) -> Ledger:
        """Create the ledger of an unfinished training. It covers every plan it may still choose."""
        s = self.options[position].settings
        public = planning.public_inputs(s)
        if self.part is not None:
            public["part"] = self.part.to_json()
        if self.prepared.family is not None:
            public["plan_choice"] = planning.choice(
                [option.settings for option in self.options], position, count
            )
        if s.released_range is not None:
            public["target_seen"] = [s.released_range.low, s.released_range.high]
        if self.steps:
            public["preprocessing"] = list(self.steps)
        if self.context.policy is not None:
            public[POLICY_KEY] = self.context.policy.digest
        plan_record = TrainingRecord(
            id=self.id,
            plans=self.draws.plans,
            complete=False,
            events=self.draws.claimed,
            rounds=s.rounds,
            target=(s.epsilon, s.delta),
            public=public,
            mechanisms=self.draws.mechanisms,
            start=self.public_start,
        )
        noise = "none" if s.noise_free else "os" if self.private else "fixed"
        return ledger.claim(self.earlier, plan_record, private=self.private, noise=noise)

    @property
    def widest(self) -> str:
        """The plan with the most bins. Rows that pass its checks pass the checks of every plan."""
        return max(self.options, key=lambda option: int(option.settings["max_bin"])).plan.text

    def check_sums(self, dtrain: Any) -> None:
        """Refuse more rows than exact sums allow; all workers must call this."""
        for option in self.options:
            native.check_sums(dtrain, option.plan.text)

    def rehearse(self, dtrain: Any, xgb_model: Any, call_site: CallSite) -> None:
        """Raise XGBoost's own errors before anything is released or recorded in a budget."""
        check_carried([self.names, self.claim().to_json()], "the names of this training")
        for position, option in enumerate(self.options):
            trial = {**planning.low_level(option.settings), "dp_plan": option.plan.text}
            if xgb_model is None:
                trial["base_score"] = [0.5] * self.settings.trees_per_round
            matrices = [dtrain, *(data for data, _ in call_site.evals)]
            booster = _configured(trial, matrices, xgb_model)
            if position == 0:  # the other checks are the same for every plan
                LedgerCallback(self, position, None).prepare(booster)
                call_site.rehearse(booster, dtrain)

    def start(
        self, dtrain: Any, evals: Sequence[Any] = ()
    ) -> tuple[dict[str, Any], LedgerCallback]:
        """Request authorization, release the intercept, and return parameters and a callback.

        Privacy: spends the shares of the range and the intercept; the trees spend the rest. The
        choice of the plan can depend on these releases.
        """
        masked = bool(self.settings.masking.workers)
        if masked:
            agreed = json.dumps([self.strings, self.settings.schema.names])
            files = (self.settings["dp_secure_key"], self.settings["dp_secure_parties"])
            masking.agree_on_pads(self.plan_id, agreed, files)
        try:
            if masked:
                workers.check_together(self._check_budget)
            entries = self.context.authorize(self._request)
            draw = partial(self.draws.release, dtrain)
            return self._in_unit(draw)._started(draw, [dtrain, *evals], entries)
        except BaseException:
            masking.drop_pads()
            raise

    def _in_unit(self, draw: Draw) -> Training:
        """Release the range of labels or weights, and return the training in the released units."""
        if self.prepared.mechanisms.find(LabelRange) is None:
            return self
        sums = draw(LabelRange.name)
        options, s = self.options, self.settings
        units = start.released_units(s, self.prepared.noise, sums)
        if units != (s.released_range, s.weight_unit):
            options = tuple(option.with_released_range(*units) for option in options)
            s = with_released_range(s, *units)
        return replace(self, prepared=replace(self.prepared, settings=s), options=options)

    def _started(
        self, draw: Draw, cache: Sequence[Any], entries: Sequence[str | None]
    ) -> tuple[dict[str, Any], LedgerCallback]:
        s, noise, family = self.settings, self.prepared.noise, self.prepared.family
        low: dict[str, Any] = {}
        position, count, rows, sums, capped = 0, None, None, None, None
        columns: ColumnEffects | None = None
        label_sums = self.prepared.mechanisms.find(LabelSums)
        if label_sums is not None:
            window = start.label_bounds_state(s)
            sums = draw(LabelSums.name, window)
            if s.needs_label_mean:  # release the sums again, with labels clipped at a cap
                cap = repr(start.label_cap(s, noise, sums))
                capped = draw(LabelSums.name, {**window, "target_upper": cap})
            if s["dp_public_num_rows"] is None:
                rows = start.rows_from_sums(label_sums.labels.kind, noise, sums)
            if family is not None:
                count = start.rows_from_sums(label_sums.labels.kind, noise, sums)
                present = math.inf
                if family.presence:
                    present = start.present_from_sums(noise, sums)
                position = family.choose(count, present)
            if s.intercept == "released":
                low["base_score"] = start.base_score_from_sums(s, noise, sums)
            if self.options[position].prepared.mechanisms.find(ColumnSums) is not None:
                columns = ColumnEffects.of(s, noise, sums, draw(ColumnSums.name, None, position))
        if s.intercept == "public":
            low["base_score"] = s["base_score"]
        elif s.intercept == "base_margin":
            # A loss with exposures uses its own measured start for the first tree.
            low["base_score"] = s.neutral_base_score if s.exposures is None else 1.0
        taken = self.options[position]
        state = dict(taken.state)
        if columns is not None:
            low["base_score"] = start.base_score_of_columns(s, columns.centre)
            state["offered"] = list(columns.offered)
        elif sums is not None:
            loss = state.get("loss", taken.plan.body.get("loss"))
            state |= start.state_after_release(taken.settings, noise, loss, sums, capped)
        low = {
            **planning.low_level(taken.settings),
            "dp_plan": taken.plan.text,
            "dp_state": planning.dump(state),
            **low,
        }
        callback = LedgerCallback(self, position, count, entries, cache[0])
        callback.rows_seen = rows
        if columns is not None:
            callback.first = partial(booster_with, trees_of(columns), params=low, cache=cache)
        return low, callback

    @property
    def _request(self) -> ReleaseRequest:
        """The releases of every plan, after those of continued trainings and column discovery."""
        s, events = self.settings, self.draws.claimed
        continued = () if self.earlier is None else self.earlier.releases
        earlier = (*continued, *released_by(s["dp_discovered"]))
        return ReleaseRequest(events, self.private, s.privacy_unit, self.part, earlier)

    def _check_budget(self) -> None:
        """Check the budget of this party before any party records the training."""
        try:
            self.context.check_before(self._request)
        except BudgetError as error:
            raise PrivacyRefusal(
                "The budget of a party refuses this training. Nothing was released, and no party "
                f"recorded the training. Agree on a smaller {named.dp_epsilon}."
            ) from error


def _configured(params: dict[str, Any], matrices: Sequence[Any], xgb_model: Any) -> Booster:
    """Create a configured booster; report an invalid metric by name."""

    def create(**changes: Any) -> Booster:
        booster = Booster({**params, **changes}, matrices, xgb_model)
        booster.save_config()
        return booster

    try:
        return create()
    except XGBoostError:
        given = params.get("eval_metric", [])
        create(eval_metric=[])  # if this fails too, the metrics are not the cause
        for name in map(str, given if isinstance(given, (list, tuple)) else [given]):
            try:
                create(eval_metric=[name])
            except XGBoostError:
                raise PrivacyParameterError(
                    f"`eval_metric` contains {show(name)}, which is not an XGBoost metric. Pass "
                    "names such as 'auc' or 'error@0.3', or a `custom_metric`. Nothing was "
                    "released."
                ) from None
        raise


class LedgerCallback(TrainingCallback):
    """Callback that stores the privacy ledger in the booster.

    Before the first round, it claims the whole plan as spent. After training, even if another
    callback stops it early, it records the actual draws.
    """

    # Replaces an empty booster by one with precomputed first trees, if there are any.
    first: Callable[[Any], Booster] | None = None
    notify: Callable[[Ledger], None] | None = None  # called with each stored ledger
    warned: Sequence[str] = ()  # warnings before the training
    rows_seen: float | None = None  # noisy number of rows or persons

    def __init__(
        self,
        training: Training,
        position: int,
        count: float | None,
        entries: Sequence[str | None] = (),
        dtrain: Any = None,
    ) -> None:
        super().__init__()
        self.dtrain = dtrain
        self.opened = ""  # the claimed ledger, once the training has started
        self.content: dict[str, str] = {}  # digests of the booster at the start
        self.training = training
        self.rounds = training.options[position].settings.rounds
        self.claimed = training.claim(position, count)
        self.discovery = training.settings["dp_discovered"]
        if entries:
            if self.discovery is not None:
                *before, discovery_entry, training_entry = entries
                entries = (*before, training_entry)
                self.discovery = {**self.discovery, "entry": discovery_entry}
            self.claimed = self.claimed.with_entries(entries)
        self.start = 0

    def before_training(self, model: Any) -> Any:
        """Claim the plan as spent, and store the public schema in the model."""
        if self.opened:
            raise PrivacyRefusal(
                "A training already started with this callback, and its budget covers one model. "
                "Call `xgboost.train` again for another model."
            )
        if self.first is not None:
            model = self.first(model)
            self.first = None  # also frees the matrices
            if names := ledger.tree_names(model):
                start = PublicStart.of(names, len(names), released=True)
                [only] = self.claimed.trainings
                self.claimed = replace(self.claimed, trainings=(replace(only, start=start),))
        self.prepare(model)
        self.opened = model.attr(ledger.ATTRIBUTE)
        native.open_claim(self.dtrain, self.opened)
        self.content = _fixed_content(model)
        self.start = model.num_boosted_rounds()
        return model

    def prepare(self, model: Any) -> None:
        """Store the claim and the public schema in the model."""
        self._store(model, self.claimed)
        # Set names explicitly, because a matrix without rows has none. Use the declared types,
        # because the choice of pandas between integer and float can depend on a single row.
        model.feature_names = self.training.names
        model.feature_types = self.training.types
        if self.training.public_start is not None:
            # With these attributes, XGBoost's estimators would predict with the public rounds only.
            model.set_attr(best_iteration=None, best_score=None)

    def after_training(self, model: Any) -> Any:
        """Record the actual draws."""
        native.close_claim(self.dtrain, self.opened)
        record = workers.check_together(lambda: self._complete(model))
        narrow: dict[int, Sequence[float]] = {}  # columns with nearly all values among few cuts
        for updater in ModelJson.from_config(model).updaters:
            narrow |= {int(i): where for i, where in updater.get("dp_narrow", {}).items()}
        self._store(model, record)
        with suppress(PrivacyWarning):  # an error would lose a model that is already paid for
            strings = privacy_warnings.last_training_warnings(record, self.rows_seen)
            strings = [text for text in strings if text not in self.warned]
            names = self.training.settings.schema.names
            columns = {names[i]: narrow[i] for i in sorted(narrow)}
            strings += privacy_warnings.narrow_column_warnings(columns)
            privacy_warnings.warn(strings)
        return model

    def _complete(self, model: Any) -> Ledger:
        rounds = model.num_boosted_rounds() - self.start
        record = self.training.draws.complete(self.claimed, model, rounds)
        if _fixed_content(model) != self.content:
            raise LedgerError(
                "A callback changed names, intercept, objective or attributes of the model during "
                "its training. Do not publish the model; train again without that callback."
            )
        return record

    def _store(self, model: Any, record: Ledger) -> None:
        whole = with_discovery(model, record, self.discovery)
        (store_bound if whole.is_complete else ledger.store)(model, whole)
        if self.notify is not None:
            self.notify(whole)


def _fixed_content(model: Any) -> dict[str, str]:
    """Digests of the content that must not change after the first round.

    This excludes categories, which XGBoost takes from the matrix in the first round.
    """
    return {name: v for name, v in content_of_booster(model).items() if name != "categories"}


def released_by(discovery: Mapping[str, Any] | None) -> tuple[RecordedRelease, ...]:
    """The releases of a column discovery, for a budget; empty without a discovery."""
    if discovery is None:
        return ()
    return (RecordedRelease(DISCOVERY, discovery["events"], discovery["entry"]),)


def with_discovery(model: Any, record: Ledger, discovery: Mapping[str, Any] | None) -> Ledger:
    """Add the events of a column discovery to the ledger."""
    if discovery is None:
        return record
    evaluation = {"method": DISCOVERY, "delta": discovery["delta"]}
    return ledger.with_evaluation(
        model, model, record, discovery["events"], evaluation, discovery["entry"]
    )
