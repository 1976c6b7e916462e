"""What the library enforces in a training, and the events that its draws are therefore.

The library is told a plan: how it bounds each row or person, and how much noise it draws. It
records its draws, and no sensitivity. A ledger keeps the figures of the plan on which sensitivities
rest. Events are made here, of these figures and of the draws: when a training is claimed, when it
is complete, and when its ledger is read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from ..errors import LedgerError
from . import sensitivity
from .event_reader import event_from_json
from .events import Event, ExponentialEvent, PlainEvent
from .nested import RoundsEvent
from .sensitivity import Labels, RowBound, leaf_coordinates, release_of
from .units import PERSON

NOISY_SUMS = ("histogram", "partial")
SPLITS = ("exponential", "random", "partial", "histogram")
SCORES = ("l1", "newton", "gain")
LEAF_NOISES = ("gaussian", "laplace", "output")


@dataclass(frozen=True)
class Candidates:
    """The counts of which candidates are made."""

    features: int  # features with private candidates
    levels: int  # cells of one feature that a row is in
    shift: int  # counts are multiplied by 2**shift
    hessian: bool  # whether a row weighs its bounded Hessian instead of one
    cells: int  # all sums of one release


@dataclass(frozen=True)
class Enforced:
    """The public figures of a plan from which the sensitivities of its releases follow."""

    unit: str  # "row" or "person"
    bound: RowBound  # bound of one row, or of the rows of a person
    grid_bits: int  # grid of the gradients
    trees: int  # trees of a round on gradients of their own, K
    depth: int  # largest depth of a tree
    split: str  # how splits are chosen
    columns: int  # columns of the table
    features_per_tree: int  # features that a tree is offered
    score: str  # utility of a split
    score_clip: float  # its clip of the leaf weight
    score_range: int  # range of the utility, with which selections are drawn
    joint: bool  # whether one selection serves the trees of all classes
    leaf_noise: str  # "gaussian" or "laplace" for noise on sums, "output" for noise on values
    spread: bool  # whether persons count more where their rows are in several leaves
    cells: int  # sums of one feature of one node in a noisy histogram
    candidates: Candidates | None  # None where all candidates are public
    label_range: Labels | None  # None where the unit of gradients follows from the declared range
    labels: Labels | None  # None where the intercept and the number of rows are public
    by_column: int | None  # shift of the sums by class and column; None without
    corrects: bool  # whether the mean of a regression is corrected after the last tree

    def __post_init__(self) -> None:
        words = (self.split, SPLITS), (self.score, SCORES), (self.leaf_noise, LEAF_NOISES)
        if any(word not in known for word, known in words):
            raise LedgerError("A training was bounded in a way that no plan knows.")
        if self.bound.of_person != (self.unit == PERSON):
            raise LedgerError("The bound of a training is of another unit than its guarantee.")
        needed = sensitivity.range_int(
            self.score,
            self.bound,
            self.grid_bits,
            self.score_clip,
            joint=self.joint,
            depth=self.depth,
        )
        if not needed <= self.score_range < sensitivity.MAX_RANGE:
            raise LedgerError(
                f"Splits were chosen as if a utility had the range {self.score_range}; it has "
                f"{needed}."
            )

    @classmethod
    def of_plan(
        cls,
        plan: Mapping[str, Any],
        requests: Sequence[Mapping[str, Any]] = (),
    ) -> Enforced:
        """What a plan (``plugin_cpp/plan/plan.h``) and the requests before its trees lead to."""
        asked = {release_of(request): request for request in requests}
        labels, cells = asked.get("intercept", asked.get("rows")), asked.get("range")
        person = plan["unit"] == PERSON
        grids = [len(f["grid"]) for f in plan["features"] if f["kind"] == "private"]
        if "offered" in plan:  # the other columns have one public candidate
            grids = grids[: len(plan["offered"])]
        counts = plan["candidates"]
        tree = counts["kind"] == "quantile_tree"
        return cls(
            unit=plan["unit"],
            bound=bound_of_plan(plan),
            grid_bits=plan["grid_bits"],
            trees=plan["num_class"],
            depth=plan["depth"],
            split=plan["split"],
            columns=plan["n_features"],
            features_per_tree=plan["features_per_tree"],
            score=plan["score"],
            score_clip=float(plan["score_clip"]),
            score_range=plan["selection"]["range"],
            joint=plan["class_trees"] == "joint",
            leaf_noise=plan["leaf"]["noise"],
            spread=plan["leaf"]["spread"],
            cells=_cells_of_feature(plan) if person and plan["split"] in NOISY_SUMS else 1,
            candidates=Candidates(
                features=len(grids),
                levels=counts["levels"] if tree else 1,
                shift=counts["shift"],
                hessian=counts["hessian"],
                cells=sensitivity.candidate_cells(
                    grids, counts["levels"] if tree else 0, counts["max_bin"]
                ),
            )
            if grids
            else None,
            label_range=None if cells is None else Labels.of(cells),
            labels=None if labels is None else Labels.of(labels),
            by_column=asked["columns"]["shift"] if "columns" in asked else None,
            corrects=plan["correction"]["on"],
        )

    @property
    def releases(self) -> set[str]:
        """Names of everything that a training of the plan releases at least once."""
        asked = {
            "range": self.label_range,
            "rows" if self.labels and self.labels.kind == "rows" else "intercept": self.labels,
            "columns": self.by_column is not None,
            "candidates": self.candidates,
            "correction": self.corrects,
            "splits": self.split == "exponential",
            "histograms" if self.split in NOISY_SUMS else "leaves": True,
        }
        return {name for name, wanted in asked.items() if wanted}

    def to_json(self) -> dict[str, Any]:
        """The figures as a ledger writes them."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Enforced:
        """The inverse of :meth:`to_json`."""
        try:
            inner = {"bound": RowBound, "candidates": Candidates}
            inner |= {"label_range": Labels, "labels": Labels}
            read = {
                name: _read(inner[name], value) if name in inner and value is not None else value
                for name, value in data.items()
            }
            return _read(cls, read)
        except LedgerError:
            raise
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise LedgerError(
                "The privacy ledger does not say what was enforced in a training."
            ) from error

    def event(self, draw: Mapping[str, Any]) -> Event:
        """The event of a draw that the library has recorded, or would record."""
        if "events" in draw:
            inner = [self.event(one).to_json() for one in draw["events"]]
            return event_from_json({**draw, "events": inner})
        return event_from_json(self._completed(dict(draw)))

    def check(self, event: Event) -> None:
        """Refuse an event whose sensitivity is not the one that follows from these figures."""
        for one in event.events if isinstance(event, RoundsEvent) else (event,):
            draw = one.to_json()
            if isinstance(one, ExponentialEvent):
                draw["range"] = self.score_range
            try:
                same = isinstance(one, PlainEvent) and self.event(draw) == one
            except (ValueError, TypeError, ArithmeticError):
                same = False  # no plan has such figures
            if not same:
                raise LedgerError(
                    f"The privacy ledger counts another sensitivity of {one.label!r} than what "
                    "was enforced leads to."
                )

    def _completed(self, draw: dict[str, Any]) -> dict[str, Any]:
        """A draw with what one unit can change of it."""
        name, mechanism = draw["release"], draw["mechanism"]
        if mechanism == "exponential":
            if name != "splits" or draw.pop("range") != self.score_range:
                raise LedgerError("Splits were chosen with another range than the plan says.")
            return draw
        measures = {
            "range": lambda: _meant(self.label_range).measure(person=self._of_persons),
            "intercept": lambda: _meant(self.labels).measure(person=self._of_persons),
            "rows": lambda: _meant(self.labels).measure(person=self._of_persons),
            "columns": lambda: (sensitivity.columns_sens2(_meant(self.by_column)), self.columns),
            "candidates": self._candidates,
            "correction": lambda: (sensitivity.correction_sens2(), 2),
            "histograms": self._histograms,
            "leaves": self._leaves,
        }
        if name not in measures:
            raise LedgerError(f"The library has recorded an unknown release, {name!r}.")
        if mechanism == "laplace":
            return draw | {"sensitivity": self._l1(name)}
        sens2, coordinates = measures[name]()
        return draw | {"sensitivity2": sens2, "coordinates": coordinates}

    @property
    def _of_persons(self) -> bool:
        return self.unit == PERSON

    def _candidates(self) -> tuple[int, int]:
        counts = _meant(self.candidates)
        touched = counts.features * counts.levels
        if counts.hessian:
            sens2 = touched * self.bound.most_hessian(self.grid_bits) ** 2
        else:
            sens2 = sensitivity.candidates_sens2(counts.features, counts.levels, counts.shift)
        return sens2, counts.cells if self._of_persons else touched

    def _histograms(self) -> tuple[int, int]:
        cells = self.features_per_tree
        if self._of_persons:
            cells *= self.cells << (self.depth - 1)
        sens2 = self.bound.round_sens2(self.grid_bits, self.trees)
        return self.features_per_tree * sens2, cells * leaf_coordinates(self.trees)

    def _leaves(self) -> tuple[int, int]:
        # A row is in one leaf of a tree, and in the sum of all rows where that is released beside
        # them. The rows of a person may be in all leaves there are.
        cells = 1 << self.depth if self._of_persons else 1
        touched = cells + self.spread
        measure = self.bound.spread_sens2 if self.spread else self.bound.round_sens2
        return (
            measure(self.grid_bits, self.trees),
            touched * leaf_coordinates(self.trees),
        )

    def _l1(self, name: str) -> int:
        """L1 sensitivity of what is released with Laplace noise."""
        if name == "candidates":
            counts = _meant(self.candidates)
            hessian = self.bound.most_hessian(self.grid_bits)
            unit = hessian if counts.hessian else 1 << counts.shift
            return counts.features * counts.levels * unit
        if name == "leaves" and self.leaf_noise != "gaussian":
            return sensitivity.leaf_sens(self.leaf_noise, self.bound, self.grid_bits, self.trees)
        raise LedgerError(f"The library has recorded Laplace noise on {name!r}.")


