"""What a pipeline made becomes the dataset that a command makes."""

import logging
import random
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine import beam
from pipelines.filters.tokenize import TOKENIZER as TOKENIZER_OF
from pipelines.run.build import build
from pipelines.transforms import (
    Clean,
    FromRows,
    IdentifyLanguage,
    JudgeQuality,
    MaskPersonalData,
    ReadCorpus,
    Steps,
    Tokenize,
    ToRows,
    WriteDataset,
)
from shards.errors import UserError
from shards.manifest import read_manifest
from tests.pipelines.dedup.pages import torn_pages
from tests.pipelines.filters.batches import batch
from tests.pipelines.runs import many_splits, page, write_wudao
from tests.pipelines.transforms.pipes import TOKENIZER, batches, running, shipped


@pytest.mark.slow
def test_the_steps_of_a_command_make_its_dataset_byte_for_byte(
    reference: Path, tmp_path: Path
) -> None:
    output = tmp_path / "dataset"
    with running() as (pipeline, _):
        read = pipeline | ReadCorpus("wudao", split_bytes=12_000)
        clean = read.kept | Clean()
        chosen = clean.kept | IdentifyLanguage("zh", "en")
        tokens = chosen.kept | Tokenize(TOKENIZER)
        sink = WriteDataset(
            str(output), tokenizer=TOKENIZER, shards=8, dropped=[read, clean, chosen, tokens]
        )
        _ = tokens.kept | sink
    ours, theirs = (read_manifest(path).generations[0] for path in (output, reference))
    assert len(shipped(output)) > 30
    assert shipped(output) == shipped(reference)
    assert ours.accounting == theirs.accounting
    assert ours.inputs == theirs.inputs
    assert read_manifest(output).corpus == "pipeline"
    assert not (output / ".work").exists()


@pytest.mark.slow
def test_other_bundles_and_rows_on_the_way_make_the_same_dataset(
    reference: Path, tmp_path: Path
) -> None:
    output = tmp_path / "dataset"
    with running() as (pipeline, _):
        read = pipeline | ReadCorpus("wudao", split_bytes=12_000)
        steps = read.kept | Steps(Clean(), IdentifyLanguage("zh", "en"))
        rows = steps.kept | ToRows("id", "category", "repaired", "language", "score")
        mixed = rows | beam.Reshuffle() | FromRows()
        sink = WriteDataset(
            str(output), tokenizer=TOKENIZER, shards=8, dropped=[read, steps], commit=False
        )
        with pytest.raises(UserError, match=r"nothing to commit for .*run the pipeline to its end"):
            sink.commit()
        _ = mixed | sink
    assert not (output / "manifest.json").exists()
    made = sink.commit()
    assert shipped(output) == shipped(reference)
    assert made.generations[0].accounting == read_manifest(reference).generations[0].accounting
    again = WriteDataset(str(output), tokenizer=TOKENIZER)
    with pytest.raises(UserError, match=r"holds a dataset already: .*overwrite=True"):
        _ = batches(beam.Pipeline(runner=beam.FnApiRunner()), whole("one text")) | again


class Note(NamedTuple):
    """A text of one's own."""

    text: str
    author: str | None
    year: int


NOTES = [Note(f"the note number {n} of quite a few, and no other", "me", n) for n in range(60)]


def write(notes: list[Note], output: Path, **options: Any) -> None:
    with running() as (pipeline, _):
        rows = pipeline | beam.Create(notes).with_output_types(Note)
        sink = WriteDataset(str(output), tokenizer=TOKENIZER, shards=2, **options)
        _ = rows | FromRows(source="notes") | sink


def write_batches(output: Path, *made: pa.RecordBatch) -> None:
    with running() as (pipeline, _):
        _ = batches(pipeline, *made) | WriteDataset(str(output), tokenizer=TOKENIZER)


@pytest.mark.slow
def test_rows_of_ones_own_have_an_order_that_is_not_theirs(tmp_path: Path) -> None:
    notes = [*NOTES, NOTES[0]]
    write(notes, tmp_path / "one")
    write(notes[::-1], tmp_path / "two")
    assert shipped(tmp_path / "one") == shipped(tmp_path / "two")
    one, two = (read_manifest(tmp_path / name) for name in ("one", "two"))
    assert one.identity == two.identity
    account = one.generations[0].accounting["notes"]
    assert (account["read"], account["kept"], account["dropped"]) == (61, 60, {"duplicate": 1})
    write(notes[:-2], tmp_path / "three")
    assert read_manifest(tmp_path / "three").generations[0].name != one.generations[0].name
    with pa.ipc.open_file(tmp_path / "one" / one.generations[0].name / "notes/00000.arrow") as file:
        row = file.read_all().to_pylist()[0]
    assert row["author"] == "me"
    assert row["path"] == "rows"
    assert 0 <= row["year"] < 60


