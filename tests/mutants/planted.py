"""A plugin of pytest that plants the mistake which the environment names, before any import."""

from __future__ import annotations

import json
import os
from pathlib import Path

from .plant import Mistake, install

_GIVEN = json.loads(os.environ["XGB_DP_MISTAKE"])
install(Mistake(**_GIVEN["mistake"]), Path(_GIVEN["path"]))
