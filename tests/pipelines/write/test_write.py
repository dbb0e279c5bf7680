"""A pipeline's result is the dataset that the command makes."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from pipelines.execute import beam
from pipelines.transforms import (
    Clean,
    FromRows,
    IdentifyLanguage,
    ReadCorpus,
    ToRows,
    WriteDataset,
)
from shards.manifest import read_manifest
from tests.pipelines.dedup.pages import torn_pages
from tests.pipelines.write.pipes import TOKENIZER, running, shipped


@pytest.mark.slow
def test_the_steps_of_a_command_and_rows_on_the_way_make_its_dataset(
    reference: Path, sample: Path, tmp_path: Path
) -> None:
    output = tmp_path / "dataset"
    with running() as (pipeline, _):
        read = pipeline | ReadCorpus("wudao", input=sample, split_bytes=12_000)
        clean = read.kept | Clean()
        chosen = clean.kept | IdentifyLanguage("zh", "en")
        rows = chosen.kept | ToRows("id", "category", "repaired", "language", "score")
        mixed = rows | beam.Reshuffle() | FromRows()
        dropped = [read, clean, chosen]
        _ = mixed | WriteDataset(str(output), tokenizer=TOKENIZER, shards=8, dropped=dropped)
    ours, theirs = (read_manifest(path).generations[0] for path in (output, reference))
    assert len(shipped(output)) > 30
    assert shipped(output) == shipped(reference)
    assert ours.accounting == theirs.accounting
    assert ours.inputs == theirs.inputs
    assert not (output / ".work").exists()


class Note(NamedTuple):
    """A custom type for texts."""

    text: str
    author: str | None
    year: int


NOTES = [Note(f"the note number {n} of quite a few, and no other", "me", n) for n in range(60)]


@pytest.mark.slow
def test_bundles_do_not_decide_what_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = torn_pages(random.Random(2), 60)
    made = []
    for records in (7, 50, 1000):
        monkeypatch.setattr("pipelines.corpus.rows.BATCH_RECORDS", records)
        monkeypatch.setattr("pipelines.process.builder.MAX_RECORDS", records)
        options = {"dedup": "minhash", "shards": 2, "validation": 0.05}
        sink = WriteDataset(str(tmp_path / str(records)), tokenizer=TOKENIZER, **options)
        notes = [Note(page, "me", at) for at, page in enumerate(pages)]
        with running() as (pipeline, _):
            rows = pipeline | beam.Create(notes).with_output_types(Note)
            _ = rows | FromRows(id="year") | sink
        made.append(shipped(tmp_path / str(records)))
    assert made[0] == made[1] == made[2]
    (account,) = read_manifest(tmp_path / "7").generations[0].accounting.values()
    assert account["dropped"]["near-duplicate"] > 30


def write(notes: list[Note], sink: WriteDataset) -> None:
    with running() as (pipeline, _):
        _ = pipeline | beam.Create(notes).with_output_types(Note) | FromRows() | sink


@pytest.mark.slow
def test_a_dataset_made_since_is_not_replaced(tmp_path: Path) -> None:
    first, late = (WriteDataset(str(tmp_path), tokenizer=TOKENIZER) for _ in range(2))
    write(NOTES, first)
    made = read_manifest(tmp_path)
    with pytest.raises(Exception, match=r"already contains a dataset: .*overwrite=True"):
        write(NOTES[2:], late)
    assert read_manifest(tmp_path) == made


@pytest.mark.slow
def test_a_pipeline_deletes_only_its_own_intermediate_files(tmp_path: Path) -> None:
    other = tmp_path / ".work" / "map" / f"{'0' * 24}-0000.audit"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"of another pipeline")
    write(NOTES, WriteDataset(str(tmp_path), tokenizer=TOKENIZER))
    left = [path for path in (tmp_path / ".work").rglob("*") if path.is_file()]
    assert left == [other]
