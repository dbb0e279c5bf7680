"""Rough words of Japanese: runs of kanji with their endings, of katakana, hiragana and letters.

python -m pipelines.text --languages ja --quality ja@my_words:split=gopher-repetition+gopher
"""

import re

RUNS = re.compile(r"[一-鿿々]+[ぁ-ん]*|[ァ-ヴー]+|[ぁ-ん]+|\w+")


def split(text: str) -> list[str]:
    """Return the words of a text."""
    return RUNS.findall(text)
