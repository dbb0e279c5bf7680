from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from transformers.utils.sentencepiece_model_pb2_new import ModelProto

from pipelines.tokenizers.sentencepiece_model import (
    hide_user_symbols,
    read_splittable_model,
)
from tests.pipelines.tokenizers.texts import AWKWARD_TEXTS
from tests.pipelines.tokenizers.trained import KINDS, train


@settings(max_examples=100, deadline=None)
@given(text=AWKWARD_TEXTS)
def test_disarming_changes_no_other_id(text: str) -> None:
    content = armed_model()
    armed = sentencepiece.SentencePieceProcessor(model_proto=content)
    safe = sentencepiece.SentencePieceProcessor(model_proto=hide_user_symbols(content))
    calm = text.replace("<n>", "").replace("[MASK]", "")
    assert armed.encode(calm) == safe.encode(calm)
    assert not {armed.piece_to_id("<n>"), armed.piece_to_id("[MASK]")} & set(safe.encode(text))
    assert [armed.id_to_piece(i) for i in range(400)] == [safe.id_to_piece(i) for i in range(400)]


@cache
def armed_model() -> bytes:
    symbols = {"user_defined_symbols": ["<n>", "[MASK]", "\n"], "control_symbols": ["[gMASK]"]}
    return train(armed=True, **{**KINDS["identity"], **symbols})


def with_piece(text: str, **values: int) -> dict[str, Any]:
    """Return the fields of a model that has one more piece at the end."""
    return {"pieces": [{"piece": text, **values}]}


def made(more: Mapping[str, Any]) -> bytes:
    return bytes(ModelProto(**more).SerializeToString())


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"trainer_spec": {"model_type": 1}}, "unigram"),
        ({"trainer_spec": {"treat_whitespace_as_suffix": True}}, "spaces behind words"),
        ({"normalizer_spec": {"add_dummy_prefix": False}}, "no space in front"),
        ({"normalizer_spec": {"escape_whitespaces": False}}, "spaces that are no pieces"),
        (with_piece("\n\n", type=4), "a long user-defined symbol"),
        (with_piece("▁", type=4), "a user-defined space"),
        (with_piece(" ", type=4), "a user-defined space"),
        (with_piece("qq", type=5), "an unused piece"),
        (with_piece("qq"), "equal scores"),
    ],
)
def test_other_models_are_left_to_the_library(
    nmt_nfkc: bytes, more: Mapping[str, Any], why: str
) -> None:
    # Of the other pieces, only the first that was merged has the default score, 0.
    usual = made(with_piece("\n", type=4)) + made(with_piece("q", type=1))
    assert read_splittable_model(nmt_nfkc + usual) is not None
    assert read_splittable_model(nmt_nfkc + made(more)) is None, why
