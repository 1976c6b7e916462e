"""Scikit-learn estimators of private training: XGBoost's own, with domains as arguments.

``DPXGBClassifier`` and ``DPXGBRegressor`` are ``xgboost.XGBClassifier`` and ``XGBRegressor`` whose
``fit`` is ``xgboost.train`` with ``tree_method="dp_hist"``. They add what a scikit-learn user
expects: labels of any kind, once they are declared; columns of names as categories; a report.
Nothing is read off the rows: classes, bounds and categories are arguments
(``docs/howto/estimators.md``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xgboost import XGBClassifier, XGBRegressor

from ..budget.budget import Budget, as_budget
from ..data.cells import read_data
from ..data.frames import prepared
from ..data.labels import codes_of, declared, label_array
from ..data.matrices import private_matrix
from ..errors import PrivacyParameterError
from ..record.report import PrivacyReport, privacy_report
from ..request.names import read_one
from ..training.call_site import check_eval_set
from ..training.interfaces import refuse_margins
from ..tuning import select

__all__ = ["DPXGBClassifier", "DPXGBRegressor"]

_SHARED = (
    "epsilon",
    "delta",
    "preset",
    "accountant",
    "feature_bounds",
    "feature_cuts",
    "categories",
    "max_weight",
    "n_public",
    "public_evals",
)
_FITTED_BY = ("classes", "target_bounds", "budget")
_TRAIN_NAMES = {"n_estimators": "num_boost_round", **{name: f"dp_{name}" for name in _SHARED}}
_ESTIMATOR_NAMES = {train: own for own, train in _TRAIN_NAMES.items()}

Settings: TypeAlias = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]


class _Private:
    """What both estimators share. Comes before XGBoost's class and has no constructor."""

    def get_xgb_params(self) -> dict[str, Any]:
        """Parameters for ``xgboost.train``: every declaration under its name with ``dp_``.

        Returns:
            dict: See ``docs/parameters.md``. Public.

        Raises:
            PrivacyParameterError: A declaration is given twice, e.g. as ``epsilon`` and
                ``dp_epsilon``.
        """
        params: dict[str, Any] = super().get_xgb_params()  # type: ignore[misc]
        for name in (*_SHARED, *_FITTED_BY):
            value = params.pop(name, None)
            if value is None or name == "budget":
                continue
            if params.get(f"dp_{name}") is not None:
                raise PrivacyParameterError(f"`{name}` is also given as `dp_{name}`: keep one.")
            # Labels are coded by the declared classes before XGBoost sees them.
            params[f"dp_{name}"] = len(declared(value)) if name == "classes" else value
        return params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.non_deterministic = True  # noise
        tags.target_tags.multi_output = False
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        return tags

    @property
    def _doc_link_module(self) -> str:
        return "xgb_dp"

    def _fit(
        self, fit: Callable[..., Any], X: Any, y: Any, code: Callable[[Any], Any], **kwargs: Any
    ) -> Any:
        """Call XGBoost's ``fit`` on coded columns and labels, on the budget if there is one."""
        eval_set = kwargs.get("eval_set")
        if eval_set:
            check_eval_set(X, eval_set)
            kwargs["eval_set"] = [(self._coded(a), code(b)) for a, b in eval_set]
        X, y = self._coded(X), code(y)
        budget = getattr(self, "budget", None)
        if budget is None:
            return fit(X, y, **kwargs)
        with as_budget(budget).one_training(type(self).__name__):
            return fit(X, y, **kwargs)

    def _coded(self, X: Any) -> Any:
        return read_data(prepared, X, read_one(self.get_xgb_params(), "dp_categories"))

    def _select(
        self,
        X: Any,
        codes: Any,
        settings: Settings,
        sample_weight: Any,
        kwargs: dict[str, Any],
        classes: int = 0,
    ) -> None:
        """Keep the best of a private selection as the fitted model."""
        params = self.get_xgb_params()
        if classes:
            refuse_margins(params)
        target = {name: params.pop(f"dp_{name}", None) for name in ("epsilon", "delta")}
        if None in target.values():
            raise PrivacyParameterError("`epsilon` and `delta` must be given.")
        matrix = private_matrix(
            X,
            categories=read_one(params, "dp_categories"),
            label=codes,
            weight=sample_weight,
            missing=self.missing,  # type: ignore[attr-defined]
            feature_types=self.feature_types,  # type: ignore[attr-defined]
            enable_categorical=self.enable_categorical,  # type: ignore[attr-defined]
            nthread=self.n_jobs,  # type: ignore[attr-defined]
        )
        if classes > 2:
            if read_one(params, "objective") != "multi:softmax":
                params["objective"] = "multi:softprob"
            params["num_class"] = classes
        result = select(
            params,
            matrix,
            _renamed(settings),
            **target,
            num_boost_round=self.get_num_boosting_rounds(),  # type: ignore[attr-defined]
            budget=getattr(self, "budget", None),
            **{"note": type(self).__name__, **kwargs},
        )
        self._Booster = result.booster
        self.best_params_ = {_ESTIMATOR_NAMES.get(k, k): v for k, v in result.setting.items()}
        self.best_score_ = result.score

    def apply(self, X: Any, **kwargs: Any) -> np.ndarray:
        """Leaf of every tree in which each row ends. Free post-processing for the model."""
        leaves: np.ndarray = super().apply(self._coded(X), **kwargs)  # type: ignore[misc]
        return leaves

    @property
    def privacy_report_(self) -> PrivacyReport:
        """Report of the fitted model, recomputed from its ledger; costs no privacy.

        Raises:
            NotFittedError: ``fit`` was not called.
        """
        return privacy_report(self.get_booster())  # type: ignore[attr-defined]


