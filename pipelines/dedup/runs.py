"""Runs: rows of sorted columns that are equal, one after the other."""

import numpy as np


def run_starts(*columns: np.ndarray) -> np.ndarray:
    """Return which rows (bool[n]) begin a run: the first, and those unlike the row before.

    Args:
        columns: Of n rows each, at least one.
    """
    first = np.ones(len(columns[0]), bool)
    first[1:] = False
    for values in columns:
        first[1:] |= values[1:] != values[:-1]
    return first


def start_rows(first: np.ndarray) -> np.ndarray:
    """Return for each row the row (int64[n]) that begins its run, given what run_starts returns."""
    rows: np.ndarray = np.flatnonzero(first)[np.cumsum(first) - 1]
    return rows
