"""Benchmarks and blocklists, and texts that contain an entry of these or narrowly miss one."""

import json
from collections.abc import Iterator
from pathlib import Path

from tests.golden.corpora import write_jsonl
from tests.golden.corpus_words import CHINESE, ENGLISH, plain, write_texts

_ITEM = "how many boats can cross our wide river when every bridge stays closed for nine whole days"
_TEN = "why does a copper kettle sing before any water boils"
_EIGHT = "which seven planets did old sailors know well"
_SEVEN = "what colour has ripe fruit in spring"
_APOSTROPHES = "don't the captain's sailors say it's Anna's own boat they've been rowing since dawn"
_HAN = "清晨的集市上卖豆腐的老人把担子放下慢慢地吆喝起来声音传得很远"
_SHORT_HAN = "江上的渔船在晚霞里慢慢归来了"
_SHORTER_HAN = "山里的小路通向前面一座旧庙"


def contaminated(folder: Path) -> None:
    """Write benchmarks, and texts that contain runs of words of the benchmarks."""
    lines = [_ITEM, _TEN, _EIGHT, _SEVEN, _APOSTROPHES, _HAN, _SHORT_HAN, _SHORTER_HAN]
    (folder / "bench.txt").write_text("\n".join(lines) + "\n", "utf-8")
    write_jsonl(folder / "bench.jsonl", [
        {"question": "Where do " + " ".join(ENGLISH[50:62]), "choices": [" ".join(ENGLISH[70:84])]},
        {"text": " ".join(ENGLISH[90:104]), "note": " ".join(ENGLISH[20:40])},
    ])  # fmt: skip
    texts = dict([*_runs(), *_dressed(), *_han_runs(), *_fields()])
    write_texts(folder / "exams" / "exams.jsonl", texts)


def _within(words: str) -> str:
    return f"{' '.join(plain(20)[:12])} {words} {' '.join(plain(30)[20:])}"


def _runs() -> Iterator[tuple[str, str]]:
    words = _ITEM.split()
    for count in (12, 13, 14, 17):
        yield f"contamination.ngrams {count} words of 17", _within(" ".join(words[:count]))
        yield f"contamination.ngrams the last {count} of 17", _within(" ".join(words[-count:]))
    yield "contamination.ngrams the same 13 words twice", _within(" ".join(2 * words[:13]))
    for name, item in (("ten", _TEN), ("eight", _EIGHT), ("seven", _SEVEN)):
        yield f"contamination.ngrams an item of {name} words", _within(item)
        yield f"contamination.ngrams an item of {name} words but the last", _within(item[:-6])
    yield "contamination.ngrams half an item at the end", f"Here {' '.join(words[:8])}"
    yield "contamination.ngrams the other half at the start", f"{' '.join(words[8:])} here"


def _dressed() -> Iterator[tuple[str, str]]:
    wide = "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in _TEN)
    for name, text in (
        ("capitals", _TEN.upper()), ("marks", _TEN.replace(" ", ", ")), ("full width", wide),
        ("line breaks", _TEN.replace(" ", "\n")), ("no spaces", _TEN.replace(" ", "")),
        ("dashes", _TEN.replace(" ", "-")), ("soft hyphens", _TEN.replace("kettle", "ket\xadtle")),
        ("accents", _TEN.replace("kettle", "kéttle")), ("digits", _TEN.replace("any", "4")),
    ):  # fmt: skip
        yield f"contamination.ngrams ten words in {name}", _within(text)
    for name, mark in (("curly", "’"), ("no", ""), ("wide", "＇"), ("spaces for", " ")):
        yield f"contamination.ngrams {name} apostrophes", _within(_APOSTROPHES.replace("'", mark))


def _han_runs() -> Iterator[tuple[str, str]]:
    start, end = "".join(CHINESE[:9]), "".join(CHINESE[9:20])
    for count in (22, 23, 24):
        yield f"contamination.ngrams {count} characters", f"{start}。{_HAN[:count]}{end}"
    yield "contamination.ngrams characters with marks", f"{start}{'，'.join(_HAN)}{end}"
    for name, item in (("14", _SHORT_HAN), ("13", _SHORTER_HAN)):
        yield f"contamination.ngrams an item of {name} characters", f"{start}{item}{end}"
        yield f"contamination.ngrams an item of {name} but the last", f"{start}{item[:-1]}。{end}"


