"""The metrics once more, straight from their definitions and without regard to speed."""

import math
import re
from collections.abc import Callable, Sequence
from itertools import combinations

import jieba

STOP_WORDS = ["the", "be", "to", "of", "and", "that", "have", "with"]
CHINESE_STOP_WORDS = set("的年在月是和日了於·為有被人中为他與後也而由")
TERMINAL = "!.?。！？．｡؟۔।"
SYMBOLS = set(
    "!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»"
)


def ratio(part: float, whole: float) -> float:
    return math.nan if whole == 0 else part / whole


def seen_before(parts: Sequence[str]) -> list[str]:
    return [part for index, part in enumerate(parts) if part in parts[:index]]


def grams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def glm(text: str, _: Sequence[str]) -> list[float]:
    return [len(text)]


def gopher_repetition(text: str, words: Sequence[str]) -> list[float]:
    values = []
    for pattern in (r"\n\n+", r"\n"):
        parts = [part.strip() for part in re.split(pattern, text) if part.strip()]
        again = seen_before(parts)
        values += [ratio(len(again), len(parts)), ratio(len("".join(again)), len("".join(parts)))]
    chars = len("".join(words))
    for n in (2, 3, 4):
        ngrams = grams(words, n)
        most = max([ngrams.count(gram) for gram in ngrams], default=0)
        first = next((gram for gram in ngrams if ngrams.count(gram) == most), ())
        values.append(ratio(len("".join(first)) * most if most > 1 else 0, chars))
    for n in (5, 6, 7, 8, 9, 10):
        ngrams = grams(words, n)
        inside = set()
        for i, j in combinations(range(len(ngrams)), 2):
            if ngrams[i] == ngrams[j]:
                inside |= {*range(i, i + n), *range(j, j + n)}
        values.append(ratio(sum(len(words[i]) for i in inside), chars))
    return values


def gopher(text: str, words: Sequence[str]) -> list[float]:
    lines = text.splitlines()
    return [
        len(words),
        ratio(sum(len(word) for word in words), len(words)),
        ratio(text.count("#"), len(words)),
        ratio(text.count("...") + text.count("…"), len(words)),
        ratio(len([line for line in lines if line.strip()[:1] in {"•", "-", "*"}]), len(lines)),
        ratio(len([line for line in lines if re.search(r"(\.\.\.|…)\s*$", line)]), len(lines)),
        ratio(len([word for word in words if any(c.isalpha() for c in word)]), len(words)),
        len({word.lower() for word in words} & set(STOP_WORDS)),
    ]  # fmt: skip


def c4(text: str, _: Sequence[str]) -> list[float]:
    return c4_page(text)[0]


def c4_page(text: str) -> tuple[list[float], str]:
    sentences = lorem = curly = 0
    kept = []
    for written in map(str.strip, text.splitlines()):
        if any(len(word) > 1000 for word in written.split()):
            continue
        line = re.sub(r"\[(\d*|edit|citation needed)\]", "", written)
        if line[-1:] not in (".", "?", "!", '"') or line[-3:] == "...":
            continue
        if len(line.split()) < 5:
            continue
        lorem += 1 if "lorem ipsum" in line.lower() else 0
        if "javascript" in line.lower():
            continue
        curly += 1 if "{" in line else 0
        policy = r"terms of use|privacy policy|cookie policy|uses? cookies|use of cookies"
        if re.search(policy, line.lower()):
            continue
        ended = [word for word in line.split() if re.search(r"[.?!]+[\"'”’)\]]*$", word)]
        sentences += max(1, len(ended))
        kept.append(line)
    return [sentences, lorem, curly], "\n".join(kept).strip()


def fineweb(text: str, words: Sequence[str]) -> list[float]:
    lines = [line for line in text.split("\n") if line.strip()]
    return [
        ratio(len([line for line in lines if line[-1] in TERMINAL]), len(lines)),
        ratio(len([line for line in lines if len(line) < 30]), len(lines)),
        ratio(len("".join(seen_before(lines))), len(text.replace("\n", ""))),
        ratio(text.count("\n"), len(words)),
    ]


