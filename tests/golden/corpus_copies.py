"""Texts that are equal or similar, and texts that just fail to be."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from tests.golden.corpus_words import CHINESE, ENGLISH, cut, endless, write_texts

_LETTER = (
    "Dear Sir, the ferry to the island leaves at noon and comes back at dusk, weather allowing"
)


def copies(folder: Path) -> None:
    """Write equal texts, in two sources."""
    texts = dict([*_equal(), *_groups()])
    halves = cut([*texts.items()], 150)
    for source, half in zip(("one", "two"), halves, strict=False):
        write_texts(folder / "copies" / f"{source}.jsonl", dict(half))
    write_texts(folder / "again" / "again.jsonl", {f"again: {key}": texts[key] for key in _AGAIN})


def versions(folder: Path) -> None:
    """Write similar texts, in two sources."""
    texts = dict([*_pairs(), *_at_bounds(), *_chains(), *_short(), *_scripts()])
    write_texts(folder / "long-pages" / "long-pages.jsonl", dict(_long()))
    write_texts(folder / "versions" / "versions.jsonl", texts)
    others = [(f"other: {name}", text) for name, text in _pairs() if name.endswith("changed")]
    write_texts(folder / "others" / "others.jsonl", dict(others[::3]))


# Equal texts.

_SPACES = {
    "spaces": "  ", "a tab": "\t", "a line break": "\n", "line breaks": "\r\n\r\n",
    "an ideographic space": "\u3000", "a non-breaking space": "\xa0", "a thin space": "\u2009",
    "a line separator": "\u2028", "a form feed": "\x0c", "no space": "", "a zero width": "\u200b",
}  # fmt: skip
_AGAIN = ("equal: the letter", "group of 2: 0", "group of 10: 3")


def _equal() -> Iterator[tuple[str, str]]:
    yield "equal: the letter", _LETTER
    yield "equal: the same again", _LETTER
    yield "equal: in capitals", _LETTER.upper()
    yield "equal: with a full stop", f"{_LETTER}."
    yield "equal: with spaces around it", f"\n  {_LETTER} \t"
    for name, space in _SPACES.items():
        yield f"equal: with {name} between", _LETTER.replace("to the", f"to{space}the")


def _groups() -> Iterator[tuple[str, str]]:
    for size in (2, 3, 4, 5, 9, 10, 99, 100):
        for number in range(size):
            yield f"group of {size}: {number}", f"This page is one of a group of {size} pages."


# Similar texts: 300 words, some of which are changed.


def _pairs() -> Iterator[tuple[str, str]]:
    for changed in (1, 4, *range(6, 18), 20, 30):
        words = _apart(changed, ENGLISH, 300)
        yield f"words: {changed} first", " ".join(words)
        yield f"words: {changed} changed", " ".join(_changed(words, changed, "elsewhere"))
        letters = [*"".join(_apart(changed, CHINESE, 150))]
        yield f"characters: {changed} first", "".join(letters)
        yield f"characters: {changed} changed", "".join(_changed(letters, changed, "鹅"))


_EQUAL_SLOTS = {
    78: ((19, 12), (36, 11)), 79: ((18, 11), (23, 11)), 83: ((24, 9), (27, 9)),
    84: ((29, 7), (28, 10)), 85: ((31, 9), (32, 7)),
}  # fmt: skip
"""For each number of equal slots out of 112: pairs of a text's number and the number of words to
change."""


def _at_bounds() -> Iterator[tuple[str, str]]:
    for slots, pairs in _EQUAL_SLOTS.items():
        for order, changed in pairs:
            words = _apart(order, ENGLISH, 300)
            name = f"bound: {slots} of 112 slots by {changed} words"
            yield name, " ".join(words)
            yield f"{name}, changed", " ".join(_changed(words, changed, "elsewhere"))


def _apart(number: int, words: list[str], count: int) -> list[str]:
    """Return `count` words, in a different order for each number."""
    return [*itertools.islice(endless(words), 613 * number, 613 * number + count)]


def _changed(units: list[str], count: int, other: str) -> list[str]:
    found = list(units)
    for place in range(count):
        found[place * len(units) // count + 5] = other
    return found


def _chains() -> Iterator[tuple[str, str]]:
    """Yield chains of texts in which neighbours are similar, but the first and the last are not."""
    for chain in range(6):
        words = _apart(40 + chain, ENGLISH, 300)
        for link in range(8):
            yield f"chain {chain}: {link}", " ".join(words)
            part = slice(30 * link, 30 * link + 30)
            words[part] = [f"{word}{link}" for word in words[part]]
    words = " ".join(_apart(50, ENGLISH, 300))
    yield "both: a text", words
    yield "both: the same", words
    yield "both: a version of it", f"{words} and no more"
    yield "both: the version again", f"{words}  and no more"


def _short() -> Iterator[tuple[str, str]]:
    """Yield pairs of equal texts with as many units as an n-gram has, or with one more or fewer."""
    for name, one, other in (
        ("four words", "one boat went home", "One boat: went home"),
        ("five words", "two boats went home early", "Two boats: went home, EARLY"),
        ("six words", "all three boats went home early", "All three boats: (went) home, early"),
        ("five words and an underscore", "we_saw boats go home", "we saw boats go home"),
        ("five words and digits", "we saw 12 boats sail", "we saw 13 boats sail"),
        ("five words and accents", "les été étaient très chauds", "les ÉTÉ étaient très chauds"),
        ("four characters", "清晨海边", "清 晨 海 边"),
        ("five characters", "清晨的海边", "清 晨 的 海 边"),
    ):
        yield f"short: {name}", one
        yield f"short: {name} again", other


def _scripts() -> Iterator[tuple[str, str]]:
    """Yield texts with and without spaces, which are equal only if units are characters."""
    for name, letters in (
        ("Chinese", "清晨集市豆腐老人担子慢慢吆喝起来晚霞渔船归港"),
        ("Japanese", "ひらがなカタカナまじりのぶんしょうをよむひと"),
        ("Thai", "ตลาดเช้าริมแม่น้ำเจ้าพระยา"),
        ("Lao", "ຕະຫຼາດເຊົ້າແຄມແມ່ນ້ຳຂອງ"),
        ("Burmese", "မနက်ခင်းဈေးမြစ်ကမ်းနားမှာ"),
        ("Khmer", "ផ្សារពេលព្រឹកនៅមាត់ទន្លេធំ"),
        ("Korean", "아침시장은해가뜨기전부터사람들로붐빈다오늘도"),
        ("Tibetan", "བོད་ཀྱི་སྐད་ཡིག་སློབ་གྲྭ་ཆེན་མོ"),
    ):
        yield f"script: {name}", letters
        yield f"script: {name} with spaces", " ".join(letters)
    for edge in (0x0E00, 0x0F00, 0x1000, 0x10A0, 0x1780, 0x1800, 0x3000, 0xA000):
        for code in (edge - 1, edge):
            yield f"script: U+{code:04X}", chr(code) * 20
            yield f"script: U+{code:04X} with spaces", " ".join(chr(code) * 20)
    for total, han in ((100, "清晨集市豆腐老人担子慢慢吆喝起来晚霞渔船"), (101, "山" * 20)):
        latin = "".join(chr(97 + place * place % 26) for place in range(total))
        one = han + latin[: total - 32] if total == 100 else latin[: total - 32] + han
        other = one[:50] + " ".join(one[50:62]) + one[62:]
        other += "z" * (total - len(other))
        yield f"script: 20 Han in {total} characters", one
        yield f"script: 20 Han in {total} characters, with spaces", other


def _long() -> Iterator[tuple[str, str]]:
    """Yield texts that are longer than the pieces in which the signer reads a text."""
    for name, words, space in (("English", ENGLISH, " "), ("Chinese", CHINESE, "")):
        text = space.join(_apart(60, words, 6_500 if space else 20_000))
        yield f"long: {name}", text
        yield f"long: {name}, without its first word", text.partition(space or text[1])[2]
        yield f"long: {name}, cut in its middle", text[:16_000] + text[17_000:]
        yield f"long: {name}, one piece", text[:32_768]
        yield f"long: {name}, one piece and a character", text[:32_769]
    # Only the place where the two pieces meet has a new n-gram.
    yield "long: a word across the seam", f"{'boat ' * 6552}lighthouse {'boat ' * 300}"
    yield "long: Han across the seam", f"{'哈' * 32_764}清晨海边渔船归来{'哈' * 100}"
