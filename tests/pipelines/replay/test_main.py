"""Rejected records read again: what comes in, what fails again, what never comes in twice."""

import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines import text
from pipelines.corpus.document import Document
from pipelines.corpus.recipe import SAMPLE
from pipelines.replay.__main__ import main
from pipelines.run import build
from pipelines.run.command import main as run_corpus
from pipelines.tokenizers.tokenizer import Tokenizer
from shards import Dataset
from shards.manifest import read_manifest
from shards.verify import verify
from tests.pipelines.runs import page, write_wudao

TOKENIZER = f"sentencepiece:{SAMPLE / 'sample.model'}"
FLAGS = (
    "--tokenizer", TOKENIZER, "--languages", "all", "--language-threshold", "0", "--validation",
    "0", "--max-reject-rate", "1",
)  # fmt: skip
BODY = "The old man opens the wooden door every morning and puts charcoal on the fire. "

Row = tuple[str, str, int, int]


def line(number: int, body: str = BODY) -> bytes:
    return json.dumps({"id": str(number), "text": f"{number}. {body}"}, ensure_ascii=False).encode()


BAD = {
    "bad-utf8": b'{"id": "u", "text": "caf\xe9 ' + BODY.encode() + b'"}',
    "bad-json": b'{"id": "s", "text": "lone \\ud800 and \\\\ud800 ' + BODY.encode() + b'"}',
    "nul": b'{"id": "n", "text": "zero \\u0000 ' + BODY.encode() + b'"}',
    "missing-field": b'{"id": "m", "body": "in a field of its own: ' + BODY.encode() + b'"}',
    "not-an-object": b'"a text that stands alone"',
}


def lines() -> bytes:
    """Good lines with every kind of bad one between them."""
    good = [line(n) for n in range(1, 41)]
    parts = [part for pair in zip(good, BAD.values(), strict=False) for part in pair]
    return b"\n".join([*parts, *good[len(BAD) :]]) + b"\n"


def first(module: str, output: Path, *flags: object) -> Path:
    assert run_corpus(module, [*FLAGS, "--output", str(output), *map(str, flags)]) == 0
    return output


def replay(dataset: Path, output: Path, *flags: object) -> int:
    return main([str(dataset), "--output", str(output), *map(str, flags)])


def audit(output: Path) -> dict[Row, str | None]:
    """Source, path, position and ordinal of everything read, with the reason."""
    manifest = read_manifest(output)
    return {
        (
            Path(table.path).stem.rpartition("-")[0],
            row["path"],
            row["position"],
            row["ordinal"],
        ): row["reason"]
        for generation in manifest.generations
        for table in generation.audit
        for row in pq.read_table(output / table.path).to_pylist()
    }


def rejected(output: Path) -> list[str]:
    return sorted(
        row["reason"]
        for generation in read_manifest(output).generations
        for table in generation.rejects
        for row in pq.read_table(output / table.path).to_pylist()
    )


def texts(output: Path) -> dict[str, str]:
    dataset = Dataset.open(output)
    return {
        key: dataset.vocabulary.decode(shard[row][:-1])
        for shard in dataset.documents().shards()
        for row, key in enumerate(shard.documents["id"].to_pylist())
    }


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "a.jsonl"
    path.parent.mkdir()
    path.write_bytes(lines())
    return path


@pytest.fixture
def dataset(plain: Path, tmp_path: Path) -> Path:
    return first("pipelines.text", tmp_path / "first", "--input", plain.parent)


