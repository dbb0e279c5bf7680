from collections.abc import Sequence

import numpy as np

from pipelines.tokenizers.agreement import CHECK_TEXTS, first_difference
from pipelines.tokenizers.model import flatten


def code_points(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    return flatten([np.array([ord(character) for character in text]) for text in texts])


def lower_case(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    return code_points([text.lower() for text in texts])


def test_the_check_s_texts_tell_encoders_apart() -> None:
    assert len(set(CHECK_TEXTS)) == len(CHECK_TEXTS) > 30
    assert first_difference(code_points, code_points, CHECK_TEXTS) is None
    assert first_difference(lower_case, code_points, CHECK_TEXTS) is not None
    difference = first_difference(lower_case, code_points, ["ab", "Ab"])
    assert difference == "for 'Ab' it gives [97, 98], not [65, 98]"
