"""Chinese texts, each at the bound of one rule or one step beyond; no text breaks a second rule.

Spaces separate the words, so that jieba finds exactly these.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.golden.corpus_words import CHINESE, cut, endless, plain, write_texts

STOP_WORDS = "的年在月是和日了於·為有被人中为他與後也而由"
_LONG = """全国人民代表大会 联合国教科文组织 国际货币基金组织 中央人民广播电台 新疆维吾尔自治区
    北京航空航天大学""".split()  # noqa: SIM905  more readable
Named = Iterator[tuple[str, str]]


def chinese(folder: Path) -> None:
    """Write the texts for FineWeb-2's rules."""
    texts = dict([*_lines(), *_grams(), *_gopher(), *_stop_words()])
    write_texts(folder / "chinese" / "chinese.jsonl", texts)


def _good(count: int) -> list[str]:
    return ["的", "年", *plain(count - 2, CHINESE)]


def _filled(words: Sequence[str], length: int) -> str:
    """Return the words as a sentence of a given length; double spaces follow the first words."""
    text = " ".join(words) + "。"
    missing = length - len(text)
    assert missing >= 0, (missing, length)
    return text.replace(" ", "  ", missing) if missing else text


def _grown(words: Sequence[str], length: int) -> str:
    """Return a sentence of a given length: the words, then more words, and double spaces."""
    found = list(words)
    more = itertools.islice(endless(CHINESE), 700, None)
    while sum(map(len, found)) + len(found) + 3 <= length:
        found.append(next(more))
    return _filled(found, length)


# The rules on lines, which become rules on sentences if a text has only one line.


def _lines() -> Named:
    for copies, parts, size in ((2, 7, 15), (27, 94, 9)):
        words = _good(size * (parts - copies - 1))
        rows = [" ".join(row) + "。" for row in cut(words, size)]
        for place in range(copies + 1):
            rows.insert(2 * place, "谢谢。")
        yield f"fineweb2-zh.dup_line {copies} of {parts}", "\n".join(rows)
        yield f"fineweb2-zh.dup_line {copies} of {parts} sentences", "".join(rows)
        yield f"fineweb2-zh.dup_line {copies} of {parts}, at the end", "\n".join(reversed(rows))
    for ended, count in ((1, 9), (2, 19)):
        rows = [" ".join(row) for row in cut(_good(count * 8), 8)]
        rows[0] += "。"
        rows[1] += "！" * (ended - 1)
        yield f"fineweb2-zh.punctuated_lines {ended} of {count}", "\n".join(rows)
    text = _filled(_good(60), 200)
    for name, end in (("nothing", ""), ("a comma", "，"), ("quotation", "！”"), ("；", "；")):
        yield f"fineweb2-zh.punctuated_lines a sentence ended by {name}", text[:-1] + end
    yield from _copied()
    for breaks, count in ((16, 90), (10, 56)):
        rows = [" ".join(row) for row in cut(_good(count - 2), math.ceil(count / (breaks + 1)))]
        rows += [""] * (breaks + 1 - len(rows))
        rows[0], rows[1] = rows[0] + "。", rows[1] + "。"
        yield f"fineweb2-zh.newlines {breaks} of {count}", "\n".join(rows)


def _copied() -> Named:
    """Yield texts with a given number of characters, 30 of which repeat earlier ones."""
    line = "  ".join(plain(88, CHINESE)[80:])
    sentence = line.replace("  ", " ", 1) + "。"
    for total in (300, 299):
        text = _filled(_good(72), total - 60)
        name = f"fineweb2-zh.dup_line_chars 30 of {total}"
        yield name, "\n".join([line, text[:100], line, text[100:]])
        yield f"{name} sentences", "".join([sentence, text[:99], "。", sentence, text[100:]])


# Repetition: shares of all characters, spaces included.


