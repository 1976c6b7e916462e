"""The exact accountant: the tightest proved bound for all releases of a training.

Proofs: docs/proofs/accounting.md, docs/proofs/choice.md, docs/proofs/selection.md, and
docs/proofs/sampling.md for rounds that read a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from .accountant import MOST_ROWS, Accountant, Smallest
from .choice import ChoiceCurve, WithChoices
from .composition import WORK, FlatCurve
from .curve import Curve
from .events import ChoiceEvent, Event, PlainEvent, SelectionEvent
from .pure import pure_curve
from .selection import SelectionCurve, WithSelections
from .simplify import Neighbours, Terms, parts_of_run, simplify


class ExactAccountant(Accountant):
    """(epsilon, delta) of the adaptive composition of a list of events, from its exact curve.

    Args:
        events: In release order.
        work: Limit of elementary operations per curve; about 1e9 take a second. Every value gives a
            valid bound, and larger values give tighter bounds.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.ExactAccountant([event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.66
    """

    name = "exact"

    def __init__(self, events: Iterable[Event], work: float = WORK) -> None:
        super().__init__(events)
        self._work = work

    def _composed(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        whole = self._at_once(events, neighbours)
        steps, each = 1, neighbours.rows
        if not all(isinstance(e, (PlainEvent, ChoiceEvent)) or not e.count for e in events):
            each = 1 if neighbours.rows <= MOST_ROWS else MOST_ROWS
            steps = -(-neighbours.rows // each)
        step = self._composed(events, Neighbours(each, each)) if steps > 1 else None
        return Smallest(whole, pure_curve(events, neighbours.rows), step, steps)

    def _at_once(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        """The curve for all rows in one step."""
        rest = [e for e in events if not isinstance(e, SelectionEvent)]
        selections: list[Curve] = []
        for event in events:
            if isinstance(event, SelectionEvent) and event.count:
                parts = [
                    ExactAccountant(part)._curve_for(neighbours)
                    for part in parts_of_run(event, neighbours.assignments)
                ]
                selections += [SelectionCurve(event.repetitions, parts)] * event.count
        if not selections:
            return self._of_rest(rest, neighbours)
        alone = not any(event.count for event in rest)
        return WithSelections(selections, None if alone else self._of_rest(rest, neighbours))

    def _of_rest(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        """The curve of all events except private selections."""
        happened = [event for event in events if event.count]
        if not any(isinstance(event, ChoiceEvent) for event in happened):
            return compose(simplify(events, neighbours.assignments), neighbours, self._work)
        if len(happened) == 1 and happened[0].count == 1:
            [choice] = simplify(happened, neighbours.assignments).choices
            return ChoiceCurve(choice, neighbours.rows)
        # Sampling every row independently costs at least as much.
        replaced = Neighbours(neighbours.rows, neighbours.rows)
        of_terms = partial(compose, neighbours=replaced)
        return WithChoices(simplify(happened, replaced.assignments), replaced.rows, of_terms)


def compose(terms: Terms, neighbours: Neighbours, work: float = WORK) -> Curve:
    """The exact curve of Gaussians, selections, Laplace noise and terms of other modules."""
    for other in terms.others:
        if not other.is_empty:
            return other.compose(terms, neighbours, work)
    return FlatCurve(terms.flat, neighbours.rows, work)
