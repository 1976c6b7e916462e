"""The callback that keeps the ledger in the booster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from xgboost.callback import TrainingCallback
from xgboost.core import Booster

from ..engine import native, workers
from ..engine.model_json import ModelJson
from ..errors import LedgerError, PrivacyRefusal, PrivacyWarning
from ..record import ledger, privacy_warnings
from ..record.content import content_of_booster, store_bound
from ..record.ledger_model import DISCOVERY, Ledger, PublicStart, Released

if TYPE_CHECKING:
    from .run import Training


class LedgerCallback(TrainingCallback):
    """Stores the privacy ledger in the booster.

    Before the first round it claims the whole plan as spent; after training, also when another
    callback ends it early, it writes what was really drawn.
    """

    # makes the booster with the first trees that follow from them, in place of one that has none;
    # None where there are no such trees
    first: Callable[[Any], Booster] | None = None
    notify: Callable[[Ledger], None] | None = None  # who is told what the training releases

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
        self.opened = ""  # the ledger under which the training draws, once it has begun
        self.content: dict[str, str] = {}  # of the booster that it began with
        self.training = training
        self.rounds = training.options[position].settings.rounds
        self.claimed = training.claim(position, count)
        self.look = training.settings["dp_discovered"]
        if entries:
            if self.look is not None:
                *before, of_look, of_training = entries
                entries, self.look = (*before, of_training), {**self.look, "entry": of_look}
            self.claimed = self.claimed.booked(entries)
        self.start = 0

    def before_training(self, model: Any) -> Any:
        """Claim the plan as spent, and fix the public schema of the model."""
        if self.opened:
            raise PrivacyRefusal(
                "A training has begun already with this callback, and its budget pays for one "
                "model. Call `xgboost.train` again for another one."
            )
        if self.first is not None:
            model = self.first(model)
            self.first = None  # and with it the matrices
            if names := ledger.tree_names(model):
                start = PublicStart.of(names, len(names), released=True)
                self.claimed = self.claimed.starting_from(start)
        self.prepare(model)
        self.opened = model.attr(ledger.ATTRIBUTE)
        native.open_claim(self.dtrain, self.opened)
        self.content = _fixed_content(model)
        self.start = model.num_boosted_rounds()
        return model

    def prepare(self, model: Any) -> None:
        """Store the claim in the model, and its public schema."""
        self._store(model, self.claimed)
        # Names also for a matrix without rows, and types as declared: whether pandas calls a column
        # an integer or a float can depend on a single row.
        model.feature_names = self.training.names
        model.feature_types = self.training.types
        if self.training.public_start is not None:
            # By these the estimators of XGBoost would predict with the public rounds alone.
            model.set_attr(best_iteration=None, best_score=None)

    def after_training(self, model: Any) -> Any:
        """Write what was drawn."""
        native.close_claim(self.dtrain, self.opened)
        record = workers.check_together(lambda: self._complete(model))
        narrow: dict[int, Sequence[float]] = {}  # columns with few cuts where nearly all values are
        for updater in ModelJson.config_of(model).updaters:
            narrow |= {int(i): where for i, where in updater.get("dp_narrow", {}).items()}
        self._store(model, record)
        with suppress(PrivacyWarning):  # the model is paid for
            texts = privacy_warnings.of_last(record)
            names = self.training.settings.schema.names
            texts += privacy_warnings.of_narrow({names[i]: narrow[i] for i in sorted(narrow)})
            privacy_warnings.warn(texts, stacklevel=6)
        return model

    def _complete(self, model: Any) -> Ledger:
        rounds = model.num_boosted_rounds() - self.start
        record = self.training.draws.complete(self.claimed, model, rounds)
        if _fixed_content(model) != self.content:
            raise LedgerError(
                "A callback has changed names, intercept, objective or attributes of the model "
                "during its training. Do not publish it, and train again without."
            )
        return record

    def _store(self, model: Any, record: Ledger) -> None:
        whole = with_look(model, record, self.look)
        (store_bound if whole.is_complete else ledger.store)(model, whole)
        if self.notify is not None:
            self.notify(whole)


def _fixed_content(model: Any) -> dict[str, str]:
    """Digests of what stays as it is from the first round on.

    The categories do not: XGBoost takes the declared ones from the matrix of the first round.
    """
    return {name: v for name, v in content_of_booster(model).items() if name != "categories"}


def released_by(look: Mapping[str, Any] | None) -> tuple[Released, ...]:
    """What a look has released, as a budget sees it; empty where there was none."""
    return () if look is None else (Released(DISCOVERY, look["events"], look["entry"]),)


def with_look(model: Any, record: Ledger, look: Mapping[str, Any] | None) -> Ledger:
    """The ledger with the events of the look by which the columns were declared."""
    if look is None:
        return record
    said = {"method": DISCOVERY, "delta": look["delta"]}
    return ledger.with_evaluation(model, model, record, look["events"], said, look["entry"])