def test_remedies_bring_in_what_they_can_and_the_rest_fails_again(
    dataset: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    again = tmp_path / "again"
    with caplog.at_level("INFO", logger="corpusmill"):
        assert replay(dataset, again, "--bad-utf8", "replace", "--nul", "remove") == 0
    assert "5 rejected records in 1 files" in caplog.text
    found = texts(again)
    assert found["u"].startswith(" caf\ufffd The old man")
    assert found["s"].startswith(" lone \ufffd and \\ud800 The old man")
    assert found["n"].startswith(" zero  The old man")
    assert rejected(again) == ["missing-field", "not-an-object"]
    assert list(verify(Dataset.open(again))) == []
    before = {row: reason for row, reason in audit(dataset).items() if reason in BAD}
    assert audit(again).keys() == before.keys(), "the same identities"
    told = read_manifest(again).options
    assert (told["bad_utf8"], told["nul"], told["reasons"]) == ("replace", "remove", [])
    assert told["replay"] == read_manifest(dataset).identity
    with caplog.at_level("INFO", logger="corpusmill"):
        assert replay(dataset, again, "--bad-utf8", "replace", "--nul", "remove") == 0
    assert "nothing to do" in caplog.text


def test_what_is_still_rejected_can_be_replayed_once_more(dataset: Path, tmp_path: Path) -> None:
    assert replay(dataset, tmp_path / "b", "--nul", "remove") == 0
    assert rejected(tmp_path / "b") == ["bad-json", "bad-utf8", "missing-field", "not-an-object"]
    made = text.documents

    def mended(record: Any, options: text.TextOptions) -> tuple[Document]:
        return made({"text": record.get("body"), **record}, options)

    object.__setattr__(text.RECIPE, "documents", mended)
    try:
        assert replay(tmp_path / "b", tmp_path / "c", "--reasons", "missing-field") == 0
    finally:
        object.__setattr__(text.RECIPE, "documents", made)
    assert [*texts(tmp_path / "c")] == ["m"]
    assert rejected(tmp_path / "c") == []
    assert audit(tmp_path / "c").items() <= {row: None for row in audit(tmp_path / "b")}.items()


def test_options_of_the_corpus_can_be_others(dataset: Path, tmp_path: Path) -> None:
    assert replay(dataset, tmp_path / "again", "--text-field", "body") == 0
    assert [*texts(tmp_path / "again")] == ["m"]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl", "a.json", "a.txt", "a.parquet"])
def test_every_container_is_read_at_its_places(name: str, tmp_path: Path) -> None:
    path = tmp_path / "in" / name
    path.parent.mkdir()
    bad = BAD["bad-utf8"]
    good = [line(n) for n in range(1, 30)]
    writers: dict[str, Callable[[], object]] = {
        ".gz": lambda: path.write_bytes(gzip.compress(b"\n".join([*good, bad, line(99)]))),
        ".jsonl": lambda: path.write_bytes(b"\n".join([*good, bad, line(99)])),
        ".json": lambda: path.write_bytes(b"[" + b",\n".join([*good, bad, line(99)]) + b"]"),
        ".txt": lambda: path.write_bytes(b"\n".join([*good, bad, b"\\ud800 " + line(99)])),
        ".parquet": lambda: _write_parquet(path),
    }
    writers[path.suffix]()
    first("pipelines.text", tmp_path / "first", "--input", path, "--split-bytes", "700")
    assert rejected(tmp_path / "first") == ["bad-utf8"]
    assert replay(tmp_path / "first", tmp_path / "again", "--bad-utf8", "replace") == 0
    (found,) = texts(tmp_path / "again").values()
    assert "caf\ufffd The old man" in found
    assert rejected(tmp_path / "again") == []
    (row,) = audit(tmp_path / "again")
    assert audit(tmp_path / "first")[row] == "bad-utf8"


def _write_parquet(path: Path) -> None:
    values = [BODY.encode() + bytes([48 + n]) for n in range(30)]
    values[17] = b"caf\xe9 " + BODY.encode()
    column = pa.array(values, pa.binary()).view(pa.string())
    ids = pa.array([str(n) for n in range(30)])
    pq.write_table(pa.table({"id": ids, "text": column}), path, row_group_size=10)


def test_a_longer_record_comes_in_under_a_larger_bound(tmp_path: Path) -> None:
    long = line(7, BODY * 100)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([line(1), long, line(2)]))
    reading = text.RECIPE.reading

    def bounded(options: Any) -> Any:
        return replace(reading(options), max_record_bytes=1000)

    object.__setattr__(text.RECIPE, "reading", bounded)
    try:
        first("pipelines.text", tmp_path / "first", "--input", path)
    finally:
        object.__setattr__(text.RECIPE, "reading", reading)
    assert rejected(tmp_path / "first") == ["too-long"]
    bound = ["--max-record-bytes", "2000"]
    assert replay(tmp_path / "first", tmp_path / "b", *bound) == 2
    assert replay(tmp_path / "first", tmp_path / "c") == 0
    assert [*texts(tmp_path / "c")] == ["7"]


