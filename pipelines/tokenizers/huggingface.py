"""Loads Hugging Face's `tokenizer.json`: BPE of bytes or with byte fallback, WordPiece, or Unigram.

The library reports errors in the file; this module reads only those parts of the file that the
library does not expose.
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from pipelines.libraries import library_version
from pipelines.tokenizers.bpe import byte_alphabet, fast_from_json, fast_or_reference
from pipelines.tokenizers.command_tokens import (
    BERT_NAMES,
    NAMES,
    CommandTokens,
    byte_bpe_commands,
    wordpiece_commands,
)
from pipelines.tokenizers.end_of_text import EOS_FILES, EndOfText
from pipelines.tokenizers.model import (
    Encode,
    TokenModel,
    count_ids,
    flatten,
    raise_unless_failure,
    reason,
)
from shards.errors import UserError

END_NAMES = ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>")
"""Common names of the token that ends a text, the most likely first."""

_MEMBERS = ("pretokenizers", "decoders")
"""The keys under which components of type Sequence list their members."""

_MAX_SHOWN = 8

_BYTE_PIECE = re.compile("<0x([0-9A-F]{2})>")


def huggingface_model(content: bytes, *, path: Path, end: EndOfText, fast: bool) -> TokenModel:
    """Return the model in a `tokenizer.json`.

    Args:
        content: The content of the file.
        path: The path of the file, for messages.
        end: The places that may name the token that ends documents.
        fast: Whether to encode with fastokens if the model is byte-level BPE, and fastokens is
            installed and gives equal ids.

    Raises:
        UserError: The file is not a `tokenizer.json`, or has no token that can end documents.
    """
    try:
        description = {"added_tokens": [], **orjson.loads(content)}
        return _model(description, content, path=path, end=end, fast=fast)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        _library(path, content.decode(errors="replace"))
        what = f"a part of it is missing or has another type: {reason(error)}"
        raise _unreadable(path, what) from error


def _model(
    description: Mapping[str, Any], content: bytes, *, path: Path, end: EndOfText, fast: bool
) -> TokenModel:
    vocabulary = _vocabulary(description)
    if not description["model"]["vocab"]:
        raise UserError(
            f"{path} has no vocabulary: expected the tokenizer.json of a trained tokenizer."
        )
    size = count_ids(path, vocabulary.values())
    commands = _commands(path, description, vocabulary, size=size, end=end)
    plain = _as_text(description, frozenset(commands.ids.values()))
    controls = {token["id"] for token in orjson.loads(plain)["added_tokens"] if token["special"]}
    holes = set(range(size)) - set(vocabulary.values())
    own = {i for i in commands.ids.values() if i < size}
    encode, library = (
        _reference(path, _hide_special_pieces(plain, controls | own)),
        library_version("tokenizers"),
    )
    if fast and _is_byte_level(description):
        encode, library = fast_or_reference(lambda: fast_from_json(plain), encode, library=library)
    _refuse_shared(path, vocabulary, controls | own, encode)
    return TokenModel(
        encode=encode,
        library=library,
        pieces=_pieces(description, vocabulary, size, controls | own),
        special_ids=frozenset(controls | holes | own),
        unknown=_unknown(description, vocabulary),
        commands=commands,
        content=content,
        transformers_json=content.decode,
    )


def _vocabulary(description: Mapping[str, Any]) -> dict[str, int]:
    vocab = description["model"]["vocab"]
    if isinstance(vocab, list):
        # Unigram: pairs of piece and score, in the order of ids.
        vocab = {piece: i for i, (piece, _) in enumerate(vocab)}
    return {**vocab, **{token["content"]: token["id"] for token in description["added_tokens"]}}


def _commands(
    path: Path,
    description: Mapping[str, Any],
    vocabulary: Mapping[str, int],
    *,
    size: int,
    end: EndOfText,
) -> CommandTokens:
    asked = end.requested_id(vocabulary, name=path)
    own = {role: vocabulary[name] for role, name in BERT_NAMES.items() if name in vocabulary}
    if len(own) == len(BERT_NAMES):
        return wordpiece_commands(size, own=own, end_of_text=asked)
    added = [token["content"] for token in description["added_tokens"]]
    chosen = asked if asked is not None else _usual_end(vocabulary, added, end)
    if chosen is None:
        raise UserError(
            f"{path} has no token that ends documents: expected one of {', '.join(END_NAMES)}, "
            f"all of {', '.join(BERT_NAMES.values())}, or an eos_token in "
            f"{' or '.join(EOS_FILES)} next to it. Name one of its tokens with --eos TOKEN; its "
            f"added tokens are {', '.join(added[:_MAX_SHOWN]) or 'none'}."
        )
    written = _written_commands(vocabulary, size=size, end_of_text=chosen)
    return written or byte_bpe_commands(size, end_of_text=chosen)


def _written_commands(
    vocabulary: Mapping[str, int], *, size: int, end_of_text: int
) -> CommandTokens | None:
    """Return the commands that a file lists as tokens, as `sentencepiece_json` writes them."""
    named = {role: name for role, name in NAMES.items() if role not in ("eos", "pad")}
    ids = {role: vocabulary[name] for role, name in named.items() if name in vocabulary}
    if len(ids) < len(named):
        return None
    ids.update(eos=end_of_text, pad=end_of_text)
    return CommandTokens(ids=dict(sorted(ids.items())), total=size)


def _usual_end(vocabulary: Mapping[str, int], added: Collection[str], end: EndOfText) -> int | None:
    """Return the id of the token that ends texts, by its name or from a file next to the model.

    Names take precedence, because the file of a chat model names the end of a turn.
    """
    for name in END_NAMES:
        if name in added:
            return vocabulary[name]
    named = end.configured_id(vocabulary)
    ends = (vocabulary[name] for name in END_NAMES if name in vocabulary)
    return named if named is not None else next(ends, None)


def _unknown(description: Mapping[str, Any], vocabulary: Mapping[str, int]) -> int | None:
    """Return the id for text that a model cannot encode; None if it has pieces for all bytes."""
    if description["model"].get("type") == "Unigram":
        unigram: int | None = description["model"].get("unk_id")
        return unigram
    if _is_byte_level(description) and byte_alphabet().keys() <= vocabulary.keys():
        return None  # some models name an unknown token that they never use
    return vocabulary.get(str(description["model"].get("unk_token")))


def _refuse_shared(
    path: Path, vocabulary: Mapping[str, int], special: set[int], encode: Encode
) -> None:
    """Refuse a special id that an ordinary piece also has, since texts could contain the piece."""
    names: dict[int, str] = {}
    for name, i in vocabulary.items():
        first = names.setdefault(i, name) if i in special else name
        if first != name and i in encode([first, name])[0]:
            raise UserError(
                f"{path}: {first!r} and the special token {name!r} have the same id, {i}: the file "
                "is damaged, fetch it or make it again."
            )


def _as_text(description: Mapping[str, Any], commands: frozenset[int]) -> str:
    """Return the JSON of a description after removing truncation and padding and marking commands.

    The libraries can ignore tokens in texts only if the tokens are marked as special.
    """
    added = [
        {**token, "special": token["special"] or token["id"] in commands}
        for token in description["added_tokens"]
    ]
    changed = {**description, "added_tokens": added, "truncation": None, "padding": None}
    return orjson.dumps(changed).decode()


def _hide_special_pieces(description: str, special: set[int]) -> str:
    """Return a description whose special tokens no text can produce.

    Unigram finds all pieces of its vocabulary in texts, even control tokens. So the names of
    special tokens get a space. Texts contain no spaces when Unigram reads them, because they were
    split at spaces, or their spaces were replaced.
    """
    changed = orjson.loads(description)
    if changed["model"].get("type") != "Unigram":
        return description
    vocabulary = changed["model"]["vocab"]
    for i in special & {*range(len(vocabulary))}:
        vocabulary[i][0] = f"{vocabulary[i][0]} {i}"
    changed["added_tokens"] = [
        token
        for token in changed["added_tokens"]
        if token["id"] not in special or token["id"] >= len(vocabulary)
    ]
    return orjson.dumps(changed).decode()


def _reference(path: Path, description: str) -> Encode:
    library = _library(path, description)
    library.encode_special_tokens = True

    def encode(texts: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        encodings = library.encode_batch_fast(list(texts), add_special_tokens=False)
        return flatten([np.array(encoding.ids, np.uint32) for encoding in encodings])

    return encode


def _library(path: Path, description: str) -> Any:
    """Return the library's tokenizer, which reports errors in the file."""
    # There is one process per core, and threads do not survive a fork.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import tokenizers  # noqa: PLC0415  reads the variable above

    try:
        return tokenizers.Tokenizer.from_str(description)
    except BaseException as error:  # a panic in Rust is not an Exception
        raise_unless_failure(error)
        raise _unreadable(path, reason(error)) from error


