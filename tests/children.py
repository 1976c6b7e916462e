"""Child processes that start at once."""

from __future__ import annotations

# Most of a short child's time is the import of these, which `import xgboost` tries, and which code
# that trains on arrays does not need.
LIGHT = "import sys; sys.modules.update(dict.fromkeys(('sklearn', 'pandas')))\n"