def _renamed(settings: Settings) -> Settings:
    """Settings under the names of ``xgboost.train``."""
    if isinstance(settings, Mapping):
        return {_TRAIN_NAMES.get(name, name): values for name, values in settings.items()}
    return [{_TRAIN_NAMES.get(k, k): v for k, v in setting.items()} for setting in settings]


class DPXGBClassifier(_Private, XGBClassifier):
    """Gradient boosted trees that are differentially private, as a scikit-learn classifier.

    Args:
        epsilon: Privacy budget in nats, > 0; spent by every call of ``fit``. Must be given.
        delta: Probability with which e^epsilon may fail, 0 < delta < 1, a constant chosen without
            the data. Must be given.
        classes: Declared classes: K for labels 0..K-1, or the list of labels. Public. Must be
            given: the classes that occur in ``y`` are a statistic of the rows.
        feature_bounds: Public ranges of columns, ``{column: (low, high)}``. Saves budget.
        feature_cuts: Public split points of columns. Saves budget.
        categories: Declared categories of columns, ``{column: [names]}`` (or a number of codes).
            Columns of a data frame are coded by it. Public.
        preset: A published system, see ``docs/presets.md``. Public.
        accountant: Accountant that certifies epsilon; "exact" by default.
        max_weight: Largest row weight. Public.
        n_public: Number of rows, if it is public.
        public_evals: Asserts that every row of ``eval_set`` is public, so that its exact metrics
            may be shown. Searches and cross-validation stay refused.
        budget: A :class:`xgb_dp.Budget`, or the path of one, on which ``fit`` draws.
        tree_method: "dp_hist" or "dp_approx".
        enable_categorical: Whether categorical columns of data frames are taken as such.
        kwargs: Other parameters of private training, ``dp_*`` ones too (``docs/parameters.md``).

    Attributes:
        privacy_report_: What ``fit`` spent, recomputed from the ledger of the model.
        classes_: The declared classes, in increasing order.

    Raises:
        PrivacyRefusal: Under ``fit``, inside a search or cross-validation of scikit-learn, whose
            scores are exact; use :func:`xgb_dp.select`.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        classes: int | Sequence[Any] | None = None,
        feature_bounds: Mapping[Any, Any] | None = None,
        feature_cuts: Mapping[Any, Any] | None = None,
        categories: Mapping[Any, Any] | None = None,
        preset: str | None = None,
        accountant: str | None = None,
        max_weight: float | None = None,
        n_public: int | None = None,
        public_evals: bool | None = None,
        budget: Budget | str | os.PathLike[str] | None = None,
        tree_method: str = "dp_hist",
        enable_categorical: bool = True,
        **kwargs: Any,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.feature_bounds = feature_bounds
        self.feature_cuts = feature_cuts
        self.categories = categories
        self.preset = preset
        self.accountant = accountant
        self.max_weight = max_weight
        self.n_public = n_public
        self.public_evals = public_evals
        self.budget = budget
        super().__init__(tree_method=tree_method, enable_categorical=enable_categorical, **kwargs)

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, **kwargs: Any) -> DPXGBClassifier:
        """Train privately. Spends epsilon and delta, again at every call.

        Args:
            X: Table of features, shape (rows, columns).
            y: Labels, shape (rows,), each one of the declared classes.
            sample_weight: Weights of the rows, shape (rows,).
            kwargs: Other arguments of ``xgboost.XGBClassifier.fit``.

        Raises:
            PrivacyParameterError: A parameter or declaration is missing or out of range.
            PrivacyRefusal: Something that would not be private.
            RowDomainError: A row lies outside the declared domain.
        """
        classes = self._classes_to_fit()
        objective: Any = self.objective  # type: ignore[has-type]

        def code(labels: Any) -> np.ndarray:
            return codes_of(label_array(labels), classes)

        try:
            self._fit(super().fit, X, y, code, sample_weight=sample_weight, **kwargs)
        finally:
            self.objective = objective  # XGBoost writes the objective of several classes here
        self._classes = classes
        return self

    def fit_select(
        self, X: Any, y: Any, settings: Settings, *, sample_weight: Any = None, **kwargs: Any
    ) -> DPXGBClassifier:
        """Choose among settings privately and keep the best model; see :func:`xgb_dp.select`.

        Spends epsilon and delta once, for all of it. Sets ``best_params_`` and the noisy
        ``best_score_``, which by default is a loss (smaller is better; see :class:`Score`); the
        parameters of the estimator stay as they are.

        Args:
            X: Table of features, shape (rows, columns).
            y: Labels, shape (rows,), each one of the declared classes.
            settings: A grid ``{name: [values]}`` of this estimator's parameters, or a list of
                changes.
            sample_weight: Weights of the rows in the trainings, shape (rows,).
            kwargs: ``score``, ``mean_runs``, ``repetitions``, ``validation`` and ``note`` of
                :func:`xgb_dp.select`.

        Raises:
            PrivacyParameterError: A parameter or declaration is missing or out of range.
            PrivacyRefusal: Something that would not be private.
            RowDomainError: A row lies outside the declared domain.
        """
        classes = self._classes_to_fit()
        codes = codes_of(label_array(y), classes)
        self._select(X, codes, settings, sample_weight, kwargs, len(classes))
        self._classes, self.n_classes_ = classes, len(classes)
        return self

    def _classes_to_fit(self) -> np.ndarray:
        if self.classes is None:
            raise PrivacyParameterError(
                "`classes` is missing: a private classifier takes its classes from you and never "
                "from the training labels, which would tell which classes occur. Declare them, "
                "e.g. DPXGBClassifier(..., classes=['no', 'yes'])."
            )
        return declared(self.classes)

    @property
    def classes_(self) -> np.ndarray:
        """The declared classes, in increasing order; public."""
        if hasattr(self, "_classes"):
            return self._classes
        count: np.ndarray = super().classes_  # of a model that was loaded, or an AttributeError
        return count if self.classes is None else declared(self.classes)

    def predict(self, X: Any, **kwargs: Any) -> np.ndarray:
        """Most probable class of every row, or margins with ``output_margin=True``."""
        found: np.ndarray = super().predict(self._coded(X), **kwargs)
        if kwargs.get("output_margin"):
            return found
        if found.ndim == 2:  # XGBoost takes two classes of multi:softprob for two labels
            found = found.argmax(axis=1)
        return self.classes_[found]

    def predict_proba(self, X: Any, **kwargs: Any) -> np.ndarray:
        """Probability of every declared class, (rows, classes), in the order of ``classes_``."""
        probabilities: np.ndarray = super().predict_proba(self._coded(X), **kwargs)
        return probabilities


class DPXGBRegressor(_Private, XGBRegressor):
    """Gradient boosted trees that are differentially private, as a scikit-learn regressor.

    Args:
        epsilon: Privacy budget in nats, > 0; spent by every call of ``fit``. Must be given.
        delta: Probability with which e^epsilon may fail, 0 < delta < 1, a constant chosen without
            the data. Must be given.
        target_bounds: Public range (low, high) of the target; labels beyond are clamped. Must be
            given.
        feature_bounds: Public ranges of columns, ``{column: (low, high)}``. Saves budget.
        feature_cuts: Public split points of columns. Saves budget.
        categories: Declared categories of columns, ``{column: [names]}`` (or a number of codes).
            Columns of a data frame are coded by it. Public.
        preset: A published system, see ``docs/presets.md``. Public.
        accountant: Accountant that certifies epsilon; "exact" by default.
        max_weight: Largest row weight. Public.
        n_public: Number of rows, if it is public.
        public_evals: Asserts that every row of ``eval_set`` is public, so that its exact metrics
            may be shown. Searches and cross-validation stay refused.
        budget: A :class:`xgb_dp.Budget`, or the path of one, on which ``fit`` draws.
        tree_method: "dp_hist" or "dp_approx".
        enable_categorical: Whether categorical columns of data frames are taken as such.
        kwargs: Other parameters of private training, ``dp_*`` ones too (``docs/parameters.md``).

    Attributes:
        privacy_report_: What ``fit`` spent, recomputed from the ledger of the model.

    Raises:
        PrivacyRefusal: Under ``fit``, inside a search or cross-validation of scikit-learn, whose
            scores are exact; use :func:`xgb_dp.select`.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        target_bounds: tuple[float, float] | None = None,
        feature_bounds: Mapping[Any, Any] | None = None,
        feature_cuts: Mapping[Any, Any] | None = None,
        categories: Mapping[Any, Any] | None = None,
        preset: str | None = None,
        accountant: str | None = None,
        max_weight: float | None = None,
        n_public: int | None = None,
        public_evals: bool | None = None,
        budget: Budget | str | os.PathLike[str] | None = None,
        tree_method: str = "dp_hist",
        enable_categorical: bool = True,
        **kwargs: Any,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.feature_bounds = feature_bounds
        self.feature_cuts = feature_cuts
        self.categories = categories
        self.preset = preset
        self.accountant = accountant
        self.max_weight = max_weight
        self.n_public = n_public
        self.public_evals = public_evals
        self.budget = budget
        super().__init__(tree_method=tree_method, enable_categorical=enable_categorical, **kwargs)

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, **kwargs: Any) -> DPXGBRegressor:
        """Train privately. Spends epsilon and delta, again at every call.

        Args:
            X: Table of features, shape (rows, columns).
            y: Targets, shape (rows,), in the unit of ``target_bounds``.
            sample_weight: Weights of the rows, shape (rows,).
            kwargs: Other arguments of ``xgboost.XGBRegressor.fit``.

        Raises:
            PrivacyParameterError: A parameter or declaration is missing or out of range.
            PrivacyRefusal: Something that would not be private.
            RowDomainError: A row lies outside the declared domain.
        """
        self._fit(super().fit, X, y, label_array, sample_weight=sample_weight, **kwargs)
        return self

    def fit_select(
        self, X: Any, y: Any, settings: Settings, *, sample_weight: Any = None, **kwargs: Any
    ) -> DPXGBRegressor:
        """Choose among settings privately and keep the best model; see :func:`xgb_dp.select`.

        Spends epsilon and delta once, for all of it. Sets ``best_params_`` and the noisy
        ``best_score_``, which by default is a loss (smaller is better; see :class:`Score`); the
        parameters of the estimator stay as they are.

        Args:
            X: Table of features, shape (rows, columns).
            y: Targets, shape (rows,), in the unit of ``target_bounds``.
            settings: A grid ``{name: [values]}`` of this estimator's parameters, or a list of
                changes.
            sample_weight: Weights of the rows in the trainings, shape (rows,).
            kwargs: ``score``, ``mean_runs``, ``repetitions``, ``validation`` and ``note`` of
                :func:`xgb_dp.select`.

        Raises:
            PrivacyParameterError: A parameter or declaration is missing or out of range.
            PrivacyRefusal: Something that would not be private.
            RowDomainError: A row lies outside the declared domain.
        """
        self._select(X, label_array(y), settings, sample_weight, kwargs)
        return self

    def predict(self, X: Any, **kwargs: Any) -> np.ndarray:
        """Prediction for every row, in the unit of ``target_bounds``."""
        found: np.ndarray = super().predict(self._coded(X), **kwargs)
        return found
