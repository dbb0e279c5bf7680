"""Writes a SentencePiece model as a `tokenizer.json`, if the library tokenizers gives the same ids.

In tokenizers each merge of two pieces has a rank, but in SentencePiece the merged piece has a
score. So merges are ordered by score, then by descending length of the left piece. The libraries
apply normalisation rules about several characters differently, so a model with such rules, such as
nmt_nfkc, is not written: its ids would differ for letters with separate accents.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from pipelines.tokenizers.agreement import CHECK_TEXTS, first_difference, texts_of_pieces
from pipelines.tokenizers.command_tokens import NAMES, CommandTokens
from pipelines.tokenizers.end_of_text import EndOfText
from pipelines.tokenizers.model import Encode
from pipelines.tokenizers.sentencepiece_model import (
    BPE,
    BYTE,
    NORMAL,
    SPACE_SYMBOL,
    UNKNOWN,
    USER_DEFINED,
    parse_model,
)
from shards.errors import UserError

_HIDDEN = "\U0010fffe"
"""The prefix of pieces that no text may produce; it is not a character."""
_Pieces = Sequence[tuple[str, float, int]]
"""The text, score and type of each id."""


def sentencepiece_json(content: bytes, *, commands: CommandTokens, encode: Encode) -> str | None:
    """Return a serialized model as a `tokenizer.json`; None if the ids would differ.

    Args:
        content: The serialized model.
        commands: The command tokens, which become special tokens.
        encode: The encoder whose ids the `tokenizer.json` must give.
    """
    from pipelines.tokenizers.huggingface import huggingface_model  # noqa: PLC0415  the other library

    model = parse_model(content)
    pieces = [(piece.piece.decode(), piece.score, piece.type) for piece in model.pieces]
    end = commands.ids["eos"]
    if end < len(pieces):  # the piece keeps its name, and no text produces it
        pieces[end] = (pieces[end][0], pieces[end][1], USER_DEFINED)
    description = orjson.dumps(_description(model, pieces, commands))
    try:
        made = huggingface_model(
            description, path=Path("tokenizer.json"), end=EndOfText(restored_id=end), fast=False
        )
    except UserError:
        return None
    shown = [text.replace(SPACE_SYMBOL, " ") for text, _, kind in pieces if kind == NORMAL]
    texts = [*CHECK_TEXTS, "<0x41></s>", *texts_of_pieces(shown)]
    is_same = made.commands == commands and not first_difference(made.encode, encode, texts)
    return description.decode() if is_same else None


def _description(model: Any, pieces: _Pieces, commands: CommandTokens) -> Mapping[str, Any]:
    spaces = (
        [_replaced({"Regex": "^ +| +$"}, ""), _replaced({"Regex": " {2,}"}, " ")]
        if model.normalizer_spec.remove_extra_whitespaces
        else []
    )
    prefix = (
        [{"type": "Prepend", "prepend": SPACE_SYMBOL}]
        if model.normalizer_spec.add_dummy_prefix
        else []
    )
    shown = _replaced({"String": " "}, SPACE_SYMBOL)
    decoders = [
        _replaced({"String": SPACE_SYMBOL}, " "),
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": len(prefix), "stop": 0},
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [*_added(pieces, commands)],
        "normalizer": {"type": "Sequence", "normalizers": [*spaces, *prefix, shown]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": (_bpe if model.trainer_spec.model_type == BPE else _unigram)(pieces),
    }


def _replaced(pattern: Mapping[str, str], content: str) -> Mapping[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _added(pieces: _Pieces, commands: CommandTokens) -> Iterator[Mapping[str, Any]]:
    places = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    for role, number in sorted(commands.ids.items(), key=lambda item: item[1]):
        if role != "pad":  # whose token is that of eos
            name = pieces[number][0] if number < len(pieces) else NAMES[role]
            yield {"id": number, "content": name, "special": True, **places}


def _bpe(pieces: _Pieces) -> Mapping[str, Any]:
    joined = sorted((p for p in pieces if p[2] == NORMAL), key=lambda piece: -piece[1])
    known = {text for text, _, _ in joined}
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": _unknown(pieces),
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": _spells_bytes(pieces),
        "ignore_merges": False,
        "vocab": {text: number for number, (text, _, _) in enumerate(pieces)},
        "merges": [
            [text[:i], text[i:]]
            for text, _, _ in joined
            for i in range(len(text) - 1, 0, -1)
            if text[:i] in known and text[i:] in known
        ],
    }


def _unigram(pieces: _Pieces) -> Mapping[str, Any]:
    """Return a Unigram model; pieces that no text may produce get an impossible name or score."""
    least = min((score for _, score, kind in pieces if kind == NORMAL), default=0.0)
    never = 100 * least - 100

    def entry(text: str, score: float, kind: int) -> list[Any]:
        if kind == NORMAL:
            return [text, score]
        return [text, never] if kind in (BYTE, USER_DEFINED) else [_HIDDEN + text, least]

    return {
        "type": "Unigram",
        "unk_id": next(i for i, (_, _, kind) in enumerate(pieces) if kind == UNKNOWN),
        "vocab": [entry(*piece) for piece in pieces],
        "byte_fallback": _spells_bytes(pieces),
    }


def _unknown(pieces: _Pieces) -> str:
    return next(text for text, _, kind in pieces if kind == UNKNOWN)


def _spells_bytes(pieces: _Pieces) -> bool:
    return any(kind == BYTE for _, _, kind in pieces)
