"""Child processes that start at once."""

from __future__ import annotations

import os
from pathlib import Path

# Most of a short child's time is the import of these, which `import xgboost` tries, and which code
# that trains on arrays does not need.
LIGHT = "import sys; sys.modules.update(dict.fromkeys(('sklearn', 'pandas')))\n"


def light_environment(folder: Path) -> dict[str, str]:
    """Environment in which every Python starts with `LIGHT`, also those that a child starts.

    Args:
        folder: Where the code that Python runs first is put.
    """
    (folder / "sitecustomize.py").write_text(LIGHT)
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
