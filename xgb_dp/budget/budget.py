"""A privacy budget for a data set, over all trainings and selections on its rows.

Every training books what it is going to release before it releases anything, in a file that several
processes may share; what would exceed the total is refused. The total holds however the trainings
were chosen: the composition is a privacy filter (``docs/proofs/filter.md``,
``docs/howto/budgets.md``).
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..accounting import Event, Unit, one_unit
from ..data.parts import Part
from ..errors import BudgetError, PrivacyParameterError
from ..parameters.parse import parse_flag, parse_number
from ..record.caution import concerns, warn
from ..record.report import privacy_report
from ..request.arguments import takes
from ..request.names import flatten
from ..request.params import DEFAULT_ROUNDS
from . import file as budget_file
from . import words
from .book import Book
from .division import division
from .entry import is_booked
from .gate import Release, guarded
from .whose import Whose

_LONGEST_PATH = 4096  # of Linux, in bytes


class Budget(Book):
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
            have the same ``dp_group``.
        most_rows: No person has more rows than this, for ``unit="person"``: a fact that you state
            and nobody checks. Trainings for rows are then charged for so many rows; without it they
            are refused.
        any_group: Whether trainings with another ``dp_group`` are accepted, and charged with what
            they cost for the group of the budget. Not stored in the file.
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
        old = Whose() if content is None else Whose.of_content(content)
        whose = old.changed(unit, group, most_rows)
        if content is None:
            if given["epsilon"] is None or given["delta"] is None:
                raise PrivacyParameterError(
                    f"There is no budget file {str(self.path)!r}. Give the total of the data set "
                    "to make one: Budget(path, epsilon=..., delta=...)."
                )
            new = {**given, "selection_epsilon": given["selection_epsilon"] or 0.0}
            new |= {**whose.to_content(), "entries": []}
            content = budget_file.update(self.path, lambda old: old or new)
            warn(concerns(content["epsilon"], content["delta"], None, whose.unit), stacklevel=3)
        for name, value in given.items():
            if value is not None and value != content[name]:
                raise PrivacyParameterError(
                    f"`{name}` is {value:g}, but the budget file {str(self.path)!r} was made with "
                    f"{content[name]:g}. A total cannot be changed afterwards: leave it out."
                )
        self.whose = Whose.of_content(content)
        if whose != self.whose:
            raise PrivacyParameterError(
                f"The budget file {str(self.path)!r} was made for {self.whose.unit.phrase}"
                f"{words.most_rows(self.whose)}. Whom a total is for cannot be changed afterwards: "
                "leave `unit`, `group` and `most_rows` out."
            )
        self.epsilon = content["epsilon"]
        self.delta = content["delta"]
        self.selection_epsilon = content["selection_epsilon"]

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
        return division(self, parse_flag("split", split))

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

        def book(release: Release, *, write: bool = True) -> list[str]:
            if not release.private:
                raise BudgetError(
                    "A training without noise, or with noise from a fixed key, cannot be booked: "
                    "no budget covers it. Give a finite dp_epsilon."
                )
            names = self._reserve(release, note, None, group, write=write)
            if write:
                booked.append(names[-1])
            return names

        with guarded(book, block=block, look=partial(book, write=False)):
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
        part: Part | None = None,
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
        return self._reserve(Release(tuple(events), True, whom, part), note, delta, None)[-1]

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
                f"released is uncounted. {error.mend}"
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
        return words.statement(self)

    def __str__(self) -> str:
        return self.statement()

    def __repr__(self) -> str:
        return f"Budget({str(self.path)!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


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
