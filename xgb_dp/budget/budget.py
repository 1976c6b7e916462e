"""The privacy budget of a data set, shared by all trainings and selections on its rows.

Every training charges its releases to the budget before it makes any of them. The budget is a file
that several processes can share. A release that would exceed the total is refused. The total holds
even if each training was chosen adaptively, because the composition is a privacy filter
(``docs/proofs/filter.md``, ``docs/howto/budgets.md``).
"""

from __future__ import annotations

import math
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from .. import policy
from ..accounting import PERSON, ROW, Event, SelectionEvent, Unit, one_unit
from ..accounting.filter import Capacity, Charge, Filter, charge_of, plain_charge
from ..accounting.gaussian import gaussian_epsilon
from ..data.ids import SplitPart
from ..engine.workers import this_worker
from ..errors import BudgetError, PrivacyParameterError, PrivacyRefusal, PrivacyWarning
from ..parameters.parse import parse_flag, parse_int, parse_number
from ..record.authorization import Context, ReleaseRequest, authorized_by, noise_key
from ..record.formatting import visible
from ..record.privacy_report import privacy_report
from ..record.privacy_warnings import concerns, scope, warn
from ..request.names import flatten, takes
from ..request.params import DEFAULT_ROUNDS
from . import file as budget_file
from .entries import (
    MOST,
    RESERVED,
    SPENT,
    BudgetUnit,
    Entry,
    damaged,
    is_recorded,
    make_line,
    parts_are_disjoint,
    read_entry,
    total_charge,
)

_LONGEST_PATH = 4096  # PATH_MAX on Linux, in bytes
_DIGITS = 4
_SPENT = 0.990  # share of the remaining mu^2; the rest covers costs above the nominal epsilon
_DISCOVERY, _EVALUATION = 0.012, 0.045
_EVALUATION_APART = 0.25  # evaluation on held-out rows: a larger share improves no metric
_MARGIN = 0.004  # relative excess of a release's mu over the Gaussian mechanism of its epsilon


# Trainings with equal settings have equal events, and the charge depends only on the events.
@lru_cache(maxsize=256)
def _charge(
    events: tuple[Event, ...], delta: float, own_delta: float | None, group_size: int
) -> Charge:
    return charge_of(events, delta, own_delta, group_size)


_plain_charge = lru_cache(maxsize=256)(plain_charge)


