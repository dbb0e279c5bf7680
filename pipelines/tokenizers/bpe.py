"""Loads byte-level BPE: tiktoken's encodings and files, and GPT-2's merges.

If fastokens is installed and gives the same ids as the reference, it encodes, because it is several
times as fast as tiktoken and tokenizers. Since the library is young, its ids are checked
(agreement.py).
"""

import base64
import binascii
import dataclasses
import importlib.util
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import tiktoken

from pipelines.libraries import library_version, verified
from pipelines.tokenizers.agreement import CHECK_TEXTS, first_difference
from pipelines.tokenizers.command_tokens import byte_bpe_commands
from pipelines.tokenizers.model import Encode, TokenModel, flatten, reason
from shards.commands.spelling import expected
from shards.errors import UserError

PieceRanks = Mapping[bytes, int]
"""The id of each piece, given as bytes. The id is also the rank: lower ranks are merged first."""

END_OF_TEXT = "<|endoftext|>"

_MAX_SPECIAL = 32
"""The maximum number of ids that have no piece in published files."""

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Encoding:
    """The parts of an encoding that a file of ranks does not contain."""

    pattern: str
    """The pattern that splits texts into words; no piece extends over several words."""
    end_of_text: int
    size: int
    """The number of ids, including special and unused ones."""