@pytest.mark.slow
def test_metrics_and_dropped_texts_are_those_of_the_command(tmp_path: Path) -> None:
    rules = {"quality": ("en=gopher",), "threshold": ("gopher.min_words=100",)}
    options = many_splits(tmp_path / "command", keep_dropped=True, dedup="minhash", **rules)
    build("pipelines.wudao", options)
    with running() as (pipeline, _):
        read = pipeline | ReadCorpus("wudao", split_bytes=12_000)
        judge = JudgeQuality("en=gopher", thresholds=rules["threshold"])
        steps = read.kept | Steps(Clean(), IdentifyLanguage("zh", "en"), judge, Tokenize(TOKENIZER))
        sink = WriteDataset(
            str(tmp_path / "made"),
            tokenizer=TOKENIZER,
            shards=8,
            dedup="minhash",
            keep_dropped=True,
            dropped=[read, steps],
            metrics=[judge],
        )
        _ = steps.kept | sink
    made, command = shipped(tmp_path / "made"), shipped(tmp_path / "command")
    assert any(name.startswith("dropped/") for name in made)
    assert any("bands" in name or "band-" in name for name in made)
    assert made == command


@pytest.mark.slow
@pytest.mark.parametrize("clusters", ["local", "components"])
def test_bundles_do_not_decide_what_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clusters: str
) -> None:
    pages = torn_pages(random.Random(2), 60)
    made = []
    for records in (7, 50, 1000):
        monkeypatch.setattr("pipelines.transforms.rows.BATCH_RECORDS", records)
        monkeypatch.setattr("pipelines.map.builder.MAX_RECORDS", records)
        options = {"dedup": "minhash", "clusters": clusters, "shards": 2, "validation": 0.05}
        sink = WriteDataset(str(tmp_path / str(records)), tokenizer=TOKENIZER, **options)
        notes = [Note(page, "me", at) for at, page in enumerate(pages)]
        with running() as (pipeline, _):
            rows = pipeline | beam.Create(notes).with_output_types(Note)
            _ = rows | FromRows(id="year") | sink
        made.append(shipped(tmp_path / str(records)))
    assert made[0] == made[1] == made[2]
    (account,) = read_manifest(tmp_path / "7").generations[0].accounting.values()
    assert account["dropped"]["near-duplicate"] > 30


@pytest.mark.slow
def test_sources_may_differ_in_columns_but_documents_of_one_may_not(tmp_path: Path) -> None:
    with running() as (pipeline, _):
        read = pipeline | ReadCorpus("wudao")
        notes = pipeline | beam.Create(NOTES).with_output_types(Note)
        both = (read.kept, notes | FromRows(source="notes")) | beam.Flatten()
        _ = both | WriteDataset(str(tmp_path / "two"), tokenizer=TOKENIZER, dropped=[read])
    (generation,) = read_manifest(tmp_path / "two").generations
    assert sorted(generation.sources) == ["notes", "wudao"]
    assert {entry.path for entry in generation.inputs if entry.source == "notes"} == {"rows"}

    def with_column(number: int) -> pa.RecordBatch:
        rows = batch(f"a text of a {number} and quite a few words", "another text")
        for name in ("source", "path", *(["mark"] if number else [])):
            rows = rows.append_column(name, pa.array(["s", "s"], pa.large_string()))
        return rows

    message = r"some documents of the source 's' have a column 'mark' and some have not"
    with pytest.raises(Exception, match=message):
        write_batches(tmp_path / "odd", with_column(0), with_column(1))


def test_tokens_of_another_tokenizer_are_refused(tmp_path: Path) -> None:
    rows = batch("a text")
    for name in ("source", "path"):
        rows = rows.append_column(name, pa.array(["s"], pa.large_string()))
    tokens = pa.array([[1, 2]], pa.large_list(pa.uint16()))
    rows = rows.append_column(pa.field("tokens", tokens.type, metadata={TOKENIZER_OF: "x"}), tokens)
    rows = rows.append_column("prompt_tokens", pa.array([0], pa.int32()))
    message = r"was given tokens of another tokenizer \(x…\) than its own"
    with pytest.raises(Exception, match=message):
        write_batches(tmp_path / "out", rows)