class Budget:
    """The privacy budget of a data set, stored in a file.

    Args:
        path: The budget file, created if it does not exist. A lock file with the suffix ``.lock``
            is kept next to it. Use one budget for all trainings on the same rows.
        epsilon: Total epsilon in nats, > 0. Required for a new file; optional for an existing
            file, where it must equal the stored value.
        delta: Total delta, 0 < delta < 1. Required and checked like ``epsilon``.
        selection_epsilon: The part of ``epsilon`` reserved for selections (:func:`xgb_dp.select`)
            and other releases without a Gaussian bound, whose epsilons add up; 0 by default. Fixed
            when the file is created.
        unit: The privacy unit of the total: "row" (the default) or "person", for trainings with
            ``dp_privacy_id``. Fixed when the file is created.
        group_size: Number of rows (or persons) that neighbouring data sets may differ in; 1 by
            default. Trainings need the same ``dp_group_size``. Fixed when the file is created.
        most_rows: Upper bound on the rows of one person, for ``unit="person"``. This is your
            assumption; it is not checked. Row-level trainings are then charged for a group of this
            many rows; without it they are refused. Fixed when the file is created.
        any_group_size: Whether to accept trainings with a different ``dp_group_size`` and charge
            their cost for the budget's own group size. Not stored in the file.
        charge_earlier: Whether to allow continuing a model whose earlier releases are not in this
            budget, by charging those releases as well. Otherwise such a model is refused. Not
            stored in the file.

    Creating a file with totals that give little protection emits a ``PrivacyWarning``.

    Raises:
        PrivacyParameterError: A total is missing, out of range, or differs from the stored one.
        BudgetError: The file is damaged or cannot be written.

    Examples:
        >>> budget = xgb_dp.Budget("budget.json", epsilon=2.0, delta=1e-5)
        >>> first = budget.train(params, data, 5)
        >>> [entry.state for entry in budget.entries]
        ['spent']
        >>> 0 < budget.remaining() < 2
        True
    """

    @takes(path="path", unit="text")
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        selection_epsilon: float | None = None,
        unit: str | None = None,
        group_size: int | None = None,
        most_rows: int | None = None,
        any_group_size: bool = False,
        charge_earlier: bool = False,
    ) -> None:
        if len(os.fspath(path)) > _LONGEST_PATH:
            raise PrivacyParameterError(
                f"`path` has more than {_LONGEST_PATH:,} characters. Pass the path of the budget "
                "file."
            )
        try:
            self.path = Path(path).resolve()  # all links to a file must share one lock
        except (OSError, RuntimeError):
            raise PrivacyParameterError(
                f"`path`: the symbolic links in {str(path)!r} form a loop or cannot be read. "
                "Pass the path of the budget file itself."
            ) from None
        budget_file.clean(self.path)
        given = _totals(epsilon, delta, selection_epsilon)
        self.any_group_size = parse_flag("any_group_size", any_group_size)
        self.charge_earlier = parse_flag("charge_earlier", charge_earlier)
        content = budget_file.read(self.path)
        old = BudgetUnit() if content is None else BudgetUnit.from_content(content)
        budget_unit = old.changed(unit, group_size, most_rows)
        if content is None:
            if given["epsilon"] is None or given["delta"] is None:
                raise PrivacyParameterError(
                    f"The budget file {str(self.path)!r} does not exist. To create it, pass its "
                    "totals: Budget(path, epsilon=..., delta=...)."
                )
            new = {**given, "selection_epsilon": given["selection_epsilon"] or 0.0}
            new |= {**budget_unit.to_content(), "entries": []}
            content = budget_file.update(self.path, lambda old: old or new)
            warn(concerns(content["epsilon"], content["delta"], None, budget_unit.unit))
        for name, value in given.items():
            if value is not None and value != content[name]:
                raise PrivacyParameterError(
                    f"`{name}` is {value:g}, but the budget file {str(self.path)!r} was created "
                    f"with {content[name]:g}. A total cannot be changed: omit this argument."
                )
        self.budget_unit = BudgetUnit.from_content(content)
        if budget_unit != self.budget_unit:
            most = self.budget_unit.most_rows
            rows = "" if most is None else f" with at most {most} rows"
            raise PrivacyParameterError(
                f"The budget file {str(self.path)!r} was created for "
                f"{self.unit.phrase}{rows}. The privacy unit cannot be changed: omit `unit`, "
                "`group_size` and `most_rows`."
            )
        self.epsilon: float = content["epsilon"]
        self.delta: float = content["delta"]
        self.selection_epsilon: float = content["selection_epsilon"]

    @property
    def unit(self) -> Unit:
        """Privacy unit of the total."""
        return self.budget_unit.unit

    @property
    def capacity(self) -> Capacity:
        """Capacity of the total, under the composition rule fixed by the first entry."""
        return self.filter.room(self.spent)

    @property
    def filter(self) -> Filter:
        """Privacy filter that decides whether a release fits the total."""
        return Filter(self.epsilon, self.delta, self.selection_epsilon)

    @property
    def entries(self) -> list[Entry]:
        """All entries of the budget, in the order in which they were charged.

        Raises:
            BudgetError: The file is damaged or missing.
        """
        return [read_entry(line) for line in self._content()["entries"]]

    @property
    def spent(self) -> Charge:
        """Total charge of all entries, including reserved ones.

        The two parts of an :func:`xgb_dp.split` compose in parallel: only the larger of their sums
        counts.
        """
        return total_charge(self.entries)

    def remaining(self, delta: float | None = None) -> float:
        """Return the approximate largest epsilon for one more training on all rows.

        Args:
            delta: The ``dp_delta`` of that training; by default the delta of the budget.

        Returns:
            float: Epsilon in nats. The full total while the budget has no entries; afterwards
            reduced by the cost of the Gaussian bound of a training. A training with default
            settings and this epsilon fits. A training with fewer than about 20 split selections in
            total, Laplace leaves, or ``subsample`` below 1 needs an epsilon 1 to 7% smaller.
        """
        return self.filter.remaining(self.spent, self.delta if delta is None else delta)

    def remaining_selection(self) -> float:
        """Return the largest epsilon for one more selection on all rows, in nats."""
        spent = self.spent
        return max(0.0, (self.filter.room(spent).shift - spent.shift) * (1.0 - 1e-9))

    def verify(self) -> None:
        """Recompute the charge of every entry from its events.

        Raises:
            BudgetError: The recorded charge of an entry is below the cost of its events, or the
                entries together exceed the total.
        """
        for entry in self.entries:
            recorded, group_size = entry.charge, entry.charged
            if group_size < self.budget_unit.charged(entry.events, entry.unit, any_group_size=True):
                raise damaged(f"The entry {entry.id} is charged for fewer than {self.unit.phrase}")
            if recorded.shift or (recorded.extra and not recorded.mu2):
                cost = _plain_charge(entry.events, recorded.extra, group_size)
            else:
                cost = _charge(entry.events, self.delta, None, group_size)
            # The tolerance covers rounding differences between machines.
            if cost.mu2 > recorded.mu2 * (1 + 1e-6) or cost.shift > recorded.shift * (1 + 1e-6):
                raise damaged(
                    f"The events of the entry {entry.id} cost more than its recorded charge"
                )
        if not self.capacity.holds(self.spent):
            raise damaged("The entries of the budget exceed its total")

    def plan(self, *, split: bool = False) -> dict[str, dict[str, float]]:
        """Propose how to divide the remaining budget among discovery, training and evaluation.

        Privacy: spends nothing. Column discovery and evaluation need little, so the training gets
        the largest share. Together they use all but about 2% of the remaining budget (in mu^2).
        An epsilon reserved for selections is assigned to one selection.

        Args:
            split: Whether the training and the evaluation read different parts of an
                :func:`xgb_dp.split`. Each row then pays for only one of them, and both get a larger
                share. Leave it False if the evaluation calibrates the model: the ledger of the
                calibrated model contains both releases and adds up their costs.

        Returns:
            dict: ``epsilon`` and ``delta`` for "discover" (:func:`xgb_dp.discover`), "train" (any
            training), "evaluate" (:func:`xgb_dp.evaluate`) and, if the budget has a
            ``selection_epsilon``, "select" (:func:`xgb_dp.select`). Made in this order, all of
            them fit the budget.
        """
        split = parse_flag("split", split)
        spent = self.spent
        room = self.filter.room(spent)
        left = max(0.0, room.mu2 - spent.mu2) if self.remaining() else 0.0
        discovery = _DISCOVERY * left
        evaluation = (_EVALUATION_APART if split else _EVALUATION) * left
        train = _SPENT * left - discovery - (0.0 if split else evaluation)
        # Column discovery uses part of its delta for the thresholds.
        parts = {"discover": (discovery, 0.1), "train": (train, 1.0), "evaluate": (evaluation, 1.0)}
        plan = {}
        for name, (mu2, share) in parts.items():
            delta, mu = share * self.delta, math.sqrt(max(0.0, mu2)) * (1.0 - _MARGIN)
            epsilon = gaussian_epsilon(mu, delta) if mu else 0.0
            plan[name] = {"epsilon": float(format_rounded_down(epsilon)), "delta": delta}
        if self.selection_epsilon:
            epsilon = float(format_rounded_down(self.remaining_selection()))
            plan["select"] = {"epsilon": epsilon, "delta": self.delta / 10.0}
        return plan

    def train(
        self,
        params: Mapping[str, Any],
        dtrain: Any,
        num_boost_round: int = DEFAULT_ROUNDS,
        *,
        note: str = "training",
        **kwargs: Any,
    ) -> Any:
        """Run ``xgboost.train`` with private parameters and charge it to this budget.

        Privacy: spends ``dp_epsilon`` and ``dp_delta`` of the parameters, charged before anything
        is released.

        Args:
            params: Parameters of ``xgboost.train``, with ``dp_epsilon`` and ``dp_delta``.
            dtrain: Training data, an ``xgboost.DMatrix``.
            num_boost_round: Number of boosting rounds.
            note: Description stored with the entry; public.
            kwargs: Other arguments of ``xgboost.train``.

        Returns:
            xgboost.Booster

        Raises:
            BudgetError: The training would exceed the total or is not private. Nothing is
                released.
        """
        from xgboost import train

        params = flatten(params)  # raises on bad parameters before anything is charged
        with self.one_training(note):
            return train(params, dtrain, num_boost_round, **kwargs)

    def drawing(self, note: str = "training") -> AbstractContextManager[list[str]]:
        """Return a context manager that charges every private training in its block.

        Trainings in threads and tasks that inherit the context of the block
        (``asyncio.to_thread``, ``contextvars.copy_context().run``) and in forked processes are
        charged too. Other private trainings are refused while the block is open: in other threads
        of this process that do not use a budget themselves, in processes spawned from the block,
        and through Dask or Spark from this process. Trainings in processes that were started
        before the block, or by a fork server that was started before the block, are not detected.

        Args:
            note: Description stored with the entries; public.

        Yields:
            list of str: Ids of the entries made by this process so far.

        Raises:
            BudgetError: A training would exceed the total or is not private; raised before it
                releases anything. Also raised at the end of a block that charged nothing: its
                trainings were not private, or ran in a process started before the block.
        """
        return self._charging(note, str(self.path))

    def one_training(self, note: str = "training") -> AbstractContextManager[list[str]]:
        """Return a context manager like :meth:`drawing` that leaves other threads unaffected.

        Use it around one call that trains in this thread.

        Args:
            note: Description stored with the entry; public.

        Yields:
            list of str: Ids of the entries made so far.

        Raises:
            BudgetError: As for :meth:`drawing`.
        """
        return self._charging(note, None)

    @contextmanager
    def _charging(self, note: str, block: str | None) -> Iterator[list[str]]:
        ids: list[str] = []
        block_id = secrets.token_hex(8)

        def reserve(release: ReleaseRequest, *, write: bool = True) -> list[str]:
            if not release.private:
                raise BudgetError(
                    "A training without noise, or with noise from a fixed key, is not private and "
                    "cannot be charged to a budget. Set a finite dp_epsilon, and do not fix the "
                    "noise key."
                )
            names = self._reserve(release, note, None, block_id, write=write)
            if write:
                ids.append(names[-1])
            return names

        with authorized_by(reserve, block=block, check=partial(reserve, write=False)):
            yield ids
        # Skipped after an error, because it is unknown how much was released. If this process has
        # no entries, look in the file: a forked process may have written some.
        close = self._close if ids else self._commit
        if close("block", block_id) == 0:
            raise BudgetError(
                "Nothing was charged: this block contained no private training "
                "(tree_method='dp_hist'). A model trained without privacy contains exact "
                "statistics of the rows; do not publish it. For trainings in processes started "
                "before the block, such as cluster workers, use `reserve` and `commit`."
            )

    def reserve(
        self,
        events: Sequence[Event],
        note: str = "release",
        *,
        delta: float | None = None,
        unit: Unit | None = None,
        part: SplitPart | None = None,
    ) -> str:
        """Charge releases to the budget. Call it before anything is released.

        Args:
            events: The planned releases, in release order, as ``xgb_dp.accounting`` events.
            note: Description stored with the entry; public.
            delta: For releases without a Gaussian bound: the delta at which they are charged.
            unit: Privacy unit for which the noise was calibrated, as ``xgb_dp.accounting.Unit``;
                by default the unit of the budget. Row or person level must match the events.
            part: The part of an :func:`xgb_dp.split` that the releases read; None for all rows.

        Returns:
            str: Id of the entry, for :meth:`commit`.

        Raises:
            BudgetError: The releases would exceed the total, or have a privacy unit that the
                budget does not accept. Nothing is charged.
        """
        try:
            name = one_unit(events)
        except (TypeError, AttributeError):
            raise PrivacyParameterError(
                "`events` must be a list of events of xgb_dp.accounting, such as "
                "[GaussianEvent(...)]; an epsilon is not an event."
            ) from None
        unit = unit or Unit(name, self.unit.group_size if name == self.unit.name else 1)
        return self._reserve(ReleaseRequest(tuple(events), True, unit, part), note, delta, None)[-1]

    def commit(self, name: str) -> None:
        """Mark a reserved entry as spent, after its release has finished. Changes no total.

        Args:
            name: Entry id returned by :meth:`reserve`.

        Raises:
            BudgetError: The entry does not exist, or the file cannot be written. The entry then
                stays reserved, which counts in full.
        """
        try:
            known = self._commit("id", name)
        except BudgetError as error:
            if not error.what:
                raise
            raise BudgetError(
                f"{error.what}. The entry stays reserved, which counts in full, so the release is "
                f"accounted for. {error.fix}"
            ) from None
        if not known:
            raise BudgetError(
                "The budget has no entry with this id. `print(budget)` lists the entries."
            )

    def missing(self, model: Any) -> list[str]:
        """List the releases of a model that are not in this budget. Spends nothing.

        Args:
            model: Booster, estimator or path of a saved model.

        Returns:
            list of str: Descriptions of the missing trainings, selections and evaluations. Empty
            if the budget contains all releases of the model.

        Raises:
            LedgerError: The model has no ledger, or its ledger is damaged.
            PrivacyParameterError: The model file does not exist.
            BudgetError: The budget file is damaged.

        Examples:
            >>> budget = xgb_dp.Budget("budget.json", epsilon=2.0, delta=1e-5)
            >>> charged = budget.train(params, data, 5)
            >>> budget.missing(charged), budget.missing(model)
            ([], ['training 1'])
        """
        entries, record = self.entries, privacy_report(model).record
        missing = [old.name for old in record.releases if not is_recorded(old, entries)]
        if not record.is_complete:  # a checkpoint does not record the entry of its open training
            missing.append(f"the trees of training {len(record.trainings)}, which has not ended")
        return missing

    def statement(self) -> str:
        """Describe the guarantee of the budget and list its entries, as text."""
        lines = [
            f"All releases through this budget together are ({self.epsilon:g}, "
            f"{self.delta:g})-differentially private for adding or removing "
            f"{self.unit.neighbours()}, even if they were chosen adaptively. "
            f"{_scope(self)}Releases made without this budget are not covered.",
            *concerns(self.epsilon, self.delta, None, self.unit),
            f"Left for trainings: epsilon about {format_rounded_down(self.remaining())} at delta "
            f"{self.delta:g}.",
        ]
        if self.selection_epsilon:
            lines.append(
                f"Left for selections: epsilon {format_rounded_down(self.remaining_selection())}."
            )
        entries, capacity = self.entries, self.capacity
        parts = " of the selection budget" if self.selection_epsilon else ""
        for entry in entries:
            share = entry.charge.mu2 / capacity.mu2 if capacity.mu2 else 0.0
            taken = f"{share:.1%} of the budget (in mu^2)"
            if entry.charge.shift:
                taken = f"epsilon {entry.charge.shift:.4g}{parts}"
            on = "" if entry.part is None else f", on part {entry.part.name!r} of a split"
            state = f"({entry.state}{on})"
            lines.append(f"{entry.time} {entry.note}: {taken} {state}{_other_unit(self, entry)}")
        if any(entry.part is not None for entry in entries):
            lines.append(
                "A row is in only one part of a split, so only the part with the larger total "
                "charge counts."
            )
        return "\n".join(map(visible, lines))

    def __str__(self) -> str:
        return self.statement()

    def __repr__(self) -> str:
        return f"Budget({str(self.path)!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"

    def _reserve(
        self,
        release: ReleaseRequest,
        note: str,
        delta: float | None,
        block_id: str | None,
        *,
        write: bool = True,
    ) -> list[str]:
        """Charge a release. Return the ids of the entries of its model's releases, newest last."""
        costs = [self._cost(old.events, release.unit, None) for old in release.earlier]
        cost = self._cost(release.events, release.unit, delta)
        if (rules := policy.in_force()) is not None:
            rules.check_budget(self)
            before = [event for old in release.earlier for event in old.events]
            rules.check_release([*before, *release.events], release.unit, cost[0])
        names: list[str] = []

        def append(content: dict[str, Any] | None) -> dict[str, Any]:
            content = self._same(content)
            entries = [read_entry(line) for line in content["entries"]]
            self.budget_unit.check_column(release.unit, [entry.unit for entry in entries])
            lines: list[dict[str, Any]] = []

            def add(one: ReleaseRequest, price: tuple[int, Charge], text: str, state: str) -> str:
                charged, charge = price
                # Releases on the other part of the same split cost these rows nothing. The
                # composition rule still depends on all entries.
                part = one.part if parts_are_disjoint(one.part, one.events, charged) else None
                spent, paid = total_charge(entries), total_charge(entries, part)
                room = self.filter.charge(spent, one.events, charge, charged, paid)
                if room is None:
                    raise refusal(self, spent, paid, charge, one.events)
                block = block_id if one is release else None
                line = make_line(text, state, one.events, room, one.unit, charged, one.part, block)
                lines.append(line)
                entries.append(read_entry(line))
                return entries[-1].id

            names.clear()
            for old, old_cost in zip(release.earlier, costs, strict=True):
                if old.entry is not None and is_recorded(old, entries):
                    names.append(old.entry)
                elif not self.charge_earlier:
                    raise unknown_model(self)
                else:
                    whole = ReleaseRequest(old.events, True, release.unit)
                    names.append(add(whole, old_cost, f"{note}: earlier {old.name}", SPENT))
            names.append(add(release, cost, note, RESERVED))
            return {**content, "entries": [*content["entries"], *lines]} if write else content

        budget_file.update(self.path, append)
        return names

    def _cost(self, events: Sequence[Event], unit: Unit, delta: float | None) -> tuple[int, Charge]:
        """Return the group size for which events are charged, and their charge."""
        charged = self.budget_unit.charged(events, unit, any_group_size=self.any_group_size)
        return charged, _charge(tuple(events), self.delta, delta, charged)

    def _commit(self, key: str, value: str) -> int:
        """Mark the entries with this key and value as spent, and return their number."""

        def note(content: dict[str, Any] | None) -> dict[str, Any]:
            content = self._same(content)
            entries = [
                {**line, "state": SPENT} if line.get(key) == value else line
                for line in content["entries"]
            ]
            return {**content, "entries": entries}

        entries = budget_file.update(self.path, note)["entries"]
        return sum(line.get(key) == value for line in entries)

    def _close(self, key: str, value: str) -> int | None:
        """Mark entries as spent; if the file cannot be written, warn and return None.

        A failure here must not discard the result of a finished release. Its entries stay reserved,
        which counts in full.
        """
        try:
            return self._commit(key, value)
        except BudgetError as error:
            text = (
                f"{error.what or error}. The release is already charged in full: its entry stays "
                "'reserved' because it could not be marked as spent. The result is complete, and "
                f"nothing needs to be charged again. {error.fix}"
            )
            try:
                warn([text])
            except PrivacyWarning:  # warnings are errors: raising would discard the result
                print(text, file=sys.stderr)
            return None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "seen": budget_file.seen_entries(self.path)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        budget_file.remember(state["path"], state.pop("seen"))
        vars(self).update(state)

    def _content(self) -> dict[str, Any]:
        return self._same(budget_file.read(self.path))

    def _same(self, content: dict[str, Any] | None) -> dict[str, Any]:
        """Return the file content after checking that it still belongs to this budget."""
        if content is None:
            raise budget_file.failed(
                f"The budget file {str(self.path)!r} is missing, so the spent budget is unknown",
                "Restore it from a copy that contains every training.",
            )
        totals = ("epsilon", "delta", "selection_epsilon")
        same = all(content[name] == getattr(self, name) for name in totals)
        if not same or BudgetUnit.from_content(content) != self.budget_unit:
            raise budget_file.failed(
                f"The budget file {str(self.path)!r} was replaced by another budget, so the spent "
                "budget is unknown",
                "Restore the file from a copy that contains every training.",
            )
        return content


