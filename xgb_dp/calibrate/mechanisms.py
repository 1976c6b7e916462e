"""Says what a training releases, and the noise of each release as the integers of a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..accounting import ChoiceEvent, Event, sensitivity
from ..accounting.sensitivity import RowBound
from ..errors import BudgetError
from ..request.shares import COUNT_SHARE, DEFAULT_SHARES

if TYPE_CHECKING:
    from ..request.settings import Settings

__all__ = ["SAMPLE_BITS", "FamilyNoise", "MechanismSpec", "NoisePlan"]

SAMPLE_BITS = 32


@dataclass(frozen=True)
class MechanismSpec:
    """What a training will release, without noise levels. Everything here is public.

    Attributes:
        rounds: Boosting rounds T >= 0.
        depth: Levels of selection of each tree, >= 0.
        row_bound: Bound of one row.
        n_class: Classes with a tree of their own, K >= 1.
        parallel_trees: Trees of each class in one round, on the same gradients.
        split: How splits are chosen: "exponential", "random" (reads no data), "histogram" and
            "partial" (from noisy sums, which give the leaves too), or "additive" (a tree of every
            feature alone; the leaves of a round are one release with the bound of one tree).
        tree_features: Features of one tree, of which noisy sums hold one cell each for a row.
        feature_cells: Sums that a noisy histogram of one feature of one node has at most; the rows
            of a person may be in all of them.
        spread: Whether persons count more where their rows are in several leaves; then the sums of
            all rows are released beside the leaves.
        leaf_noise: "gaussian" or "laplace" sums, or "output", the leaf value with Laplace noise.
        ensemble: Rounds of an ensemble, which read disjoint parts of the rows; 1 for none.
        ensemble_halving: Whether each of them takes half of the rows that are left.
        candidate_features: Features with private candidates, F >= 0.
        candidate_levels: Cells of one feature that a row is in: released levels of each quantile
            tree, L >= 1, or 1 for histograms.
        candidate_cells: All sums that one release of candidates may have, any of which the rows of
            a person may be in.
        candidate_rounds: Rounds that release candidates, from the first one on.
        candidate_hessian: Whether a row weighs its bounded Hessian in them, instead of one.
        candidate_laplace: Whether their noise is Laplace instead of Gaussian.
        split_levels: Levels that one selection fills.
        class_trees: "joint" where one selection serves the trees of all classes, or "per_class".
        local_rows: Rows that each report their leaf sums with noise of their own; 0 for noise on
            sums. The target epsilon is then that of all reports of one row, for any two rows.
        intercept: "binary", "regression", "targets", "multiclass", "cells", or None if it is
            public. "rows" where it is public, but the number of rows is released.
        n_public: Whether the number of rows is public (then the intercept needs one sum less).
        presence: Whether the share of its cells that each row has is released with the intercept.
        columns: Columns whose cells are summed by class before the first tree; 0 for none.
        shares: Fractions of mu^2 for "candidates", "base_score", "columns", "correction", "splits"
            and "leaves", >= 0. What releases nothing gives its share to the others in proportion.
        grid_bits: Grid of the gradients, 4 to 20; reduced where the noise would not fit.
        sampling_num: A round reads each row with probability sampling_num / 2**32; 2**32 for all.
        correction: Whether the mean residual of a regression is released after the last tree.
        intercepts: How often the sums of labels are released, of labels cut elsewhere each time.
        exposures: Whether the sum of exposures is released with them.

    Examples:
        >>> from xgb_dp.accounting.sensitivity import RowBound
        >>> from xgb_dp.calibrate import MechanismSpec
        >>> bound = RowBound("prediction", gradient_bound=0.5, hessian_weight=0.25)
        >>> spec = MechanismSpec(rounds=10, depth=3, row_bound=bound)
        >>> spec.selections
        3
    """

    rounds: int
    depth: int
    row_bound: RowBound
    n_class: int = 1
    candidate_features: int = 0
    candidate_levels: int = 17
    intercept: str | None = None
    n_public: bool = False
    shares: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_SHARES), hash=False)
    grid_bits: int = 18
    sampling_num: int = 1 << SAMPLE_BITS
    parallel_trees: int = 1
    split: str = "exponential"
    tree_features: int = 1
    feature_cells: int = 1
    spread: bool = False
    leaf_noise: str = "gaussian"
    ensemble: int = 1
    ensemble_halving: bool = False
    candidate_cells: int = 0
    candidate_rounds: int = 1
    candidate_hessian: bool = False
    candidate_laplace: bool = False
    local_rows: int = 0
    split_levels: int = 1
    correction: bool = False
    class_trees: str = "per_class"
    presence: bool = False
    columns: int = 0
    intercepts: int = 1
    exposures: bool = False

    @classmethod
    def from_settings(
        cls, s: Settings, *, counts: bool = False, presence: bool = False
    ) -> MechanismSpec:
        """What the checked settings of a training release.

        Args:
            s: Checked settings.
            counts: Whether the number of rows is released where no intercept is.
            presence: Whether the cells that are present are released with them.
        """
        bound = s.row_bound
        shares = dict(s["dp_budget_shares"])
        intercept = s.intercept_kind if s.releases_labels else None
        if intercept is None and counts:
            intercept, shares["base_score"] = "rows", COUNT_SHARE
        return cls(
            rounds=s.rounds,
            depth=s["max_depth"],
            row_bound=bound,
            grid_bits=sensitivity.largest_grid_bits(
                s["dp_score"],
                bound,
                s["dp_score_clip"],
                joint=s["dp_class_trees"] == "joint",
                depth=s["max_depth"],
            ),
            n_class=s.trees_per_round,
            candidate_features=s.private_features,
            candidate_levels=(
                s["dp_candidate_levels"] if s["dp_candidates"] == "quantile_tree" else 1
            ),
            candidate_cells=s.candidate_cells,
            candidate_rounds=s["dp_candidate_rounds"],
            candidate_hessian=s["dp_candidate_weight"] == "hessian",
            candidate_laplace=s["dp_candidate_noise"] == "laplace",
            leaf_noise=s["dp_leaf_noise"],
            ensemble=s["dp_ensemble"],
            ensemble_halving=s["dp_ensemble_halving"],
            split_levels=s["dp_split_levels"],
            class_trees=s["dp_class_trees"],
            local_rows=s["dp_n_public"] if s["dp_local"] else 0,
            intercept=intercept,
            n_public=s["dp_n_public"] is not None,
            shares=shares,
            sampling_num=s.sampling_num,
            parallel_trees=s["num_parallel_tree"],
            split=s["dp_split"],
            tree_features=s["dp_features_per_tree"],
            feature_cells=s.feature_cells,
            spread=s.spread_leaves,
            correction=s["dp_mean_correction"],
            presence=presence,
            columns=s.schema.width if s.starts_from_columns else 0,
            intercepts=2 if s.measured else 1,
            exposures=s.exposures is not None,
        )

    @property
    def selections(self) -> int:
        """Selections of one round that a row takes part in, on its way down every tree."""
        per_tree = -(-self.depth // self.split_levels) if self.split == "exponential" else 0
        return self.parallel_trees * per_tree * (1 if self.class_trees == "joint" else self.n_class)

    @property
    def of_persons(self) -> bool:
        """Whether neighbours differ by all rows of a person, instead of by one row."""
        return self.row_bound.of_person

    @property
    def noisy_sums(self) -> bool:
        """Whether splits and leaves are read from the same noisy sums."""
        return self.split in ("histogram", "partial")

    @property
    def touched_cells(self) -> int:
        """Sums of one release on a tree, or on all of an additive round, that a unit can touch.

        A row is in one cell of each feature, and in the sum of all rows of an additive round. The
        rows of a person may be in all cells there are.
        """
        features = self.tree_features if self.noisy_sums or self.split == "additive" else 1
        cells = 1
        if self.row_bound.of_person:
            cells = self.feature_cells << (self.depth - 1) if self.noisy_sums else 1 << self.depth
        return features * cells + (1 if self.split == "additive" or self.spread else 0)

    def sums_sens2(self, grid_bits: int) -> int:
        """Squared L2 sensitivity of one release of leaves, or of noisy histograms.

        Args:
            grid_bits: Grid of the gradients.
        """
        if self.spread:
            return self.row_bound.spread_sens2(grid_bits, self.n_class)
        cells = self.tree_features if self.noisy_sums else 1
        return cells * self.row_bound.round_sens2(grid_bits, self.n_class)

    @property
    def local_factor(self) -> int:
        """The factor by which sensitivity^2 / sigma^2 of one report exceeds that of the sum of all.

        The reports of two rows differ by twice the norm of one, and a report has one part in n of
        the noise.
        """
        return 4 * self.local_rows if self.local_rows else 1

    @property
    def charged_rounds(self) -> int:
        """Number of rounds that a row takes part in, one of each ensemble."""
        return -(-self.rounds // self.ensemble)

    @property
    def gaussian(self) -> bool:
        """Whether any noise is Gaussian, which no pure epsilon bounds."""
        return (
            self.intercept is not None
            or self.columns > 0
            or self.correction
            or (self.candidate_features > 0 and not self.candidate_laplace)
            or (self.rounds > 0 and self.leaf_noise == "gaussian")
        )

    def released_shares(self) -> dict[str, float]:
        """Shares of what is released, which sum to 1.

        Raises:
            BudgetError: A share is unknown, negative, or 0 for something that is released.
        """
        released = {
            "candidates": self.candidate_features > 0,
            "base_score": self.intercept is not None,
            "columns": self.columns > 0,
            "correction": self.rounds > 0 and self.correction,
            "splits": self.rounds > 0 and self.selections > 0,
            "histograms": self.rounds > 0 and self.noisy_sums,
            "leaves": self.rounds > 0 and not self.noisy_sums,
        }
        if not set(self.shares) <= set(released):
            raise BudgetError(
                "`dp_budget_shares` names a release that does not exist. Its names are "
                f"{', '.join(released)}."
            )
        shares = {
            # Noisy histograms stand in for splits and leaves.
            name: float(self.shares.get("leaves" if name == "histograms" else name, 0.0))
            for name, is_on in released.items()
            if is_on
        }
        for name, share in shares.items():
            if not (math.isfinite(share) and share > 0.0):
                raise BudgetError(
                    f"`dp_budget_shares` gives nothing to `{name}`, which this training releases. "
                    "Give it a share above 0."
                )
        total = math.fsum(shares.values())
        return {name: share / total for name, share in shares.items()}


_EXACT_BITS = 20  # of the grid of labels without noise


@dataclass(frozen=True)
class NoisePlan:
    """Noise of every mechanism, as the integers that the samplers take.

    Attributes:
        grid_bits: Gradients are integers in units of C / 2**grid_bits.
        epsilon: Certified epsilon of the whole, at most the target; infinite without noise.
        delta: Target failure probability.
        eps_num: Range eps0 of one selection in units of 2**-40 nats.
        leaf_sigma2: Gaussian noise of G and of H, in grid units squared.
        leaf_scale: Scale of the Laplace noise of leaves.
        histogram_sigma2: The same for each cell of noisy histograms.
        candidates_shift: Counts are multiplied by 2**shift. A person with more rows than that
            counts nothing.
        candidates_sigma2: Gaussian noise of the counts, in 2**-shift rows squared; with Hessian
            weights in grid units squared.
        candidates_scale: Scale of their Laplace noise.
        intercept_shift: Label sums are multiplied by 2**shift.
        intercept_sigma2: Noise of the label sums, in 2**-shift rows squared.
        columns_shift: Sums by class and column are multiplied by 2**shift.
        columns_sigma2: Their noise, in 2**-shift rows squared.
        correction_sigma2: Noise of the residual sums, in their units squared.
        events: What the ledger will hold when the training is complete.

    A release that does not happen has noise 0.

    Examples:
        >>> from xgb_dp.accounting.sensitivity import RowBound
        >>> from xgb_dp.calibrate import MechanismSpec, calibrate
        >>> bound = RowBound("prediction", gradient_bound=0.5, hessian_weight=0.25)
        >>> spec = MechanismSpec(rounds=10, depth=3, row_bound=bound)
        >>> plan = calibrate(spec, epsilon=1.0, delta=1e-6)
        >>> [event.release for event in plan.events]
        ['splits', 'leaves']
    """

    grid_bits: int
    epsilon: float = math.inf
    delta: float = 0.0
    eps_num: int = 0
    leaf_sigma2: int = 0
    leaf_scale: int = 0
    histogram_sigma2: int = 0
    candidates_shift: int = 0
    candidates_sigma2: int = 0
    candidates_scale: int = 0
    intercept_shift: int = 0
    intercept_sigma2: int = 0
    columns_shift: int = 0
    columns_sigma2: int = 0
    correction_sigma2: int = 0
    events: tuple[Event, ...] = ()

    @classmethod
    def without_noise(cls, spec: MechanismSpec, epsilon: float, delta: float) -> NoisePlan:
        """The plan of a training that draws nothing: no noise and no events.

        Args:
            spec: What is released.
            epsilon: 0 where nothing is released, infinite where all of it is exact.
            delta: Target failure probability.
        """
        # Labels have a grid also where no noise asks for one: they are not rounded to its ends. Nor
        # are the shares of a person's rows in the counts of candidates rounded to 0.
        shares = spec.of_persons and not spec.candidate_hessian
        return cls(
            spec.grid_bits,
            epsilon,
            delta,
            candidates_shift=_EXACT_BITS if shares else 0,
            intercept_shift=_EXACT_BITS,
            columns_shift=_EXACT_BITS,
        )


@dataclass(frozen=True)
class FamilyNoise:
    """Noise of several plans, of which one is taken after their common first release.

    Attributes:
        plans: Noise of each, the first release among it.
        event: What the ledger will be charged with, whichever plan is taken.
        epsilon: Certified epsilon of the choice.
    """

    plans: tuple[NoisePlan, ...]
    event: ChoiceEvent
    epsilon: float

    @property
    def events(self) -> tuple[Event, ...]:
        """What the ledger will be charged with."""
        return (self.event,)
