"""A privacy budget for a data set, over all trainings and selections on its rows.

Every training books its releases before it releases anything, in a file that several processes may
share. A release that would exceed the total is refused. The total holds however the trainings were
chosen: the composition is a privacy filter (``docs/proofs/filter.md``, ``docs/howto/budgets.md``).
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
from ..engine import fixed_noise
from ..engine.workers import this_worker
from ..errors import BudgetError, PrivacyParameterError, PrivacyRefusal, PrivacyWarning
from ..parameters.parse import parse_flag, parse_int, parse_number
from ..record.authorization import ReleaseRequest, authorize, authorized_by
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
    divides,
    is_booked,
    make_line,
    read_entry,
    total_charge,
)

_LONGEST_PATH = 4096  # of Linux, in bytes
_DIGITS = 4
_SPENT = 0.990  # of the mu^2 that is left; the rest is for what a release costs above its epsilon
_DISCOVERY, _JUDGED = 0.012, 0.045
_JUDGED_APART = 0.25  # of rows that did not train: more would sharpen no figure
_MARGIN = 0.004  # of mu, by which releases cost more than the Gaussian of their epsilon


# Trainings with the same settings have the same events, and a charge follows from these alone.
@lru_cache(maxsize=256)
def _charge(events: tuple[Event, ...], delta: float, own_delta: float | None, group: int) -> Charge:
    return charge_of(events, delta, own_delta, group)


@lru_cache(maxsize=256)
def _plain_charge(events: tuple[Event, ...], delta: float, group: int) -> Charge:
    return plain_charge(events, delta, group)


class Budget:
    """The privacy budget of a data set, kept in a file.

    Args:
        path: The file, created if it does not exist. A second file, with ``.lock`` at the end,
            lies beside it. Use one budget for all trainings on the same rows.
        epsilon: Total in nats, > 0. Needed for a new file; for an old one it may be left out, or
            must be the same.
        delta: Total probability of failure, 0 < delta < 1. As for ``epsilon``.
        selection_epsilon: The part of ``epsilon`` set aside for selections (:func:`xgb_dp.select`)
            and other releases without a Gaussian bound, whose epsilons add up; 0 by default. It is
            fixed when the file is made.
        unit: Whom the total is for: "row" (the default) or "person", for trainings with
            ``dp_privacy_id``. What follows is fixed when the file is made, too.
        group: So many rows of one person, or so many persons, together; 1 by default. Trainings
            have the same ``dp_group_size``.
        most_rows: No person has more rows than this, for ``unit="person"``: a fact that you state
            and nobody checks. Trainings for rows are then charged for so many rows; without it they
            are refused.
        any_group: Whether trainings with another ``dp_group_size`` are accepted, and charged with
            what they cost for the group of the budget. Not stored in the file.
        charge_earlier: Whether a model that this book does not know may be continued: its earlier
            trainings are then charged, too. Otherwise it is refused. Not stored in the file.

    A ``PrivacyWarning`` says where the totals of a new file protect hardly anybody.

    Raises:
        PrivacyParameterError: A total is missing, out of range, or not that of the file.
        BudgetError: The file is damaged or cannot be written.

    Examples:
        >>> budget = xgb_dp.Budget("budget.json", epsilon=2.0, delta=1e-5)
        >>> first = budget.train(params, data, 5)
        >>> [entry.state for entry in budget.entries]
        ['spent']
        >>> 0 < budget.remaining() < 2
        True
    """

    path: Path
    epsilon: float  # the totals
    delta: float
    selection_epsilon: float  # set aside for releases without a Gaussian bound
    budget_unit: BudgetUnit
    any_group: bool  # whether releases for another group are charged for this one
    charge_earlier: bool  # whether earlier releases of a continued model are charged if new

    @takes(path="path", unit="text")
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        selection_epsilon: float | None = None,
        unit: str | None = None,
        group: int | None = None,
        most_rows: int | None = None,
        any_group: bool = False,
        charge_earlier: bool = False,
    ) -> None:
        if len(os.fspath(path)) > _LONGEST_PATH:
            raise PrivacyParameterError(
                f"`path` has more than {_LONGEST_PATH:,} characters. Give the path of the budget "
                "file."
            )
        try:
            self.path = Path(path).resolve()  # one file has one lock, whatever links lead to it
        except (OSError, RuntimeError):
            raise PrivacyParameterError(
                f"`path`: the links of {str(path)!r} lead round in a circle, or cannot be read. "
                "Give the budget file itself."
            ) from None
        budget_file.clean(self.path)
        given = _totals(epsilon, delta, selection_epsilon)
        self.any_group = parse_flag("any_group", any_group)
        self.charge_earlier = parse_flag("charge_earlier", charge_earlier)
        content = budget_file.read(self.path)
        old = BudgetUnit() if content is None else BudgetUnit.from_content(content)
        budget_unit = old.changed(unit, group, most_rows)
        if content is None:
            if given["epsilon"] is None or given["delta"] is None:
                raise PrivacyParameterError(
                    f"There is no budget file {str(self.path)!r}. Give the total of the data set "
                    "to make one: Budget(path, epsilon=..., delta=...)."
                )
            new = {**given, "selection_epsilon": given["selection_epsilon"] or 0.0}
            new |= {**budget_unit.to_content(), "entries": []}
            content = budget_file.update(self.path, lambda old: old or new)
            warn(
                concerns(content["epsilon"], content["delta"], None, budget_unit.unit), stacklevel=3
            )
        for name, value in given.items():
            if value is not None and value != content[name]:
                raise PrivacyParameterError(
                    f"`{name}` is {value:g}, but the budget file {str(self.path)!r} was made with "
                    f"{content[name]:g}. A total cannot be changed afterwards: leave it out."
                )
        self.budget_unit = BudgetUnit.from_content(content)
        if budget_unit != self.budget_unit:
            raise PrivacyParameterError(
                f"The budget file {str(self.path)!r} was made for {self.budget_unit.unit.phrase}"
                f"{_row_limit(self.budget_unit)}. The unit of a total cannot be changed "
                "afterwards: leave `unit`, `group` and `most_rows` out."
            )
        self.epsilon = content["epsilon"]
        self.delta = content["delta"]
        self.selection_epsilon = content["selection_epsilon"]

    @property
    def unit(self) -> Unit:
        """Whom the total is for."""
        return self.budget_unit.unit

    @property
    def capacity(self) -> Capacity:
        """What the total has room for, by the rule that the first entry has decided on."""
        return self.filter.room(self.spent)

    @property
    def filter(self) -> Filter:
        """The rule by which entries fill the total."""
        return Filter(self.epsilon, self.delta, self.selection_epsilon)

    @property
    def entries(self) -> list[Entry]:
        """All lines of the book, in the order in which they were booked.

        Raises:
            BudgetError: The file is damaged, or is gone.
        """
        return [read_entry(line) for line in self._content()["entries"]]

    @property
    def spent(self) -> Charge:
        """What all entries take of the total, reserved ones included.

        Of entries on the two parts of an :func:`xgb_dp.split` the larger sum counts.
        """
        return total_charge(self.entries)

    def remaining(self, delta: float | None = None) -> float:
        """The largest epsilon that one more training on all rows can be given, about.

        Args:
            delta: The ``dp_delta`` of that training; by default the total's.

        Returns:
            float: In nats: the whole total while nothing is booked; later rounded down by what the
            Gaussian bound of a training costs. A default training of that epsilon fits; one with
            fewer than about 20 selections in all, Laplace leaves or ``subsample`` below 1 needs 1
            to 7% less.
        """
        return self.filter.remaining(self.spent, self.delta if delta is None else delta)

    def remaining_selection(self) -> float:
        """The largest epsilon that one more selection on all rows can be given, in nats."""
        spent = self.spent
        return max(0.0, (self.filter.room(spent).shift - spent.shift) * (1.0 - 1e-9))

    def verify(self) -> None:
        """Compute every charge again from the events of its entry.

        Raises:
            BudgetError: An entry says that it took less than its events cost, or all of them
                exceed the total.
        """
        for entry in self.entries:
            booked, group = entry.charge, entry.charged
            if group < self.budget_unit.charged(entry.events, entry.unit, any_group=True):
                raise BudgetError(
                    f"The entry {entry.id} is charged for fewer than {self.unit.phrase}. Restore "
                    "the file from a copy that holds every training."
                )
            plain = bool(booked.shift or (booked.extra and not booked.mu2))
            cost = (
                _plain_charge(entry.events, booked.extra, group)
                if plain
                else _charge(entry.events, self.delta, None, group)
            )
            # Another machine may round differently.
            if cost.mu2 > booked.mu2 * (1 + 1e-6) or cost.shift > booked.shift * (1 + 1e-6):
                raise BudgetError(
                    f"The entry {entry.id} of the budget costs more than it says. Restore the "
                    "file from a copy that holds every training."
                )
        if not self.capacity.holds(self.spent):
            raise BudgetError(
                "The entries of the budget exceed its total. Restore the file from a copy that "
                "holds every training."
            )

    def plan(self, *, split: bool = False) -> dict[str, dict[str, float]]:
        """A division of what is left among a look at the columns, a training and a judgement.

        Privacy: spends nothing; it is a proposal. A look and a judgement need little, so the
        training has most. Together they take all but about 2% (of mu^2). A part for selections is
        used by a selection.

        Args:
            split: Whether the training and the judgement each read their part of an
                :func:`xgb_dp.split`, so that a row pays for one of them and both may have more.
                Leave it out for a model that the judgement then calibrates: it contains both, and
                its own ledger adds them up.

        Returns:
            dict: ``epsilon`` and ``delta`` of "discover" (:func:`xgb_dp.discover`), "train" (any
            training), "evaluate" (:func:`xgb_dp.evaluate`) and, where a part was set aside for it,
            "select" (:func:`xgb_dp.select`), as their arguments take them. All of them fit, in this
            order.
        """
        return suggested_allocation(self, parse_flag("split", split))

    def train(
        self,
        params: Mapping[str, Any],
        dtrain: Any,
        num_boost_round: int = DEFAULT_ROUNDS,
        *,
        note: str = "training",
        **kwargs: Any,
    ) -> Any:
        """``xgboost.train`` for private parameters, booked before anything is released.

        Privacy: spends what the parameters say, from this budget.

        Args:
            params: Parameters of ``xgboost.train``, with ``dp_epsilon`` and ``dp_delta``.
            dtrain: Training data, an ``xgboost.DMatrix``.
            num_boost_round: Rounds.
            note: What the training is, for the book; public.
            kwargs: Other arguments of ``xgboost.train``.

        Returns:
            xgboost.Booster

        Raises:
            BudgetError: The training would exceed the total, or is not private. Nothing was
                released.
        """
        from xgboost import train

        params = flatten(params)  # with its errors, before anything is booked
        with self.one_training(note):
            return train(params, dtrain, num_boost_round, **kwargs)

    def drawing(self, note: str = "training") -> AbstractContextManager[list[str]]:
        """Book every private training of this block, whoever calls it.

        Trainings of threads and tasks that are started with the context of the block
        (``asyncio.to_thread``, ``contextvars.copy_context().run``) and of forked processes are
        booked too. Whatever else trains privately while the block is open is refused: in other
        threads of this process, unless they draw on a budget themselves, in processes that are
        started in the block, and through Dask and Spark from this process. Processes that were
        there before, or that a fork server which was there before starts, are not seen.

        Args:
            note: What they are, for the book; public.

        Yields:
            list of str: Names of the entries that this process has made so far.

        Raises:
            BudgetError: A training would exceed the total, or is not private; before it releases
                anything. Also at the end of a block in which nothing was booked: what it trained
                was not private, or ran in a process that was there before.
        """
        return self._booking(note, str(self.path))

    def one_training(self, note: str = "training") -> AbstractContextManager[list[str]]:
        """:meth:`drawing` around one call that trains in this thread; others are left alone.

        Args:
            note: What it is, for the book; public.

        Yields:
            list of str: Names of the entries made so far.

        Raises:
            BudgetError: As for :meth:`drawing`.
        """
        return self._booking(note, None)

    @contextmanager
    def _booking(self, note: str, block: str | None) -> Iterator[list[str]]:
        booked: list[str] = []
        group = secrets.token_hex(8)

        def reserve(release: ReleaseRequest, *, write: bool = True) -> list[str]:
            if not release.private:
                raise BudgetError(
                    "A training without noise, or with noise from a fixed key, cannot be booked: "
                    "no budget covers it. Give a finite dp_epsilon."
                )
            names = self._reserve(release, note, None, group, write=write)
            if write:
                booked.append(names[-1])
            return names

        with authorized_by(reserve, block=block, check=partial(reserve, write=False)):
            yield booked
        # Not after an error: how much was released is not known. Forked processes book in the file.
        close = self._close if booked else self._commit
        if close("group", group) == 0:
            raise BudgetError(
                "Nothing was booked: there was no private training (tree_method='dp_hist') in this "
                "block. A model without privacy holds exact statistics of the rows and must not "
                "be published. Trainings in processes that were running before the block, such as "
                "workers of a cluster, are booked by `reserve` and `commit`."
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
        """Book releases that are about to be made. Call it before anything is released.

        Args:
            events: What will be released, in release order, as ``xgb_dp.accounting`` events.
            note: What it is, for the book; public.
            delta: For releases without a Gaussian bound: the delta at which they are charged.
            unit: Whom their noise was calibrated for, as ``xgb_dp.accounting.Unit``; by default
                whom the budget is for. The events say whether they hold for rows or for persons.
            part: The part of an :func:`xgb_dp.split` that they read; None for all rows.

        Returns:
            str: Name of the entry, for :meth:`commit`.

        Raises:
            BudgetError: They would exceed the total, or are for others than it; nothing was
                booked.
        """
        name = one_unit(events)
        whom = unit or Unit(name, self.unit.group if name == self.unit.name else 1)
        return self._reserve(ReleaseRequest(tuple(events), True, whom, part), note, delta, None)[-1]

    def commit(self, name: str) -> None:
        """Note that what was reserved was released, and ended well. Changes no total.

        Args:
            name: What :meth:`reserve` returned.

        Raises:
            BudgetError: There is no such entry, or the book cannot be written. The entry then stays
                reserved, and counts in full.
        """
        try:
            known = self._commit("id", name)
        except BudgetError as error:
            if not error.what:
                raise
            raise BudgetError(
                f"{error.what}. An entry that was reserved counts in full, so nothing that was "
                f"released is uncounted. {error.fix}"
            ) from None
        if not known:
            raise BudgetError(
                "The budget has no entry of that name. `print(budget)` lists the entries."
            )

    def missing(self, model: Any) -> list[str]:
        """What a model has released that this book does not contain. Spends nothing.

        Args:
            model: Booster, estimator or path of a saved model.

        Returns:
            list of str: Its trainings, selections and evaluations, in words. Empty if the book
            contains all of them.

        Raises:
            LedgerError: The model has no ledger, or it is damaged.
            PrivacyParameterError: There is no such file.
            BudgetError: The file of the budget is damaged.

        Examples:
            >>> budget = xgb_dp.Budget("budget.json", epsilon=2.0, delta=1e-5)
            >>> booked = budget.train(params, data, 5)
            >>> budget.missing(booked), budget.missing(model)
            ([], ['training 1'])
        """
        entries, record = self.entries, privacy_report(model).record
        missing = [old.name for old in record.releases if not is_booked(old, entries)]
        if not record.is_complete:  # nothing says who has grown the trees of a checkpoint
            missing.append(f"the trees of training {len(record.trainings)}, which has not ended")
        return missing

    def statement(self) -> str:
        """The guarantee of the budget, and the book, in prose."""
        return statement(self)

    def __str__(self) -> str:
        return self.statement()

    def __repr__(self) -> str:
        return f"Budget({str(self.path)!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"

    def _reserve(
        self,
        release: ReleaseRequest,
        note: str,
        delta: float | None,
        group: str | None,
        *,
        write: bool = True,
    ) -> list[str]:
        """Names of the entries of all earlier releases of a model, and of one that is new."""
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
                # What is on the other part of the same division costs these rows nothing; the rule
                # by which charges add up is that of all entries.
                part = one.part if divides(one.part, one.events, charged) else None
                spent, paid = total_charge(entries), total_charge(entries, part)
                room = self.filter.charge(spent, one.events, charge, charged, paid)
                if room is None:
                    raise refusal(self, spent, paid, charge, one.events)
                block = group if one is release else None
                line = make_line(text, state, one.events, room, one.unit, charged, one.part, block)
                lines.append(line)
                entries.append(read_entry(line))
                return entries[-1].id

            names.clear()
            for old, old_cost in zip(release.earlier, costs, strict=True):
                if old.entry is not None and is_booked(old, entries):
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
        """For how many rows (or persons) events are charged, and with what."""
        charged = self.budget_unit.charged(events, unit, any_group=self.any_group)
        return charged, _charge(tuple(events), self.delta, delta, charged)

    def _commit(self, key: str, value: str) -> int:
        """Mark the entries with such a field; how many there are."""

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
        """Mark such entries as spent; None, with a warning, if the book cannot be written.

        What was released must not be lost for that: the entries stay reserved, and count in full.
        """
        try:
            return self._commit(key, value)
        except BudgetError as error:
            text = (
                f"{error.what or error}. The release was booked before it was made, as 'reserved', "
                "which counts in full; only the note that it ended well is missing. Nothing has to "
                f"be booked again, and the result is complete. {error.fix}"
            )
            try:
                warn([text], stacklevel=4)
            except PrivacyWarning:  # warnings are errors here, and this one would lose the release
                print(text, file=sys.stderr)
            return None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "seen": budget_file.seen(self.path)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        budget_file.remember(state["path"], state.pop("seen"))
        vars(self).update(state)

    def _content(self) -> dict[str, Any]:
        return self._same(budget_file.read(self.path))

    def _same(self, content: dict[str, Any] | None) -> dict[str, Any]:
        """The content, if it is still that of this budget."""
        if content is None:
            raise budget_file.failed(
                f"The budget file {str(self.path)!r} is gone, and what was spent with it",
                "Restore it from a copy that holds every training.",
            )
        totals = ("epsilon", "delta", "selection_epsilon")
        same = all(content[name] == getattr(self, name) for name in totals)
        if not same or BudgetUnit.from_content(content) != self.budget_unit:
            raise budget_file.failed(
                f"The budget file {str(self.path)!r} was replaced by another one, so what was "
                "spent is not known",
                "Restore the file from a copy that holds every training.",
            )
        return content


def as_budget(budget: Budget | str | os.PathLike[str]) -> Budget:
    """A budget, or the one at a path."""
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
    """What the user has given of the totals; None for what was left out."""
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
    """Refuse to release where noise would not be secret, or be drawn by each of several workers."""
    if this_worker()[1] > 1:
        raise PrivacyRefusal(several)
    if fixed_noise.noise_key() is not None:
        raise PrivacyRefusal(
            f"Noise from a fixed key is refused in {what}: {secret} always secret. Call it outside "
            "of the block that fixes the key."
        )


def claim_and_draw(
    release: Callable[[], T],
    events: Sequence[Event],
    budget: Budget | str | os.PathLike[str] | None,
    note: str,
    *,
    delta: float | None = None,
    unit: Unit | None = None,
    part: SplitPart | None = None,
) -> tuple[T, str | None]:
    """Release once it is booked: a process that dies in between has paid and shown nothing."""
    if budget is None:
        [entry] = authorize(events, private=True, unit=unit, part=part)
        return release(), entry
    budget = as_budget(budget)
    name = budget.reserve(events, note, delta=delta, unit=unit, part=part)
    result = release()
    budget._close("id", name)
    return result, name


def record_release(
    budget: Budget, release: ReleaseRequest, note: str, delta: float | None
) -> list[str]:
    """Book a release as spent right away; the entries of what it rests on, and its own.

    The time at which the file changes last must not tell how long the release takes.
    """
    names = budget._reserve(release, note, delta, None)
    budget._close("id", names[-1])
    return names


def choose_unit(
    persons: bool,
    column: str | None,
    group: int | None,
    budget: Budget | str | os.PathLike[str] | None,
) -> Unit:
    """Whom a release from Python is for."""
    name = PERSON if persons else ROW
    if group is not None:
        return Unit(name, parse_int("group", group, 1, MOST), column)
    unit = Unit() if budget is None else as_budget(budget).unit
    return Unit(name, unit.group if unit.name == name else 1, column)


def statement(budget: Budget) -> str:
    """The guarantee of the budget, and the book, in prose."""
    lines = [
        f"Everything released through this budget is together ({budget.epsilon:g}, "
        f"{budget.delta:g})-differentially private for adding or removing "
        f"{budget.unit.neighbours()}, however the releases were chosen. "
        f"{_scope(budget)}Nothing released without it is covered.",
        *concerns(budget.epsilon, budget.delta, None, budget.unit),
        f"Left for trainings: epsilon about {rounded_down(budget.remaining())} at delta "
        f"{budget.delta:g}.",
    ]
    if budget.selection_epsilon:
        lines.append(f"Left for selections: epsilon {rounded_down(budget.remaining_selection())}.")
    parts, entries, capacity = " of the part for selections", budget.entries, budget.capacity
    for entry in entries:
        share = entry.charge.mu2 / capacity.mu2 if capacity.mu2 else 0.0
        taken = (
            f"epsilon {entry.charge.shift:.4g}{parts if budget.selection_epsilon else ''}"
            if entry.charge.shift
            else f"{share:.1%} of the budget (of its mu^2)"
        )
        on = "" if entry.part is None else f", on the part {entry.part.name!r} of a split"
        state = f"({entry.state}{on})"
        lines.append(f"{entry.time} {entry.note}: {taken} {state}{_others(budget, entry)}")
    if any(entry.part is not None for entry in entries):
        lines.append(
            "A row is in one part of a split, so only the part with the larger sum of releases "
            "counts."
        )
    return "\n".join(map(visible, lines))


def _row_limit(budget_unit: BudgetUnit) -> str:
    """What a budget for persons says of their rows; empty where it says nothing."""
    return "" if budget_unit.most_rows is None else f" with at most {budget_unit.most_rows} rows"


def _scope(budget: Budget) -> str:
    """Whom the total protects, where that is not one row."""
    most, protected = budget.budget_unit.most_rows, f"{scope(budget.unit)} "
    if most is None:
        return protected
    return (
        f"{protected}Releases for rows are charged for {budget.unit.group * most} rows, because no "
        f"person has more than {most}. That was stated and is not checked. "
    )


def _others(budget: Budget, entry: Entry) -> str:
    """That an entry was calibrated for others than the total is for."""
    if (entry.unit.name, entry.unit.group) == (budget.unit.name, budget.unit.group):
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
    """The error of releases that do not fit: `paid` is what their rows have paid."""
    room = budget.filter.room(spent)
    if any(isinstance(e, SelectionEvent) for e in events) and math.isfinite(charge.shift):
        what = (
            f"A selection needs {charge.shift:.4g} of the part for selections and delta "
            f"{charge.extra:g}. What is left of them is "
            f"{rounded_down(max(0.0, room.shift - paid.shift))} and "
            f"{max(0.0, room.extra - paid.extra):.3g}. The part is fixed when you make the "
            "budget (selection_epsilon=...)"
        )
    else:
        left = rounded_down(budget.filter.remaining(spent, budget.delta, paid))
        what = (
            f"The largest epsilon that still fits one training is about {left} at delta "
            f"{budget.delta:g}"
        )
    return BudgetError(
        f"This would exceed the budget of epsilon={budget.epsilon:g}, delta={budget.delta:g} for "
        f"{budget.unit.phrase} in "
        f"{str(budget.path)!r}. Nothing was released. {what}."
    )


def unknown_model(budget: Budget) -> BudgetError:
    """The error of a model that rests on releases that the book does not contain."""
    return BudgetError(
        "The model to be continued, or the look at its columns, has releases that the book "
        f"{str(budget.path)!r} does not contain, so its total would not cover the new model. "
        "Nothing was released. Continue a model of this budget, and look with it (`budget` of "
        "`discover`); or open it with Budget(..., charge_earlier=True), which charges the earlier "
        "releases too."
    )


def rounded_down(epsilon: float) -> str:
    """An epsilon in four digits, rounded down: a figure that is printed must fit."""
    if epsilon <= 0.0:
        return "0"
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(epsilon)))
    return f"{math.floor(epsilon * scale) / scale:g}"


def suggested_allocation(budget: Budget, split: bool) -> dict[str, dict[str, float]]:
    """Epsilon and delta of each step, which fit together in mu^2."""
    spent = budget.spent
    room = budget.filter.room(spent)
    left = max(0.0, room.mu2 - spent.mu2) if budget.remaining() else 0.0
    discovery, judged = _DISCOVERY * left, (_JUDGED_APART if split else _JUDGED) * left
    train = _SPENT * left - discovery - (0.0 if split else judged)
    # The thresholds of a look take a part of delta for themselves.
    parts = {"discover": (discovery, 0.1), "train": (train, 1.0), "evaluate": (judged, 1.0)}
    plan = {}
    for name, (mu2, share) in parts.items():
        delta, mu = share * budget.delta, math.sqrt(max(0.0, mu2)) * (1.0 - _MARGIN)
        epsilon = gaussian_epsilon(mu, delta) if mu else 0.0
        plan[name] = {"epsilon": float(rounded_down(epsilon)), "delta": delta}
    if budget.selection_epsilon:
        epsilon = float(rounded_down(budget.remaining_selection()))
        plan["select"] = {"epsilon": epsilon, "delta": budget.delta / 10.0}
    return plan
