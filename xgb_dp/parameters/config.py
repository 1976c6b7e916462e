"""What a parameter or a mechanism may depend on: the public configuration of one training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..accounting.sensitivity import RowBound
from ..accounting.units import Unit


class Config(Protocol):
    """Checked parameters by name, ``config["eta"]``, and public facts that follow from them.

    :class:`xgb_dp.request.settings.Settings` implements it.
    """

    def __getitem__(self, name: str) -> Any:
        """The value of a parameter."""

    @property
    def given(self) -> Mapping[str, Any]:
        """Values that the user and the preset have set, by name."""

    @property
    def schema(self) -> Any:
        """Public schema of the training data."""

    @property
    def rounds(self) -> int:
        """Boosting rounds."""

    @property
    def continues(self) -> bool:
        """Whether trees are added to an earlier model."""

    @property
    def unit(self) -> str:
        """Unit of privacy, "row" or "person"."""

    @property
    def delta(self) -> float:
        """Target failure probability."""

    @property
    def privacy_unit(self) -> Unit:
        """The unit of privacy and the group size of the target."""

    @property
    def unit_epsilon(self) -> float:
        """Epsilon of one row or person: the target divided by the group size."""

    @property
    def noise_free(self) -> bool:
        """Whether the training draws no noise."""

    @property
    def may_draw_gaussian(self) -> bool:
        """Whether the accountant has a bound for Gaussian noise."""

    @property
    def objective(self) -> Any:
        """The objective: its labels, its intercept and its loss."""

    @property
    def loss(self) -> Any:
        """The loss of the library; None where XGBoost computes the gradients."""

    @property
    def kind(self) -> str:
        """Kind of the labels: "binary", "regression" or "multiclass"."""

    @property
    def squared(self) -> bool:
        """Whether the loss is the squared error, where every row has the same Hessian."""

    @property
    def classes(self) -> int:
        """Number of classes; 0 for regression."""

    @property
    def labels(self) -> int:
        """Number of labels of a row."""

    @property
    def trees_per_round(self) -> int:
        """Trees of one round: one for each class, quantile or target."""

    @property
    def target(self) -> tuple[float, float] | None:
        """Range of the label; None for classes and several labels."""

    @property
    def targets(self) -> tuple[tuple[float, float], ...]:
        """Ranges of all labels; empty for classes."""

    @property
    def window(self) -> tuple[float, float]:
        """Range in which labels are summed."""

    @property
    def half_width(self) -> float:
        """Unit of labels."""

    @property
    def scale(self) -> float:
        """Unit of gradients and leaf weights."""

    @property
    def alpha(self) -> float:
        """L1 penalty in the unit of gradients."""

    @property
    def prior_max(self) -> float:
        """Largest prior variance of a leaf weight."""

    @property
    def intercept(self) -> str:
        """Source of the intercept: "public", "released", "model" or "base_margin"."""

    @property
    def intercept_kind(self) -> str:
        """Kind of the label sums from which the intercept follows."""

    @property
    def measured(self) -> bool:
        """Whether the loss takes means of the labels from label sums."""

    @property
    def exposures(self) -> tuple[float, float] | None:
        """Range of the exposures in the label sums."""

    @property
    def features(self) -> tuple[Any, ...]:
        """Split candidates of every column."""

    @property
    def private_features(self) -> int:
        """Number of columns with private candidates."""

    @property
    def starts_from_columns(self) -> bool:
        """Whether the first trees follow from column sums."""

    @property
    def counts_weights(self) -> bool:
        """Whether the unit of weights is released."""

    @property
    def max_weight(self) -> float:
        """Largest weight of a row in the unit of weights."""

    @property
    def row_bound(self) -> RowBound:
        """Bound of one row or person."""

    @property
    def rows_count_alike(self) -> bool:
        """Whether every row has the same Hessian."""

    @property
    def spread_leaves(self) -> bool:
        """Whether persons count more whose rows are in several leaves."""

    @property
    def noisy_sums(self) -> bool:
        """Whether splits and leaves are read from the same noisy histograms."""

    @property
    def sampling_num(self) -> int:
        """A round reads each row with probability ``sampling_num / 2**32``."""

    @property
    def workers(self) -> int:
        """Number of workers that train together; 1 on one machine."""
