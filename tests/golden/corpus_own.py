"""Custom modules, and texts that they and the models judge."""

from pathlib import Path

from tests.golden.corpus_words import ENGLISH, plain, write_lines

_FILTERS = """
import re

import numpy as np


def loud(batch):
    return ["shouting" if "!!!" in text else None for text in batch["text"].to_pylist()]


class Length:
    metrics = ("chars", "longest")
    bounds = {"min_chars": 12, "max_longest": 20}

    def __init__(self, unit="1"):
        self.unit = int(unit)

    def __call__(self, batch):
        texts = batch["text"].to_pylist()
        return {
            "chars": np.array([len(text) / self.unit for text in texts]),
            "longest": [max(map(len, text.split()), default=float("nan")) for text in texts],
        }


class Stars:
    changes_text = True

    def __call__(self, batch):
        texts = [re.sub("[*]+", "", text) for text in batch["text"].to_pylist()]
        return {"text": texts, "reason": ["none left" if text == "?" else None for text in texts]}
"""

_RULES = """
from pipelines.quality import Profile, Threshold


def measure(text, bounds):
    words = text.words("spaces")
    short = sum(len(word) <= bounds["short_word"] for word in words)
    return text.replaced(text.text.strip("~")), (len(words), short / max(1, len(words)))


few = Profile(
    family="few",
    about="Enough words, few of them short.",
    metrics=("words", "short"),
    thresholds=(
        Threshold("short_word", 2, "", "words of so many letters are short"),
        Threshold("min_words", 3, "too-few", "least number of words"),
        Threshold("max_short", 0.5, "too-short", "most short words, as a share"),
    ),
    measure=measure,
    words="spaces",
)


def pairs(text):
    return [text[start : start + 2] for start in range(0, len(text), 2)]
"""


def own_code(folder: Path) -> None:
    """Write the modules."""
    (folder / "own_filters.py").write_text(_FILTERS, "utf-8")
    (folder / "own_rules.py").write_text(_RULES, "utf-8")


def own_texts(folder: Path) -> None:
    """Write texts for them, with their bounds from both sides."""
    texts = {
        "loud: twice": "Come to the market today!!",
        "loud: thrice": "Come to the market today!!!",
        "Length.chars 12": "we went home",
        "Length.chars 11": "we went out",
        "Length.longest 20": f"it was a {'w' * 20} day",
        "Length.longest 21": f"it was a {'w' * 21} day",
        "Stars: some": "the **bold** word of the text",
        "Stars: nothing else": "************",
        "Stars: a question": "***?**********",
        "few.words 3": "three longer words",
        "few.words 2": "longer wordings",
        "few.short 4 of 8": "we go to a market that sells bread",
        "few.short 5 of 9": "we go to a market at noon today alone",
        "few.words passed on without waves": "~~three longer words~~",
    }
    write_lines(folder / "texts" / "texts.jsonl", texts)
    write_lines(folder / "japanese" / "japanese.jsonl", {
        f"gopher.words {count}": "吾輩は猫である名前はまだ無い"[: 2 * count] for count in (5, 6, 7)
    })  # fmt: skip


def scored_texts(folder: Path) -> None:
    """Write texts for a classifier and a language model."""
    words = {
        "one good": "good", "one good, one bad": "good bad", "two good, one bad": "good bad good",
        "nine good": "good " * 9, "one fine": "fine", "one bad": "bad", "nine bad": "bad " * 9,
        "good in lines": " \ngood\nfine\r\nbad\n", "good in capitals": "Good", "nothing": "word",
        "good with a mark": "good.", "labels": "__label__hq __label__cc good",
    }  # fmt: skip
    texts = {f"classifier.hq {name}": text for name, text in words.items()}
    marks = "，、。．„”“«»「」《》´’∶：；？！（）【】〈〉–━►—～…％"
    texts |= {f"perplexity.value of U+{ord(mark):04X}": f"ab{mark}cd" for mark in marks}
    others = {
        "capitals": "ABC", "accents": "àbç", "digits": "a1b٣c７", "line breaks": "ab\ncd",
        "controls": "a\tb\x7fc", "spaces": "  ab  cd  ", "Han": "中文字", "unknown": "ж龘",
        "long": " ".join(plain(40)), "longer": " ".join(ENGLISH[:120]), "rare": "zzzzzzzzz",
    }  # fmt: skip
    texts |= {f"perplexity.value of {name}": text for name, text in others.items()}
    write_lines(folder / "scored" / "scored.jsonl", texts)