def question(number: int, *others: str) -> dict[str, Any]:
    return {
        "title": f"第{number}个问题",
        "content": "急",
        "best_answer": {"content": f"最好的回答{number}，" * 5},
        "other_answers": [{"content": f"{other}{number}，" * 30} for other in others],
    }


def test_a_document_comes_in_without_the_siblings_that_were_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [question(n, "其他回答", "坏的回答", "又一个回答") for n in range(20)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(each, ensure_ascii=False) for each in questions))
    encode = Tokenizer.encode_batch

    def failing(self: Tokenizer, batch: Sequence[str]) -> Any:
        tokens, lengths, _ = encode(self, batch)
        bad = [(at, "no") for at, each in enumerate(batch) if each.startswith("坏的回答1")]
        return tokens, lengths, bad

    flags = ("--input", path, "--dedup", "none")
    with monkeypatch.context() as patch:
        patch.setattr(Tokenizer, "encode_batch", failing)
        first("pipelines.zhidao", tmp_path / "first", *flags)
    first("pipelines.zhidao", tmp_path / "whole", *flags)
    assert rejected(tmp_path / "first") == ["tokenizer-failed"] * 11
    assert replay(tmp_path / "first", tmp_path / "again") == 0
    kept = {row for row, reason in audit(tmp_path / "first").items() if reason is None}
    again = {row for row, reason in audit(tmp_path / "again").items() if reason is None}
    assert len(again) == 11
    assert {ordinal for *_, ordinal in again} == {2}
    assert not kept & again
    assert kept | again == {*audit(tmp_path / "whole")}


def test_several_corpora_keep_their_sources_and_options(tmp_path: Path) -> None:
    write_wudao(tmp_path / "w" / "part-1.json", [*(page(n) for n in range(20)), {"id": 3}])
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.jsonl").write_bytes(lines())
    first(
        "pipelines.wudao",
        tmp_path / "first",
        *("--input", f"zh={tmp_path / 'w'}", "--input", f"en=text:{tmp_path / 't'}"),
        *("--min-chars", "50", "--quality", "zh=glm,en=gopher"),
        *("--threshold", "zh:glm.min_chars=60,gopher.min_words=10"),
    )
    assert replay(tmp_path / "first", tmp_path / "again", "--nul", "remove") == 0
    found = read_manifest(tmp_path / "again")
    was = read_manifest(tmp_path / "first").options
    same = {name: value for name, value in found.options.items() if name in was}
    assert same == was, "the options of the dataset, its corpora among them"
    account = found.generations[0].accounting
    assert account["zh"]["quarantined"] == {"missing-field": 1}
    assert account["en"]["quarantined"].keys() == {*BAD} - {"nul"}
    assert (account["zh"]["kept"], account["en"]["kept"]) == (0, 1)


def test_a_run_that_was_interrupted_goes_on(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build.Build, "plan", stop)
        assert replay(dataset, tmp_path / "again", "--nul", "remove") == 130
    with caplog.at_level("INFO", logger="corpusmill"):
        assert replay(dataset, tmp_path / "again", "--nul", "remove") == 0
    assert "map: 1 of 1 tasks were finished before" in caplog.text


