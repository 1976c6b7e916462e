"""Counts from which the split candidates of columns without public ones follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..accounting import GaussianEvent, LaplaceEvent
from ..accounting.events import PlainEvent
from ..accounting.sensitivity import RowBound, candidate_cells
from ..errors import PrivacyRefusal
from ..parameters.parameter import PUBLIC, SPENDS, Parameter, Rule, Table
from ..parameters.parse import Choice, Whole
from . import column_sums
from .release import (
    EXACT_BITS,
    Asked,
    Noise,
    Part,
    Release,
    grid_sigma2,
    laplace_scale,
    laplace_shift,
    noisy_counts,
)

if TYPE_CHECKING:
    from ..request.settings import Settings


def _rounds(name: str, value: Any, s: Settings) -> int:
    """Rounds that release candidates, at most all."""
    return min(Whole(1, 1 << 20)(name, value), s.rounds)


def _default_rounds(s: Settings) -> int:
    """All of dp_approx, the first five of adaptive candidates, else the first."""
    if s["tree_method"] == "dp_approx":
        return s.rounds
    return min(5, s.rounds) if s["dp_candidates"] == "adaptive" else 1


def _weight(s: Settings) -> str:
    """Hessians where candidates are released again and again."""
    again = s["tree_method"] == "dp_approx" or s["dp_candidates"] == "adaptive"
    return "hessian" if again and s.trees_per_round == 1 else "count"


def _cells(s: Settings) -> int | None:
    """At least 256 where bins are cut at equal mass; a quantile tree has none."""
    if s["dp_candidates"] == "quantile_tree":
        return None
    bins = int(s["max_bin"])
    return max(bins, 256) if s["dp_candidates"] == "histogram" else bins


# fmt: off
_PARAMETERS = (
    Parameter("dp_candidates", "where private split candidates come from: a tree of noisy counts "
              "over all floats, or noisy histograms on dp_feature_bounds, cut at equal mass or "
              "refined round by round", Choice(("quantile_tree", "histogram", "adaptive")),
              "quantile_tree", SPENDS, "candidates", Table.PUBLISHED, plan="candidates.kind"),
    Parameter("dp_candidate_rounds", "in how many rounds, from the first one on, candidates are "
              "released", _rounds, _default_rounds, SPENDS, "candidates", Table.PUBLISHED,
              unit="rounds", values="int >= 1", shown="1; 'adaptive' 5; tree_method='dp_approx' "
              "all", plan="candidates.rounds"),
    Parameter("dp_candidate_weight", "what a row adds to the counts of candidates: 1, or its "
              "Hessian", Choice(("count", "hessian")), _weight, PUBLIC, "candidates",
              Table.PUBLISHED, shown="'count'; 'adaptive' and tree_method='dp_approx' 'hessian'"),
    Parameter("dp_candidate_noise", "the noise of the counts of candidates",
              Choice(("gaussian", "laplace")), "gaussian", SPENDS, "candidates", Table.PUBLISHED),
    Parameter("dp_candidate_cells", "the number of cells of the public grid under noisy histograms",
              Whole(2, 65536), _cells, PUBLIC, "candidates", Table.PUBLISHED, unit="cells",
              shown="'histogram' 256; 'adaptive' max_bin"),
    Parameter("dp_candidate_levels", "the number of levels of the tree of counts from which "
              "candidates are read", Whole(2, 17), 17, PUBLIC, "candidates", Table.DEFAULT,
              unit="levels", plan="candidates.levels"),
)
_RULES = (
    Rule("one Hessian of a row",
         lambda s: s["dp_candidate_weight"] == "hessian" and s.trees_per_round > 1,
         "`dp_candidate_weight`='hessian' is refused for several classes or quantiles, each "
         "of which has its own. Use 'count'.", PrivacyRefusal),
    Rule("quantile trees are Gaussian",
         lambda s: s["dp_candidate_noise"] == "laplace" and s["dp_candidates"] == "quantile_tree",
         "`dp_candidate_noise`='laplace' needs dp_candidates='histogram' or 'adaptive': the "
         "quantile tree releases a number of counts for which Gaussian noise is better."),
    Rule("dp_approx releases always",
         lambda s: s["tree_method"] == "dp_approx" and s["dp_candidate_rounds"] != s.rounds,
         "tree_method='dp_approx' releases candidates for every tree. With `dp_candidate_rounds` "
         "use tree_method='dp_hist'."),
    Rule("Hessians of the rows of a round",
         lambda s: (s["dp_candidate_weight"] == "hessian" and (s["subsample"] < 1.0
                    or s["dp_ensemble"] > 1) and s["dp_candidate_rounds"] != s.rounds),
         "`dp_candidate_weight`='hessian' with `subsample` or `dp_ensemble` "
         "needs candidates in every round (tree_method='dp_approx'): all rounds "
         "must release the same from their rows. Use 'count', which reads all "
         "rows.", PrivacyRefusal),
    Rule("adaptive edges are those of bins",
         lambda s: s["dp_candidates"] == "adaptive" and s["dp_candidate_cells"] > s["max_bin"],
         "`dp_candidate_cells` is at most max_bin with dp_candidates='adaptive', which moves the "
         "edges of its bins. Lower it, or raise max_bin."),
    Rule("cells need histograms",
         lambda s: s["dp_candidates"] == "quantile_tree" and "dp_candidate_cells" in s.given,
         "`dp_candidate_cells` has an effect with noisy histograms only; the quantile tree has "
         "`dp_candidate_levels`."),
)
# fmt: on


def _all_cells(s: Settings) -> int:
    """All sums that one release may have, of all features together."""
    grids = [len(f.grid) for f in s.features if f.kind == "private"]
    levels = s["dp_candidate_levels"] if s["dp_candidates"] == "quantile_tree" else 0
    return candidate_cells(grids[: s.private_features], levels, s["max_bin"])


@dataclass(frozen=True)
class Candidates(Release):
    """Noisy counts of the cells of each column, or of its quantile tree.

    Proof: docs/proofs/candidates.md
    """

    name = "candidates"
    share = "candidates"
    words = (("candidates", "the split candidates (noisy counts)"),)
    no_share = (
        " Private candidates need a share too: a preset that leaves none for them takes public "
        "bounds (low, high, 'even') or public cuts of every numeric column."
    )
    parameters = _PARAMETERS
    rules = _RULES

    row_bound: RowBound  # bound of one row
    features: int  # features with private candidates, F > 0
    # cells of one feature that a row is in: released levels of each quantile tree, or 1 for
    # histograms
    levels: int = 17
    # all sums that one release may have, any of which the rows of a person may be in
    cells: int = 0
    rounds: int = 1  # rounds that release candidates, from the first one on
    # whether these are all rounds, and each weighs the rows that it reads
    of_all_rounds: bool = False
    hessian: bool = False  # whether a row weighs its bounded Hessian, instead of one
    laplace: bool = False  # whether the noise is Laplace instead of Gaussian

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """Where a column has no public candidates."""
        return s.private_features > 0

    @classmethod
    def default_share(cls, s: Settings, given: Mapping[str, float]) -> float:
        """A tenth of what the sums of columns leave over."""
        by_column = given.get(column_sums.ColumnSums.share, column_sums.SHARE)
        return 0.1 * (1.0 - by_column) if column_sums.ColumnSums.wanted(s) else 0.1

    @classmethod
    def of(cls, asked: Asked) -> Candidates:
        """Counts of all columns without public candidates."""
        s = asked.settings
        hessian, rounds = s["dp_candidate_weight"] == "hessian", s["dp_candidate_rounds"]
        tree = s["dp_candidates"] == "quantile_tree"
        return cls(
            s.row_bound.of_person,
            s.row_bound,
            features=s.private_features,
            levels=s["dp_candidate_levels"] if tree else 1,
            cells=_all_cells(s),
            rounds=rounds,
            of_all_rounds=hessian and rounds == s.rounds,
            hessian=hessian,
            laplace=s["dp_candidate_noise"] == "laplace",
        )

    @classmethod
    def section(cls, s: Settings, noise: Noise) -> dict[str, Any]:
        """Where splits may be in each column, and the counts by which private ones are found."""
        counts = {
            "hessian": s["dp_candidate_weight"] == "hessian",
            "laplace": s["dp_candidate_noise"] == "laplace",
            "shift": noise.shift,
            "sigma2": noise.sigma2,
            "scale": noise.scale,
        }
        section: dict[str, Any] = {
            "features": [f.to_plan() for f in s.features],
            "candidates": counts,
        }
        if s.starts_from_columns:  # until a release says which columns matter most
            section["offered"] = list(range(s["dp_features_per_tree"]))
        return section

    @property
    def draws(self) -> int:
        """One in each round that releases candidates."""
        return 1 if self.of_all_rounds else self.rounds

    @property
    def of_rounds(self) -> bool:
        """Where all rounds release Hessians."""
        return self.of_all_rounds

    @property
    def gaussian(self) -> bool:
        """Unless it is Laplace noise."""
        return not self.laplace

    @property
    def touched(self) -> int:
        """Counts that one row is in."""
        return self.features * self.levels

    def _hessian_sens2(self, grid_bits: int) -> int:
        return self.touched * self.row_bound.most_hessian(grid_bits) ** 2

    def variance(self, part: Part, grid_bits: int) -> float:
        """Of sums of Hessians."""
        if self.laplace or not self.hessian:
            return 0.0
        return self._hessian_sens2(grid_bits) / part.mu2

    def exact(self) -> Noise:
        """The shares of a person's rows are not rounded to 0."""
        return Noise(shift=EXACT_BITS if self.persons and not self.hessian else 0)

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Noise on each count or sum of Hessians."""
        if self.laplace:
            return self._laplace(part.laplace, grid_bits)
        coordinates = self.cells if self.persons else self.touched
        if not self.hessian:
            units, draws = self.touched, self.draws
            return noisy_counts(self.name, units, coordinates, part, draws, persons=self.persons)
        sens2 = self._hessian_sens2(grid_bits)
        sigma2 = grid_sigma2(sens2 / part.mu2)
        event = GaussianEvent(self.name, sens2, sigma2, coordinates, self.draws)
        return Noise(sigma2=sigma2), event

    def _laplace(self, epsilon: float, grid_bits: int) -> tuple[Noise, PlainEvent]:
        if self.hessian:
            shift, unit = 0, self.row_bound.most_hessian(grid_bits)
        else:
            shift = laplace_shift(self.touched / epsilon, persons=self.persons)
            unit = 1 << shift
        scale = laplace_scale(self.touched * unit, epsilon)
        return (
            Noise(scale=scale, shift=shift),
            LaplaceEvent(self.name, self.touched * unit, scale, self.draws),
        )
