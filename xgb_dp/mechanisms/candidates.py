"""Noisy counts that determine the split candidates of columns without public candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..accounting.events import GaussianEvent, LaplaceEvent, PlainEvent
from ..accounting.sensitivity import RowBound, candidate_cells, candidates_sens2
from ..errors import PrivacyRefusal
from ..parameters.config import Config
from ..parameters.parameter import PUBLIC, SPENDS, Parameter, Rule, Table
from ..parameters.parse import Integer, OneOf
from . import column_sums
from .mechanism import (
    EXACT_BITS,
    DrawBudget,
    Mechanism,
    Noise,
    count_noise,
    grid_sigma2,
    laplace_scale,
    laplace_shift,
)


def _rounds(name: str, value: Any, s: Config) -> int:
    """Number of rounds that release candidates, at most the number of rounds."""
    return min(Integer(1, 1 << 20)(name, value), s.rounds)


def _default_rounds(s: Config) -> int:
    """Default: all rounds with dp_approx, five with adaptive candidates, otherwise one."""
    if s["tree_method"] == "dp_approx":
        return s.rounds
    return min(5, s.rounds) if s["dp_candidates"] == "adaptive" else 1


def _weight(s: Config) -> str:
    """Default: Hessians if candidates are released repeatedly and a row has one Hessian."""
    again = s["tree_method"] == "dp_approx" or s["dp_candidates"] == "adaptive"
    return "hessian" if again and s.trees_per_round == 1 else "count"


def _cells(s: Config) -> int | None:
    """max(max_bin, 256) for histograms, max_bin for adaptive bins, None for a quantile tree."""
    if s["dp_candidates"] == "quantile_tree":
        return None
    bins = int(s["max_bin"])
    return max(bins, 256) if s["dp_candidates"] == "histogram" else bins


# fmt: off
_PARAMETERS = (
    Parameter("dp_candidates", "Source of private split candidates: a tree of noisy counts over "
                               "all floats ('quantile_tree'), a noisy histogram on "
                               "dp_feature_bounds, cut into bins of equal mass ('histogram'), or "
                               "one refined in each round ('adaptive').",
              OneOf(("quantile_tree", "histogram", "adaptive")),
              "quantile_tree", SPENDS, "candidates", Table.PUBLISHED, plan="candidates.kind"),
    Parameter("dp_candidate_rounds", "Number of first rounds that release candidates.",
              _rounds, _default_rounds, SPENDS, "candidates", Table.PUBLISHED,
              unit="rounds", values="int >= 1", shown="1; 5 with dp_candidates='adaptive'; all "
              "rounds with tree_method='dp_approx'", plan="candidates.rounds"),
    Parameter("dp_candidate_weight", "What a row adds to candidate counts: 1 ('count') or its "
              "Hessian ('hessian').", OneOf(("count", "hessian")), _weight, PUBLIC,
              "candidates", Table.PUBLISHED, shown="'count'; 'hessian' with "
              "dp_candidates='adaptive' or tree_method='dp_approx', unless there are several "
              "outputs"),
    Parameter("dp_candidate_noise", "Noise of the counts of candidates.",
              OneOf(("gaussian", "laplace")), "gaussian", SPENDS, "candidates", Table.PUBLISHED),
    Parameter("dp_candidate_cells", "Number of cells of the public grid of a noisy histogram.",
              Integer(2, 65536), _cells, PUBLIC, "candidates", Table.PUBLISHED, unit="cells",
              shown="max_bin, and at least 256 with dp_candidates='histogram'"),
    Parameter("dp_candidate_levels", "Number of levels of the quantile tree of noisy counts.",
              Integer(2, 17), 17, PUBLIC, "candidates", Table.DEFAULT,
              unit="levels", plan="candidates.levels"),
)
_RULES = (
    Rule("Hessian candidates need one output",
         lambda s: s["dp_candidate_weight"] == "hessian" and s.trees_per_round > 1,
         "`dp_candidate_weight`='hessian' is refused for several classes or quantiles, because "
         "each has its own Hessians. Use 'count'.", PrivacyRefusal),
    Rule("quantile trees need Gaussian noise",
         lambda s: s["dp_candidate_noise"] == "laplace" and s["dp_candidates"] == "quantile_tree",
         "`dp_candidate_noise`='laplace' needs dp_candidates='histogram' or 'adaptive': the "
         "quantile tree supports Gaussian noise only, which is better for its many counts."),
    Rule("dp_approx releases candidates in every round",
         lambda s: s["tree_method"] == "dp_approx" and s["dp_candidate_rounds"] != s.rounds,
         "`dp_candidate_rounds` cannot be combined with tree_method='dp_approx', which releases "
         "candidates in every round. Use tree_method='dp_hist'."),
    Rule("Hessian candidates in every sampled round",
         lambda s: (s["dp_candidate_weight"] == "hessian" and (s["subsample"] < 1.0
                    or s["dp_ensemble"] > 1) and s["dp_candidate_rounds"] != s.rounds),
         "`dp_candidate_weight`='hessian' with `subsample` or `dp_ensemble` needs candidates in "
         "every round (tree_method='dp_approx'), because all rounds must make the same releases "
         "from their rows. Use 'count', which reads all rows.", PrivacyRefusal),
    Rule("adaptive candidates have at most max_bin cells",
         lambda s: s["dp_candidates"] == "adaptive" and s["dp_candidate_cells"] > s["max_bin"],
         "`dp_candidate_cells` must be at most max_bin with dp_candidates='adaptive', which moves "
         "the edges of the bins. Lower it, or raise max_bin."),
    Rule("dp_candidate_cells needs histograms",
         lambda s: s["dp_candidates"] == "quantile_tree" and "dp_candidate_cells" in s.given,
         "`dp_candidate_cells` requires dp_candidates='histogram' or 'adaptive'. Remove it, or set "
         "`dp_candidate_levels` for the quantile tree."),
)
# fmt: on


@dataclass(frozen=True)
class Candidates(Mechanism):
    """Noisy counts of the cells of each column, or of its quantile tree.

    Proof: docs/proofs/candidates.md
    """

    name = "candidates"
    section = ("candidates",)
    integers = ("sigma2", "scale", "shift")
    share = "candidates"
    words = (("candidates", "the split candidates (noisy counts)"),)
    no_share = (
        " Private candidates need a share as well. If a preset leaves no share for them, declare "
        "public bounds (low, high, 'even') or public cuts for every numeric column."
    )
    parameters = _PARAMETERS
    rules = _RULES

    features: int  # features with private candidates, F > 0
    # cells of one feature that contain a row: released levels of each quantile tree, or 1 for
    # histograms
    levels: int = 17
    # all sums of one release; the rows of a person may touch every sum
    cells: int = 0
    rounds: int = 1  # rounds that release candidates, starting with the first
    # whether every round releases candidates, with Hessians of the rows that it reads
    of_all_rounds: bool = False
    hessian: bool = False  # whether a row adds its bounded Hessian instead of 1
    laplace: bool = False  # whether the noise is Laplace instead of Gaussian
    shift: int = 0  # counts are multiplied by 2**shift

    @classmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether some column has no public candidates."""
        return s.private_features > 0

    @classmethod
    def default_share(cls, s: Config, given: Mapping[str, float]) -> float:
        """A tenth of the budget that remains after the column sums."""
        enabled = column_sums.ColumnSums.is_enabled(s)
        by_column = given.get(column_sums.ColumnSums.share, column_sums.SHARE)
        return 0.1 * (1.0 - by_column) if enabled else 0.1

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """The candidates of each column, and the counts that determine private candidates."""
        section: dict[str, Any] = {
            "features": [f.to_plan() for f in s.features],
            "candidates": {
                "hessian": s["dp_candidate_weight"] == "hessian",
                "laplace": s["dp_candidate_noise"] == "laplace",
            },
        }
        if s.starts_from_columns:  # placeholder until a release determines the best columns
            section["offered"] = list(range(s["dp_features_per_tree"]))
        return section

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> Candidates | None:
        """The counts of all columns without public candidates."""
        grids = [len(f["grid"]) for f in plan["features"] if f["kind"] == "private"]
        if "offered" in plan:  # the other columns have one public candidate
            grids = grids[: len(plan["offered"])]
        if not grids:
            return None
        counts = plan["candidates"]
        levels = counts["levels"] if counts["kind"] == "quantile_tree" else 0
        hessian, rounds = counts["hessian"], counts["rounds"]
        return cls(
            bound,
            features=len(grids),
            levels=levels or 1,
            cells=candidate_cells(grids, levels, counts["max_bin"]),
            rounds=rounds,
            of_all_rounds=hessian and rounds == plan["rounds"],
            hessian=hessian,
            laplace=counts["laplace"],
            shift=counts.get("shift", 0),
        )

    @property
    def draws(self) -> int:
        """One draw in each round that releases candidates."""
        return 1 if self.of_all_rounds else self.rounds

    @property
    def of_rounds(self) -> bool:
        """Whether all rounds release Hessians."""
        return self.of_all_rounds

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return not self.laplace

    @property
    def touched(self) -> int:
        """Number of counts that one row touches."""
        return self.features * self.levels

    def _sens2(self, grid_bits: int, shift: int) -> int:
        if self.hessian:
            return self.touched * self.bound.most_hessian(grid_bits) ** 2
        return candidates_sens2(self.features, self.levels, shift)

    def _sens1(self, grid_bits: int, shift: int) -> int:
        unit = self.bound.most_hessian(grid_bits) if self.hessian else 1 << shift
        return self.touched * unit

    def variance(self, budget: DrawBudget, grid_bits: int) -> float:
        """Variance of sums of Hessians."""
        if self.laplace or not self.hessian:
            return 0.0
        return self._sens2(grid_bits, 0) / budget.mu2

    def exact(self) -> Noise:
        """Without noise, only a shift, so that the shares of a person's rows do not round to 0."""
        return Noise(shift=EXACT_BITS if self.persons and not self.hessian else 0)

    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """Noise on each count or sum of Hessians."""
        if self.laplace:
            epsilon = budget.laplace
            shift = 0
            if not self.hessian:
                shift = laplace_shift(self.touched / epsilon, persons=self.persons)
            return Noise(scale=laplace_scale(self._sens1(grid_bits, shift), epsilon), shift=shift)
        if not self.hessian:
            return count_noise(self.touched, budget.mu2, persons=self.persons)
        return Noise(sigma2=grid_sigma2(self._sens2(grid_bits, 0) / budget.mu2))

    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """The event of the counts of all columns."""
        if self.laplace:
            sens = self._sens1(grid_bits, noise.shift)
            return LaplaceEvent(self.name, sens, noise.scale, count)
        coordinates = self.cells if self.persons else self.touched
        sens2 = self._sens2(grid_bits, noise.shift)
        return GaussianEvent(self.name, sens2, noise.sigma2, coordinates, count)
