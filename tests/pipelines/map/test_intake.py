import math
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from pipelines.corpus.sources import Corpus
from pipelines.filters.step import split_verdict
from pipelines.inputs.split import Split
from pipelines.map import intake
from pipelines.map.intake import Intake, group_records
from pipelines.readers.record import Damage, Record
from pipelines.readers.salvage import UNUSABLE, Partial
from pipelines.segments.identity import order_hashes
from pipelines.wudao import WudaoOptions
from pipelines.zhidao import ZhidaoOptions
from tests.pipelines.runs import page

SPLIT = Split(
    source="s", path="/a.json", relative="a.json", file_bytes=9999, start=0, end=9999, mtime_ns=7
)


def record(offset: int, value: dict[str, Any]) -> Record:
    return Record(offset, 50, value, orjson.dumps(value))


def of_wudao(**options: Any) -> Intake:
    return Intake(Corpus("pipelines.wudao", WudaoOptions(**options)))


def test_who_asks_for_what_cannot_be_had_rejects_the_record() -> None:
    fine, asked = Partial(page(1).items(), "bad-json"), Partial(page(2).items(), "bad-utf8")
    fine["n"], fine["uniqueKey"], asked["content"] = UNUSABLE, math.inf, UNUSABLE
    verdict = of_wudao().read([record(1, page(1)), row(2, fine), row(3, asked)], SPLIT)
    assert verdict.reasons.to_pylist() == [None, None, "bad-utf8"]
    texts = verdict.batch["text"].to_pylist()
    assert texts[0] == texts[1]
    assert texts[2] == ""
    assert verdict.batch["id"].to_pylist()[1] == ""


def row(offset: int, value: Any) -> Record:
    return Record(offset, 50, value, b"")


def test_records_become_documents_with_their_identity() -> None:
    items = [record(100, page(1)), record(200, page(2))]
    verdict = of_wudao(seed=5).read(items, SPLIT)
    rows = verdict.batch.to_pylist()
    assert verdict.reasons.to_pylist() == [None, None]
    assert [(row["position"], row["length"], row["ordinal"]) for row in rows] == [
        (100, 50, 0),
        (200, 50, 0),
    ]
    text = page(1)["title"] + " " + page(1)["content"]
    assert (rows[0]["text"], rows[0]["bytes"]) == (text, len(text.encode()))
    assert (rows[0]["id"], rows[0]["category"], rows[0]["group"]) == (f"{1:032x}", "手艺", "手艺")
    positions, ordinals = (verdict.batch[name].to_numpy() for name in ("position", "ordinal"))
    expected = order_hashes("s", "a.json", positions=positions, ordinals=ordinals, seed=5)
    assert verdict.batch["order"].to_pylist() == expected.tolist()


def test_documents_of_one_record_are_numbered_and_held_out_together() -> None:
    question = {
        "title": "桥在哪里？",
        "best_answer": {"content": "在河上，从村口往东走一里路就到。"},
        "other_answers": [{"content": "不知道。"}, {"content": "河上。" * 50}],
    }
    reader = Intake(Corpus("pipelines.zhidao", ZhidaoOptions()))
    verdict = reader.read([record(100, question), record(300, {**question, "title": ""})], SPLIT)
    rows = verdict.batch.to_pylist()
    assert [(row["position"], row["ordinal"]) for row in rows] == [
        (100, 0),
        (100, 1),
        (100, 2),
        (300, 0),
    ]
    assert verdict.reasons.to_pylist() == [None, "too-short", None, "no-title"]
    assert [row["answer"] for row in rows] == ["best", "other", "other", ""]
    assert len({row["holdout"] for row in rows[:3]}) == 1
    assert len({row["order"] for row in rows}) == 4
    assert rows[0]["prompt"].startswith("问题：桥在哪里？")


def test_what_is_no_document_comes_with_its_reason() -> None:
    items = [
        Damage(0, 7, "bad-json", b"{broken"),
        record(100, {"title": "no content"}),
        record(200, page(1, "zero \0 " * 20)),
        record(300, {**page(1), "content": "short"}),
        record(400, page(2)),
    ]
    documents, rejected = split_verdict(of_wudao().read(items, SPLIT))
    assert documents["position"].to_pylist() == [400]
    assert rejected.reasons.to_pylist() == ["bad-json", "missing-field", "nul", "too-short"]
    assert rejected.batch["text"].to_pylist()[:3] == ["", "", ""]


def test_samples_are_nested_and_of_the_size_asked_for() -> None:
    items = [record(offset, {}) for offset in range(0, 20_000, 10)]
    assert of_wudao().sampled(items, SPLIT) == (items, 0)
    half, left = of_wudao(sample=0.5).sampled(items, SPLIT)
    tenth, _ = of_wudao(sample=0.1).sampled(items, SPLIT)
    assert len(half) + left == 2000
    assert 900 < len(half) < 1100
    assert {item.offset for item in tenth} < {item.offset for item in half}
    other, _ = of_wudao(sample=0.5, seed=1).sampled(items, SPLIT)
    assert other != half


def test_records_are_grouped_by_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BATCH_RECORDS", 3)
    monkeypatch.setattr(intake, "BATCH_BYTES", 100)

    def sizes(*lengths: int) -> list[list[int]]:
        def items() -> Iterator[Record]:
            for length in lengths:
                yield Record(0, length, {}, b"x" * length)

        return [[item.size for item in batch] for batch in group_records(items())]

    assert sizes() == []
    assert sizes(1, 2, 3, 4) == [[1, 2, 3], [4]]
    assert sizes(99, 50, 1) == [[99, 50], [1]]
    assert sizes(100, 1, 2) == [[100], [1, 2]]
