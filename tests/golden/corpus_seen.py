"""A small corpus with something of every kind that pages, calls and plans show."""

import shutil
from pathlib import Path
from typing import Any

from tests.golden.corpora import articles, put, put_lines

_SIGNS = "Signs: 😀 é \u202e turned \u200b thin \t tab <b>bold</b> & \"quoted\" 'too' </div> 汉字"


def _page(at: int, **more: Any) -> dict[str, Any]:
    (page,) = articles(1, first=at)
    host = "a.org" if at % 5 == 0 else "b.org"
    return {**page, "id": f"page-{at}", "url": f"https://{host}/{at}?q=1&r=2", **more}


def seen_first(folder: Path) -> None:
    """Pages with copies, versions, faults and long texts; questions with answers."""
    pages = [_page(at) for at in range(36)]
    others = [
        {**_page(at), "text": page["text"], "id": f"zh-{at}"}
        for at, page in enumerate(articles(8, language="zh"))
    ]
    put_lines(folder / "in/a.jsonl", [*pages[:20], *_odd(pages), *others[:4]])
    put_lines(folder / "in/b.jsonl", [*pages[20:], *others[4:], *_faults()])
    put_lines(folder / "asked/a.jsonl", map(_answer, range(9)))


def _odd(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copies, versions, a short text, signs, and texts of one part, of just more, of three."""
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


def seen_second(folder: Path) -> None:
    """A day's new pages, with copies and versions of the first day's."""
    known = [
        {**_page(7), "id": "copy-of-7"},
        {**_page(8), "id": "near-8", "text": _page(8)["text"] + " The end of it."},
        {**_page(9), "id": "same-place"},
    ]
    put_lines(folder / "in/c.jsonl", [*(_page(at) for at in range(36, 50)), *known])


def seen_third(folder: Path) -> None:
    """One more day, with the text of a removed page."""
    put_lines(folder / "in/d.jsonl", [_page(10, id="again-10"), *map(_page, range(50, 54))])


def seen_harmed(folder: Path) -> None:
    """A shard and an audit table are not what they were."""
    (shard,) = (folder / "data").glob("g0001-*/web/00000.arrow")
    (audit,) = (folder / "data").glob("g0001-*/audit/web-00000.parquet")
    for path, content in ((shard, shard.read_bytes()[:-40]), (audit, b"\0" * audit.stat().st_size)):
        shutil.copyfile(path, folder / path.name)
        path.write_bytes(content)


def seen_mended(folder: Path) -> None:
    """They are again what they were."""
    (shard,) = (folder / "data").glob("g0001-*/web/00000.arrow")
    (audit,) = (folder / "data").glob("g0001-*/audit/web-00000.parquet")
    for path in (shard, audit):
        (folder / path.name).rename(path)


def save_run(folder: Path) -> None:
    """A script that saves the options of a run on both states of the dataset."""
    put(
        folder / "save.py",
        """from pathlib import Path

from shards import BatchSize, Blend, SamplingPlan

SamplingPlan(
    mixes=(Blend(start=0, data=("data@1",)), Blend(start=20, data=("data@2",))),
    batches=(BatchSize(step=0, size=2), BatchSize(step=8, size=70)),
    seed=1,
    scatters=1,
    length=64,
    steps=12,
).save(Path("run.json"))
""",
    )


_YAML = """pipeline:
  transforms:
    - type: ReadCorpus
      config: {corpus: text, input: [web=in], provenance: [url, title], min_chars: 5}
    - type: FilterUrls
      input: ReadCorpus.kept
      config: {files: [urls.txt]}
    - type: Clean
      input: FilterUrls.kept
    - type: IdentifyLanguage
      input: Clean.kept
      config: {languages: [zh, en], threshold: 0.6}
    - type: JudgeQuality
      input: IdentifyLanguage.kept
      config: {rules: [en=gopher], thresholds: [gopher.min_words=90]}
    - type: Decontaminate
      input: JudgeQuality.kept
      config: {files: [benchmark.txt]}
    - type: MaskPersonalData
      input: Decontaminate.kept
    - type: UserFilter
      input: MaskPersonalData.kept
      config: {spec: "mine:no_ads?word=cello"}
    - type: Tokenize
      input: UserFilter.kept
      config: {tokenizer: "sentencepiece:tok.model"}
    - type: ToRows
      input: Tokenize.kept
      config: {columns: [id, url, language, score]}
    - type: Filter
      input: ToRows
      config: {language: python, keep: "len(text) < 700"}
    - type: FromRows
      input: Filter
    - type: WriteDataset
      input:
        kept: FromRows
        unread: ReadCorpus.dropped
        bad: ReadCorpus.quarantined
        splits: ReadCorpus.splits
        blocked: FilterUrls.dropped
        empty: Clean.dropped
        other languages: IdentifyLanguage.dropped
        poor: JudgeQuality.dropped
        known: Decontaminate.dropped
        ads: UserFilter.dropped
      config:
        output: by-yaml
        tokenizer: sentencepiece:tok.model
        max_reject_rate: 1
providers:
  - include: beam-providers.yaml
"""


def steps_of_transforms(folder: Path) -> None:
    """Addresses, a benchmark and a filter that drop some pages, and personal data in others."""
    put(folder / "steps.yaml", _YAML)
    for example in (Path(__file__).parents[2] / "docs" / "examples").glob("*.yaml"):
        text = example.read_text("utf-8").replace("pipelines/sample/sample.model", "tok.model")
        put(folder / example.name, text)
    put(folder / "urls.txt", "b.org/2?q=1&r=2\njavascript.example\nb.org/34\n")
    put(folder / "benchmark.txt", articles(1, first=12)[0]["text"] + "\n")
    put(
        folder / "mine.py",
        """class no_ads:
    metrics = ("commas",)
    changes_text = True

    def __init__(self, word):
        self.word = word

    def __call__(self, batch):
        texts = batch["text"].to_pylist()
        return {
            "reason": ["ads" if self.word in text else None for text in texts],
            "text": [text.replace("sixty", "60") for text in texts],
            "commas": [float(text.count(",")) for text in texts],
        }
""",
    )
    mails = [
        {**_page(at), "text": f"{_page(at)['text']} Write to a{at}@b.org or 192.0.2.{at}."}
        for at in (60, 61, 62)
    ]
    put_lines(folder / "in/mail.jsonl", mails)


def many_short(folder: Path) -> None:
    """So many short texts that splits of a few bytes become many segments."""
    texts = ({"text": f"Text {at} of many, with the words of {at * at}."} for at in range(1300))
    put_lines(folder / "short/a.jsonl", texts)
