"""``xgb-dp --version``: this package, the XGBoost that it has loaded, and where both lie.

It runs without the extra `cli`, and where the library is missing or is not ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .. import __version__
from ..engine import native
from ..engine.door import files_are_private, stock_origin

_REINSTALL = "Reinstall it: pip install --force-reinstall --no-deps xgb-dp"


def main() -> int:
    """Print versions and places; 0 if private training works with them."""
    print(f"xgb-dp {__version__}, in {Path(__file__).resolve().parents[1]}")
    try:
        import xgboost

        library = getattr(xgboost.core._LIB, "path", None) or xgboost.core._LIB._name
        private = native.is_dp_build() and files_are_private()
    except Exception as error:  # whatever keeps it from loading
        print(f"no XGBoost can be loaded ({type(error).__name__}). {_REINSTALL}")
        return 1
    kind = "private build" if private else "not the private build"
    print(f"XGBoost {xgboost.__version__}, {kind}: {library}")
    for line in _advice(private):
        print(line)
    return 0 if private else 1


def _advice(private: bool) -> Iterator[str]:
    if not private:
        yield (
            native.stock_hint()
            if not native.is_dp_build()
            else (f"The Python files of `xgboost` come from a stock wheel. {_REINSTALL}")
        )
    elif origin := stock_origin():
        yield (
            f"`import xgboost` gives the stock package in {Path(origin).parent} until xgb_dp is "
            f"imported, or always the private build with {native.VARIABLE}=private."
        )
