"""Generated data sets: of the papers, one of any size, of persons with many rows, and of words."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import make_classification, make_regression

STATE = 100


def generate(
    name: str, rows: int, columns: int
) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[str]]]:
    """Features, target and the declared categories.

    Args:
        name: "classification" and "regression": scikit-learn's generators as they stand;
            "interactions 1" and "interactions 2": labels from products of three normal columns;
            "informative K": K informative columns, the others noise; "many interactions": twelve
            normal columns in smooth, stepped and multiplied terms, and labels that are drawn;
            "visits": see :func:`visits`; "codes K": normal columns and a last one of K codes with
            an effect each.
        rows: Number of rows; of "visits" that of persons.
        columns: Number of columns.

    Raises:
        ValueError: If there is no such generator.
    """
    rng = np.random.default_rng(STATE)
    if name == "classification":
        x, y = make_classification(rows, columns, random_state=STATE)
    elif name == "regression":
        x, y = make_regression(rows, columns, random_state=STATE)
    elif name == "many interactions":
        x = rng.standard_normal((rows, columns), dtype=np.float32)
        y = rng.random(rows, dtype=np.float32) < 1 / (1 + np.exp(-1.5 * _many_interactions(x)))
    elif name == "visits":
        x, y = visits(rows, columns)
    elif name.startswith("codes"):
        return codes(rows, columns, int(name.split()[1]))
    elif name.startswith("interactions"):
        # Appendix C.2.1 of the DP-XGB paper; N(mean, variance).
        x = rng.normal([1, -5, -2], np.sqrt([25, 8, 7]), (rows, 3))
        a, b, c = x.T
        score = a * b + a * c + b * c + a * b * c
        if name.endswith("2"):
            score = score + a + b + c
        y = score > 0
    elif name.startswith("informative"):
        k = int(name.split()[1])
        # Two classes of one cluster each need 2^k >= 2 corners; the rest is noise of its own.
        x, y = make_classification(rows, k, n_informative=k, n_redundant=0, random_state=STATE)
        x = np.hstack([x, rng.normal(size=(rows, columns - k))])
    else:
        raise ValueError(f"No generator {name!r}")
    names = [f"x{i}" for i in range(x.shape[1])]
    frame = pd.DataFrame(x.astype(np.float32, copy=False), columns=names, copy=False)
    return frame, np.asarray(y, dtype=np.float32), {}


def codes(
    rows: int, columns: int, known: int
) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[str]]]:
    """Labels that depend on three normal columns and on a code, whose shares differ."""
    rng = np.random.default_rng(STATE)
    x = rng.standard_normal((rows, columns - 1), dtype=np.float32)
    code = rng.choice(known, size=rows, p=rng.dirichlet(np.ones(known)))
    score = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] + rng.standard_normal(known)[code]
    y = rng.random(rows) < 1 / (1 + np.exp(-score))
    frame = pd.DataFrame(x, columns=[f"x{i}" for i in range(columns - 1)])
    names = [str(1000 + i) for i in range(known)]
    frame["code"] = pd.Categorical.from_codes(code, categories=names)
    return frame, y.astype(np.float32), {"code": names}


# Rows of a person: the logarithm is normal, within what is public.
MEDIAN_ROWS, LOG_SPREAD, MOST_ROWS = 28.0, 1.3, 1000
OF_PERSON = 4


def rows_of_persons(persons: int) -> np.ndarray:
    """Whom each row of :func:`visits` belongs to: 0, 1, ... in turn, shape (rows,)."""
    rng = np.random.default_rng(STATE)
    rows = np.exp(rng.normal(np.log(MEDIAN_ROWS), LOG_SPREAD, persons)).round()
    return np.repeat(np.arange(persons), rows.clip(1, MOST_ROWS).astype(int))


def visits(persons: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of persons, of whom most have some tens and a few a thousand.

    The first OF_PERSON columns are the same in all rows of a person; of the others up to half of
    the variance is. Labels have the effects of both, of the person itself, which no column shows,
    and of the number of its rows: who has many of them has fewer ones.

    Args:
        persons: Number of persons.
        columns: Number of columns, above OF_PERSON.

    Returns:
        Features and labels of the rows of :func:`rows_of_persons`.
    """
    who = rows_of_persons(persons)
    rng = np.random.default_rng(STATE + 1)
    fixed = rng.standard_normal((persons, OF_PERSON))[who]
    of_row = columns - OF_PERSON
    share = np.linspace(0.0, 0.5, of_row)
    c = np.sqrt(share) * rng.standard_normal((persons, of_row))[who]
    c += np.sqrt(1.0 - share) * rng.standard_normal((len(who), of_row))
    score = 0.5 * np.tanh(1.5 * fixed[:, 0]) + 0.4 * (fixed[:, 1] > 0.5) + 0.4 * c[:, 0] * c[:, 1]
    shapes = (
        lambda x: np.tanh(2.0 * x),
        lambda x: np.abs(x) - 0.8,
        lambda x: x > 0.7,
        lambda x: np.sin(1.5 * x),
    )
    for j in range(of_row):
        score = score + 0.6 * shapes[j % len(shapes)](c[:, j])
    of_person = 0.6 * rng.standard_normal(persons) - 0.1 * np.log(np.bincount(who) / MEDIAN_ROWS)
    odds = 1.3 * score - 0.7 + of_person[who]
    y = rng.random(len(who)) < 1.0 / (1.0 + np.exp(-odds))
    return np.hstack([fixed, c]), y


