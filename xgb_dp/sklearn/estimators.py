"""Scikit-learn estimators of private training: XGBoost's own, with domains as arguments.

``DPXGBClassifier`` and ``DPXGBRegressor`` are ``xgboost.XGBClassifier`` and ``XGBRegressor`` whose
``fit`` is ``xgboost.train`` with ``tree_method="dp_hist"``. They add what a scikit-learn user
expects: labels of any kind, once they are declared; columns of names as categories; a report.
Nothing is read off the rows: classes, bounds and categories are arguments
(``docs/howto/estimators.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from xgboost import XGBClassifier, XGBRegressor

from ..data.class_codes import declared
from ..domain.domain import stored_classes
from ..engine.json_texts import check_carried
from ..engine.predictions import MarginCurve, objective_of, within
from ..errors import LedgerError, PrivacyParameterError
from ..record.ledger import read_ledger
from ..request.names import read_one
from ..request.objectives import OBJECTIVES
from .base import Private
from .stored import in_order


class DPXGBClassifier(Private, XGBClassifier):
    """Gradient boosted trees that are differentially private, as a scikit-learn classifier.

    Args:
        epsilon: Privacy budget in nats, > 0; spent by every call of ``fit``. Must be given.
        delta: Probability with which e^epsilon may fail, 0 < delta < 1, a constant chosen without
            the data. Must be given.
        group: Rows of one person, or with `privacy_id` persons, whom epsilon is for; 1 by default.
        classes: Declared classes: K for labels 0..K-1, or the list of labels. Public. Must be
            given: the classes that occur in ``y`` are a statistic of the rows.
        feature_bounds: Public ranges of columns, ``{column: (low, high)}``, between which cuts lie.
        feature_cuts: Public split points of columns. Saves budget.
        categories: Declared categories of columns, ``{column: [names]}`` (or a number of codes).
            Columns of a data frame are coded by it. Public.
        schema: What :func:`xgb_dp.discover` has found, or the path of a schema file: what it
            declares of columns, which tables of ``fit`` and predictions are read by. The ledger
            counts what the look has cost, besides `epsilon`.
        preset: A published system, see ``docs/presets.md``. Public.
        accountant: Accountant that certifies epsilon; "exact" by default.
        max_weight: Largest row weight. Public.
        n_public: Number of rows, with `privacy_id` the number of persons, if it is public.
        public_evals: Asserts that every row of ``eval_set`` is public, so that its exact metrics
            may be shown. Searches and cross-validation stay refused.
        public_model: Asserts that the ``xgb_model`` of ``fit`` was made without any private row:
            private trees are added to it.
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
            return in_order(domain.classes)
        if self.classes is None:
            raise PrivacyParameterError(
                "`classes` is missing: a private classifier takes its classes from you and never "
                "from the training labels, which would tell which classes occur. Declare them, "
                "e.g. DPXGBClassifier(..., classes=['no', 'yes'])."
            )
        check_carried(self.classes, "the classes")
        return in_order(self.classes)

    @property
    def classes_(self) -> np.ndarray:
        """The declared classes, in the order of the columns of ``predict_proba``; public."""
        if hasattr(self, "_classes"):
            return self._classes
        count: np.ndarray = super().classes_  # of a model that was loaded, or an AttributeError
        return count if self.classes is None else declared(self.classes)

    def load_model(self, fname: Any) -> None:
        """Load a model with the names of its classes; see :meth:`DPXGBRegressor.load_model`."""
        super().load_model(fname)
        names = stored_classes(self.get_booster())
        if names is not None:
            self._classes = names
        elif hasattr(self, "_classes"):
            del self._classes

    @property
    def _curve(self) -> MarginCurve | None:
        """By which the probabilities of the model are calibrated; None without."""
        return MarginCurve.of(self.get_booster())

    def predict(self, X: Any, **kwargs: Any) -> np.ndarray:
        """Most probable class of every row, or margins with ``output_margin=True``.

        Of several labels (rows, labels), the more probable class of each.
        """
        if self._curve is not None and not kwargs.get("output_margin"):
            return self.classes_[self.predict_proba(X, **kwargs).argmax(axis=1)]
        codes: np.ndarray = super().predict(self._coded(X), **kwargs)
        if kwargs.get("output_margin"):
            return codes
        if codes.ndim == 2 and OBJECTIVES[objective_of(self.get_booster())].kind == "multiclass":
            codes = codes.argmax(axis=1)  # XGBoost takes two classes of these for two labels
        return self.classes_[codes.astype(np.int64)]

    def predict_proba(self, X: Any, **kwargs: Any) -> np.ndarray:
        """Probability of every declared class, (rows, classes), in the order of ``classes_``.

        Of several labels (rows, labels), the probability of the second class of each.
        """
        curve = self._curve
        if curve is not None:
            second = curve(super().predict(self._coded(X), **{**kwargs, "output_margin": True}))
            return np.column_stack([1.0 - second, second])
        probabilities: np.ndarray = super().predict_proba(self._coded(X), **kwargs)
        return probabilities


class DPXGBRegressor(Private, XGBRegressor):
    """Gradient boosted trees that are differentially private, as a scikit-learn regressor.

    Args:
        target_bounds: Public range (low, high) of the target; labels beyond are clamped. A list of
            ranges for several targets. Must be given.
        kwargs: Everything else, such as `epsilon` and `delta`, is as for
            :class:`DPXGBClassifier`, but `classes`.

    Attributes:
        privacy_report_: What ``fit`` spent, recomputed from the ledger of the model.

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
        """Prediction for every row, within ``target_bounds``.

        With ``output_margin=True`` what the trees add up to, which may lie beyond: so does what the
        booster or another reader of the model predicts.
        """
        values: np.ndarray = super().predict(self._coded(X), **kwargs)
        if kwargs.get("output_margin"):
            return values
        bounds = read_one(self.get_xgb_params(), "dp_target_bounds")
        if bounds is None:  # a private model that was loaded knows its own
            with suppress(LedgerError):
                bounds = read_ledger(self.get_booster()).trainings[-1].public.get("target_bounds")
        return values if bounds is None else within(bounds, values)