def _unreadable(path: Path, what: str) -> UserError:
    return UserError(
        f"{path}: tokenizers cannot read it ({what}): expected the file that tokenizer.save() and "
        "save_pretrained() write."
    )


def _is_byte_level(description: Mapping[str, Any]) -> bool:
    types = [*_types(description.get("pre_tokenizer")), *_types(description.get("decoder"))]
    return description["model"].get("type", "BPE") == "BPE" and "ByteLevel" in types


def _types(component: Mapping[str, Any] | None) -> list[str]:
    """Return the type of a component and those of its members."""
    if component is None:
        return []
    members = [member for name in _MEMBERS for member in component.get(name, ())]
    return [component["type"], *(name for member in members for name in _types(member))]


def _pieces(
    description: Mapping[str, Any], vocabulary: Mapping[str, int], size: int, special: set[int]
) -> list[bytes]:
    literal = special | {token["id"] for token in description["added_tokens"]}
    alphabet = byte_alphabet() if _is_byte_level(description) else {}
    words = description["model"].get("type") == "WordPiece"
    prefix = description["model"].get("continuing_subword_prefix", "##") if words else None
    pieces = [b""] * size
    for piece, i in vocabulary.items():
        if i in literal:
            pieces[i] = piece.encode()
        elif alphabet:
            pieces[i] = b"".join(
                bytes([alphabet[c]]) if c in alphabet else c.encode() for c in piece
            )
        elif prefix is not None:
            pieces[i] = (piece[len(prefix) :] if piece.startswith(prefix) else f" {piece}").encode()
        else:
            pieces[i] = _unescaped(piece)
    return pieces


def _unescaped(piece: str) -> bytes:
    """Return the bytes of a piece in SentencePiece's notation."""
    byte = _BYTE_PIECE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace("\u2581", " ").encode()
