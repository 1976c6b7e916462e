"""Inequalities of the proof pages as queries to a solver, one module for each page.

A function with the mark :func:`lemma` is a lemma, and its name is that which the page uses. It
gives one query, or several where the lemma has a size that the solver cannot leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import z3

__all__ = ["LEMMAS", "Query", "lemma", "within"]

LEMMAS: dict[tuple[str, str], Callable[[], Iterator[Query]]] = {}


@dataclass(frozen=True)
class Query:
    """A claim that follows from assumptions, and one a unit stronger that does not.

    Attributes:
        given: Assumptions.
        claim: What follows from them, for all values of the variables.
        too_much: The same with a bound that is one unit less, or by the share that it says.
        at: Equations by which the solver looks for a case against `too_much`: the worst case.
        relaxed: Assumptions instead of `given` for `too_much`, one of which is a unit weaker.
    """

    given: list[z3.BoolRef]
    claim: z3.BoolRef
    too_much: z3.BoolRef
    at: list[z3.BoolRef] = field(default_factory=list)
    relaxed: list[z3.BoolRef] | None = None


def lemma(queries: Callable[[], Iterator[Query]]) -> Callable[[], Iterator[Query]]:
    """Mark a function as a lemma of the page of its module."""
    page = queries.__module__.rsplit(".", 1)[-1]
    LEMMAS[page, queries.__name__] = queries
    return queries


def within(bound: object, *values: z3.ArithRef) -> list[z3.BoolRef]:
    """Absolute values of at most `bound`."""
    return [c for v in values for c in (v <= bound, -v <= bound)]