@pytest.mark.slow
def test_a_last_step_that_an_engine_repeats_finds_its_work_done(tmp_path: Path) -> None:
    output = tmp_path / "dataset"
    with running() as (pipeline, _):
        rows = pipeline | beam.Create(NOTES).with_output_types(Note)
        sink = WriteDataset(str(output), tokenizer=TOKENIZER, commit=False, keep_segments=True)
        _ = rows | FromRows() | sink
    first = sink.commit()
    for path in (output / ".work" / "map").glob("*.tokens"):
        path.unlink()
    assert sink.commit() == first


def written(notes: list[Note], output: Path, **options: Any) -> WriteDataset:
    """Return what wrote notes and is yet to commit."""
    sink = WriteDataset(str(output), tokenizer=TOKENIZER, commit=False, **options)
    with running() as (pipeline, _):
        _ = pipeline | beam.Create(notes).with_output_types(Note) | FromRows() | sink
    return sink


@pytest.mark.slow
def test_a_dataset_made_since_is_not_replaced(tmp_path: Path) -> None:
    late = WriteDataset(str(tmp_path), tokenizer=TOKENIZER)
    first, second = written(NOTES, tmp_path), written(NOTES[1:], tmp_path)
    assert first.commit() == first.commit() == read_manifest(tmp_path)
    with pytest.raises(UserError, match=r"nothing to commit for .* has made its dataset since"):
        second.commit()
    message = r"holds a dataset already: .*overwrite=True"
    with pytest.raises(Exception, match=message), running() as (pipeline, _):
        _ = pipeline | beam.Create(NOTES[2:]).with_output_types(Note) | FromRows() | late
    assert first.commit() == read_manifest(tmp_path)


def test_a_commit_leaves_the_log_of_beam_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("apache_beam"), "level", logging.INFO)
    written(NOTES[:9], tmp_path).commit()
    assert logging.getLogger("apache_beam").level == logging.INFO


@pytest.mark.slow
def test_replacing_with_other_options_is_no_repetition(tmp_path: Path) -> None:
    first = written(NOTES, tmp_path).commit()
    second = written(NOTES, tmp_path, overwrite=True, keep_dropped=True).commit()
    assert first.generations[0].name != second.generations[0].name
    assert written(NOTES, tmp_path, overwrite=True, keep_dropped=True).commit() == second


@pytest.mark.slow
def test_what_another_pipeline_removed_is_told(tmp_path: Path) -> None:
    sink = written(NOTES, tmp_path)
    next((tmp_path / ".work" / "map").glob("*.audit")).unlink()
    message = r"\.audit is gone, .*another WriteDataset with the same output"
    with pytest.raises(UserError, match=message):
        sink.commit()


def test_a_corpus_that_is_read_twice_is_told(tmp_path: Path) -> None:
    write_wudao(tmp_path / "in.json", [page(1), page(2)])
    sink: Any = None

    def run() -> None:
        nonlocal sink
        with running() as (pipeline, _):
            one, two = (
                pipeline | name >> ReadCorpus("wudao", input=tmp_path / "in.json") for name in "ab"
            )
            sink = WriteDataset(str(tmp_path / "out"), tokenizer=TOKENIZER, dropped=[one, two])
            _ = (one.kept, two.kept) | beam.Flatten() | sink

    message = r"in\.json of the input 'wudao' was read twice, .*input='NAME=PATH'"
    with pytest.raises(Exception, match=message):
        run()
    with pytest.raises(UserError, match=r"the pipeline itself makes the dataset .*commit=False"):
        sink.commit()


def test_options_of_other_transforms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"WriteDataset has no option 'languages': .*ive one of dedup, "
    ):
        WriteDataset(str(tmp_path), tokenizer=TOKENIZER, languages=("zh",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dedup": "Minhash"}, r"--dedup Minhash: did you mean minhash\?"),
        ({"workers": -3}, r"--workers: "),
        ({"max_reject_rate": 5}, r"--max-reject-rate: "),
        ({"overwrite": "yes"}, r"overwrite='yes' is neither True nor False"),
    ],
)
def test_values_that_the_flags_refuse_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        WriteDataset(str(tmp_path), tokenizer=TOKENIZER, **options)


def test_values_may_be_the_texts_that_flags_take(tmp_path: Path) -> None:
    sink = WriteDataset(str(tmp_path), tokenizer=TOKENIZER, shard_tokens="100M", workers="2")
    assert (sink.options.shard_tokens, sink.options.workers) == (100_000_000, 2)


def test_batches_that_lack_an_identity_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="without a column 'position'; it has text"):
        write_batches(tmp_path / "out", pa.RecordBatch.from_pydict({"text": ["a"]}))


