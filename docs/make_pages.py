"""Generate the pages of parameters, presets and commands from the code of ``xgb_dp``.

Run it as ``.venv/bin/python docs/make_pages.py``.
"""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

from xgb_dp.mechanisms.splits import OF_TREES
from xgb_dp.parameters.parameter import Parameter, Table
from xgb_dp.presets import PRESETS, SYSTEMS, Preset
from xgb_dp.request.default_plans import (
    AFTER_COLUMNS,
    COLUMNS,
    MEETINGS,
    MOST_ROUNDS,
    NOT_FROM_COLUMNS,
    SIZES,
    SPARSE,
)
from xgb_dp.request.names import NEUTRAL, REFUSED
from xgb_dp.request.params import ARGUMENTS, DEFAULT_ROUNDS, PARAMETERS

DOCS = Path(__file__).resolve().parent

NOTE = "<!-- Written by docs/make_pages.py. Do not edit by hand. -->"

HEAD = f"""{NOTE}

# Parameters of private training

Most trainings need only the first table. Defaults may differ from XGBoost's. A name links to a
page on its effect on privacy, which is one of:

- **public**: the value is public. Do not choose it by looking at the training rows.
- **spends**: it determines how much of the budget is spent, or on which releases.
- **free**: it acts on released values only. Choosing it by comparing models on private rows does
  cost budget.
"""

ROUNDS = """\
If you do not set the number of rounds, the trainer chooses one of the plans below by a noisy number
of rows. The budget covers the choice ([proof](proofs/choice.md)).

- Parameters that you set are kept: the number of rounds, `eta` and `max_bin`. If you set the number
  of rounds, the default trees depend on `dp_epsilon` only. If you set a tree parameter ({trees}),
  the plan determines only the number of rounds and `eta`.
- With a smaller `eta` the plan has more rounds, at most {most}, with the same sum of steps.
- Above epsilon 2 (at most 16 counts), the first plan of two classes ends at 4,000/ε rows. Unless
  you set `eta`, their plans below have √(ε/2) times the rounds, with `eta` divided by as much.
- With `dp_public_num_rows` the choice is public.
- A sparse table with two classes and {columns} numeric columns gets {after} rounds that
  [start from columns](accuracy.md#sparse-tables) (`dp_start="columns"`). The share of its cells
  that are neither 0 nor missing must be below {sparse:.0%}, and the strength times the square of
  this share below {meetings:.0f}. The intercept must be released and the number of rows private,
  and none of the following may be set: `feature_weights`, {without}.
- Other presets, `subsample` below 1, `dp_ensemble`, `dp_accountant="pure"` and `dp_epsilon=inf`
  always use {rounds} rounds by default; `dp_rf` and `dp_ebm` have no default.

{table}

The column "start" is `dp_eta_warmup`, which is 1 if you set `eta`. The strength is
n ε / (1 + ε/2) / (K − 1) for n rows and K classes (K = 2 for binary labels and for regression)."""


def _sizes() -> str:
    """The plans by number of rows; several kinds of labels may share one."""
    lines = [
        "| labels | strength | rounds | shape, depth, bins, levels of a selection | eta | start |",
        "|---|---|---|---|---|---|",
    ]
    kinds_by_row: dict[tuple[Any, ...], list[str]] = {}
    for kind, sizes in SIZES.items():
        low = 0.0
        for size in sizes:
            where = f"below {size.below:,.0f}" if size.below < math.inf else f"from {low:,.0f}"
            steps = f"{size.eta:g}", f"{size.start:g}"
            depth, shape, bins, levels = size.trees
            row = (where, size.rounds, f"{shape}, {depth}, {bins}, {levels}", *steps)
            kinds_by_row.setdefault(row, []).append(kind)
            low = size.below
    for row, kinds in kinds_by_row.items():
        lines.append("| " + " | ".join([", ".join(kinds), *map(str, row)]) + " |")
    return "\n".join(lines)


def _rounds() -> str:
    names, without = (
        ", ".join(f"`{name}`" for name in sorted(given)) for given in (OF_TREES, NOT_FROM_COLUMNS)
    )
    return ROUNDS.format(
        trees=names,
        without=without,
        columns=f"{COLUMNS[0]} to {COLUMNS[-1]:,}",
        after=AFTER_COLUMNS.rounds,
        sparse=SPARSE,
        meetings=MEETINGS,
        most=MOST_ROUNDS,
        rounds=int(DEFAULT_ROUNDS),
        table=_sizes(),
    )


ABOUT = {
    Table.DEFAULT: "The default preset chooses these parameters. Other values more often "
    "reduce accuracy than improve it ([measurements](accuracy.md)).",
    Table.LOSSES: "Parameters of particular losses ([how-to](howto/objectives.md)).",
    Table.PUBLIC_ROWS: "For data or models without private information "
    "([how-to](howto/public.md)).",
    Table.MASKED_SUMS: "For several parties that do not trust each other "
    "([how-to](howto/federated.md)).",
}

