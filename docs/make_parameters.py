"""Write ``docs/parameters.md`` and ``docs/refused.md`` from the table in ``xgb_dp/params.py``.

Run it as ``.venv/bin/python docs/make_parameters.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from xgb_dp.params import ALLOWED, DP_PARAMETERS, NEUTRAL, REFUSED, Parameter

DOCS = Path(__file__).resolve().parent

NOTE = "<!-- Written by docs/make_parameters.py from xgb_dp/params.py. Do not edit by hand. -->"

HEAD = f"""{NOTE}

# Parameters of private training

What you leave unset takes the private default below, not XGBoost's. A parameter that is in none of
these tables is refused; [refused.md](refused.md) says why.

The privacy effect is one of:

- **public**: taken as known to everybody. Do not choose it by looking at the training rows.
- **spends budget**: decides how much privacy is spent, or on what.
- **free post-processing**: acts on already released values only and costs nothing. Choosing it by
  comparing models on private rows does cost.
"""

REFUSED_HEAD = f"""{NOTE}

# Refused parameters

Private training takes only what is known to be safe. These parameters of XGBoost are refused, each
with its reason; "accepted value" is the one that switches the feature off. Any other unknown name
is refused too.
"""


def _cell(text: str) -> str:
    """Text for a table cell: a pipe would end the cell, angle brackets would be read as HTML."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def _source(name: str) -> str:
    """A link to the page that the name stands for, where there is one."""
    for page in (f"{name}.md", f"proofs/{name}.md"):
        if name != "parameters" and (DOCS / page).is_file():
            return f"[{name}]({page})"
    return "" if name == "parameters" else name


def _row(p: Parameter) -> str:
    names = f"`{p.name}`" + "".join(f", `{a}`" for a in p.aliases)
    unit = "" if p.unit in ("", "1") else p.unit
    cells = (p.meaning, unit, p.values, p.default, p.effect, _source(p.source))
    return f"| {names} | " + " | ".join(_cell(c) for c in cells) + " |"


def _table(rows: Iterable[Parameter]) -> str:
    head = "| parameter | meaning | unit | values | default | privacy effect | see |\n" + "|---" * 7
    return "\n".join([head + "|", *map(_row, rows)])


def parameters_page() -> str:
    """Text of ``docs/parameters.md``."""
    return (
        f"{HEAD}\n## The `dp_*` parameters\n\n{_table(DP_PARAMETERS.values())}\n"
        f"\n## Parameters of XGBoost\n\n{_table(ALLOWED.values())}\n"
    )


def refused_page() -> str:
    """Text of ``docs/refused.md``."""
    lines = ["| parameter | reason | accepted value |", "|---|---|---|"]
    for name, reason in REFUSED.items():
        neutral = f"`{NEUTRAL[name][0]!r}`" if name in NEUTRAL else "none"
        lines.append(f"| `{name}` | {_cell(reason)} | {neutral} |")
    return f"{REFUSED_HEAD}\n" + "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """Every page with its text."""
    return {DOCS / "parameters.md": parameters_page(), DOCS / "refused.md": refused_page()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