def _grams() -> Named:
    for size, words, times, length in (
        (2, "人民政府 大学生", 32, 1000),
        (3, "清晨 海边 渔船", 25, 996),
        (4, "清晨 海边 渔船 归来", 16, 1030),
    ):
        for total in (length, length - 1):
            others = endless(CHINESE)
            parts = [f"{words} {next(others)}".split() for _ in range(times)]
            run = ["的", "年", *itertools.chain(*parts)]
            name = f"fineweb2-zh.top_{size}gram {len(words) * times} of {total}"
            yield name, _grown(run, total)
    bounds = {5: 506, 6: 660, 7: 839, 8: 1039, 9: 1286, 10: 1575}
    for size, length in bounds.items():
        for total in (length, length - 1):
            name = f"fineweb2-zh.dup_{size}gram {20 * size} of {total}"
            yield name, _grown(_repeated(size), total)
    yield "fineweb2-zh.dup_5gram of long words", _grown(_repeated_idioms(), 700)


def _repeated(size: int) -> list[str]:
    """Return ten runs of words twice, with other words around every copy."""
    words = plain(10 * size + 40, CHINESE)
    runs, between = cut(words[: 10 * size], size), iter(words[10 * size :])
    again = [[*run, next(between)] for run in (*runs, *runs)]
    return ["的", "年", *itertools.chain(*again)]


def _repeated_idioms() -> list[str]:
    run = "人民政府 社会主义 人民法院 有限公司 帝国主义 资本主义".split()  # noqa: SIM905  as above
    words = plain(9, CHINESE)
    return ["的", "年", *run, *words[:4], *run, *words[4:], *run[:5]]


# Gopher's rules, with FineWeb-2's bounds.


def _gopher() -> Named:
    for count in (50, 49):
        yield f"fineweb2-zh.words {count}", _filled(_good(count), 3 * count + 1)
    yield from _word_lengths()
    for count in (6, 7):
        yield f"fineweb2-zh.hashes {count} of 60", _marked(count, "#")
        yield f"fineweb2-zh.ellipses {count} of 60", _marked(count, "…")
    for count in (9, 10):
        rows = [" ".join(row) + "。" for row in cut(_good(100), 10)]
        rows = [("• " if at % 2 else "- ") * (at < count) + row for at, row in enumerate(rows)]
        yield f"fineweb2-zh.bullet_lines {count} of 10", "\n".join(rows)
    rows = [" ".join(row) + "。" for row in cut(_good(100), 10)]
    yield "fineweb2-zh.bullet_lines 10 by stars", "\n".join(f"* {row}" for row in rows)
    for count in (3, 4):
        rows = [" ".join(row) for row in cut(_good(100), 10)]
        rows = [row + ("…" if at < count else "。") for at, row in enumerate(rows)]
        yield f"fineweb2-zh.ellipsis_lines {count} of 10", "\n".join(rows)
    for count in (147, 146):
        words = _good(count)
        for place in range(199 - count):
            words.insert(2 * place + 3, str(100 + place))
        yield f"fineweb2-zh.alphabetic_words {count} of 200", " ".join(words) + "。"


def _word_lengths() -> Named:
    """Yield texts of 30 words of eight letters and 30 short ones."""
    for letters, last in ((300, "发言人"), (301, "人民政府")):
        short = [*_good(28), "大学生", last]
        words = [word for at in range(30) for word in (_LONG[at % 6], short[at])]
        yield f"fineweb2-zh.word_length {letters} of 60", " ".join(words) + "。"


def _marked(count: int, mark: str) -> str:
    """Return 60 words in two lines; `count` of the words are a mark."""
    words = _good(59 - count)
    for place in range(count):
        words.insert(6 * place + 2, mark)
    return " ".join(words[:30]) + "\n" + " ".join(words[30:]) + "。"


def _stop_words() -> Named:
    for first, second in cut(STOP_WORDS, 2):
        words = [first, *plain(60, CHINESE), second, "清晨"]
        yield f"fineweb2-zh.stop_words {first} {second}", " ".join(words) + "。"
    yield "fineweb2-zh.stop_words one twice", " ".join(["的", *plain(60, CHINESE), "的"]) + "。"
