"""jieba's dictionary and model as the arrays of its compiled loops."""

import hashlib
import importlib.metadata
import math
import string
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.quality.compiled.jieba import (
    BEGIN,
    END,
    FIRST_HAN,
    LETTERS,
    MIDDLE,
    SINGLE,
    SLOTS,
    SPACE,
    Tables,
    cut,
    read_dictionary,
)
from pipelines.quality.spans import Cut, WordSpans, code_points

_VERSION = "0.42.1"
_DICTIONARY = "7197c3211ddd98962b036cdf40324d1ea2bfaa12bd028e68faa70111a88e12a8"
"""The SHA-256 of its dict.txt."""

_IN_BLOCKS = string.ascii_letters + string.digits + "+#&._%-"
_HAN = range(0x4E00, 0x9FD5 + 1)
"""The Han that it knows."""

_ROLES = {"B": BEGIN, "E": END, "M": MIDDLE, "S": SINGLE}
_NEVER = -3.14e100
"""What it takes for the logarithm of a chance that its model does not have."""


def load_cut(library: Any) -> Cut:
    """Return what finds the words of a text, given as code points, as jieba's accurate mode does.

    Args:
        library: The module of jieba.

    Raises:
        ValueError: it is not what the loops follow.
    """
    version = importlib.metadata.version("jieba")
    if version != _VERSION:
        raise ValueError(f"it follows jieba {_VERSION}, and {version} is installed")
    tables = _tables(library)

    def spans(codes: npt.NDArray[np.uint32]) -> WordSpans:
        return WordSpans(codes, *cut(codes, tables))

    return spans


def _tables(library: Any) -> Tables:
    """Return the dictionary and the model, in 18 MB.

    Raises:
        ValueError: the dictionary is not that of this version.
    """
    letters = np.zeros(1 << 16, np.uint16)
    letters[[code for code in range(len(letters)) if chr(code).isspace()]] = SPACE
    letters[code_points(_IN_BLOCKS)] = code_points(_IN_BLOCKS)
    letters[_HAN] = np.arange(FIRST_HAN, FIRST_HAN + len(_HAN))
    nodes, scores, unknown = _dictionary(library, letters)
    model = library.finalseg
    starts = np.empty(4)
    steps = np.full((4, 4), _NEVER)
    shown = np.full((LETTERS, 4), _NEVER)
    for name, role in _ROLES.items():
        starts[role] = model.start_P[name]
        for following, chance in model.trans_P[name].items():
            steps[role, _ROLES[following]] = chance
        chances = model.emit_P[name]
        shown[letters[code_points("".join(chances))], role] = list(chances.values())
    return Tables(letters, nodes, scores, unknown, starts, steps, shown)


def _dictionary(
    library: Any, letters: npt.NDArray[np.uint16]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64], float]:
    """Return the nodes of the dictionary, their scores, and the score of what is no word."""
    with library.Tokenizer().get_dict_file() as file:
        lines = file.read()
    if hashlib.sha256(lines).hexdigest() != _DICTIONARY:
        raise ValueError("it follows jieba's own dictionary, and another is in its place")
    nodes = np.zeros(SLOTS, np.uint64)
    found = np.empty(lines.count(b"\n"), np.int64)
    counts = np.empty_like(found)
    read_dictionary(code_points(lines.decode()), letters, nodes, found, counts)
    total = math.log(int(counts.sum()))
    scores = np.full(SLOTS, np.nan)
    # As jieba computes them: numpy's logarithm may differ in the last bit.
    scores[found] = np.array([math.log(count) for count in counts.tolist()]) - total
    return nodes, scores, -total
