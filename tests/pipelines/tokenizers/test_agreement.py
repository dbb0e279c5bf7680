import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pipelines.tokenizers.agreement import CHECK_TEXTS, first_difference, verified_encoder
from pipelines.tokenizers.model import Encode, flatten


def code_points(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    return flatten([np.array([ord(character) for character in text]) for text in texts])


def lower_case(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    return code_points([text.lower() for text in texts])


def broken(_: Sequence[str]) -> Any:
    raise ValueError("no table")


@pytest.mark.parametrize(
    ("encode", "warning"),
    [
        (code_points, ""),
        (lower_case, "not used: for 'Ab' it gives [97, 98], not [65, 98]"),
        (broken, "not used: it fails (no table)"),
    ],
)
def test_an_encoder_has_to_give_the_ids_of_the_reference(
    encode: Encode, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        chosen = verified_encoder(
            lambda: (encode, ["ab", "Ab"]), code_points, refusal="not used: %s"
        )
    assert chosen is (None if warning else encode)
    assert caplog.messages == [warning] * bool(warning)


def test_no_encoder_is_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    assert verified_encoder(lambda: None, code_points, refusal="%s") is None
    assert caplog.messages == []


def test_the_check_s_texts_tell_encoders_apart() -> None:
    assert len(set(CHECK_TEXTS)) == len(CHECK_TEXTS) > 30
    assert first_difference(code_points, code_points, CHECK_TEXTS) is None
    assert first_difference(lower_case, code_points, CHECK_TEXTS) is not None
