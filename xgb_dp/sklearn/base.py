"""What the estimators share: names of declarations, coded columns, budgets, private selection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from ..budget.budget import as_budget
from ..data.cells import read_data
from ..data.frames import has_column, prepared, without_column
from ..data.ids import Persons, persons_of
from ..data.labels import declared
from ..data.matrices import private_matrix
from ..data.parts import mark, part_of, reading
from ..data.persons import id_column
from ..engine.models import names_of_categories
from ..errors import PrivacyParameterError
from ..record.report import PrivacyReport, privacy_report
from ..request.names import read_one
from ..training.call_site import check_eval_set, check_sample
from ..training.interfaces import refuse_margins
from ..tuning import select

__all__ = ["Private", "Settings"]

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
    "public_model",
)
_OF_ROWS = ("sample_weight", "base_margin")
_FITTED_BY = ("classes", "target_bounds", "budget")
_TRAIN_NAMES = {"n_estimators": "num_boost_round", **{name: f"dp_{name}" for name in _SHARED}}
_ESTIMATOR_NAMES = {train: own for own, train in _TRAIN_NAMES.items()}

Settings: TypeAlias = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]


class Private:
    """What both estimators share. Comes before XGBoost's class and has no constructor."""

    _persons: Persons | None = None  # while a model is fitted; never saved
    _id_column: str | None = None

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
        if self._persons is not None:
            params["dp_privacy_id"] = self._persons
        return params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.non_deterministic = True  # noise
        if tags.classifier_tags is not None:
            tags.target_tags.multi_output = False
            tags.classifier_tags.multi_label = False
        return tags

    @property
    def _doc_link_module(self) -> str:
        return "xgb_dp"

    @contextmanager
    def _rows_of_persons(self, X: Any, privacy_id: Any) -> Iterator[Any]:
        """The features without the column of ids; whose rows they are is known meanwhile."""
        column = id_column(self.get_xgb_params())
        if privacy_id is None:
            privacy_id = column
        elif column is not None and column != (privacy_id if isinstance(privacy_id, str) else None):
            raise PrivacyParameterError(
                "`privacy_id` is also given as `dp_privacy_id`, as the name of a column: keep one."
            )
        self._id_column = privacy_id if isinstance(privacy_id, str) else None
        if self._id_column is not None:
            X, privacy_id = without_column(X, self._id_column)
        if privacy_id is not None:
            self._persons = persons_of(privacy_id, column=self._id_column)
        try:
            yield X
        finally:
            self._persons = None

    def _fit(
        self,
        fit: Callable[..., Any],
        X: Any,
        y: Any,
        code: Callable[[Any], Any],
        privacy_id: Any,
        **kwargs: Any,
    ) -> Any:
        """Call XGBoost's ``fit`` on coded columns and labels, on the budget if there is one."""
        eval_set = kwargs.get("eval_set")
        if eval_set:
            check_eval_set(X, eval_set)
        check_sample(X, self.get_xgb_params().get("dp_public_data"))
        # Weights and margins that somebody has computed may be those of other rows.
        given = [kwargs[name] for name in _OF_ROWS if kwargs.get(name) is not None]
        part = part_of((X, y, *given))
        with self._rows_of_persons(X, privacy_id) as features, reading(part):
            if eval_set:
                kwargs["eval_set"] = [(self._coded(a, fitting=True), code(b)) for a, b in eval_set]
            X, y = self._coded(features, fitting=True), code(y)
            budget = getattr(self, "budget", None)
            if budget is None:
                return fit(X, y, **kwargs)
            with as_budget(budget).one_training(type(self).__name__):
                return fit(X, y, **kwargs)

    def _coded(self, X: Any, *, fitting: bool = False) -> Any:
        """A table of features as the model has them; the column of ids is none of them.

        A model that was loaded stores the names of its categories, which nobody has declared again.
        """
        if self._id_column is not None and has_column(X, self._id_column):
            X, _ = without_column(X, self._id_column)
        categories = read_one(self.get_xgb_params(), "dp_categories")
        if categories is None and not fitting and self.__sklearn_is_fitted__():  # type: ignore[attr-defined]
            categories = names_of_categories(self.get_booster())  # type: ignore[attr-defined]
        return read_data(prepared, X, categories)

    def _select(
        self,
        X: Any,
        y: Any,
        codes: Any,
        settings: Settings,
        sample_weight: Any,
        privacy_id: Any,
        kwargs: dict[str, Any],
        classes: int = 0,
    ) -> None:
        """Keep the best of a private selection as the fitted model."""
        with self._rows_of_persons(X, privacy_id) as features:
            params = self.get_xgb_params()
            if classes:
                refuse_margins(params)
            target = {name: params.pop(f"dp_{name}", None) for name in ("epsilon", "delta")}
            if None in target.values():
                raise PrivacyParameterError("`epsilon` and `delta` must be given.")
            matrix = private_matrix(
                features,
                categories=read_one(params, "dp_categories"),
                label=codes,
                weight=sample_weight,
                missing=self.missing,  # type: ignore[attr-defined]
                feature_types=self.feature_types,  # type: ignore[attr-defined]
                enable_categorical=self.enable_categorical,  # type: ignore[attr-defined]
                nthread=self.n_jobs,  # type: ignore[attr-defined]
            )
            part = part_of((X, y) if sample_weight is None else (X, y, sample_weight))
            if part is not None:
                mark(matrix, part)
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