def test_inputs_that_moved_are_found_where_they_are_said_to_be(
    dataset: Path, plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "elsewhere"
    shutil.move(plain.parent, new)
    assert replay(dataset, tmp_path / "b", "--nul", "remove") == 2
    told = capsys.readouterr().err
    assert f"The input {plain} does not exist" in told
    assert "--input text=PATH" in told
    for number, flag in enumerate((f"text={new}", new / "a.jsonl")):
        output = tmp_path / f"c{number}"
        assert replay(dataset, output, "--nul", "remove", "--input", flag) == 0
        assert [*texts(output)] == ["n"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "b.jsonl").write_bytes(line(1))
    assert replay(dataset, tmp_path / "d", "--input", tmp_path / "empty") == 2
    assert "there is no a.jsonl in it" in capsys.readouterr().err


def test_inputs_that_changed_are_refused(
    dataset: Path, plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = plain.read_bytes()
    plain.write_bytes(whole.replace(b"1. The old", b"1. Das alt", 1))
    assert replay(dataset, tmp_path / "b", "--nul", "remove") == 2
    told = capsys.readouterr().err
    assert f"The input {plain} has changed since {dataset} was made: it has other bytes" in told
    plain.write_bytes(whole + line(99))
    assert replay(dataset, tmp_path / "b", "--nul", "remove") == 2
    assert f"and had {len(whole):,}" in capsys.readouterr().err
    plain.write_bytes(whole)  # another time, the same bytes
    assert replay(dataset, tmp_path / "b", "--nul", "remove") == 0


def test_a_tokenizer_that_changed_is_refused_unless_it_is_asked_for(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "my.model"
    shutil.copy(SAMPLE / "sample.model", model)
    flags = ["--tokenizer", f"sentencepiece:{model}", "--output", str(tmp_path / "first")]
    assert run_corpus("pipelines.text", [*FLAGS, "--input", str(plain), *flags]) == 0
    # A field of a number that SentencePiece does not know: another file, the same pieces.
    model.write_bytes(model.read_bytes() + b"\xf8\x07\x01")
    assert replay(tmp_path / "first", tmp_path / "b", "--nul", "remove") == 2
    assert "--tokenizer no longer means what it meant" in capsys.readouterr().err
    report = tmp_path / "first" / "report.json"
    assert json.loads(report.read_text())["given"]["tokenizer"] == f"sentencepiece:{model}"
    model.unlink()
    assert replay(tmp_path / "first", tmp_path / "b", "--nul", "remove") == 2
    assert f"no file {model}" in capsys.readouterr().err
    report.unlink()
    assert replay(tmp_path / "first", tmp_path / "b", "--nul", "remove") == 2
    assert "does not record the path of its tokenizer (my.model)" in capsys.readouterr().err
    flags = ["--nul", "remove", "--tokenizer", TOKENIZER]
    assert replay(tmp_path / "first", tmp_path / "b", *flags) == 0


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ([], "--output is missing"),
        (["--output", "{dataset}"], "is the dataset whose rejects are replayed"),
        (["--output", "{new}", "--reasons", "too-long"], "it rejected records as bad-json, bad-u"),
        (["--output", "{new}", "--corpus", "pipelines.nothing"], "no module pipelines.nothing"),
        (["--output", "{new}", "--zork"], "unknown flag --zork"),
        (["--output", "{new}", "--part", "1/2"], "in one run: leave --part out"),
        (
            ["--output", "{new}", "--bad-utf8", "ignore"],
            "--bad-utf8 ignore: give one of reject, replace",
        ),
        (
            ["--output", "{new}", "--input", "zork={dataset}"],
            "the dataset has no such source: give one of text",
        ),
    ],
)
def test_what_a_person_gets_wrong_is_told_in_one_paragraph(
    flags: list[str], told: str, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format(dataset=dataset, new=tmp_path / "new") for word in flags]
    before = read_manifest(dataset).number
    assert main([str(dataset), *words]) == 2
    error = capsys.readouterr().err.strip()
    assert told in error
    assert len(error.splitlines()) == 1
    assert read_manifest(dataset).number == before


def test_the_dataset_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--output", "x", "y"]) == 2
    assert "name the dataset first" in capsys.readouterr().err


def test_a_dataset_without_rejects_has_nothing_to_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_wudao(tmp_path / "part-1.json", [page(n) for n in range(5)])
    first("pipelines.wudao", tmp_path / "first", "--input", path)
    assert replay(tmp_path / "first", tmp_path / "again") == 2
    assert "it rejected no record" in capsys.readouterr().err
