"""BERT's vocab.txt: a piece on each line, whose number is its id, as a `tokenizer.json`.

The file does not say how texts are cut before their words are looked up. BERT's own rules do: text
is cleaned of controls, characters of Chinese stand alone, words are cut at white space and
punctuation, and an uncased model reads lower case without accents. They are those of
BertWordPieceTokenizer of the library `tokenizers`, and of transformers' BertTokenizerFast.

Whether a model is cased is in the `tokenizer_config.json` next to it (do_lower_case; so do
strip_accents and tokenize_chinese_chars). Without it, a vocabulary is cased if lower case would
change more than one in a hundred of its pieces, those in brackets left out. A cased one has
thousands of those, an uncased one none, except for a few that people add.
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
"""Characters of a word; a longer one is unknown, as in BERT."""

_BRACKETS = ("[", "<")
_MAX_CAPITALS = 0.01
_SETTINGS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")


def wordpiece_json(content: bytes, *, path: Path) -> bytes:
    """Return the `tokenizer.json` of a vocabulary, the same bytes whatever library is installed.

    Args:
        content: of the vocabulary.
        path: of the vocabulary; its folder may hold a CONFIG.

    Raises:
        UserError: it is no UTF-8, or the CONFIG is no JSON.
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
    """Return whether lower case leaves nearly all pieces as they are."""
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
            f"{path} is no vocabulary of BERT (line {line} is not UTF-8): expected is a piece on "
            "each line. Fetch a copy that no program has changed."
        ) from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _settings(path: Path) -> dict[str, bool | None]:
    """Read the casing rules of a CONFIG; {} if there is none."""
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
            f"{path} is next to the vocabulary and configures it, but cannot be read "
            f"({reason(error)}): expected is the JSON that save_pretrained() writes. Fix it, or "
            "remove it."
        ) from error