REFUSED_HEAD = """\
## Refused parameters

Private training refuses parameters that are not known to be safe.
"""


def _cell(text: str) -> str:
    """Escape text for a table cell: pipes end a cell, and angle brackets are HTML."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def _source(name: str) -> str:
    """Return the path of the page of that name, or an empty string."""
    for page in (f"{name}.md", f"proofs/{name}.md"):
        if name != "parameters" and (DOCS / page).is_file():
            return page
    return ""


def _row(p: Parameter) -> str:
    name = f"`{p.name}`"
    source = _source(p.page)
    names = (f"[{name}]({source})" if source else name) + "".join(f", `{a}`" for a in p.aliases)
    meaning = f"{p.meaning[0].upper()}{p.meaning[1:].rstrip('.')}"
    values = re.findall(r"'[^']+'", p.domain)
    if not (p.domain.startswith("'") and all(value in p.meaning for value in values)):
        meaning += f". *{p.domain}*"
    if p.unit and p.unit not in p.domain and p.unit.rstrip("s") not in p.meaning:
        meaning += f" ({p.unit})"
    effect = p.effect.split()[0]
    cells = (p.unset, effect, f"{meaning}.")
    return f"| {names} | " + " | ".join(_cell(c) for c in cells) + " |"


def _table(rows: Iterable[Parameter]) -> str:
    head = "| parameter | default | privacy effect | meaning, *values* (unit) |\n" + "|---" * 4
    return "\n".join([head + "|", *map(_row, rows)])


def parameters_page() -> str:
    """Return the text of ``docs/parameters.md``."""
    rows = PARAMETERS.values()
    sections = [(t.value, ABOUT[t], [p for p in rows if p.table is t]) for t in ABOUT]
    sections += [
        (system.title, system.about, [p for p in rows if p.name in system.parameters])
        for system in SYSTEMS
    ]
    usual = _table(p for p in rows if p.table is Table.USUAL)
    others = (f"## {title}\n\n{about}\n\n{_table(rows)}\n" for title, about, rows in sections)
    return (
        f"{HEAD}\n## {Table.USUAL.value}\n\n{usual}\n"
        f"\n## Rounds\n\n{_rounds()}\n\n{_table(ARGUMENTS.values())}\n\n"
        + "\n".join(others)
        + f"\n{_passed_on()}\n{_refused()}"
    )


def _passed_on() -> str:
    """Return the section on names that XGBoost reads itself."""
    rows = [p for p in PARAMETERS.values() if p.table is Table.STOCK]
    names = [f"`{name}`" for p in rows for name in (p.name, *p.aliases)]
    return (
        f"## {Table.STOCK.value}\n\nXGBoost reads {', '.join(names[:-1])} and {names[-1]} itself. "
        "They do not change the trees, and the noise never depends on a seed.\n"
    )


def _refused() -> str:
    """Return the refused names, with the values that are accepted."""
    accepted = ", ".join(f"`{name}={value!r}`" for name, value in NEUTRAL.items())
    others = ", ".join(f"`{name}`" for name in REFUSED if name not in NEUTRAL)
    return f"{REFUSED_HEAD}\nAccepted: {accepted}.\n\nRefused with any value: {others}.\n"


PRESETS_HEAD = f"""{NOTE}

# Presets: the published systems

`dp_preset="..."` sets the parameters of a published system; parameters that you pass take
precedence. `print(xgb_dp.presets.describe(name))` lists its settings. All presets use the same
engine, proofs, ledger and report. Below are the differences from papers; the section of a preset
has those that no other preset has. Some papers' algorithms are not private.

Presets other than the default require public bounds for all numeric columns
(`dp_feature_bounds`). Multi-class objectives work with presets that use Newton leaves and
`dp_gradient_clip="row_weight"`.
"""
REFERENCES = """\
## References

* Grislain and Gonzalvez (2021): arXiv:2110.12770.
* Li, Wu, Wen and He (2020): AAAI, arXiv:1911.04209.
* Maddock et al. (2022): CCS, arXiv:2210.02910.
* Nori et al. (2021): ICML, arXiv:2106.09680.
* Revisiting Differentially Private XGBoost: Are Random Decision Trees Really Better than Greedy
  Ones? (2023): OpenReview bCynxWndWY (anonymous, withdrawn).