def as_budget(budget: Budget | str | os.PathLike[str]) -> Budget:
    """Return a budget, opening its file if given a path."""
    if isinstance(budget, Budget):
        return budget
    if not isinstance(budget, (str, os.PathLike)):
        raise PrivacyParameterError(
            f"`budget` must be an xgb_dp.Budget or its path; got a {type(budget).__name__}."
        )
    return Budget(budget)


def _totals(
    epsilon: float | None, delta: float | None, selection_epsilon: float | None
) -> dict[str, Any]:
    """Parse the totals given by the user; omitted ones are None."""
    if epsilon is not None:
        epsilon = parse_number("epsilon", epsilon, low=0.0, open_low=True)
    if delta is not None:
        delta = parse_number("delta", delta, low=1e-100, high=1.0, open_high=True)
    if selection_epsilon is not None:
        high = math.inf if epsilon is None else epsilon
        selection_epsilon = parse_number("selection_epsilon", selection_epsilon, low=0.0, high=high)
    return {"epsilon": epsilon, "delta": delta, "selection_epsilon": selection_epsilon}


T = TypeVar("T")


def check_single_process(what: str, secret: str, several: str) -> None:
    """Refuse a release whose noise would not be secret or would be drawn by several workers."""
    if this_worker()[1] > 1:
        raise PrivacyRefusal(several)
    if noise_key() is not None:
        raise PrivacyRefusal(
            f"Noise from a fixed key is refused in {what}: {secret} always secret. Call it outside "
            "the block that fixes the key."
        )


