"""Texts for custom filters, custom rules and models."""

from pathlib import Path

from tests.golden.corpora import copy_scripts
from tests.golden.corpus_words import ENGLISH, plain, write_texts

own_code = copy_scripts("own_filters.py", "own_rules.py")


def own_texts(folder: Path) -> None:
    """Write texts on both sides of the bounds of the custom filters and rules."""
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
    write_texts(folder / "texts" / "texts.jsonl", texts)
    write_texts(folder / "japanese" / "japanese.jsonl", {
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
    write_texts(folder / "scored" / "scored.jsonl", texts)
