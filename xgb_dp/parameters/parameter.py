"""The configuration interface, rows of the parameter table, and rules between parameters.

The privacy effect of a parameter is one of

- ``public``: the value is public and must not be chosen from the data;
- ``spends budget``: it determines how much budget is spent, or on which release;
- ``free post-processing``: it acts on released values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from ..accounting.sensitivity import RowBound
from ..accounting.units import Unit
from ..errors import PrivacyError, PrivacyParameterError, alias
from .parse import Reader


class Config(Protocol):
    """Checked parameters by name, ``config["eta"]``, and public values derived from them.

    :class:`xgb_dp.request.settings.Settings` implements it.
    """

    def __getitem__(self, name: str) -> Any:
        """The value of a parameter."""

    @property
    def given(self) -> Mapping[str, Any]:
        """Values set by the user or the preset, by name."""

    @property
    def schema(self) -> Any:
        """Public schema of the training data."""

    @property
    def rounds(self) -> int:
        """Boosting rounds."""

    @property
    def continues(self) -> bool:
        """Whether the training continues an earlier model."""

    @property
    def unit(self) -> str:
        """Privacy unit, "row" or "person"."""

    @property
    def delta(self) -> float:
        """Target failure probability."""

    @property
    def privacy_unit(self) -> Unit:
        """The privacy unit and group size of the target."""

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
        """The objective: labels, intercept and loss."""

    @property
    def loss(self) -> Any:
        """The loss of the library; None if XGBoost computes the gradients."""

    @property
    def kind(self) -> str:
        """Kind of the labels: "binary", "regression" or "multiclass"."""

    @property
    def squared(self) -> bool:
        """Whether the loss is the squared error, with the same Hessian for every row."""

    @property
    def classes(self) -> int:
        """Number of classes; 0 for regression."""

    @property
    def labels(self) -> int:
        """Number of labels of a row."""

    @property
    def trees_per_round(self) -> int:
        """Number of trees per round: one for each class, quantile or target."""

    @property
    def target(self) -> tuple[float, float] | None:
        """Range of the label; None for classes or several labels."""

    @property
    def targets(self) -> tuple[tuple[float, float], ...]:
        """Ranges of all labels; empty for classes."""

    @property
    def label_bounds(self) -> tuple[float, float]:
        """Range to which labels are clipped before they are summed."""

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
        """Kind of the label sums that determine the intercept."""

    @property
    def needs_label_mean(self) -> bool:
        """Whether the loss needs label means from label sums."""

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
        """Whether column sums determine the first trees."""

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
        """Whether a person with rows in several leaves may contribute more."""

    @property
    def noisy_sums(self) -> bool:
        """Whether the same noisy histograms determine splits and leaves."""

    @property
    def sampling_num(self) -> int:
        """A round reads each row with probability ``sampling_num / 2**32``."""

    @property
    def workers(self) -> int:
        """Number of workers that train together; 1 on one machine."""


PUBLIC = "public"
SPENDS = "spends budget"
FREE = "free post-processing"


class Table(Enum):
    """Tables of docs/parameters.md, in order, by the origin of the parameters."""

    USUAL = "General parameters"
    DEFAULT = "Details of the default preset"
    LOSSES = "Losses and margins"
    PUBLIC_ROWS = "Public data and models"
    MASKED_SUMS = "Secure aggregation"
    PUBLISHED = "Published systems"  # one table for each
    STOCK = "Parameters passed to XGBoost"


@dataclass(frozen=True)
class Parameter:
    """A row of the parameter table."""

    name: str  # name in the user's dictionary
    meaning: str  # description for the parameter table
    read: Reader  # reads and checks a value; ``str(read)`` describes the valid values
    default: Any  # default: a value, or a function of the settings read so far
    effect: str  # privacy effect: ``public``, ``spends budget`` or ``free post-processing``
    page: str  # proof or explanation: a page of ``docs/``, or XGBoost
    table: Table = Table.USUAL  # table of docs/parameters.md
    unit: str = ""  # unit of the value
    values: str = ""  # valid values in words, if the description of the reader does not fit
    shown: str = ""  # default in words, if it is a function
    aliases: tuple[str, ...] = ()  # other accepted names (XGBoost's aliases)
    # path in the plan (``plugin_cpp/plan/plan.h``), if the plan contains the value unchanged
    plan: str = ""
    xgboost: bool = False  # whether XGBoost reads it as well
    recorded: bool = True  # whether the public record lists it among the hyperparameters

    def value(self, settings: Config) -> Any:
        """The checked value in these settings, or the default."""
        if self.name in settings.given:
            return self.read(alias(self.name), settings.given[self.name], settings)
        return self.default(settings) if callable(self.default) else self.default

    @property
    def domain(self) -> str:
        """Description of the valid values."""
        return self.values or str(self.read)

    @property
    def unset(self) -> str:
        """Description of the default."""
        return self.shown or repr(self.default)


@dataclass(frozen=True)
class Rule:
    """A constraint between parameters."""

    name: str  # short name
    broken: Callable[[Config], bool]  # whether settings violate the rule
    # conflict, reason and fix. ``{name}`` is replaced by the value of a parameter, and ``{`name`}``
    # by its spelling in the called interface
    message: str
    # :class:`PrivacyRefusal` if the combination is not private or not proved to be private
    error: type[PrivacyError] = PrivacyParameterError

    def check(self, settings: Config) -> None:
        """Raise the error if the settings violate the rule."""
        if self.broken(settings):
            raise self.error(self.message.format_map(_Fields(settings)))


class _Fields(dict[str, Any]):
    """Values and names of parameters for the message of a rule."""

    def __init__(self, settings: Config) -> None:
        super().__init__()
        self._settings = settings

    def __missing__(self, key: str) -> Any:
        name = key.strip("`")
        return self._settings[name] if name == key else f"`{alias(name)}`"
