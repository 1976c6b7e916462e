"""The name ``xgboost``: this wheel's private build, beside a stock package that may own the name.

The private build lies in a folder that is on no path, so that no file of a stock `xgboost` is
touched, whichever is installed first. ``import xgboost`` finds

- the stock package where there is one, and the private build where there is none;
- the private build in any case once ``xgb_dp`` was imported, also in the processes that
  multiprocessing starts from then on, or where the environment variable ``XGB_DP_XGBOOST`` is
  ``private``, such as in workers of a cluster.

Every interpreter imports this file when it starts (``xgb_dp_import_redirect.pth``), so it imports
no more than is loaded already.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_xgb_dp_xgboost")
VARIABLE = "XGB_DP_XGBOOST"
_NAME = "xgboost"


class ImportRedirect:
    """Finds the private build under the name ``xgboost``, before all other finders are asked.

    Attributes:
        private: Whether the private build is given although there is a stock package.
    """

    def __init__(self) -> None:
        self.private = os.environ.get(VARIABLE) == "private"

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """The private build, or None to leave it to the other finders."""
        del path, target
        private = self.private or FOLDER in sys.path
        if name != _NAME or (not private and stock_origin() is not None):
            return None
        return PathFinder.find_spec(_NAME, [FOLDER])


def stock_origin() -> str | None:
    """The file of the other package of this name that the other finders know; None without one.

    A folder that happens to be called so, and is no package, does not count.
    """
    finders: list[object] = list(sys.meta_path)
    for finder in finders:
        if isinstance(finder, ImportRedirect):
            continue
        find = getattr(finder, "find_spec", None)
        others = [entry for entry in sys.path if entry != FOLDER] if finder is PathFinder else None
        try:
            spec = find(_NAME, others) if find is not None else None
        except Exception:  # a finder of somebody else may do anything
            spec = None
        if spec is not None and spec.origin is not None:
            return str(spec.origin)
    return None


def take() -> None:
    """From now on ``import xgboost`` gives the private build in this process.

    Its children unpickle what this process sent them, models for one, and import ``xgboost`` for
    that before they import ``xgb_dp``, if they do at all. Python hands ``sys.path`` to children
    that start afresh, so an entry at its end informs their redirects; other programs do not see it.
    """
    REDIRECT.private = True
    if FOLDER not in sys.path:
        sys.path.append(FOLDER)


REDIRECT = ImportRedirect()
sys.meta_path.insert(0, REDIRECT)  # type: ignore[arg-type]
