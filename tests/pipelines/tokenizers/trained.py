"""Small models of SentencePiece, trained on a few sentences."""

import io
from typing import Any

import sentencepiece

from pipelines.tokenizers.model import Encode, flatten
from pipelines.tokenizers.sentencepiece_model import (
    CuttableModel,
    disarm_symbols,
    read_cuttable_model,
)

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    "第一行。第二行！人工智能正在改变我们的生活方式，也带来了新的问题。哈哈哈哈",
    "don't you'll I'm 12 1234 x2y3 {'a': [1]} <|endoftext|> [MASK] ---- aaaa",
    "人工智能的问题，生活的方式；新的生活，新的问题。 the  dogs   jump    over",
]


AWKWARD_PARTS = [
    *" \n\t　▁，。！ＡＢ１①㈱½ﬁ…—“”《》",
    *("  ", "   ", "\n\n", "\r\n", "\x00", "\x01", "\x7f", "\xa0", "\xad", "\u200b", "\u2028"),
    *("\ufeff", "\ufffd", "\u00a8", "\u00b4", "e\u0301", "\u0301", "A\u030a", "カ\u3099", "ｶﾞ"),
    *("\u1112\u1161\u11ab", "한국", "😀", "👨\u200d👩", "\U00020000", "\U0010fffd", "\ue000", "ﷺ"),
    *("<n>", "<s>", "</s>", "<unk>", "<0x41>", "[MASK]", "▁▁", "\u0340", "क\u093c", "Ж", "İ"),
    *("哈哈哈", "----", "aaaaa", "the dog", " the", "人工智能", "的问题", "生活方式的问题"),
]


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
"""Settings of training, by what is special about the model."""


def train(*, armed: bool = False, **changes: Any) -> bytes:
    """Train a model; an armed one knows its symbols in texts."""
    sink = io.BytesIO()
    settings = {"vocab_size": 200, "model_type": "bpe", "minloglevel": 2, **changes}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 5), model_writer=sink, **settings
    )
    return sink.getvalue() if armed else disarm_symbols(sink.getvalue())


def reference(content: bytes) -> Encode:
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    return lambda texts: flatten([processor.EncodeAsNumpy(text) for text in texts])


def model_of(content: bytes) -> CuttableModel:
    model = read_cuttable_model(content)
    assert model is not None
    return model