def sentences(text: str) -> list[str]:
    units, unit, closed = [], "", False
    for character in text:
        ends = character in "。！？…；"
        closes = character in "”’」』）】》\"')"
        if closed and not ends and not closes:
            units.append(unit)
            unit, closed = "", False
        # Once a closing mark follows the end marks, another end mark begins a unit.
        if closed and ends and unit[-1] in "”’」』）】》\"')":
            units.append(unit)
            unit = ""
        closed |= ends
        unit += character
    return [part.strip() for part in [*units, unit] if part.strip()]


def fineweb2_lines(text: str, words: Sequence[str]) -> list[float]:
    parts = re.split(r"\n+", text)
    lines = [line for line in text.split("\n") if line.strip()]
    ended = [line for line in lines if line[-1] in TERMINAL]
    return fineweb2(text, words, parts=parts, lines=lines, ended=ended)


def fineweb2_sentences(text: str, words: Sequence[str]) -> list[float]:
    if "\n" in text.strip():
        return fineweb2_lines(text, words)
    lines = sentences(text)
    ended = [x for x in lines if re.search(f"[{TERMINAL}…；][”’」』）】》\"')]*$", x)]
    return fineweb2(text, words, parts=lines, lines=lines, ended=ended)


def fineweb2(
    text: str,
    words: Sequence[str],
    *,
    parts: Sequence[str],
    lines: Sequence[str],
    ended: Sequence[str],
) -> list[float]:
    plain = [word for word in words if not set(word) <= SYMBOLS]
    breaks = text.splitlines()
    return [
        ratio(len(seen_before(parts)), len(parts)),
        *(ratio(top_chars(words, n), len(text)) for n in (2, 3, 4)),
        *(ratio(apart_chars(words, n), len(text)) for n in (5, 6, 7, 8, 9, 10)),
        ratio(len(ended), len(lines)),
        ratio(len("".join(seen_before(lines))), len(text.replace("\n", ""))),
        ratio(text.count("\n"), len(words)),
        len(plain),
        ratio(len("".join(plain)), len(plain)),
        *gopher(text, words)[2:4],
        ratio(len([line for line in breaks if line.strip()[:1] in {"•", "-"}]), len(breaks)),
        gopher(text, words)[5],
        gopher(text, words)[6],
        len(set(words) & CHINESE_STOP_WORDS),
    ]  # fmt: skip


def top_chars(words: Sequence[str], n: int) -> int:
    ngrams = [" ".join(gram) for gram in grams(words, n)]
    most = max([ngrams.count(gram) for gram in ngrams], default=0)
    first = next((gram for gram in ngrams if ngrams.count(gram) == most), "")
    return len(first) * most


def apart_chars(words: Sequence[str], n: int) -> int:
    ngrams = ["".join(gram) for gram in grams(words, n)]
    chars, place, passed = 0, 0, set()
    while place < len(ngrams):
        repeated = ngrams[place] in passed
        chars += len(ngrams[place]) if repeated else 0
        passed.add(ngrams[place])
        place += n if repeated else 1
    return chars


def chinese_words(text: str) -> list[str]:
    return [word for word in jieba.lcut(text) if word.strip()]


ORACLES: dict[str, tuple[str, Callable[[str, Sequence[str]], list[float]]]] = {
    "glm": ("en", glm),
    "gopher-repetition@paper": ("en", gopher_repetition),
    "gopher@paper": ("en", gopher),
    "c4@paper": ("en", c4),
    "fineweb@paper": ("en", fineweb),
    "fineweb2-zh@sentences": ("zh", fineweb2_sentences),
    "fineweb2-zh@datatrove": ("zh", fineweb2_lines),
}
"""By profile: the language to try it in, and its metrics from a text and its words."""
