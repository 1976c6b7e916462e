"""The command that chooses among settings privately."""

from __future__ import annotations

import click

from ..domain.declared import typed
from ..domain.domain import ATTRIBUTE
from ..errors import PrivacyParameterError
from ..record.binding import attach
from ..request.params import DEFAULT_ROUNDS
from ..tuning.score_names import SCORES
from . import options
from .cmd_train import rows_and_params, say_what_was_spent
from .group import Given, command
from .options import OUT, ROWS
from .output import booked_on, model_file, new_files, say
from .places import save


@command("select")
@click.argument("data", type=ROWS)
@options.domain
@click.option("--epsilon", type=float, required=True, help="Of the whole selection, in nats.")
@options.delta
@click.option(
    "--grid",
    "grids",
    multiple=True,
    required=True,
    metavar="NAME=A,B,...",
    help="Values of a parameter among which to choose, e.g. max_depth=2,4 or rounds=20,50.",
)
@click.option("--score", type=click.Choice(SCORES), help="What models are judged by.")
@options.training
@options.budget
@click.option("--model", type=OUT, default="model.json", help="Where to save.")
@options.csv
@options.force
def select(given: Given) -> None:
    """Choose among settings on the rows of DATA, and save the best model.

    Spends epsilon and delta once, for the model, its setting and its score.

    \b
    xgb-dp select people.csv --schema people.yaml --grid max_depth=2,4 --grid eta=0.1,0.3 \\
        --epsilon 2 --delta 1e-6 --model income.json
    """
    model, grid = given.model, _grid(given.grids)
    new_files([model], force=given.force)
    table, params = rows_and_params(given)
    from ..tuning.best_run import select as best_of

    note = f"select {model.name}"
    with booked_on(given.budget, note) as book:
        chosen = best_of(
            params,
            table.matrix(),
            grid,
            num_boost_round=DEFAULT_ROUNDS if given.rounds is None else given.rounds,
            budget=book,
            note=note,
            **given.named("epsilon", "delta", "score"),
        )
        attach(chosen.booster, **{ATTRIBUTE: table.domain.to_json()})
        save(model_file(model, chosen.booster))
    setting = ", ".join(f"{name}={value}" for name, value in chosen.setting.items())
    say(f"{setting}: {chosen.score_name} {chosen.score:.4f} ± {chosen.score_noise:.4f}")
    say_what_was_spent(chosen.report, model, table.domain)


def _grid(texts: tuple[str, ...]) -> dict[str, list[object]]:
    """The values of each parameter, as :func:`xgb_dp.select` takes them."""
    grid: dict[str, list[object]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = "num_boost_round" if name == "rounds" else name
        if not name or not equals or not values or name in grid:
            raise PrivacyParameterError(
                "--grid takes NAME=A,B,..., once for each parameter, for example "
                "--grid max_depth=2,4."
            )
        grid[name] = [typed(value) for value in values.split(",")]
    return grid
