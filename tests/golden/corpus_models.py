"""Small models, written byte by byte."""

import json
import struct
from collections.abc import Iterable
from pathlib import Path

_PRINTING = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTING]
LETTERS = {byte: chr(byte) for byte in _PRINTING} | {
    byte: chr(256 + place) for place, byte in enumerate(_OTHERS)
}
"""The character that stands for each byte in GPT-2's files."""


def gpt2_files(folder: Path, merges: Iterable[tuple[str, str]]) -> list[str]:
    """Write merges.txt and vocab.json, and return the pieces in the order of ids."""
    pairs = [*merges]
    lines = ["#version: 0.2", *map(" ".join, pairs), ""]
    (folder / "merges.txt").write_text("\n".join(lines), "utf-8")
    pieces = [*dict.fromkeys((*LETTERS.values(), *map("".join, pairs), "<|endoftext|>"))]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(numbers), "utf-8")
    return pieces


def byte_tokenizer(folder: Path) -> None:
    """Write GPT-2's two files with only two merges, so that nearly every byte is a token."""
    gpt2_files(folder, [("t", "h"), ("i", "n")])


def classifier(folder: Path) -> None:
    """Write two fastText classifiers, for which "good" is evidence of the label hq, "bad" of cc.

    The probability of hq depends on the words that a model knows, and the end of a line is such a
    word. The second model also uses pairs of words, which are hashed into five buckets.
    """
    _write_classifier(folder / "quality.bin", "hq", buckets=[])
    _write_classifier(folder / "pairs.bin", "fit", buckets=[0.25, -0.5, 1.5, -1.0, 0.75])


def _write_classifier(path: Path, good: str, *, buckets: list[float]) -> None:
    words = {"</s>": 0.0, "good": 1.0, "fine": 0.5, "bad": -1.0}
    labels = {f"__label__{good}": 1.0, "__label__cc": -1.0}
    ngrams = 2 if buckets else 1
    settings = struct.pack("<12id", 1, 5, 5, 1, 5, ngrams, 3, 3, len(buckets), 0, 0, 100, 1e-4)
    sizes = struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 1000, -1)
    entries = b"".join(
        name.encode() + b"\0" + struct.pack("<qb", 100 - place, name in labels)
        for place, name in enumerate([*words, *labels])
    )
    tables = ([*words.values(), *buckets], [*labels.values()])
    rows = [struct.pack("<?qq", False, len(each), 1) for each in tables]
    numbers = [struct.pack(f"<{len(each)}f", *each) for each in tables]
    head = struct.pack("<ii", 793712314, 12) + settings + sizes + entries
    path.write_bytes(head + rows[0] + numbers[0] + rows[1] + numbers[1])


_CHARACTERS = "▁abcdefghijklmnopqrstuvwxyz0,.\"':;?!()[]<>-~%中文字"


def language_model(folder: Path) -> None:
    """Write a SentencePiece model whose pieces are characters, and a KenLM model over these."""
    kinds = [("<unk>", 2), ("<s>", 3), ("</s>", 3), *((letter, 1) for letter in _CHARACTERS)]
    pieces = [
        _field(1, _field(1, piece.encode()) + b"\x15" + struct.pack("<f", -1) + _number(3, kind))
        for piece, kind in kinds
    ]
    trainer = _field(2, _number(3, 1))
    normalizer = _field(3, _field(1, b"identity") + _number(3, 1) + _number(4, 0) + _number(5, 1))
    (folder / "letters.model").write_bytes(b"".join(pieces) + trainer + normalizer)
    scores = {letter: -1 - 0.0625 * place for place, letter in enumerate(_CHARACTERS)}
    lines = [
        "\\data\\", f"ngram 1={len(scores) + 3}", "ngram 2=1", "",
        "\\1-grams:", "-5\t<unk>", "0\t<s>\t-0.25", "-0.5\t</s>",
        *(f"{score}\t{letter}\t0" for letter, score in scores.items()), "",
        "\\2-grams:", "-0.125\t<s> ▁", "", "\\end\\", "",
    ]  # fmt: skip
    (folder / "letters.arpa").write_text("\n".join(lines), "utf-8")
    (folder / "cutoff.csv").write_text(
        ",en,zh,id\n30,13.894954681396484,99,99\n60,99,20,19.306978225708008\n", "utf-8"
    )


def _field(number: int, content: bytes) -> bytes:
    assert len(content) < 128, "its length would need two bytes"
    return bytes([number << 3 | 2, len(content)]) + content


def _number(number: int, value: int) -> bytes:
    return bytes([number << 3, value])
