"""Calls of the command line, and the rows and the schema that they are given."""

import numpy as np
import pandas as pd

SCHEMA = """\
target: buys
classes: [no, yes]
missing: ["", "?"]
drop: [id]
columns:
  age: {bounds: [0, 120]}
  height: number
  zip: [011, 1.10, on, "None"]
  pet: {categories: [cat, dog, others], other: others}
params: {max_depth: 2}
"""
TARGET = ["--epsilon", "1", "--delta", "1e-6"]
SPENT = [*TARGET, "--rounds", "3"]
TRAIN = ["train", "rows.csv", "--schema", "schema.yaml", *SPENT]


def rows(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, n)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "age": age.astype(str),
            "height": np.where(rng.random(n) < 0.2, "?", rng.normal(170, 10, n).round(1)),
            "zip": rng.choice(["011", "1.10", "on", "None", ""], n),
            "pet": rng.choice(["cat", "dog", "an undeclared snake"], n),
            "buys": np.where(age > 50, "yes", "no"),
        }
    )


def invoke(*arguments, **options):
    """What a command did: its output, its exit code, and no error but that of the command."""
    from click.testing import CliRunner  # an optional dependency

    from xgb_dp.cli.commands import cli

    result = CliRunner().invoke(cli, [str(a) for a in arguments], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


def fails(*arguments):
    """The error message of a command; a usage error has code 2."""
    result = invoke(*arguments)
    assert result.exit_code != 0, result.output
    return result.stderr