def whole(*texts: str) -> pa.RecordBatch:
    """A batch as ReadCorpus gives it."""
    rows = batch(*texts)
    for name in ("source", "path"):
        rows = rows.append_column(name, pa.array(["web"] * len(texts), pa.large_string()))
    return rows


def test_what_is_left_out_has_reasons_and_what_stays_has_none(tmp_path: Path) -> None:
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    kept = batches(pipeline, whole("one text"))
    other = pipeline | "Others" >> beam.Create([whole("another")], reshuffle=False)
    other |= "Typed" >> beam.Map(lambda rows: rows).with_output_types(pa.RecordBatch)
    _ = kept | WriteDataset(str(tmp_path / "a"), tokenizer=TOKENIZER, dropped=[other])
    with pytest.raises(Exception, match="was given rows without a column 'reason'"):
        pipeline.run().wait_until_finish()
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    marked = whole("one").append_column("reason", pa.array(["mine"]))
    _ = batches(pipeline, marked) | WriteDataset(str(tmp_path / "b"), tokenizer=TOKENIZER)
    with pytest.raises(Exception, match="was given rows with a column 'reason'"):
        pipeline.run().wait_until_finish()
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    lost = whole("one", "two")
    lost = lost.set_column(
        lost.schema.get_field_index("source"), "source", pa.array(["web", None], pa.large_string())
    )
    _ = batches(pipeline, lost) | WriteDataset(str(tmp_path / "c"), tokenizer=TOKENIZER)
    with pytest.raises(Exception, match="rows whose source is null"):
        pipeline.run().wait_until_finish()


def test_collections_are_written_once_to_an_output_of_their_own(tmp_path: Path) -> None:
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    clean = batches(pipeline, whole("one text")) | Clean()
    for dropped in ([clean, clean.dropped], [clean.kept]):
        sink = WriteDataset(str(tmp_path / str(len(dropped))), tokenizer=TOKENIZER, dropped=dropped)
        with pytest.raises(UserError, match="was given the same collection twice"):
            _ = clean.kept | f"Sink {len(dropped)}" >> sink
    _ = clean.kept | "First" >> WriteDataset(str(tmp_path / "d"), tokenizer=TOKENIZER)
    with pytest.raises(UserError, match="two WriteDataset of one pipeline write to"):
        _ = clean.kept | "Second" >> WriteDataset(str(tmp_path / "d"), tokenizer=TOKENIZER)
    with pytest.raises(UserError, match=r"give it those that stay, as in … \.kept"):
        _ = clean | "Third" >> WriteDataset(str(tmp_path / "e"), tokenizer=TOKENIZER)


def test_metrics_are_given_as_transforms(tmp_path: Path) -> None:
    judge = JudgeQuality("en=gopher")
    WriteDataset(str(tmp_path), tokenizer=TOKENIZER, metrics=[judge, Clean()])
    WriteDataset(str(tmp_path), tokenizer=TOKENIZER, metrics=judge)
    name: Any = "judge"
    with pytest.raises(UserError, match=r"metrics=\[…\]\) was given 'judge': give it the trans"):
        WriteDataset(str(tmp_path), tokenizer=TOKENIZER, metrics=[name])


def test_a_column_of_two_types_is_told(tmp_path: Path) -> None:
    one, two = whole("one text"), whole("another text")
    one = one.append_column("year", pa.array([1999]))
    two = two.append_column("year", pa.array(["1999"]))
    message = r"a column 'year' of two types, (int64 and string|string and int64): make it one"
    with pytest.raises(Exception, match=message):
        write_batches(tmp_path / "out", one, two)


def test_metrics_are_no_columns_of_documents(tmp_path: Path) -> None:
    mail = whole("Write to someone@gmail.com, or to nobody.", "A text without any address in it.")
    found = {}
    for name, audited in {"without": False, "with": True}.items():
        masked = MaskPersonalData()
        with running() as (pipeline, _):
            made = batches(pipeline, mail) | masked
            sink = WriteDataset(
                str(tmp_path / name), tokenizer=TOKENIZER, metrics=[masked] if audited else []
            )
            _ = made.kept | sink
        files = shipped(tmp_path / name)
        (table,) = (files[path] for path in files if path.endswith("00000.arrow") and "web" in path)
        audit = pq.read_table(next((tmp_path / name).glob("*/audit/*.parquet")))
        found[name] = table, "pii.email" in audit.column_names
    assert found["with"][0] == found["without"][0]
    assert (found["with"][1], found["without"][1]) == (True, False)