# Patterns, ends of text and sizes are those of tiktoken_ext/openai_public.py (tiktoken 0.12), which
# give the published ids.
_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Equivalent patterns, for which fastokens has a scanner that is four times as fast as a regex.
_SCANNED = {
    _CL100K: r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
ENCODINGS = {
    "gpt2": Encoding(pattern=_GPT2, end_of_text=50256, size=50257),
    "r50k_base": Encoding(pattern=_GPT2, end_of_text=50256, size=50257),
    "p50k_base": Encoding(pattern=_GPT2, end_of_text=50256, size=50281),
    "cl100k_base": Encoding(pattern=_CL100K, end_of_text=100257, size=100277),
    "o200k_base": Encoding(pattern=_O200K, end_of_text=199999, size=200019),
}
"""The encodings, by the names of their files of ranks."""


def load_tiktoken(name: str, *, fast: bool) -> TokenModel:
    """Return the model of an encoding that tiktoken knows by name, or of a file.

    Args:
        name: An encoding such as "gpt2"; a file such as "cl100k_base.tiktoken"; or a file of
            GPT-2's merges, with the vocabulary next to it.
        fast: Whether to encode with fastokens if it is installed and gives equal ids.

    Raises:
        UserError: The encoding or file does not exist, cannot be fetched, or is damaged.
    """
    path = Path(name)
    if not path.exists():
        ranks, encoding = _published(name)
    elif not path.is_file():
        raise UserError(
            f"tiktoken:{name} is a folder, a pipe or a device: expected a file named "
            "NAME.tiktoken, or GPT-2's merges.txt or vocab.bpe."
        )
    elif path.suffix == ".tiktoken":
        ranks, encoding = _rank_file(path)
    else:
        ranks, encoding = _merges_file(path)
    return _model(ranks, encoding, fast=fast)


def restore_tiktoken(content: bytes, *, name: str, end_of_text: int, size: int) -> TokenModel:
    """Return the model whose `content` a dataset has stored.

    Args:
        content: The pattern, and the lines of a file of ranks.
        name: The place of the content, for messages.
        end_of_text: The id of the end of text.
        size: The number of ids.

    Raises:
        UserError: The content is not valid.
    """
    pattern, _, lines = content.partition(b"\n")
    try:
        encoding = Encoding(pattern=pattern.decode(), end_of_text=end_of_text, size=size)
        ranks = _parse_ranks(lines)
    except (ValueError, binascii.Error) as error:
        raise UserError(f"{name} does not contain tiktoken ranks ({reason(error)}).") from error
    return _model(*_check_ranks(Path(name), ranks, encoding), fast=True)


def _model(ranks: PieceRanks, encoding: Encoding, *, fast: bool) -> TokenModel:
    lines = b"".join(
        base64.b64encode(piece) + b" %d\n" % rank
        for piece, rank in sorted(ranks.items(), key=lambda item: item[1])
    )
    encode, library = _reference(ranks, encoding), library_version("tiktoken")
    if fast:
        encode, library = fast_or_reference(
            lambda: _build_rapid(ranks, lines, encoding.pattern), encode, library=library
        )
    pieces = [b""] * encoding.size
    for piece, rank in ranks.items():
        pieces[rank] = piece
    pieces[encoding.end_of_text] = END_OF_TEXT.encode()
    return TokenModel(
        encode=encode,
        library=library,
        pieces=pieces,
        special_ids=frozenset(range(encoding.size)) - frozenset(ranks.values()),
        unknown=None,
        commands=byte_bpe_commands(encoding.size, end_of_text=encoding.end_of_text),
        content=encoding.pattern.encode() + b"\n" + lines,
        # transformers cannot express the other patterns so that the words stay the same.
        transformers_json=(lambda: _as_json(ranks, encoding))
        if encoding.pattern == _GPT2
        else None,
    )


def _as_json(ranks: PieceRanks, encoding: Encoding) -> str:
    """Return GPT-2's model as a `tokenizer.json` with its end of text."""
    description = orjson.loads(gpt2_json(ranks))
    level = description["pre_tokenizer"]
    end = {"id": encoding.end_of_text, "content": END_OF_TEXT, "special": True}
    places = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    description.update(decoder=level, post_processor=level, added_tokens=[{**end, **places}])
    return orjson.dumps(description).decode()


def _reference(ranks: PieceRanks, encoding: Encoding) -> Encode:
    library = tiktoken.Encoding(
        "corpusmill",
        pat_str=encoding.pattern,
        mergeable_ranks=dict(ranks),
        special_tokens={END_OF_TEXT: encoding.end_of_text},
    )

    def encode(texts: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        return flatten([library.encode_to_numpy(text, disallowed_special=()) for text in texts])

    return encode


def _build_rapid(ranks: PieceRanks, lines: bytes, pattern: str) -> Encode:
    if pattern == _GPT2:
        return fast_from_json(gpt2_json(ranks))
    return fast_from_ranks(lines, pattern=_SCANNED.get(pattern, pattern))


def _published(name: str) -> tuple[PieceRanks, Encoding]:
    known = tiktoken.list_encoding_names()
    if name not in known:
        raise UserError(
            f"tiktoken:{name}: this file does not exist, and tiktoken has no encoding of that "
            f"name: {expected(name, known)}."
        )
    try:
        library = tiktoken.get_encoding(name)
    except (OSError, ValueError, ImportError) as error:
        raise UserError(
            f"tiktoken:{name}: tiktoken could not fetch this encoding ({error}). Without internet, "
            "set TIKTOKEN_CACHE_DIR to a cache folder of tiktoken from another machine, or give "
            f"the file: tiktoken:PATH/{name}.tiktoken."
        ) from error
    return library._mergeable_ranks, Encoding(
        pattern=library._pat_str, end_of_text=library.eot_token, size=library.n_vocab
    )


def _rank_file(path: Path) -> tuple[PieceRanks, Encoding]:
    """Read a file with a piece in base64, a space and the piece's rank in each line."""
    if path.stem not in ENCODINGS:
        raise UserError(
            f"{path}: a file of ranks contains neither its pattern nor its special tokens, so it "
            f"must be named one of {', '.join(f'{name}.tiktoken' for name in ENCODINGS)}. Give "
            "any other model as hf:tokenizer.json."
        )
    encoding = ENCODINGS[path.stem]
    try:
        ranks = _parse_ranks(path.read_bytes())
    except (ValueError, binascii.Error) as error:
        raise UserError(
            f"{path} is not a file of tiktoken ranks ({reason(error)}): each line should contain a "
            "piece in base64, a space and a number."
        ) from error
    if len(ranks) < encoding.size - _MAX_SPECIAL:
        _LOG.warning(
            "%s has %s pieces, but the published file has %s: is it complete?",
            path,
            f"{len(ranks):,}",
            f"{encoding.size:,}",
        )
    return _check_ranks(path, ranks, encoding)


def _parse_ranks(content: bytes) -> PieceRanks:
    pairs = [line.split() for line in content.splitlines() if line]
    return {base64.b64decode(piece, validate=True): int(rank) for piece, rank in pairs}


def _merges_file(path: Path) -> tuple[PieceRanks, Encoding]:
    """Read GPT-2's merges, and check them against the vocabulary next to the file."""
    from tokenizers.models import BPE  # noqa: PLC0415  other tokenizers do not need it

    vocabulary_path = _vocabulary_path(path)
    try:
        vocabulary, merged = BPE.read_file(str(vocabulary_path), str(path))
    except Exception as error:  # the library raises plain exceptions
        raise UserError(
            f"{path} and {vocabulary_path} are not GPT-2's merges and vocabulary ({reason(error)})."
        ) from error
    alphabet = byte_alphabet()
    pieces = [*alphabet, *map("".join, merged)]
    numbered = vocabulary == {piece: i for i, piece in enumerate([*pieces, END_OF_TEXT])}
    if not numbered or not {*"".join(pieces)} <= alphabet.keys():
        raise UserError(
            f"{vocabulary_path} does not number the merges of {path} in order, followed by "
            f"{END_OF_TEXT}, as GPT-2 does: give this model as hf:tokenizer.json."
        )
    ranks = {bytes(alphabet[c] for c in piece): i for i, piece in enumerate(pieces)}
    encoding = Encoding(pattern=_GPT2, end_of_text=len(pieces), size=len(pieces) + 1)
    return _check_ranks(path, ranks, encoding)


def _vocabulary_path(path: Path) -> Path:
    names = {"vocab.bpe": "encoder.json"}
    if path.name.endswith("merges.txt"):
        names[path.name] = f"{path.name.removesuffix('merges.txt')}vocab.json"
    if path.name not in names:
        raise UserError(
            f"tiktoken:{path}: expected a file named NAME.tiktoken, or GPT-2's merges.txt or "
            "vocab.bpe."
        )
    vocabulary_path = path.with_name(names[path.name])
    if not vocabulary_path.is_file():
        raise UserError(f"{path} needs its vocabulary next to it: {vocabulary_path} is missing.")
    return vocabulary_path


def _check_ranks(path: Path, ranks: PieceRanks, encoding: Encoding) -> tuple[PieceRanks, Encoding]:
    numbers = set(ranks.values())
    single = sum(len(piece) == 1 for piece in ranks)
    outside = max(numbers, default=0) >= encoding.size or min(numbers, default=0) < 0
    if len(numbers) < len(ranks) or outside:
        raise UserError(
            f"{path} has duplicate ids, or ids above {encoding.size - 1} or below 0: it is damaged."
        )
    if encoding.end_of_text in numbers or single < 256:  # noqa: PLR2004  a piece for every byte
        raise UserError(
            f"{path} has pieces for {single} of 256 bytes, or a piece with the id of "
            f"{END_OF_TEXT}: it is damaged."
        )
    return ranks, encoding


def byte_alphabet() -> dict[str, int]:
    """Return the byte that each character represents in GPT-2's files.

    Bytes that are printable in Latin-1 are represented by their Latin-1 characters, and other bytes
    by U+0100 and the following characters (openai/gpt-2, src/encoder.py).
    """
    printing = [b for b in range(256) if chr(b).isprintable() and chr(b) != " "]
    others = [b for b in range(256) if b not in printing]
    return {chr(b): b for b in printing} | {chr(256 + i): b for i, b in enumerate(others)}


def gpt2_json(ranks: PieceRanks) -> str:
    """Return ranks as a `tokenizer.json` that splits texts into words as GPT-2 does.

    Raises:
        ValueError: A piece does not consist of two pieces of lower rank.
    """
    letters = {byte: letter for letter, byte in byte_alphabet().items()}

    def spell(piece: bytes) -> str:
        return piece.decode("latin-1").translate(letters)

    model = {
        "type": "BPE",
        "vocab": {spell(piece): rank for piece, rank in ranks.items()},
        "merges": [[spell(left), spell(right)] for left, right in merges(ranks)],
    }
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    description = {"version": "1.0", "added_tokens": [], "pre_tokenizer": level, "model": model}
    return orjson.dumps(description).decode()


def merges(ranks: PieceRanks) -> Iterator[tuple[bytes, bytes]]:
    """Yield the two pieces that are merged into each longer piece, in the order of the ranks.

    The merges of lower rank split the piece into these two.

    Raises:
        ValueError: These merges do not give two pieces.
    """
    for piece, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(piece) > 1:
            parts = _merge_below(piece, ranks, rank)
            if len(parts) != 2:  # noqa: PLR2004  a merge joins two
                raise ValueError(
                    f"{piece!r} does not consist of two pieces of lower rank than {rank}"
                )
            yield parts[0], parts[1]


def _merge_below(piece: bytes, ranks: PieceRanks, limit: int) -> list[bytes]:
    parts = [piece[i : i + 1] for i in range(len(piece))]
    joined = [ranks.get(piece[i : i + 2], limit) for i in range(len(piece) - 1)]
    while joined and (rank := min(joined)) < limit:
        i = joined.index(rank)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
        del joined[i]
        if i > 0:
            joined[i - 1] = ranks.get(parts[i - 1] + parts[i], limit)
        if i < len(joined):
            joined[i] = ranks.get(parts[i] + parts[i + 1], limit)
    return parts


def fast_or_reference(
    build: Callable[[], Encode], reference: Encode, *, library: str
) -> tuple[Encode, str]:
    """Return fastokens' encoder if it agrees, else the reference, and the encoder's library.

    Args:
        build: Makes the encoder, by one of the functions below.
        reference: The encoder that gives the correct ids.
        library: The library of the reference.
    """
    if importlib.util.find_spec("fastokens") is None:
        return reference, library
    fast = verified(
        library_version("fastokens"),
        build,
        lambda fast: first_difference(fast, reference, CHECK_TEXTS),
        reference=library,
    )
    return (fast, library_version("fastokens")) if fast else (reference, library)


def fast_from_json(description: str) -> Encode:
    """Return fastokens' encoder for a `tokenizer.json`."""
    return _encoder(lambda library: library.from_json_str(description))


def fast_from_ranks(ranks: bytes, *, pattern: str) -> Encode:
    """Return fastokens' encoder for tiktoken's ranks, given the lines of a file, and a pattern."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ranks.tiktoken")
        path.write_bytes(ranks)
        return _encoder(lambda library: library.from_tiktoken(str(path), pattern=pattern))


def _encoder(build: Callable[[Any], Any]) -> Encode:
    # There is one process per core, so further threads would only slow each other down. (fastokens
    # 0.3 reads the first variable for its workers, and the second through Rayon.)
    os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    import fastokens  # noqa: PLC0415  optional

    tokenizer = build(fastokens.Tokenizer)

    def encode(texts: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        ids, offsets = tokenizer.encode_batch_flat(list(texts), split_special_tokens=True)
        ends = np.frombuffer(offsets, "<u8").astype(np.int64)
        return np.frombuffer(ids, "<u4"), np.diff(ends)

    return encode
