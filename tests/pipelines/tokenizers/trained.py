"""Trains small SentencePiece models on a few sentences."""

import io
from typing import Any

import sentencepiece

from pipelines.tokenizers.model import Encode, flatten
from pipelines.tokenizers.sentencepiece_model import (
    SplittableModel,
    hide_user_symbols,
    read_splittable_model,
)
from tests.pipelines.tokenizers.texts import SENTENCES

KINDS: dict[str, dict[str, Any]] = {
    "nmt_nfkc": {},
    "identity": {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "allow_whitespace_only_pieces": True,
        "byte_fallback": True,
        "vocab_size": 460,
    },
    "spaces within": {"split_by_whitespace": False},
    "folded": {"normalization_rule_name": "nfkc_cf", "remove_extra_whitespaces": False},
    "line breaks": {
        "normalization_rule_name": "identity",
        "user_defined_symbols": ["\n", "[MASK]"],
        "control_symbols": ["<n>"],
    },
}
"""The settings of training, by the feature of the model that they give."""


def train(*, armed: bool = False, **changes: Any) -> bytes:
    """Train a model; if `armed`, texts can produce its user-defined symbols."""
    sink = io.BytesIO()
    settings = {"vocab_size": 200, "model_type": "bpe", "minloglevel": 2, **changes}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 5), model_writer=sink, **settings
    )
    return sink.getvalue() if armed else hide_user_symbols(sink.getvalue())


def reference(content: bytes) -> Encode:
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    return lambda texts: flatten([processor.EncodeAsNumpy(text) for text in texts])


def model_of(content: bytes) -> SplittableModel:
    model = read_splittable_model(content)
    assert model is not None
    return model
