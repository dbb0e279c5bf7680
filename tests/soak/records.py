"""Random records of each corpus, and the documents that the corpus should make of them.

The rules follow docs/corpora.md, and use no code of the product.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.soak.texts import Text, Texts

Value = dict[str, Any]


@dataclass(frozen=True)
class Document:
    """A document as the corpus makes it of a record, before any step."""

    text: str
    prompt: str = ""
    reason: str = ""
    """The reason for which the corpus drops the document; "" if it keeps the document."""
    family: int = -1
    """The family of the document's `Text`; -1 if it is unknown."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The values, besides the text, that rules use."""


@dataclass(frozen=True)
class RecordResult:
    """The documents that a corpus makes of a record, or the reason for its quarantine."""

    documents: tuple[Document, ...] = ()
    quarantined: str = ""
    group: str = ""


def quarantined(reason: str) -> RecordResult:
    return RecordResult(quarantined=reason)


def _text(value: Any) -> str:
    """Return "" for a string, otherwise the reason for the quarantine."""
    if isinstance(value, str):
        return ""
    return "missing-field" if value is None else "wrong-type"


# --- text


def make_text(rng: random.Random, texts: Texts, number: int) -> tuple[Value, Text]:
    text = texts.next()
    value: Value = {"text": text.text, "id": f"doc-{number}"}
    if rng.random() < 0.2:
        value["nested"] = {"a": [1, 2.5, None, {"text": "not a record"}], "b": '}{][\\"'}
    if rng.random() < 0.1:
        value["more"] = [{"text": "an imitation of a record"}, {"text": "another one"}]
    if rng.random() < 0.05:
        value["odd"] = "@ODD@"
    if rng.random() < 0.1:
        value["url"] = f"https://w{number}.example/{rng.randrange(9)}"
    return value, text


def judge_text(value: Mapping[str, Any], options: Mapping[str, Any], family: int) -> RecordResult:
    text = value.get("text")
    text = "\n".join(text) if isinstance(text, list) else text
    if why := _text(text):
        return quarantined(why)
    short = len(text) < options.get("min_chars", 1)
    return RecordResult((Document(text, "", "too-short" if short else "", family),))


# --- wudao


def make_wudao(rng: random.Random, texts: Texts, number: int) -> tuple[Value, Text]:
    text = texts.next(min_chars=rng.choice((0, 120, 120, 120)))
    value: Value = {
        "id": number,
        "uniqueKey": f"{number:032x}",
        "dataType": rng.choice(("科技", "百科", "博客")),
        "title": rng.choice(("", "题", text.text[:4], f"Title {number}")),
        "content": text.text,
    }
    return value, text


def judge_wudao(value: Mapping[str, Any], options: Mapping[str, Any], family: int) -> RecordResult:
    title = value.get("title")
    if title is not None and not isinstance(title, str):
        return quarantined("wrong-type")
    if why := _text(value.get("content")):
        return quarantined(why)
    title, content = (title or "").strip(), value["content"]
    if title and not content.startswith(title):
        content = f"{title} {content}"
    short = len(content) < options.get("min_chars", 101)
    group = value.get("dataType")
    if not isinstance(group, str):
        group = "" if group is None else json.dumps(group, separators=(",", ":"))
    return RecordResult((Document(content, "", "too-short" if short else "", family),), group=group)


# --- pile

SUBSETS = ("Pile-CC", "ArXiv", "Github")


def make_pile(rng: random.Random, texts: Texts, number: int) -> tuple[Value, Text]:
    del number
    text, meta = texts.next(), {"pile_set_name": rng.choice(SUBSETS)}
    value: Value = {"text": text.text, "meta": json.dumps(meta) if rng.random() < 0.1 else meta}
    if rng.random() < 0.1:
        del value["meta"]
    return value, text


def judge_pile(value: Mapping[str, Any], options: Mapping[str, Any], family: int) -> RecordResult:
    meta = value.get("meta")
    if why := _text(value.get("text")):
        return quarantined(why)
    meta = json.loads(meta) if isinstance(meta, str) else meta
    if meta is None and not options.get("deny"):
        meta = {"pile_set_name": ""}
    if not isinstance(meta, dict):
        return quarantined("missing-field" if meta is None else "wrong-type")
    if why := _text(meta.get("pile_set_name")):
        return quarantined(why)
    subset = meta["pile_set_name"]
    reason = "subset" if subset in options.get("deny", ()) else ""
    return RecordResult((Document(value["text"], "", reason, family),), group=subset)


