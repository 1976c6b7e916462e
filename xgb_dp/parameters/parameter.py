"""The configuration that parameters and mechanisms depend on, rows of the table, and rules.

The privacy effect of a parameter is one of

- ``public``: the value is taken as known to everybody; it must not be chosen by looking at the
  data;
- ``spends budget``: it decides how much privacy is spent, or on what;
- ``free post-processing``: it acts on already released values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from ..accounting.sensitivity import RowBound
from ..accounting.units import Unit
from ..errors import PrivacyError, PrivacyParameterError, spelt
from .parse import Reader


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
    def label_bounds(self) -> tuple[float, float]:
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
    def needs_label_mean(self) -> bool:
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


PUBLIC = "public"
SPENDS = "spends budget"
FREE = "free post-processing"


class Table(Enum):
    """Tables of docs/parameters.md in their order, by what brought the parameters."""

    USUAL = "Parameters of most trainings"
    DEFAULT = "The default, in detail"
    LOSSES = "Losses and margins"
    PUBLIC_ROWS = "Public rows and models"
    MASKED_SUMS = "Masked sums"
    PUBLISHED = "Published systems"  # one table for each
    STOCK = "Passed on to XGBoost"


@dataclass(frozen=True)
class Parameter:
    """One parameter."""

    name: str  # name in the user's dictionary
    meaning: str  # what it means
    read: Reader  # reads and checks a value; its text says which values there are
    default: Any  # what holds when it is unset: a value, or a function of the settings read so far
    effect: str  # privacy effect: ``public``, ``spends budget`` or ``free post-processing``
    page: str  # where its proof or explanation is: a page of ``docs/``, or XGBoost
    table: Table = Table.USUAL  # where the page of parameters lists it
    unit: str = ""  # its unit
    values: str = ""  # the values it takes in words, where the reader's own text does not do
    shown: str = ""  # the default in words, where it is a function
    aliases: tuple[str, ...] = ()  # other accepted names (XGBoost's own aliases)
    # where the plan has it (``plugin_cpp/plan/plan.h``), if it travels there as it is
    plan: str = ""
    xgboost: bool = False  # whether XGBoost reads it as well
    recorded: bool = True  # whether the public record of a model has it among its hyperparameters

    def value(self, settings: Config) -> Any:
        """What holds in these settings."""
        if self.name in settings.given:
            return self.read(spelt(self.name), settings.given[self.name], settings)
        return self.default(settings) if callable(self.default) else self.default

    @property
    def domain(self) -> str:
        """The values it takes, in words."""
        return self.values or str(self.read)

    @property
    def unset(self) -> str:
        """What holds when it is unset, in words."""
        return self.shown or repr(self.default)


@dataclass(frozen=True)
class Rule:
    """A demand on parameters."""

    name: str  # short name
    broken: Callable[[Config], bool]  # whether settings break it
    # what does not go together, why, and how to mend it. ``{name}`` stands for the value of a
    # parameter, and the same with backticks inside the braces for its name
    message: str
    # :class:`PrivacyRefusal` where the combination would not be private, or is not proved to be
    error: type[PrivacyError] = PrivacyParameterError

    def check(self, settings: Config) -> None:
        """Raise its error if the settings break it."""
        if self.broken(settings):
            raise self.error(self.message.format_map(_Fields(settings)))


class _Fields(dict[str, Any]):
    """What the message of a rule may show."""

    def __init__(self, settings: Config) -> None:
        super().__init__()
        self._settings = settings

    def __missing__(self, key: str) -> Any:
        name = key.strip("`")
        return self._settings[name] if name == key else f"`{spelt(name)}`"