def claim_and_draw(
    release: Callable[[], T],
    events: Sequence[Event],
    budget: Budget | str | os.PathLike[str] | None,
    note: str,
    *,
    unit: Unit,
    delta: float | None = None,
    part: SplitPart | None = None,
) -> tuple[T, str | None]:
    """Charge a release, then make it; a crash in between wastes budget but leaks nothing."""
    if budget is None:
        request = ReleaseRequest(tuple(events), True, unit, part)
        [entry] = Context.current().authorize(request)
        return release(), entry
    budget = as_budget(budget)
    name = budget.reserve(events, note, delta=delta, unit=unit, part=part)
    result = release()
    budget._close("id", name)
    return result, name


def record_release(
    budget: Budget, release: ReleaseRequest, note: str, delta: float | None
) -> list[str]:
    """Charge a release as spent at once; return the entry ids of earlier releases and its own.

    The entry is closed before the release runs, so that the file's modification time does not
    reveal how long the release takes.
    """
    names = budget._reserve(release, note, delta, None)
    budget._close("id", names[-1])
    return names


def choose_unit(
    persons: bool,
    column: str | None,
    group_size: int | None,
    budget: Budget | str | os.PathLike[str] | None,
) -> Unit:
    """Return the privacy unit of a release made from Python."""
    name = PERSON if persons else ROW
    if group_size is not None:
        return Unit(name, parse_int("group_size", group_size, 1, MOST), column)
    unit = Unit() if budget is None else as_budget(budget).unit
    return Unit(name, unit.group_size if unit.name == name else 1, column)


