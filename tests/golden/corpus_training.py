"""Small texts for training, a tokenizer for the texts, and models."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.golden.corpora import write_jsonl
from tests.golden.corpus_models import LETTERS, gpt2_files

_SHAPE = {
    "num_layers": 2,
    "hidden_size": 32,
    "num_heads": 2,
    "vocab_size": 512,
    "max_positions": 64,
    "hidden_dropout": 0.1,
    "attention_dropout": 0.2,
}
_WITHOUT = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
_NOUNS = ("river", "bread", "garden", "train", "letter", "winter", "bird", "house", "song", "road")
_VERBS = ("carries", "holds", "finds", "follows", "leaves", "keeps", "shows")
_PLACES = ("in the north", "by the sea", "after the rain", "at night", "near the old mill")
_ENDS = (".", ".", "!", "?", ";", ".")
_SUBJECTS = ("小河", "面包", "花园", "火车", "书信", "冬天", "小鸟")
_ACTIONS = ("带来", "留下", "找到", "跟着", "看见")
_OBJECTS = ("一条路", "许多故事", "新的朋友", "一首歌", "安静的早晨")
_MOST = 7


_ANSWERS = ("Yes", "No", "Maybe", "true", "false", "True", "False", "neither", "bad", "good")


def tokenizer(folder: Path) -> None:
    """Write GPT-2's two files: all bytes, and the merges that make the words above."""
    spaced = " ".join((*_NOUNS, *_VERBS, *_PLACES, *_ANSWERS, "it is what")).split()
    words = (*(f" {one}" for one in dict.fromkeys(spaced)), "The", *_signs(), "不是")
    gpt2_files(folder, dict.fromkeys(pair for word in words for pair in _chain(word)))


def _signs() -> Iterator[str]:
    """Yield the Chinese characters of the texts, in order, and a few more."""
    return iter(dict.fromkeys("".join((*_SUBJECTS, *_ACTIONS, *_OBJECTS, "是不。"))))


def _chain(word: str) -> Iterator[tuple[str, str]]:
    """Yield the merges that make a word's characters of bytes, and those that make the word."""
    pieces = []
    for sign in word:
        first, *others = (LETTERS[byte] for byte in sign.encode())
        for byte in others:
            yield first, byte
            first += byte
        pieces.append(first)
    first, *others = pieces
    for piece in others:
        yield first, piece
        first += piece


def _number(*parts: int) -> int:
    """Return a number that depends on all parts but looks random."""
    value = 17
    for part in parts:
        value = (value * 1_103_515_245 + part * 12_345 + 6_789) % 2**31
        value ^= value >> 11
    return value


def sentence(number: int, at: int) -> str:
    """Return an English sentence."""
    word = [_number(number, at, place) for place in range(6)]
    one, other = _NOUNS[word[0] % len(_NOUNS)], _NOUNS[word[1] % len(_NOUNS)]
    verb, place = _VERBS[word[2] % len(_VERBS)], _PLACES[word[3] % len(_PLACES)]
    return f"The {one} {verb} the {other} {place}{_ENDS[word[4] % len(_ENDS)]}"


def _chinese(number: int, at: int) -> str:
    word = [_number(number, at, place) for place in range(3)]
    parts = (_SUBJECTS, _ACTIONS, _OBJECTS)
    return "".join(kind[one % len(kind)] for kind, one in zip(parts, word, strict=True)) + "。"


def _article(number: int) -> str:
    """Return a text of 1 to 7 sentences; every fourth text is Chinese."""
    count = 1 + _number(number, 99) % _MOST
    if number % 4 == 3:
        return "".join(_chinese(number, at) for at in range(count + 2))
    return " ".join(sentence(number, at) for at in range(count))


def _articles(numbers: Iterable[int]) -> Iterator[dict]:
    return ({"id": f"a{number}", "text": _article(number)} for number in numbers)


def texts(folder: Path) -> None:
    """Write the news of the first day, and questions with answers; the questions carry no loss."""
    tokenizer(folder)
    write_jsonl(folder / "news" / "day-1.jsonl", _articles(range(80)))
    write_jsonl(folder / "asks" / "asks.jsonl", (_ask(number) for number in range(12)))


def _ask(number: int) -> dict:
    return {
        "title": f"{_chinese(number, 50)[:-1]}吗？",
        "content": _chinese(number, 51),
        "best_answer": {"content": "".join(_chinese(number, at) for at in range(60, 64))},
        "other_answers": [],
    }


def second_day(folder: Path) -> None:
    """Write the news of the second day."""
    write_jsonl(folder / "news" / "day-2.jsonl", _articles(range(100, 140)))


def third_day(folder: Path) -> None:
    """Write the news of the third day."""
    write_jsonl(folder / "news" / "day-3.jsonl", _articles(range(200, 220)))


def shapes(folder: Path) -> None:
    """Write model configurations: for blanks, causal, with more positions, and others."""
    for name, changes in {
        "model": {},
        "plain": _WITHOUT,
        "hidden": {"attention_dropout": 0.0, "layernorm_eps": 0.01},
        "longer": {"max_positions": 96},
        "wide": _WITHOUT | {"init_std": 0.1, "num_heads": 4, "max_positions": 160},
        "widest": {"init_std": 0.1, "num_heads": 4, "max_positions": 200},
        "left": _WITHOUT | {"init_std": 0.1, "block_positions": False, "max_positions": 80},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(_SHAPE | changes), "utf-8")


def optimizer(folder: Path) -> None:
    """Write DeepSpeed's JSON file, with an optimizer in it."""
    params = {"lr": 0.02, "betas": [0.6, 0.7], "eps": 1e-4, "weight_decay": 0.5}
    content = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_clipping": 0.4,
        "optimizer": {"type": "AdamW", "params": params},
    }
    (folder / "adam.json").write_text(json.dumps(content), "utf-8")
