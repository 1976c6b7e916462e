"""All commands: a file ``cmd_*.py`` of this folder registers its command as it is imported."""

import importlib
import pkgutil
from pathlib import Path

from . import group

for _module in pkgutil.iter_modules([str(Path(__file__).parent)]):
    if _module.name.startswith("cmd_"):
        importlib.import_module(f".{_module.name}", __package__)

cli = group.cli