def _scope(budget: Budget) -> str:
    """Describe the privacy unit of the total; empty for single rows."""
    most, protected = budget.budget_unit.most_rows, f"{scope(budget.unit)} "
    if most is None:
        return protected
    return (
        f"{protected}Row-level releases are charged for {budget.unit.group_size * most} rows, "
        f"assuming that no person has more than {most} rows. This assumption is not checked. "
    )


def _other_unit(budget: Budget, entry: Entry) -> str:
    """Remark on an entry calibrated for another privacy unit; otherwise empty."""
    if (entry.unit.name, entry.unit.group_size) == (budget.unit.name, budget.unit.group_size):
        return ""
    size = f"{entry.charged} {entry.unit.name if entry.charged == 1 else entry.unit.plural}"
    return f", calibrated for {entry.unit.phrase} and charged for {size}"


def refusal(
    budget: Budget,
    spent: Charge,
    paid: Charge,
    charge: Charge,
    events: Sequence[Event],
) -> BudgetError:
    """Return the error for releases that do not fit; `paid` is the charge on their rows so far."""
    room = budget.filter.room(spent)
    if any(isinstance(e, SelectionEvent) for e in events) and math.isfinite(charge.shift):
        what = (
            f"The selection needs epsilon {charge.shift:.4g} of the selection budget and delta "
            f"{charge.extra:g}, but only epsilon "
            f"{format_rounded_down(max(0.0, room.shift - paid.shift))} and delta "
            f"{max(0.0, room.extra - paid.extra):.3g} are left. The selection budget is fixed "
            "when you create the budget (selection_epsilon=...)"
        )
    else:
        left = format_rounded_down(budget.filter.remaining(spent, budget.delta, paid))
        what = (
            f"The largest epsilon that still fits for one training is about {left} at delta "
            f"{budget.delta:g}"
        )
    return BudgetError(
        f"This release would exceed the budget {str(budget.path)!r} of epsilon={budget.epsilon:g}, "
        f"delta={budget.delta:g} for {budget.unit.phrase}. Nothing was released. {what}."
    )


def unknown_model(budget: Budget) -> BudgetError:
    """Return the error for a model with earlier releases that are not in the budget."""
    return BudgetError(
        "The model to continue, or the column discovery it uses, has releases that are not in the "
        f"budget {str(budget.path)!r}, so the budget would not cover the new model. Nothing was "
        "released. Continue a model of this budget and pass this budget to `discover`, or open it "
        "with Budget(..., charge_earlier=True) to charge the earlier releases as well."
    )


def format_rounded_down(epsilon: float) -> str:
    """Format an epsilon with four digits, rounded down so that the printed value still fits."""
    if epsilon <= 0.0:
        return "0"
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(epsilon)))
    return f"{math.floor(epsilon * scale) / scale:g}"
