"""What a pipeline made becomes the dataset that a command makes."""

from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from pipelines.engine import beam
from pipelines.transforms import (
    Clean,
    FromRows,
    IdentifyLanguage,
    ReadCorpus,
    Steps,
    Tokenize,
    ToRows,
    WriteDataset,
)
from shards.errors import UserError
from shards.manifest import read_manifest
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
    with pytest.raises(UserError, match=r"holds a dataset already: .*overwrite=True"):
        WriteDataset(str(output), tokenizer=TOKENIZER)


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


def test_options_of_other_transforms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"WriteDataset has no option 'languages'; it has dedup, "):
        WriteDataset(str(tmp_path), tokenizer=TOKENIZER, languages=("zh",))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a"]}, "without a column 'position'; it has text"),
    ],
)
def test_batches_that_lack_an_identity_are_refused(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(Exception, match=message), running() as (pipeline, _):  # noqa: PT012
        made = batches(pipeline, pa.RecordBatch.from_pydict(columns))
        _ = made | WriteDataset(str(tmp_path / "out"), tokenizer=TOKENIZER)
