"""The entries of a budget in its file: how they are read, added, marked and checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..accounting import Event, Unit
from ..accounting.filter import Capacity, Charge, Filter, charge_of, plain_charge
from ..errors import BudgetError, PrivacyWarning
from ..record import policy
from ..record.caution import warn
from . import file as budget_file
from . import words
from .entry import (
    RESERVED,
    SPENT,
    Entry,
    divides,
    is_booked,
    new_line,
    read_entry,
    taken,
)
from .gate import Release
from .whose import Whose


# Trainings with the same settings have the same events, and a charge follows from these alone.
@lru_cache(maxsize=256)
def _charge(events: tuple[Event, ...], delta: float, own_delta: float | None, group: int) -> Charge:
    return charge_of(events, delta, own_delta, group)


@lru_cache(maxsize=256)
def _plain(events: tuple[Event, ...], delta: float, group: int) -> Charge:
    return plain_charge(events, delta, group)


class Book:
    """A file of entries with a total; :class:`Budget` is its user's side."""

    path: Path
    epsilon: float  # the totals
    delta: float
    selection_epsilon: float  # set aside for releases without a Gaussian bound
    whose: Whose
    any_group: bool  # whether releases for another group are charged for this one
    charge_earlier: bool  # whether earlier releases of a continued model are charged if new

    @property
    def unit(self) -> Unit:
        """Whom the total is for."""
        return self.whose.unit

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
        return taken(self.entries)

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
            if group < self.whose.charged(entry.events, entry.unit, any_group=True):
                raise BudgetError(
                    f"The entry {entry.id} is charged for fewer than {self.unit.phrase}. Restore "
                    "the file from a copy that holds every training."
                )
            plain = bool(booked.shift or (booked.extra and not booked.mu2))
            cost = (
                _plain(entry.events, booked.extra, group)
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

    def _reserve(
        self,
        release: Release,
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
            rules.check_book(self)
            before = [event for old in release.earlier for event in old.events]
            rules.check_release([*before, *release.events], release.unit, cost[0])
        names: list[str] = []

        def book(content: dict[str, Any] | None) -> dict[str, Any]:
            content = self._same(content)
            entries = [read_entry(line) for line in content["entries"]]
            self.whose.check_column(release.unit, [entry.unit for entry in entries])
            lines: list[dict[str, Any]] = []

            def add(one: Release, price: tuple[int, Charge], text: str, state: str) -> str:
                charged, charge = price
                # What is on the other part of the same division costs these rows nothing; the rule
                # by which charges add up is that of all entries.
                part = one.part if divides(one.part, one.events, charged) else None
                spent, paid = taken(entries), taken(entries, part)
                room = self.filter.charge(spent, one.events, charge, charged, paid)
                if room is None:
                    raise words.refusal(self, spent, paid, charge, one.events)
                block = group if one is release else None
                line = new_line(text, state, one.events, room, one.unit, charged, one.part, block)
                lines.append(line)
                entries.append(read_entry(line))
                return entries[-1].id

            names.clear()
            for old, old_cost in zip(release.earlier, costs, strict=True):
                if old.entry is not None and is_booked(old, entries):
                    names.append(old.entry)
                elif not self.charge_earlier:
                    raise words.unknown_model(self)
                else:
                    whole = Release(old.events, True, release.unit)
                    names.append(add(whole, old_cost, f"{note}: earlier {old.name}", SPENT))
            names.append(add(release, cost, note, RESERVED))
            return {**content, "entries": [*content["entries"], *lines]} if write else content

        budget_file.update(self.path, book)
        return names

    def _cost(self, events: Sequence[Event], unit: Unit, delta: float | None) -> tuple[int, Charge]:
        """For how many rows (or persons) events are charged, and with what."""
        charged = self.whose.charged(events, unit, any_group=self.any_group)
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
                f"be booked again, and the result is complete. {error.mend}"
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
        if not same or Whose.of_content(content) != self.whose:
            raise budget_file.failed(
                f"The budget file {str(self.path)!r} was replaced by another one, so what was "
                "spent is not known",
                "Restore the file from a copy that holds every training.",
            )
        return content
