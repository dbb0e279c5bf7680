"""How byte-level BPE is written down: GPT-2's alphabet of bytes, and ranks turned into merges."""

from collections.abc import Iterator, Mapping

import orjson

PieceRanks = Mapping[bytes, int]
"""The bytes of each piece, and its id, which is also its rank: lower ranks are merged first."""


def byte_alphabet() -> dict[str, int]:
    """Return the byte that each character stands for in GPT-2's files.

    Bytes that print in Latin-1 stand for themselves, the others follow from U+0100 on
    (openai/gpt-2, src/encoder.py).
    """
    printing = [b for b in range(256) if chr(b).isprintable() and chr(b) != " "]
    others = [b for b in range(256) if b not in printing]
    return {chr(b): b for b in printing} | {chr(256 + i): b for i, b in enumerate(others)}


def gpt2_json(ranks: PieceRanks) -> str:
    """Return the `tokenizer.json` of ranks, for texts split into words as GPT-2 splits them.

    Raises:
        ValueError: some piece is not made of two others of lower rank.
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
    """Yield the two pieces that each longer piece is merged from, by rank.

    They are what the merges of lower rank leave of the piece.

    Raises:
        ValueError: these merges do not leave two pieces.
    """
    for piece, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(piece) > 1:
            parts = _merge_below(piece, ranks, rank)
            if len(parts) != 2:  # noqa: PLR2004  a merge joins two
                raise ValueError(f"no two pieces of lower rank than {rank} make {piece!r}")
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
