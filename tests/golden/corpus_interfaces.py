"""A small corpus with every kind of record that pages, calls and estimates show."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from tests.golden.corpora import articles, copy_scripts, page, write_file, write_jsonl

_SIGNS = "Signs: 😀 é \u202e turned \u200b thin \t tab <b>bold</b> & \"quoted\" 'too' </div> 汉字"


_page = partial(page, query="?q=1&r=2")
"""Return an article with a URL that has a query."""


def first_day(folder: Path) -> None:
    """Write pages with duplicates, faults and long texts, and questions with answers."""
    pages = [_page(at) for at in range(36)]
    others = [
        {**_page(at), "text": page["text"], "id": f"zh-{at}"}
        for at, page in enumerate(articles(8, language="zh"))
    ]
    write_jsonl(folder / "in/a.jsonl", [*pages[:20], *_odd(pages), *others[:4]])
    write_jsonl(folder / "in/b.jsonl", [*pages[20:], *others[4:], *_faults()])
    write_jsonl(folder / "asked/a.jsonl", map(_answer, range(9)))


def _odd(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return pages that are copies, similar, short, long, or contain unusual characters."""
    words = articles(60, first=10)
    long = " ".join(word for page in words for word in page["text"].split())
    return [
        {**pages[3], "id": "copy-of-3"},
        {**pages[4], "id": "copy-of-4", "text": pages[4]["text"].replace(" ", "  ")},
        {**pages[5], "id": "near-5", "text": pages[5]["text"] + " The end."},
        {**pages[6], "id": "near-6", "text": "It begins here. " + pages[6]["text"]},
        {"id": "short", "url": None, "title": "short", "text": "Short."},
        {"id": "signs", "url": "javascript:alert(1)", "title": _SIGNS, "text": _signs()},
        {"id": "long", "url": "", "title": "long", "text": long[:22_000]},
        {"id": "german", "title": "german", "text": " ".join((_GERMAN * 4)[:60])},
    ]


_GERMAN = "Der Hund und die Katze gehen am Abend durch den Garten nach Hause zurück und schlafen."
_GERMAN = _GERMAN.split()


def _signs() -> str:
    return "\n".join([_SIGNS, *(page["text"] for page in articles(2, first=60)), _SIGNS])


def _faults() -> list[bytes]:
    return [
        b'{"id": "unread", "text": "no end',
        b'{"id": "no text", "words": "none"}',
        b'{"id": "bytes", "text": "\xff\xfe\x00 ' + b"<i>x</i>\x07" * 130 + b'"}',
        b'{"id": "large", "text": 5, "more": "' + b"ab" * 9_000 + b'"}',
    ]


def _answer(at: int) -> dict[str, Any]:
    question, answer = articles(2, first=2 * at, language="zh")
    return {
        "q_title": question["title"],
        "q-content": question["text"][:30],
        "ans-content": answer["text"],
        "ans-up-num": str(at),
        "user-signature": "u",
    }


def second_day(folder: Path) -> None:
    """Write new pages, and duplicates of pages of the first day."""
    known = [
        {**_page(7), "id": "copy-of-7"},
        {**_page(8), "id": "near-8", "text": _page(8)["text"] + " The end of it."},
        {**_page(9), "id": "same-place"},
    ]
    write_jsonl(folder / "in/c.jsonl", [*(_page(at) for at in range(36, 50)), *known])


def third_day(folder: Path) -> None:
    """Write new pages, and the text of a removed page."""
    write_jsonl(folder / "in/d.jsonl", [_page(10, id="again-10"), *map(_page, range(50, 54))])


def damage_files(folder: Path) -> None:
    """Damage a shard and an audit table; keep a copy of each."""
    (shard,) = (folder / "data").glob("g0001-*/web/00000.arrow")
    (audit,) = (folder / "data").glob("g0001-*/audit/web-00000.parquet")
    for path, content in ((shard, shard.read_bytes()[:-40]), (audit, b"\0" * audit.stat().st_size)):
        shutil.copyfile(path, folder / path.name)
        path.write_bytes(content)


def restore_files(folder: Path) -> None:
    """Restore the damaged files from the copies."""
    (shard,) = (folder / "data").glob("g0001-*/web/00000.arrow")
    (audit,) = (folder / "data").glob("g0001-*/audit/web-00000.parquet")
    for path in (shard, audit):
        (folder / path.name).rename(path)


def transform_inputs(folder: Path) -> None:
    """Write URLs, a benchmark and a filter that drop some pages, and pages with personal data."""
    copy_scripts("steps.yaml", "mine.py")(folder)
    for example in (Path(__file__).parents[2] / "docs" / "examples").glob("*.yaml"):
        text = example.read_text("utf-8").replace("pipelines/sample/sample.model", "tok.model")
        write_file(folder / example.name, text)
    write_file(folder / "urls.txt", "b.org/2?q=1&r=2\njavascript.example\nb.org/34\n")
    write_file(folder / "benchmark.txt", articles(1, first=12)[0]["text"] + "\n")
    mails = [
        {**_page(at), "text": f"{_page(at)['text']} Write to a{at}@b.org or 192.0.2.{at}."}
        for at in (60, 61, 62)
    ]
    write_jsonl(folder / "in/mail.jsonl", mails)


def many_short(folder: Path) -> None:
    """Write enough short texts for many small segments."""
    texts = ({"text": f"Text {at} of many, with the words of {at * at}."} for at in range(1300))
    write_jsonl(folder / "short/a.jsonl", texts)