def _fields() -> Iterator[tuple[str, str]]:
    yield "contamination.ngrams of a question", _within(" ".join(["do", *ENGLISH[50:62]]))
    yield "contamination.ngrams of a choice", _within(" ".join(ENGLISH[70:83]))
    yield "contamination.ngrams of a text", _within(" ".join(ENGLISH[90:103]))
    yield "contamination.ngrams of a note beside a text", _within(" ".join(ENGLISH[20:34]))


def edges(folder: Path) -> None:
    """Write benchmark items of 14 characters, taken from the edges of scripts without spaces.

    Each character occurs twice. If the two counted as one word, an item would have only 13 words,
    and items that short are not searched for.
    """
    ranges = ("กໟཀကក៩々", "〇ぁヿㇰㇿ㐀鿿", "豈龎ｦﾝ𛀀𠀀𱍊")
    items = ["".join(letter * 2 for letter in letters) for letters in ranges]
    (folder / "edges.txt").write_text("\n".join(items) + "\n", "utf-8")
    texts = {f"edges: {at}": f"{_HAN}，{item}。{_SHORT_HAN}" for at, item in enumerate(items)}
    texts |= {f"edges: {at}, but for one": _HAN + item[1:] for at, item in enumerate(items)}
    write_texts(folder / "edges" / "edges.jsonl", texts)


# Addresses.

_LIST = """# comment
bad.com
Upper.ORG
*.wild.net
page.org/shop
www.front.org/shop
query.org/?id=1
192.0.2.7
münchen.de
http://user@scheme.org:8080/path/ # why
dot.org.
percent.org/a%20b
deep.a.b.org
"""
_URLS = (
    "http://bad.com", "https://www.bad.com/x", "http://a.b.bad.com/", "http://notbad.com",
    "http://bad.com.cn", "http://bad.co", "//bad.com/x", "bad.com/x", "BAD.com", "http://bad.com.",
    "http://bad.com:8080/", "http://me:pw@bad.com/", "http://good.com/bad.com", "http://upper.org",
    "http://x.wild.net", "http://wild.net", "http://page.org/shop", "http://page.org/shop/1",
    "http://page.org/shop?x=1", "http://page.org/shopping", "http://page.org/", "http://page.org",
    "http://www.page.org/shop", "http://a.page.org/shop", "http://page.org/SHOP",
    "http://page.org/shop#top", "http://page.org/shop/", "http://front.org/shop",
    "http://www.front.org/shop/2", "http://front.org/", "http://query.org/?id=1",
    "http://query.org/?id=2", "http://query.org?id=1", "http://192.0.2.7/x", "http://192.0.2.77/x",
    "http://1.192.0.2.7/", "http://2.7/", "http://münchen.de/", "http://xn--mnchen-3ya.de/",
    "http://MÜNCHEN.de/", "http://scheme.org/path/x", "ftp://scheme.org/path", "http://scheme.org/",
    "http://dot.org/", "http://percent.org/a b", "http://percent.org/a%20b/c",
    "http://percent.org/a%20c", "http://deep.a.b.org/", "http://a.b.org/", "http://x.deep.a.b.org",
    "", "http://", "http://[2001:db8::1]/x", "mailto:me@bad.com", "not an address",
)  # fmt: skip


def addresses(folder: Path) -> None:
    """Write a blocklist, and pages with URLs."""
    (folder / "blocked.txt").write_text(_LIST, "utf-8")
    (folder / "addresses").mkdir()
    records = [
        {"id": f"url {number:02}: {url}", "url": url, "text": f"This is page number {number}."}
        for number, url in enumerate(_URLS)
    ]
    records.append({"id": "url: none", "text": "This is a page without an address."})
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "addresses" / "addresses.jsonl").write_text(lines, "utf-8")