# Words of a text, in the middle; their logarithm is normal. What the labels follow has this spread.
MEDIAN_WORDS, WORDS_SPREAD, SIGNAL_SPREAD = 53.0, 0.5, 2.0
TOPICS, TOPIC_SPREAD = 10, 1.5


def words(kind: str, rows: int, columns: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Texts as counts of words: how often a row has the word of each column; 0 is not stored.

    The k-th most frequent word has a frequency of 1/k (Zipf's law). The log-odds of a label are a
    linear function of log(1 + count) of some of the words.

    Args:
        kind: "few words": one word in twenty matters; "many words": every second does; "topics":
            as the first, and a text is a mixture of topics that prefer some of the words;
            "presence": as the second, but cells say only whether a word occurs, and the frequency
            is 1/sqrt(k).
        rows: Number of rows.
        columns: Number of words.

    Raises:
        ValueError: If there is no such kind.
    """
    if kind not in ("few words", "many words", "topics", "presence"):
        raise ValueError(f"No texts {kind!r}")
    rng = np.random.default_rng(STATE)
    frequency = np.arange(1, columns + 1) ** (-0.5 if kind == "presence" else -1.0)
    frequency /= frequency.sum()
    length = np.exp(rng.normal(np.log(MEDIAN_WORDS), WORDS_SPREAD, rows)).round().astype(int) + 1
    row = np.repeat(np.arange(rows), length)
    if kind == "topics":
        mixture = rng.dirichlet(np.full(TOPICS, 0.3), rows)
        topic = (rng.random(len(row))[:, None] > mixture.cumsum(axis=1)[row]).sum(axis=1)
        column = np.empty(len(row), dtype=int)
        for t in range(TOPICS):
            of_topic = frequency * np.exp(rng.normal(0.0, TOPIC_SPREAD, columns))
            column[topic == t] = rng.choice(
                columns, (topic == t).sum(), p=of_topic / of_topic.sum()
            )
    else:
        column = rng.choice(columns, len(row), p=frequency)
    column = rng.permutation(columns)[column]
    ones = np.ones(len(row), dtype=np.float32)
    counts = sparse.csr_matrix((ones, (row, column)), (rows, columns))
    counts.sum_duplicates()
    if kind == "presence":
        counts.data[:] = 1.0
    share = 0.5 if kind in ("many words", "presence") else 0.05
    weights = np.where(rng.random(columns) < share, rng.standard_normal(columns), 0.0)
    score = counts.log1p() @ weights
    score = SIGNAL_SPREAD * (score - score.mean()) / score.std()
    y = rng.random(rows) < 1.0 / (1.0 + np.exp(-score))
    return counts, y.astype(np.float32)


def _many_interactions(x: np.ndarray) -> np.ndarray:
    """The log-odds of "many interactions", divided by 1.5."""
    c = x.T
    return (
        np.sin(2 * c[0]) * c[1]
        + 0.8 * np.abs(c[2]) * c[3]
        + 0.7 * c[4] * c[5]
        + 0.5 * np.tanh(3 * c[6])
        + 0.6 * ((c[7] > 0.5) & (c[8] < 0))
        + 0.4 * c[9] * c[10] * c[11]
    )
