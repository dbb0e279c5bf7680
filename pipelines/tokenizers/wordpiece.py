"""Converts BERT's vocab.txt, which has one piece per line, to a `tokenizer.json`.

The file does not say how texts are split before words are looked up. BERT's rules apply: control
characters are removed, Chinese characters are words, words are split at white space and
punctuation, and an uncased model reads lower case without accents. These are the rules of
BertWordPieceTokenizer in the library `tokenizers`, and of transformers' BertTokenizerFast.

The `tokenizer_config.json` next to the file shows whether the model is cased (do_lower_case), and
contains strip_accents and tokenize_chinese_chars. If this file is missing, a vocabulary is cased if
lower case would change more than 1 % of its pieces, ignoring pieces in brackets. A cased vocabulary
has thousands of such pieces, but an uncased one has only a few that users have added.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from pipelines.tokenizers.command_tokens import BERT_NAMES
from pipelines.tokenizers.hub import CONFIG
from pipelines.tokenizers.model import reason
from shards.errors import UserError

_UNKNOWN, _SPECIAL = BERT_NAMES["unk"], frozenset(BERT_NAMES.values())
_PREFIX = "##"
_LONGEST_WORD = 100
"""The maximum number of characters of a word; longer words are unknown, as in BERT."""

_BRACKETS = ("[", "<")
_MAX_CAPITALS = 0.01
_SETTINGS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")


def wordpiece_json(content: bytes, *, path: Path) -> bytes:
    """Return a vocabulary as a `tokenizer.json`, whose bytes do not depend on library versions.

    Args:
        content: The content of the vocabulary.
        path: The path of the vocabulary; its folder may contain a CONFIG.

    Raises:
        UserError: The vocabulary is not UTF-8, or the CONFIG is not valid.
    """
    pieces = _pieces(content, path)
    settings = _settings(path.with_name(CONFIG))
    lowercase, chinese = settings.get("do_lower_case"), settings.get("tokenize_chinese_chars")
    description = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_special(i, piece) for i, piece in enumerate(pieces) if piece in _SPECIAL],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True if chinese is None else chinese,
            "strip_accents": settings.get("strip_accents"),
            "lowercase": is_uncased(pieces) if lowercase is None else lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": _PREFIX, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": _UNKNOWN,
            "continuing_subword_prefix": _PREFIX,
            "max_input_chars_per_word": _LONGEST_WORD,
            "vocab": {piece: i for i, piece in enumerate(pieces)},
        },
    }
    return orjson.dumps(description)


def is_uncased(pieces: Sequence[str]) -> bool:
    """Return whether lower case leaves nearly all pieces unchanged."""
    changed = [p for p in pieces if p != p.lower() and not p.startswith(_BRACKETS)]
    return len(changed) <= _MAX_CAPITALS * len(pieces)


def _special(number: int, name: str) -> dict[str, Any]:
    places = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": name, **places, "special": True}


def _pieces(content: bytes, path: Path) -> list[str]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path} is not a BERT vocabulary (line {line} is not UTF-8): expected one piece per "
            "line. Fetch an unchanged copy."
        ) from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _settings(path: Path) -> dict[str, bool | None]:
    """Return the settings in a CONFIG; {} if the file does not exist."""
    if not path.exists():
        return {}
    try:
        config = {**orjson.loads(path.read_bytes())}
        for name in _SETTINGS:
            if not isinstance(config.get(name), bool | None):
                raise ValueError(f"{name} is {config[name]!r}, not true or false")
        return config
    except (ValueError, TypeError) as error:
        raise UserError(
            f"{path}, which configures the vocabulary, cannot be read ({reason(error)}): expected "
            "the JSON that save_pretrained() writes. Fix or remove it."
        ) from error