_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "RowBound": (RowBound,),
    "Candidates | None": (Candidates, type(None)),
    "Labels | None": (Labels, type(None)),
    "int | None": (int, type(None)),
}
_MOST = {"grid_bits": 20, "depth": 10, "levels": 17, "shift": 26, "by_column": 26}
_MOST_OF_ANY = 1 << 40
Kind = TypeVar("Kind")


def _meant(figure: Kind | None) -> Kind:
    if figure is None:
        raise LedgerError("Something was released that no request, and no plan, asked for.")
    return figure


def _read(kind: type[Kind], data: Mapping[str, Any]) -> Kind:
    """An object with exactly these fields, each of its type, and no number that is out of range."""
    for item in fields(kind):  # type: ignore[arg-type]
        value = data[item.name]
        if type(value) not in _TYPES[str(item.type)]:
            raise TypeError(item.name)
        if type(value) is int and not 0 <= value <= _MOST.get(item.name, _MOST_OF_ANY):
            raise ValueError(item.name)
    return kind(**data)


def bound_of_plan(plan: Mapping[str, Any]) -> RowBound:
    """The bound that a plan enforces on rows, or on persons."""
    bound = {f.name: plan["row_bound"][f.name] for f in fields(RowBound)[:-1]}
    for name, value in bound.items():  # real numbers travel as texts
        bound[name] = float(value) if isinstance(value, str) and name != "mode" else value
    return RowBound(**bound, of_person=plan["unit"] == PERSON)


def range_of_plan(plan: Mapping[str, Any]) -> int:
    """The range of the utility of splits that a plan needs."""
    return sensitivity.range_int(
        plan["score"],
        bound_of_plan(plan),
        plan["grid_bits"],
        float(plan["score_clip"]),
        joint=plan["class_trees"] == "joint",
        depth=plan["depth"],
    )


def _cells_of_feature(plan: Mapping[str, Any]) -> int:
    """Sums that the noisy histogram of one feature of one node has at most."""
    if plan["split"] == "partial":
        return 2
    sizes = [
        (f["kind"], f["size"] if f["kind"] == "categorical" else len(f.get("cuts", f.get("grid"))))
        for f in plan["features"]
    ]
    counts = plan["candidates"]
    tree = counts["kind"] == "quantile_tree"
    return sensitivity.feature_cells(sizes, counts["max_bin"], tree=tree)
