"""Scikit-learn estimators for private training.

``DPXGBClassifier`` and ``DPXGBRegressor`` extend ``xgboost.XGBClassifier`` and ``XGBRegressor``;
their ``fit`` runs ``xgboost.train`` with ``tree_method="dp_hist"``. They also accept labels of any
declared type and string columns as categories, and provide a privacy report. Nothing is inferred
from the rows: classes, bounds and categories are arguments (``docs/howto/estimators.md``). A model
file contains the class names, the schema of the table and the name of the privacy id column.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from xgboost import XGBClassifier, XGBModel, XGBRegressor

from .. import policy
from ..budget.budget import Budget, as_budget
from ..data.arrays import collect_table, is_table
from ..data.cells import read_data
from ..data.frames import (
    encode_labels,
    has_column,
    label_array,
    parse_classes,
    prepare_table,
    without_column,
)
from ..data.ids import Persons, SplitPart, encode_persons
from ..data.matrices import (
    SplitTable,
    check_shape,
    checked,
    find_part,
    id_column,
    private_matrix,
    read_part_persons,
    split_matrix,
)
from ..data.row_checks import as_text, check_columns, check_names
from ..discovery.result import Discovery
from ..domain.coding import Schema
from ..domain.columns import column_names, read_column
from ..domain.domain import (
    ATTRIBUTE,
    Domain,
    from_mapping,
    read_domain,
    stored_classes,
)
from ..engine.model_json import check_carried
from ..engine.saved_model import CLASSES, clip_to_bounds, read_objective
from ..errors import LedgerError, PrivacyParameterError, spelling
from ..evaluation.row_split import row_arguments
from ..record.content import attach, check_margins
from ..record.ledger import ATTRIBUTE as LEDGER
from ..record.ledger import parse_ledger, read_ledger
from ..record.privacy_report import PrivacyReport, privacy_report
from ..request.names import read_one, refuse_unknown
from ..request.objectives import OBJECTIVES
from ..selection.best_run import select
from ..training.call_stack import refuse_searches, warn_of_exact_fits
from ..training.input_checks import check_eval_set, check_sample, refuse_margins


def store(booster: Any, domain: Domain | None, classes: np.ndarray | None) -> None:
    """Store the declared classes and schema in a model; both are public."""
    stored: dict[str, str] = {}
    if classes is not None:
        stored[CLASSES] = json.dumps(classes.tolist(), allow_nan=False)
    if domain is not None:
        named = None if classes is None else tuple(map(str, classes))
        stored[ATTRIBUTE] = replace(domain, classes=named).to_json()
    attach(booster, **stored)


def encode_y(labels: Any, classes: np.ndarray | None) -> Any:
    """Encode labels as indices of the declared classes; unchanged if `classes` is None."""
    return label_array(labels) if classes is None else encode_labels(label_array(labels), classes)


def check_order(classes: Any) -> np.ndarray:
    """Return the declared classes; raise an error if they are not in increasing order."""
    labels = parse_classes(classes)
    if not isinstance(classes, (int, np.integer)) and list(labels) != list(classes):
        raise PrivacyParameterError(
            "`classes` must be in increasing order, like `classes_` and the columns of "
            f"`predict_proba` in scikit-learn. Pass {labels.tolist()}."
        )
    return labels


_SHARED = (
    "epsilon",
    "delta",
    "group_size",
    "preset",
    "accountant",
    "feature_bounds",
    "feature_cuts",
    "categories",
    "max_weight",
    "public_num_rows",
    "public_evals",
    "public_model",
)
_FITTED_BY = ("classes", "target_bounds", "budget", "schema")
_FILE_KEYS = (
    "weight", "objective", "quantiles", "exposure", "base_margin", "event", "target_upper",
    "params",
)  # fmt: skip
_TRAIN_NAMES = {"n_estimators": "num_boost_round", **{name: f"dp_{name}" for name in _SHARED}}
_ESTIMATOR_NAMES = {train: name for name, train in _TRAIN_NAMES.items()}
_ERROR_NAMES = {
    **_ESTIMATOR_NAMES,
    "alpha": "reg_alpha",
    "dp_classes": "classes",
    "dp_discovered": "schema",
    "dp_privacy_id": "fit(..., privacy_id=)",
    "dp_target_bounds": "target_bounds",
    "eta": "learning_rate",
    "label": "y",
    "lambda": "reg_lambda",
    "nthread": "n_jobs",
    "seed": "random_state",
    "weight": "sample_weight",
}

P = TypeVar("P", bound="PrivateEstimator")
Settings: TypeAlias = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]


class PrivateEstimator(XGBModel):
    """Common base class of the estimators; precedes XGBoost's class in the bases."""

    _persons: Persons | None = None  # only set during fit; never saved
    _part: SplitPart | None = None  # the part of a split being fitted; only set during fit
    _with_margins = False  # whether the rows being fitted have base margins
    _id_column: str | None = None
    _domain: Domain | None = None  # domain of the fitted features, from the schema

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        group_size: int | None = None,
        feature_bounds: Mapping[Any, Any] | None = None,
        feature_cuts: Mapping[Any, Any] | None = None,
        categories: Mapping[Any, Any] | None = None,
        schema: Discovery | str | os.PathLike[str] | None = None,
        preset: str | None = None,
        accountant: str | None = None,
        max_weight: float | None = None,
        public_num_rows: int | None = None,
        public_evals: bool | None = None,
        public_model: bool | None = None,
        budget: Budget | str | os.PathLike[str] | None = None,
        tree_method: str = "dp_hist",
        enable_categorical: bool = True,
        **kwargs: Any,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.group_size = group_size
        self.feature_bounds = feature_bounds
        self.feature_cuts = feature_cuts
        self.categories = categories
        self.schema = schema
        self.preset = preset
        self.accountant = accountant
        self.max_weight = max_weight
        self.public_num_rows = public_num_rows
        self.public_evals = public_evals
        self.public_model = public_model
        self.budget = budget
        super().__init__(tree_method=tree_method, enable_categorical=enable_categorical, **kwargs)

    def get_xgb_params(self) -> dict[str, Any]:
        """Return the parameters for ``xgboost.train``, with the prefix ``dp_`` where needed.

        Returns:
            dict: See ``docs/parameters.md``. Public.

        Raises:
            PrivacyParameterError: A parameter is given twice, e.g. as ``epsilon`` and
                ``dp_epsilon``.
        """
        params: dict[str, Any] = super().get_xgb_params()
        for name in (*_SHARED, *_FITTED_BY):
            value = params.pop(name, None)
            if value is None or name in ("budget", "schema"):
                continue
            if params.get(f"dp_{name}") is not None:
                raise PrivacyParameterError(
                    f"`{name}` and `dp_{name}` are both given. Pass only one of them."
                )
            # XGBoost only needs the number of classes, because `fit` encodes the labels.
            params[f"dp_{name}"] = len(parse_classes(value)) if name == "classes" else value
        domain = self._domain if self._domain is not None else self._declared()
        if domain is not None:
            domain.declare(params)
        if self._persons is not None:
            params["dp_privacy_id"] = self._persons
        if self._with_margins and read_one(params, "dp_base_margin") is None:
            params["dp_base_margin"] = True
        return params

    def _declared(self) -> Domain | None:
        """Return the domain of the schema, with the categories of the estimator."""
        given = getattr(self, "schema", None)
        if given is None:
            return None
        if isinstance(given, Discovery):
            domain = from_mapping(given.schema())
        elif isinstance(given, (str, os.PathLike)):
            domain = read_domain(Path(given))
        else:
            raise PrivacyParameterError(
                "`schema` must be a result of xgb_dp.discover, or the path of a schema file; "
                f"got a {type(given).__name__}."
            )
        more = [name for name in _FILE_KEYS if getattr(domain, name)]
        if more:
            raise PrivacyParameterError(
                f"The schema has keys that only the command line supports: "
                f"{', '.join(map(repr, more))}. Remove them, and pass them to the estimator or "
                "its `fit`."
            )
        categories = {
            n: read_column(n, list(names)) for n, names in (self.categories or {}).items()
        }
        return replace(domain, columns={**(domain.columns or {}), **categories})

    def __sklearn_clone__(self: P) -> P:
        refuse_searches()
        return cast("P", super().__sklearn_clone__())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise
        if tags.classifier_tags is not None:
            tags.target_tags.multi_output = False
            tags.classifier_tags.multi_label = False
        return tags

    @property
    def _doc_link_module(self) -> str:
        return "xgb_dp"

    @contextmanager
    def _rows_of_persons(
        self, X: Any, y: Any, privacy_id: Any, given: Mapping[str, Any]
    ) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
        """Set the privacy ids for the block; yield the features without their column, and labels.

        Also yields the weights and margins of the rows. If any are `given`, the rows do not count
        as a part of a split, because these could come from other rows.
        """
        rows = X
        self._domain, domain = None, self._declared()
        column = id_column(self.get_xgb_params())
        if privacy_id is None:
            privacy_id = column
        elif column is not None and column != (privacy_id if isinstance(privacy_id, str) else None):
            raise PrivacyParameterError(
                "`privacy_id` differs from the id column given in the constructor. Pass only one "
                "of them."
            )
        if isinstance(rows, SplitTable):
            X, y, privacy_id = rows.unpack(y, privacy_id)
        arguments = row_arguments(rows, given)
        self._with_margins = arguments["base_margin"] is not None
        self._id_column = privacy_id if isinstance(privacy_id, str) else None
        if self._id_column is not None:
            X, privacy_id = without_column(X, self._id_column)
        if domain is not None:
            self._domain = domain.for_table(column_names(X)).checked()
        if privacy_id is not None:
            part_persons = read_part_persons(rows, self._id_column)
            self._persons = part_persons or encode_persons(privacy_id, column=self._id_column)
        if all(one is None for one in given.values()):
            self._part = find_part(rows, self._persons)
        try:
            yield X, y, arguments
        finally:
            self._persons = self._part = None
            self._with_margins = False

    @spelling(_ERROR_NAMES)
    def fit(
        self: P,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        base_margin: Any = None,
        privacy_id: Any = None,
        **kwargs: Any,
    ) -> P:
        """Train a private model.

        Privacy: every call spends epsilon and delta.

        Args:
            X: Features, shape (rows, columns); or a part of :func:`xgb_dp.split`, without `y`.
            y: For a classifier, labels from the declared classes, shape (rows,), or several binary
                labels, shape (rows, labels). For a regressor, targets in the unit of
                ``target_bounds``, shape (rows,) or (rows, targets).
            sample_weight: Weights of the rows, shape (rows,).
            base_margin: Margins from which the trees start, such as the logs of exposures, shape
                (rows,) or (rows, classes). Predictions then need them, too.
            privacy_id: Person ids, shape (rows,), or the name of a column of `X` with the ids,
                which is then not a feature. The guarantee then covers all rows of a person;
                without ids it covers a single row. Ids are neither stored nor shown.
            kwargs: Other arguments of XGBoost's ``fit``.

        Raises:
            PrivacyParameterError: A parameter or declaration is missing or out of range.
            PrivacyRefusal: An argument or parameter would break the privacy guarantee.
            RowDomainError: A row lies outside the declared domain.
        """
        classes = self._permitted_classes()
        accepted = [*signature(super().fit).parameters, "privacy_id"]
        refuse_unknown("fit", kwargs, accepted, self.get_params())
        given = {"sample_weight": sample_weight, "base_margin": base_margin}
        if eval_set := kwargs.get("eval_set"):
            check_eval_set(X, eval_set)
        check_sample(X, self.get_xgb_params().get("dp_public_data"))
        objective: Any = self.objective  # type: ignore[has-type]
        budget = getattr(self, "budget", None)
        charging = as_budget(budget).one_training if budget is not None else nullcontext
        person_rows = self._rows_of_persons(X, y, privacy_id, given)
        with person_rows as (features, y, arguments):
            if eval_set:
                kwargs["eval_set"] = [(self._read(a), encode_y(b, classes)) for a, b in eval_set]
            rows, labels = self._read(features), encode_y(y, classes)
            try:
                with charging(type(self).__name__):
                    super().fit(rows, labels, **arguments, **kwargs)
            finally:
                self.objective = objective  # XGBoost overwrites it for multiclass models
        if classes is not None:
            self._classes = classes
        store(self.get_booster(), self._domain, classes)
        return self

    @spelling(_ERROR_NAMES)
    def fit_select(
        self: P,
        X: Any,
        y: Any = None,
        settings: Settings = (),
        *,
        sample_weight: Any = None,
        base_margin: Any = None,
        privacy_id: Any = None,
        **kwargs: Any,
    ) -> P:
        """Select the best settings privately and keep the model; see :func:`xgb_dp.select`.

        Privacy: spends epsilon and delta once for the whole selection.

        Sets ``best_params_`` and the noisy ``best_score_``, a loss by default (see
        :class:`Score`). The parameters of the estimator do not change.

        Args:
            X: Features, shape (rows, columns), or a part of :func:`xgb_dp.split`.
            y: Labels from the declared classes, or for a regressor targets in the unit of
                ``target_bounds``; shape (rows,).
            settings: A grid ``{name: [values]}`` of this estimator's parameters, or a list of
                changes.
            sample_weight: Weights of the rows for training, shape (rows,).
            base_margin: Margins of the rows, as in ``fit``.
            privacy_id: Person ids, as in ``fit``.
            kwargs: ``score``, ``mean_runs``, ``repetitions``, ``validation`` and ``note`` of
                :func:`xgb_dp.select`.

        Raises:
            PrivacyError: Same errors as ``fit``.
        """
        classes = self._permitted_classes()
        given = {"sample_weight": sample_weight, "base_margin": base_margin}
        with self._rows_of_persons(X, y, privacy_id, given) as (features, y, arguments):
            params = self._params_to_select(classes)
            target = {name: params.pop(f"dp_{name}", None) for name in ("epsilon", "delta")}
            if None in target.values():
                raise PrivacyParameterError(
                    "`epsilon` or `delta` is missing. Pass both to the estimator."
                )
            labels = encode_y(y, classes)
            matrix = self._matrix(self._read(features), labels, arguments)
            result = select(
                params,
                split_matrix(matrix, self._part, self._persons),
                _renamed(settings),
                **target,
                num_boost_round=self.get_num_boosting_rounds(),
                budget=getattr(self, "budget", None),
                **{"note": type(self).__name__, **kwargs},
            )
        self._Booster = result.booster
        self.best_params_ = {_ESTIMATOR_NAMES.get(k, k): v for k, v in result.setting.items()}
        self.best_score_ = result.score
        if classes is not None:
            self._classes, self.n_classes_ = classes, len(classes)
        store(self.get_booster(), self._domain, classes)
        return self

    def load_model(self, fname: Any) -> None:
        """Load a model with its classes, its schema and the name of its privacy id column."""
        super().load_model(fname)
        self._domain, self._id_column = None, None
        with suppress(LedgerError):
            self._id_column = parse_ledger(self.get_booster().attr(LEDGER)).unit.column

    def _declared_classes(self) -> np.ndarray | None:
        """Return the declared classes in increasing order; None for a regressor."""
        return None

    def _permitted_classes(self) -> np.ndarray | None:
        """Return the declared classes, after checking them against the policy, if any."""
        if not str(self.tree_method).startswith("dp_"):
            raise PrivacyParameterError(
                "`tree_method` of a private estimator must be 'dp_hist' or 'dp_approx'. To train "
                "without privacy, use xgboost.XGBClassifier or XGBRegressor."
            )
        for name, value in (("verbosity", self.verbosity), ("nthread", self.n_jobs)):
            read_one({name: value}, name)  # before XGBoost uses it
        classes, objective = self._declared_classes(), self.objective
        known = OBJECTIVES.get(objective) if isinstance(objective, str) else None
        if known is not None and (known.kind == "regression") != (classes is None):
            raise PrivacyParameterError(
                f"`objective`={objective!r} is for a "
                f"{'classifier' if classes is None else 'regressor'}. Use "
                f"{'DPXGBClassifier' if classes is None else 'DPXGBRegressor'}."
            )
        if (rules := policy.in_force()) is not None:
            # XGBoost has not chosen the objective yet, so only the dp_* parameters are checked.
            params = self.get_xgb_params().items()
            rules.check_params({n: v for n, v in params if n.startswith("dp_")})
            rules.check_classes(classes)
        return classes

    def _matrix(self, features: Any, labels: Any, arguments: Mapping[str, Any]) -> Any:
        return private_matrix(
            features,
            categories=read_one(self.get_xgb_params(), "dp_categories"),
            label=labels,
            weight=arguments["sample_weight"],
            base_margin=arguments["base_margin"],
            missing=self.missing,
            feature_types=self.feature_types,
            enable_categorical=self.enable_categorical,
            nthread=self.n_jobs,
        )

    def _params_to_select(self, classes: np.ndarray | None) -> dict[str, Any]:
        params = self.get_xgb_params()
        if classes is not None:
            refuse_margins(params)
        if classes is not None and len(classes) > 2:
            if read_one(params, "objective") != "multi:softmax":
                params["objective"] = "multi:softprob"
            params["num_class"] = len(classes)
        return params

    def _without_ids(self, X: Any) -> Any:
        """Return a table without the privacy id column, if it has one."""
        if self._id_column is not None and has_column(X, self._id_column):
            X, _ = without_column(X, self._id_column)
        return X

    def _read(self, X: Any) -> Any:
        """Return the features of a training table, read by the schema if there is one."""
        X = self._without_ids(X)
        return X if self._domain is None else self._domain.read_table(X)

    def _codes(self, X: Any) -> Any:
        """Return rows as the numbers that the fitted model reads, without the privacy id column.

        Only the model says how to code them: whatever an estimator declares now, a model that was
        loaded or trained before has its own categories and schema.
        """
        booster = self.get_booster()  # raises NotFittedError
        warn_of_exact_fits()
        X, schema = collect_table(self._without_ids(X)), Schema.from_model(booster)
        if is_table(X) or schema.declared:
            apart = schema.domain.special
            given = [name for name in column_names(X) if name not in apart]
            check_names(list(schema.domain.columns or ()), list(map(as_text, given)))
            coded = read_data(schema.codes, X)
        else:
            check_columns(booster, X)
            coded = read_data(prepare_table, X, None)
            check_shape(coded)
        if coded.shape[1] != booster.num_features():
            raise PrivacyParameterError(
                f"The model has {booster.num_features()} features, but `X` has {coded.shape[1]} "
                "columns (feature shape mismatch). Pass the columns of training."
            )
        return coded

    def _rows(self, X: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of XGBoost's ``predict``; the columns of `X` are checked here."""
        codes, margin = self._codes(X), arguments.get("base_margin")
        check_margins(self.get_booster(), margin)
        if margin is not None:
            margin = checked({"base_margin": margin}, codes.shape[0])["base_margin"]
        return {**arguments, "X": codes, "base_margin": margin, "validate_features": False}

    def apply(self, X: Any, iteration_range: Any = None) -> np.ndarray:
        """Return the leaf index of each row in every tree. Post-processing of the model."""
        booster = self.get_booster()
        matrix = private_matrix(
            self._codes(X),
            missing=self.missing,
            feature_names=booster.feature_names,
            feature_types=booster.feature_types,
            nthread=self.n_jobs,
        )
        rounds = self._get_iteration_range(iteration_range)
        return np.asarray(booster.predict(matrix, pred_leaf=True, iteration_range=rounds))

    @property
    def privacy_report_(self) -> PrivacyReport:
        """Privacy report of the fitted model, recomputed from its ledger; spends nothing.

        Raises:
            NotFittedError: ``fit`` was not called.
        """
        return privacy_report(self.get_booster())


def _renamed(settings: Settings) -> Settings:
    """Rename estimator parameters in settings to parameters of ``xgboost.train``."""
    if isinstance(settings, Mapping):
        return {_TRAIN_NAMES.get(name, name): values for name, values in settings.items()}
    return [{_TRAIN_NAMES.get(k, k): v for k, v in setting.items()} for setting in settings]


class DPXGBClassifier(PrivateEstimator, XGBClassifier):
    """Scikit-learn classifier of differentially private gradient boosted trees.

    Args:
        epsilon: Privacy budget in nats, > 0; spent by every call of ``fit``. Required.
        delta: Delta of the guarantee, 0 < delta < 1, chosen independently of the data. Required.
        group_size: Number of rows (or persons, with `privacy_id`) protected together; default 1.
        classes: Declared classes: K for labels 0..K-1, or the list of labels. Public. Required,
            because the classes that occur in ``y`` are a statistic of the rows.
        feature_bounds: Public ranges of columns, ``{column: (low, high)}``, for split candidates.
        feature_cuts: Public split points of columns. Saves budget.
        categories: Declared categories of columns, ``{column: [names]}`` (or the number of codes).
            String columns of a data frame are encoded with them. Public.
        schema: Result of :func:`xgb_dp.discover`, or the path of a schema file, that declares the
            columns of the tables passed to ``fit`` and ``predict``. The ledger adds the cost of
            the discovery to `epsilon`.
        preset: Name of a published system; see ``docs/presets.md``. Public.
        accountant: Accountant that certifies epsilon; "exact" by default.
        max_weight: Largest row weight. Public.
        public_num_rows: Number of rows (or persons, with `privacy_id`), if it is public.
        public_evals: Asserts that every row of ``eval_set`` is public, so that exact metrics can
            be shown. Hyperparameter searches and cross-validation remain refused.
        public_model: Asserts that the ``xgb_model`` of ``fit`` was trained without private rows.
            Private trees are added to it.
        budget: A :class:`xgb_dp.Budget`, or the path of its file, that ``fit`` charges.
        tree_method: "dp_hist" or "dp_approx".
        enable_categorical: Whether to treat categorical columns of data frames as categorical.
        kwargs: Other parameters of private training, including ``dp_*`` (``docs/parameters.md``).

    Attributes:
        privacy_report_: Privacy report of the fitted model, recomputed from its ledger.
        classes_: The declared classes, in increasing order.

    Raises:
        PrivacyRefusal: ``fit`` was called inside a scikit-learn search or cross-validation, whose
            scores are exact. Use :func:`xgb_dp.select` instead.

    Examples:
        >>> classifier = xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=[0, 1])
        >>> classifier.fit(table, label).predict_proba(table).shape
        (2000, 2)
    """

    def __init__(self, *, classes: int | Sequence[Any] | None = None, **kwargs: Any) -> None:
        self.classes = classes
        super().__init__(**kwargs)

    def _declared_classes(self) -> np.ndarray:
        domain = self._declared() if self.classes is None else None
        if domain is not None and domain.classes is not None:
            return check_order(domain.classes)
        if self.classes is None:
            raise PrivacyParameterError(
                "`classes` is missing. A private classifier does not infer its classes from the "
                "training labels, because that would reveal which classes occur. Pass them, e.g. "
                "DPXGBClassifier(..., classes=['no', 'yes'])."
            )
        check_carried(self.classes, "the classes")
        return check_order(self.classes)

    @property
    def classes_(self) -> np.ndarray:
        """Declared classes, in the order of the columns of ``predict_proba``; public."""
        if hasattr(self, "_classes"):
            return self._classes
        count: np.ndarray = super().classes_  # raises AttributeError if there is no model
        return count if self.classes is None else parse_classes(self.classes)

    def load_model(self, fname: Any) -> None:
        """Load a model with its class names; see :meth:`DPXGBRegressor.load_model`."""
        super().load_model(fname)
        names = stored_classes(self.get_booster())
        if names is not None:
            self._classes = names
        elif hasattr(self, "_classes"):
            del self._classes

    def predict(self, X: Any, **kwargs: Any) -> np.ndarray:
        """Predict the most probable class of each row, or margins with ``output_margin=True``.

        A model that was fitted with `base_margin` needs ``base_margin`` of the rows here, too.
        For several labels, returns the more probable class of each label, shape (rows, labels).
        """
        codes: np.ndarray = super().predict(**self._rows(X, kwargs))
        if kwargs.get("output_margin"):
            return codes
        if codes.ndim == 2 and OBJECTIVES[read_objective(self.get_booster())].kind == "multiclass":
            codes = codes.argmax(axis=1)  # XGBoost mistakes two softprob classes for two labels
        return self.classes_[codes.astype(np.int64)]

    def predict_proba(self, X: Any, **kwargs: Any) -> np.ndarray:
        """Predict the probability of each class, shape (rows, classes), ordered as ``classes_``.

        For several labels, returns the probability of the second class of each label, shape
        (rows, labels).
        """
        probabilities: np.ndarray = super().predict_proba(**self._rows(X, kwargs))
        return probabilities


class DPXGBRegressor(PrivateEstimator, XGBRegressor):
    """Scikit-learn regressor of differentially private gradient boosted trees.

    Args:
        target_bounds: Public range (low, high) of the target; targets outside are clipped. A list
            of ranges for several targets. Required.
        kwargs: All other arguments of :class:`DPXGBClassifier` except `classes`.

    Attributes:
        privacy_report_: Privacy report of the fitted model, recomputed from its ledger.

    Raises:
        PrivacyRefusal: As for :class:`DPXGBClassifier`.

    Examples:
        >>> regressor = xgb_dp.DPXGBRegressor(epsilon=1.0, delta=1e-6, target_bounds=(0, 10))
        >>> regressor.fit(table, 10 * table[:, 0]).predict(table).shape
        (2000,)
    """

    def __init__(
        self,
        *,
        target_bounds: tuple[float, float] | Sequence[tuple[float, float]] | None = None,
        **kwargs: Any,
    ) -> None:
        self.target_bounds = target_bounds
        super().__init__(**kwargs)

    def predict(self, X: Any, **kwargs: Any) -> np.ndarray:
        """Predict the target of each row, clipped to ``target_bounds``.

        With ``output_margin=True``, returns the unclipped margins. Predictions of the booster
        itself, or of another reader of the model, are not clipped either.
        """
        values: np.ndarray = super().predict(**self._rows(X, kwargs))
        if kwargs.get("output_margin"):
            return values
        bounds = read_one(self.get_xgb_params(), "dp_target_bounds")
        if bounds is None:  # use the bounds stored in a loaded private model
            with suppress(LedgerError):
                bounds = read_ledger(self.get_booster()).trainings[-1].public.get("target_bounds")
        return values if bounds is None else clip_to_bounds(bounds, values)