"""
SEVERAL = 2
"""Presets that must share a difference for it to be listed once."""


def presets_page() -> str:
    """Return the text of ``docs/presets.md``: each preset and its differences from its paper."""
    who: dict[str, list[str]] = {}
    for preset in PRESETS.values():
        for text in preset.differs:
            who.setdefault(text, []).append(f"`{preset.name}`")
    shared = {text: names for text, names in who.items() if len(names) >= SEVERAL}
    sections = {p.name: _section(p, shared) for p in PRESETS.values()}
    lines = ["| preset | system | source |", "|---|---|---|"]
    for p in PRESETS.values():
        name = f"[`{p.name}`](#{p.name})" if sections[p.name] else f"`{p.name}`"
        lines.append(f"| {name} | {_cell(p.system)} | {_linked(_cell(p.source))} |")
    lines += ["", "## Common differences from the papers", ""]
    by_names: dict[str, list[str]] = {}
    for text, names in shared.items():
        every = len(names) == len(PRESETS) - 1  # all but the default
        by_names.setdefault("All" if every else ", ".join(names), []).append(f"* {_cell(text)}")
    for who_differs, changes in by_names.items():
        lines += [f"{who_differs}:", "", *changes, ""]
    lines.pop()
    for name, section in sections.items():
        if section:
            lines += ["", f"## {name}", "", *section]
    return f"{PRESETS_HEAD}\n" + "\n".join(lines).rstrip() + f"\n\n{REFERENCES}"


def _section(preset: Preset, shared: Container[str]) -> list[str]:
    """Return what a preset needs, and its differences from its paper that no other preset has."""
    needs = [text for text in preset.required if "dp_feature_bounds" not in text]
    changes = [text for text in preset.differs if text not in shared]
    changes = changes or ([] if preset.differs else list(preset.follows))
    lines = ["Required: " + "; ".join(needs) + "."] if needs else []
    lines += [""] if needs and changes else []
    return lines + [f"* {_cell(text)}" for text in changes]


COMMANDS_HEAD = f"""{NOTE}

# Commands

`xgb-dp COMMAND`, or `python -m xgb_dp COMMAND`, from the extra `cli` ([how-to](howto/cli.md)).

## Exit codes

"""
SHARED = 2
"""Commands that must share an option for it to be listed once."""
MANY = 4
"""Consecutive shared options above which only the first and last are shown."""


def _option(param: Any) -> str:
    names = ", ".join(f"`{name}`" for name in param.opts)
    if not param.is_flag:
        names += f" {_metavar(param)}"
    text = (param.help or "").rstrip(".")
    notes = ["repeatable"] if param.multiple else []
    if param.required:
        notes.append("required")
    elif param.default and isinstance(param.default, (str, float)):
        notes.append(f"default `{param.default}`")
    meaning = _linked(_cell("; ".join([text, *notes]).lstrip("; ")))
    return f"* {names}: {meaning}"


def _linked(text: str) -> str:
    """Turn page names in a text into links."""
    return re.sub(r"docs/([\w/-]+)\.md", r"[\1](\1.md)", text)


def _metavar(param: Any) -> str:
    """Return an option's metavar without the brackets of a list of choices."""
    text: str = param.make_metavar(_context())
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def _context() -> Any:
    import click

    return click.Context(click.Command("xgb-dp"))


def commands_page() -> str:
    """Return the text of ``docs/commands.md``."""
    from xgb_dp.cli.commands import cli
    from xgb_dp.cli.group import EXIT_CODES

    commands = cli.commands
    given, options = (
        {
            name: [p for p in command.params if p.param_type_name == kind]
            for name, command in sorted(commands.items())
        }
        for kind in ("argument", "option")
    )
    times = Counter(_option(p) for taken in options.values() for p in taken)
    shared = [row for row, number in times.items() if number >= SHARED]
    lines = ["| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    lines += [
        "",
        "## Shared options",
        "",
        *shared,
    ]
    for name, taken in options.items():
        command = commands[name]
        usage = " ".join([f"xgb-dp {name}", *(p.make_metavar(_context()) for p in given[name])])
        lines += ["", f"## {name}", "", f"    {usage}" + (" [OPTIONS]" if taken else "")]
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            if not paragraph.startswith("\b"):  # examples are in the how-tos
                lines += ["", *paragraph.splitlines()]
        alone = [row for row in map(_option, taken) if row not in shared]
        if alone:
            lines += ["", *alone]
        if others := [shared.index(row) for row in map(_option, taken) if row in shared]:
            names = ", ".join(_runs(others, [row.split("`")[1] for row in shared]))
            lines += ["", f"{'Also' if alone else 'Takes'}: {names}."]
    return COMMANDS_HEAD + "\n".join(lines) + "\n"


def _runs(rows: list[int], names: list[str]) -> list[str]:
    """Return names of rows; show long consecutive runs as the first and the last."""
    runs: list[list[int]] = []
    for i in sorted(rows):
        if runs and i == runs[-1][-1] + 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    out: list[str] = []
    for run in runs:
        shown = [f"`{names[i]}`" for i in run]
        out += [f"{shown[0]} to {shown[-1]}"] if len(run) > MANY else shown
    return out


def pages() -> dict[Path, str]:
    """Return the text of every generated page by path."""
    return {
        DOCS / "parameters.md": parameters_page(),
        DOCS / "presets.md": presets_page(),
        DOCS / "commands.md": commands_page(),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
