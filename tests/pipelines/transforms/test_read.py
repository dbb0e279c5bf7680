"""A corpus as batches: the documents of its command, with what is wrong with the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.options import Options
from pipelines.corpus.sources import list_corpora
from pipelines.segments.rows import READ
from pipelines.transforms import ReadCorpus
from pipelines.transforms.read import ReadDoFn
from shards.errors import UserError
from tests.pipelines.runs import page, write_wudao
from tests.pipelines.transforms.pipes import running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files: whole pages, a short one, one without a text."""
    write_wudao(
        tmp_path / "in" / "part-a.json", [page(1), page(2), {"title": "x", "content": "short"}]
    )
    write_wudao(tmp_path / "in" / "b" / "part-c.json", [{"title": "no text"}, page(3)])
    return tmp_path / "in"


def test_documents_come_with_identity_and_the_others_with_reasons(folder: Path) -> None:
    with running() as (pipeline, seen):
        read = pipeline | ReadCorpus("wudao", input=f"zh={folder}")
        for name, elements in read._asdict().items():
            seen.watch(name, elements)
    kept = seen.rows("kept")
    assert [(row["source"], row["path"], row["category"]) for row in kept] == [
        ("zh", "part-a.json", "手艺"),
        ("zh", "part-a.json", "手艺"),
        ("zh", "b/part-c.json", "手艺"),
    ]
    assert [*READ.names, "id", "category", "source", "path"] == [*kept[0]]
    assert len({row["order"] for row in kept}) == 3
    (short,) = seen.rows("dropped")
    assert (short["reason"], short["path"]) == ("too-short", "part-a.json")
    (bad,) = seen.rows("quarantined")
    assert (bad["reason"], bad["path"]) == ("missing-field", "b/part-c.json")
    assert json.loads(bad["raw"]) == {"title": "no text"}
    splits = seen.by_name["splits"]
    assert sorted((split.source, split.relative) for split in splits) == [
        ("zh", "b/part-c.json"),
        ("zh", "part-a.json"),
    ]


def test_options_are_those_of_the_corpus(folder: Path) -> None:
    with running() as (pipeline, seen):
        read = pipeline | ReadCorpus("wudao", input=str(folder), min_chars=3, sample=0.999999)
        seen.watch("kept", read.kept)
    assert [len(row["text"]) for row in seen.rows("kept") if row["text"] == "x short"] == [7]
    assert len(seen.rows("kept")) == 4


def test_inputs_are_paths_or_paths_by_name(folder: Path) -> None:
    with running() as (pipeline, seen):
        one = pipeline | "One" >> ReadCorpus("wudao", input=folder / "part-a.json")
        seen.watch("one", one.kept)
        named = {"a": folder / "b", "b": folder / "part-a.json"}
        two = pipeline | "Two" >> ReadCorpus("wudao", input=named, split_bytes="1M")
        seen.watch("two", two.kept)
    assert {row["source"] for row in seen.rows("one")} == {"wudao"}
    assert sorted((row["source"], row["path"]) for row in seen.rows("two")) == [
        ("a", "part-c.json"),
        ("b", "part-a.json"),
        ("b", "part-a.json"),
    ]


def test_splits_that_do_not_join_up_are_told(tmp_path: Path) -> None:
    inner = '{"content": "' + "x" * 200 + '"}'
    outer = '{"content": "' + "y" * 150 + '", "nested": [' + ", ".join([inner] * 9) + "]}"
    path = tmp_path / "nested.json"
    path.write_text(f"[{', '.join([outer] * 4)}]")
    message = r"nested\.json: its splits do not join up, .*split_bytes=\d+ or more"
    with pytest.raises(Exception, match=message), running() as (pipeline, _):
        _ = pipeline | ReadCorpus("wudao", input=str(path), split_bytes=500)
    with running() as (pipeline, seen):
        read = pipeline | ReadCorpus("wudao", input=str(path))
        seen.watch("kept", read.kept)
    assert len(seen.rows("kept")) == 4


def test_a_worker_that_has_another_code_of_a_corpus_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = list_corpora("pipelines.wudao", Options(input=(f"zh={folder}",)))
    reading = ReadDoFn(listing[1])
    reading.setup()
    monkeypatch.setattr("pipelines.map.mapper.code_hash", lambda _: "another")
    reading = ReadDoFn(listing[1])
    monkeypatch.setattr("pipelines.map.mapper.code_hash", lambda _: "changed")
    message = (
        r"this worker has code of pipelines\.wudao changed, the pipeline was made with another"
    )
    with pytest.raises(UserError, match=message):
        reading.setup()


@pytest.mark.parametrize(
    ("corpus", "options", "message"),
    [
        (
            "wudao",
            {"tokenizer": "x"},
            r"ReadCorpus\('wudao'\) has no option 'tokenizer': .*ive one of ",
        ),
        ("pile", {}, r"ReadCorpus\('pile'\) has no input: give input=PATH"),
        ("no.such.corpus", {"input": "x"}, "no.such.corpus"),
        ("wudao", {"input": "nowhere.json"}, "nowhere.json"),
        ("wudao", {"sample": 50}, r"--sample: "),
        ("wudao", {"split_bytes": "some"}, r"--split-bytes: "),
    ],
)
def test_what_cannot_be_read_is_told_at_once(
    corpus: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ReadCorpus(corpus, **options)