# --- fineweb


def make_fineweb(rng: random.Random, texts: Texts, number: int) -> tuple[Value, Text]:
    text = texts.next()
    return {
        "text": text.text,
        "id": f"<urn:uuid:{number:08}>",
        "dump": rng.choice(("CC-MAIN-2024-10", "CC-MAIN-2024-18")),
        "url": f"https://w{number}.example/",
        "language_score": rng.random(),
        "token_count": rng.randrange(1000),
    }, text


def judge_fineweb(
    value: Mapping[str, Any], options: Mapping[str, Any], family: int
) -> RecordResult:
    if why := _text(value.get("text")):
        return quarantined(why)
    short = len(value["text"]) < options.get("min_chars", 1)
    reason = "too-short" if short else ""
    columns = {"url": value.get("url")}
    document = Document(value["text"], "", reason, family, columns)
    return RecordResult((document,), group=value.get("dump") or "")


# --- zhidao


def make_zhidao(rng: random.Random, texts: Texts, number: int) -> tuple[Value, Text]:
    best = texts.next(min_chars=rng.choice((0, 20)))
    value: Value = {
        "title": rng.choice((f"问{number}", "怎样煮饭", "", "How? &amp; why")),
        "content": rng.choice(("", "说明" * 70, texts.next().text)),
        "best_answer": {"content": best.text},
        "other_answers": [
            {"content": texts.next(min_chars=rng.choice((0, 110))).text}
            for _ in range(rng.randrange(3))
        ],
    }
    if rng.random() < 0.1:
        del value["best_answer"]
    return value, best


def judge_zhidao(value: Mapping[str, Any], options: Mapping[str, Any], family: int) -> RecordResult:
    del options
    title, about = value.get("title"), value.get("content")
    if not all(field is None or isinstance(field, str) for field in (title, about)):
        return quarantined("wrong-type")
    about = about or ""
    about = about if len(about) <= 100 else about[:100] + "......"
    if not title:
        return RecordResult((Document("", "", "no-title"),))
    others = value.get("other_answers") or []
    if not isinstance(others, list):
        return quarantined("wrong-type")
    answers = [(11, value.get("best_answer") or {}), *((101, other) for other in others)]
    texts = [(min_chars, answer.get("content") or "") for min_chars, answer in answers if answer]
    prompt = f"问题：{title}问题描述：{about}回答："
    documents = [
        Document(text, prompt, "too-short" if len(text) < min_chars else "", family)
        for min_chars, text in texts
    ]
    return RecordResult(tuple(documents) or (Document("", "", "no-answer"),))


@dataclass(frozen=True)
class Corpus:
    """A corpus: how to make random records, and the results to expect of them."""

    make: Callable[[random.Random, Texts, int], tuple[Value, Text]]
    expected_result: Callable[[Mapping[str, Any], Mapping[str, Any], int], RecordResult]
    field: str
    """The name of the field that contains the text."""
    forms: Sequence[str]
    """The formats in which the corpus has files."""


CORPORA = {
    "text": Corpus(
        make_text,
        judge_text,
        "text",
        ("jsonl", "array", "RECORDS", "objects", "lines", "parquet", "arrow"),
    ),
    "wudao": Corpus(make_wudao, judge_wudao, "content", ("array", "RECORDS")),
    "pile": Corpus(make_pile, judge_pile, "text", ("jsonl",)),
    "fineweb": Corpus(make_fineweb, judge_fineweb, "text", ("parquet",)),
    "zhidao": Corpus(make_zhidao, judge_zhidao, "title", ("jsonl", "array")),
}


def make_invalid(rng: random.Random, value: Value, field: str) -> Value:
    """Return a record that is valid JSON, but invalid for the corpus."""
    way = rng.choice(("missing", "null", "number", "list", "nul"))
    changed = dict(value)
    if way == "missing":
        del changed[field]
    else:
        changed[field] = {"null": None, "number": 7, "list": ["x"], "nul": f"a\0{value[field]}"}[
            way
        ]
    return changed
