"""Small tokenizers of every kind, and texts that are difficult to tokenize."""

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.golden.corpus_models import LETTERS, gpt2_files
from tests.golden.corpus_words import CHINESE, ENGLISH, plain, write_texts

_SPECIAL = (
    "<|endoftext|>", "<|startofpiece|>", "<|endofpiece|>", "[MASK]", "[sMASK]", "[gMASK]", "[CLS]",
    "[SEP]", "[UNK]", "[PAD]", "[dBLOCK]", "<s>", "</s>", "<unk>", "<pad>", "<n>", "<0x0A>",
    "<eos>", "<|end_of_text|>", "<|im_start|>", "##s", "▁", "Ġ", "<|endofprompt|>",
)  # fmt: skip
_PARTS = (
    *"  \n\t\xa0\u3000\u2028\u200b\ufeff", "  ", "   ", "\n\n", "\r\n", "\x7f", "e\u0301",
    "A\u030a", "\u1112\u1161", *"①㈱½ﬁ…—“”《》，。！ＡＢ１", "Å", "ﷺ", "İ", "ß", "ǅ", "カ\u3099",
    "ｶﾞ", "한국", "😀", "👨\u200d👩", "\U00020000", "\U0010fffd", "\ue000", "Ж", "ก", "नमस्ते",
    "שלום", "سلام", "don't", "DON'T", "we'll", "I'm", "it's", "they've", "you're", "he'd", "'s",
    "12", "1234", "12345678", "3.14", "x2y3", "a_b", "a-b", "a/b", "C++", "#tag", "@me", "$5",
    "100%", "()", "{'a': [1]}", "...", "!!!", "\\n", "http://a.b/c?d=e", "CamelCase", "ALLCAPS",
    "1,000", "x\n\ny",
)  # fmt: skip


def scripts(folder: Path) -> None:
    """Write the texts."""
    texts = {f"special: {name}": f"a {name} b{name}c" for name in _SPECIAL}
    for number, part in enumerate(_PARTS):
        texts[f"part {number:02}: {_name(part)}"] = f"the {part}end {part}{part} 行{part}行"
    texts |= {
        "run: letters": "a" * 1000, "run: Han": "哈" * 600, "run: dashes": "-" * 700,
        "run: spaces": f"x{' ' * 300}y", "run: line breaks": f"x{chr(10) * 99}y",
        "run: digits": "7" * 333, "long word": "antidisestablishmentarianism" * 4,
        "word of 100": "b" * 100, "word of 101": "b" * 101,
        "English": " ".join(plain(120)), "Chinese": "".join(plain(120, CHINESE)),
        "mixed": "".join(a + b for a, b in zip(ENGLISH[:60], CHINESE[:60], strict=True)),
        "all bytes": "".join(map(chr, range(1, 256))), "one": "a", "end with a space": "the end ",
        "start with a space": " the end",
    }  # fmt: skip
    write_texts(folder / "scripts" / "scripts.jsonl", texts)


def _name(part: str) -> str:
    return " ".join(f"{ord(letter):X}" for letter in part[:8])


def byte_level(folder: Path) -> None:
    """Write byte-level BPE as GPT-2's files, as ranks of tiktoken, and as a tokenizer.json."""
    pairs = [*_merges()]
    pieces = gpt2_files(folder, pairs)[:-1]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    bytes_of = {letter: byte for byte, letter in LETTERS.items()}
    ranks = b"".join(
        base64.b64encode(bytes(map(bytes_of.__getitem__, piece))) + b" %d\n" % rank
        for piece, rank in numbers.items()
    )
    for name in ("r50k_base", "p50k_base", "cl100k_base", "o200k_base"):
        (folder / f"{name}.tiktoken").write_bytes(ranks)
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    _write_json(folder / "level.json", {
        "added_tokens": [_added(len(numbers), "<|endoftext|>", special=True),
                         _added(len(numbers) + 1, "<|im_start|>", special=True),
                         _added(len(numbers) + 4, "#tag", special=False)],
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst",
                       "stride": 0},
        "pre_tokenizer": level, "decoder": level,
        "model": {"type": "BPE", "vocab": numbers, "merges": [*map(list, pairs)]},
    })  # fmt: skip


def _merges() -> Iterable[tuple[str, str]]:
    """Return merges that build common words from left to right, and further pairs of letters."""
    words = [f" {word}" for word in ("the", "end", *ENGLISH[:60])]
    words += ["12", "34", "don't", "'s", "'ll", "  ", "    ", "\n\n", "哈哈", "aaaa", "行", "--"]
    seen = {}
    for word in (*words, *CHINESE[:60]):
        letters = [LETTERS[byte] for byte in word.encode()]
        for at in range(1, len(letters)):
            seen["".join(letters[:at]), letters[at]] = True
    return seen


def pieces_of_words(folder: Path) -> None:
    """Write WordPiece vocabularies: uncased, and two with a separate configuration."""
    words = (
        "[PAD] [UNK] [CLS] [SEP] [MASK] a b c x y the end ##s ##nd ##e ##d don ' t ll i m . , - ! 1"
    )
    words += (
        " ##2 12 34 ##34 行 哈 人 über uber the end café cafe ( ) % $ # @ _ / 的 #tag camel ##case"
    )
    found = [*dict.fromkeys([*words.split(), *ENGLISH[:40], *"".join(CHINESE[:40])])]
    (folder / "vocab.txt").write_text("\n".join(found) + "\n", "utf-8")
    for name, settings in {
        "cased": {"do_lower_case": False, "strip_accents": True},
        "plain": {"tokenize_chinese_chars": False, "strip_accents": False},
    }.items():
        (folder / name).mkdir()
        (folder / name / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
        capitals = ["The", "Camel", "ALLCAPS", "I", "DON"]
        (folder / name / "vocab.txt").write_text("\r\n".join([*found, *capitals]), "utf-8")


def byte_fallback(folder: Path) -> None:
    """Write BPE with byte fallback as a tokenizer.json."""
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    letters = [*"▁abcdefghijklmnopqrstuvwxyz.,'12行哈人的"]
    pairs = [
        ("t", "h"),
        ("th", "e"),
        ("▁", "the"),
        ("e", "n"),
        ("en", "d"),
        ("▁", "▁"),
        ("哈", "哈"),
    ]
    numbers = {name: number for number, name in enumerate(names + letters)}
    for pair in pairs:
        numbers["".join(pair)] = len(numbers)
    _write_json(folder / "fallback.json", {
        "added_tokens": [_added(at, name, special=True) for at, name in enumerate(names[:3])],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ]},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
        ]},
        "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True,
                  "vocab": numbers, "merges": [*map(list, pairs)]},
    })  # fmt: skip


def _added(number: int, name: str, *, special: bool) -> Mapping[str, object]:
    places = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": name, "special": special, **places}


def _write_json(path: Path, description: Mapping[str, object]) -> None:
    whole = {"version": "1.0", "truncation": None, "padding": None, **description}
    path.write_text(json.dumps(whole), "utf-8")
