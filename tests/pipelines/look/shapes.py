"""Records in the shapes of the corpora, as files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

CHINESE = "人工智能正在改变我们的生活方式，也带来了新的问题。" * 8
ENGLISH = "The quick brown fox jumps over the lazy dog, and the dog does not mind. " * 4

SHAPES: Mapping[str, Mapping[str, Any]] = {
    "wudao": {
        "id": 1, "uniqueKey": "5efe65", "dataType": "新闻", "title": "题目", "content": CHINESE,
    },
    "pile": {"text": ENGLISH, "meta": {"pile_set_name": "ArXiv"}},
    "fineweb": {
        "text": ENGLISH,
        "id": "<urn:uuid:9c20>",
        "dump": "CC-MAIN-2024-10",
        "url": "https://a.org/b",
        "language_score": 0.9,
    },
    "zhihu": {
        "q_title": "为什么", "q-content": "请问", "user-signature": "我", "ans-content": CHINESE,
        "ans-up-num": "12",
    },
    "zhidao": {
        "title": "为什么", "content": "请问", "best_answer": {"content": CHINESE},
        "other_answers": [{"content": CHINESE}],
    },
    "baike": {"title": "狐狸", "abstract": "一种动物", "content": CHINESE},
    "cc_news": {
        "title": "A fox", "description": "of dogs", "maintext": ENGLISH, "url": "http://a.b",
    },
    "openwebtext": {"text": ENGLISH},
    "text": {"body": ENGLISH, "lang": "en", "n": 3},
}  # fmt: skip
"""A record of each corpus."""

FORMS = {"wudao": "json", "fineweb": "parquet"}
"""Of the files of a corpus, where it is not jsonl."""


def write(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Write records in the format that the name's ending says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([*records]), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps([*records], ensure_ascii=False), "utf-8")
    else:
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def of_corpus(corpus: str, folder: Path, *, number: int = 3) -> Path:
    """Write a file in the shape of a corpus."""
    ending = FORMS.get(corpus, "jsonl")
    return write(folder / f"part-0.{ending}", [SHAPES[corpus]] * number)
