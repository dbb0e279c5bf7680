from functools import cache

import pytest
import sentencepiece
from hypothesis import given, settings

from pipelines.tokenizers.sentencepiece import piece_encoder
from pipelines.tokenizers.sentencepiece_model import (
    disarm_symbols,
    read_cuttable_model,
)
from tests.pipelines.tokenizers.texts import AWKWARD_TEXTS
from tests.pipelines.tokenizers.trained import KINDS, field, reference, train


@settings(max_examples=100, deadline=None)
@given(text=AWKWARD_TEXTS)
def test_disarming_changes_no_other_id(text: str) -> None:
    content = armed_model()
    armed = sentencepiece.SentencePieceProcessor(model_proto=content)
    safe = sentencepiece.SentencePieceProcessor(model_proto=disarm_symbols(content))
    calm = text.replace("<n>", "").replace("[MASK]", "")
    assert armed.encode(calm) == safe.encode(calm)
    assert not {armed.piece_to_id("<n>"), armed.piece_to_id("[MASK]")} & set(safe.encode(text))
    assert [armed.id_to_piece(i) for i in range(400)] == [safe.id_to_piece(i) for i in range(400)]


@cache
def armed_model() -> bytes:
    symbols = {"user_defined_symbols": ["<n>", "[MASK]", "\n"], "control_symbols": ["[gMASK]"]}
    return train(armed=True, **{**KINDS["identity"], **symbols})


def piece(text: str, **values: int) -> bytes:
    """A field of a model: a piece behind all others."""
    kind = field(3, values["kind"]) if "kind" in values else b""
    return field(1, field(1, text.encode()) + kind)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (field(2, field(3, 1)), "unigram"),
        (field(2, field(24, 1)), "spaces behind words"),
        (field(3, field(3, 0)), "no space in front"),
        (field(3, field(5, 0)), "spaces that are no pieces"),
        (piece("\n\n", kind=4), "a long user-defined symbol"),
        (piece("▁", kind=4), "a user-defined space"),
        (piece(" ", kind=4), "a user-defined space"),
        (piece("qq", kind=5), "an unused piece"),
        (piece("qq"), "equal scores"),
    ],
)
def test_other_models_are_left_to_the_library(nmt_nfkc: bytes, more: bytes, why: str) -> None:
    # No other piece has the default score, 0, but for the first one that was joined.
    assert read_cuttable_model(nmt_nfkc + piece("\n", kind=4) + piece("q", kind=1)) is not None
    assert read_cuttable_model(nmt_nfkc + more) is None, why
    assert piece_encoder(nmt_nfkc + more, reference(nmt_nfkc)) is None
