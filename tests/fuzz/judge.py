"""What a case may do: train privately, or refuse with an error of a known class."""

import json
import re
import traceback
import warnings
from pathlib import Path
from typing import Any

import xgboost as xgb

import xgb_dp
from xgb_dp.errors import LedgerError, NativeLibraryError, PrivacyError

from .cases import Case, make
from .inputs import MARKS
from .values import Impossible

__all__ = ["run"]

# Refusals of XGBoost's own argument checks: file and function that raise, and the message.
_SWITCHES = "seed|verbosity|seed_per_iteration|disable_default_eval_metric|nthread|validate_param"
UPSTREAM = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        # arguments of train that are no lists or pairs, before anything asks what they hold
        r"training\.py (_dp_hook|train) TypeError: .* is not iterable",
        r"training\.py (_dp_hook|train) TypeError: cannot unpack non-iterable",
        r"training\.py (_dp_hook|train) ValueError: (not enough|too many) values to unpack",
        r"sklearn\.py _wrap_evaluation_matrices ValueError: (not enough|too many) values to unpack",
        r"sklearn\.py _wrap_evaluation_matrices TypeError: .* has no len",
        # parameters that private training hands on
        rf"core\.py _check_call XGBoostError: Invalid Parameter format for ({_SWITCHES})",
        rf"core\.py _check_call XGBoostError: value .* for Parameter ({_SWITCHES}) exceed bound",
        # other columns in a public evaluation set
        r"core\.py _validate_features ValueError: data did not contain feature names",
        r"core\.py _check_call XGBoostError: .*Unknown metric function",
        r"sklearn\.py invalid_type TypeError: Invalid type for the `eval_metric`",
        r"sklearn\.py \w+ \w+Error: .*`eval_metric`",
        # an array as `tree_method` of an estimator, which XGBoost compares first
        r"sklearn\.py _configure_fit ValueError: The truth value of an (empty )?array",
        # `verbosity` of estimators, which XGBoost reads as a setting of its own first
        r"core\.py _check_call XGBoostError: .*Invalid cast, from \w+ to",
        r"encoder\.py default TypeError: Object of type \w+ is not JSON serializable",
    )
)


def _refused(error: BaseException) -> bool:
    """Whether XGBoost itself refused, with a message that is known."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{Path(last.filename).name} {last.name} {type(error).__name__}: {_message(error)}"
    is_own_error = isinstance(
        error, Impossible
    )  # an object of the caller that raises whatever is done
    return is_own_error or any(pattern.match(text) for pattern in UPSTREAM)


def run(seed: int, number: int, folder: Path) -> dict[str, str]:
    """Run one case."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xgb.set_config(verbosity=1)  # XGBoost keeps what it refuses from an estimator
        try:
            case = make(seed, number, folder)
        except Exception as error:  # rows that XGBoost does not take
            return {"fault": "", "text": "rows", "end": f"no rows: {type(error).__name__}"}
        before = case.budget.read_bytes() if case.budget is not None else b""
        try:
            model, error = case.call(), None
        except Exception as raised:
            model, error = None, raised
        fault = _fault(case, model, error)
    if not fault and error is not None and case.budget is not None:
        changed = _entries(case.budget.read_bytes()) != _entries(before)
        if changed:
            fault = f"an error changed the book: {type(error).__name__}: {error}"
    shown = [str(w.message) for w in caught]
    if not fault and any(MARKS.search(text) for text in shown):
        fault = "a warning shows a cell: " + next(t for t in shown if MARKS.search(t))
    end = "trained" if error is None else f"{type(error).__name__}: {_message(error)[:80]}"
    return {"fault": fault, "text": case.text, "end": end}


def _entries(budget: bytes) -> Any:
    return json.loads(budget)["entries"]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "<a message that cannot be shown>"


def _fault(case: Case, model: Any, error: Exception | None) -> str:
    if error is None:
        return _of_model(case, model) if model is not None else ""
    text = _message(error)
    if MARKS.search(text):
        return f"a message shows a cell: {type(error).__name__}: {text}"
    try:
        text.encode()
    except UnicodeError:
        return f"a message is no text: {type(error).__name__}: {text!a}"
    if isinstance(error, (PrivacyError, NativeLibraryError)):
        return "a message of 5,000 characters" if len(text) > 5000 else ""
    if case.stock or _refused(error):
        return ""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno} {where.name}: "
        f"{text[:300]}"
    )


def _of_model(case: Case, model: Any) -> str:
    """A model that was asked to be private is, by a ledger whose noise was drawn."""
    if not case.is_private:
        return ""
    try:
        report = xgb_dp.privacy_report(model)
    except LedgerError as error:
        return f"trained without privacy: {error}"
    epsilon = case.params.get("dp_epsilon")
    try:
        target = float(epsilon)
    except (TypeError, ValueError):
        return f"trained with dp_epsilon={epsilon!r}"
    if report.private != (target != float("inf")):
        return f"epsilon {target}, but private is {report.private}"
    if report.private and model.num_boosted_rounds() and not _differs(case, model):
        return "two trainings gave one model: no noise was drawn"
    return ""


def _differs(case: Case, model: Any) -> bool:
    """Whether another training gives other trees or another intercept."""
    first = _trees(model)
    for _ in range(4):  # small noise may be rounded away
        try:
            if _trees(case.call()) != first:
                return True
        except PrivacyError:  # the budget has no room for more
            return True
    return False


def _trees(model: Any) -> str:
    learner = json.loads(model.save_raw("json"))["learner"]
    return json.dumps([learner["gradient_booster"], learner["learner_model_param"]])
