"""Bins and scales of columns that count as public: they are read off the whole file."""

from __future__ import annotations

import numpy as np


def bin_codes(column: np.ndarray, nominal: bool, bins: int) -> np.ndarray:
    """Bin of each value, from 0 on and without gaps; a missing value has one of its own.

    Values that more than one over `bins` of the rows share have a bin each, as the zeros of many
    columns need; the other rows are in quantile bins.

    Args:
        column: Values of all rows.
        nominal: Whether each value is a bin.
        bins: Number of quantile bins otherwise.
    """
    known = column[~np.isnan(column)]
    values, counts = np.unique(known, return_counts=True)
    if not nominal and len(values) > bins:
        often = values[counts > len(known) / bins]
        rest = known[~np.isin(known, often)]
        cuts = np.quantile(rest, np.arange(1, bins) / bins, method="higher") if len(rest) else rest
        # Each often shared value begins a bin, and so does the value after it.
        after = values[np.minimum(np.searchsorted(values, often) + 1, len(values) - 1)]
        values = np.unique(np.concatenate([often, after, cuts]))
    codes = np.searchsorted(values, column, side="right")
    codes[np.isnan(column)] = len(values) + 1
    return np.unique(codes, return_inverse=True)[1]


def all_codes(data: dict[str, np.ndarray], nominal: list[bool], bins: int) -> np.ndarray:
    """Bins of training and test rows, one column each."""
    both = np.concatenate([data["x_train"], data["x_test"]])
    columns = [bin_codes(both[:, j], nominal[j], bins) for j in range(both.shape[1])]
    return np.stack(columns, axis=1)


def filled(data: dict[str, np.ndarray], nominal: list[bool]) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows without missing values.

    A missing number is the median, and a missing category is one more category.
    """
    both = np.concatenate([data["x_train"], data["x_test"]])
    for j in range(both.shape[1]):
        column = both[:, j]
        missing = np.isnan(column)
        if missing.any():
            column[missing] = np.nanmax(column) + 1 if nominal[j] else np.nanmedian(column)
    train = len(data["x_train"])
    return both[:train], both[train:]


def dense(data: dict[str, np.ndarray], nominal: list[bool], scale: str) -> np.ndarray:
    """Numbers of all rows for models that take nothing else.

    Categories are one-hot; missing numbers are the median, with a column that says so.

    Args:
        data: Training and test rows.
        nominal: Which columns are categories.
        scale: "unit" for values from 0 to 1, "standard" for mean 0 and spread 1, cut at 4.
    """
    both = np.concatenate([data["x_train"], data["x_test"]])
    out = []
    for j, is_nominal in enumerate(nominal):
        column = both[:, j]
        missing = np.isnan(column)
        if is_nominal:
            codes = bin_codes(column, True, 0)
            out.append(np.eye(codes.max() + 1)[codes])
            continue
        filled = np.where(missing, np.nanmedian(column), column)
        low, high = filled.min(), filled.max()
        if scale == "standard":
            filled = np.clip((filled - filled.mean()) / max(filled.std(), 1e-12), -4, 4)
        else:
            filled = (filled - low) / max(high - low, 1e-12)
        out.append(filled[:, None])
        if missing.any():
            out.append(missing[:, None].astype(float))
    return np.hstack(out)
