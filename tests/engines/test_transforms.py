"""A pipeline of transforms makes the same dataset on every engine."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines.engine import beam
from pipelines.engine.cluster import put_this_python_first, with_processes
from pipelines.transforms import (
    Clean,
    FromRows,
    IdentifyLanguage,
    ReadCorpus,
    Steps,
    ToRows,
    WriteDataset,
)
from shards.manifest import read_manifest
from tests.engines.inputs import write_wudao
from tests.engines.runs import COMMON, finished
from tests.pipelines.runs import content

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TOKENIZER = COMMON[1]
FLAGS = ("--dedup", "exact", "--languages", "zh,en", "--language-threshold", "0.5")


@pytest.mark.parametrize("engine", ["prism", "job_server"])
def test_every_engine_makes_the_dataset_of_the_command(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    flags = request.getfixturevalue(engine)
    corpus = write_wudao(tmp_path / "wudao", documents=600)
    sizes = ["--split-bytes", "8000", "--shards", "4"]
    expected = finished(
        "pipelines.wudao", ["--input", corpus, *sizes, *FLAGS], tmp_path / "expected"
    )
    run(flags, corpus, tmp_path / "made")
    made, reference = (read_manifest(path) for path in (tmp_path / "made", expected.output))
    assert made.generations[0].accounting == reference.generations[0].accounting
    assert generation(tmp_path / "made") == generation(expected.output)


def run(flags: Sequence[str], corpus: Path, output: Path) -> None:
    """Run a pipeline whose documents cross a shuffle as rows, and commit what it wrote."""
    put_this_python_first()
    pipeline = beam.Pipeline(options=beam.PipelineOptions(with_processes(flags)))
    read = pipeline | ReadCorpus("wudao", input=str(corpus), split_bytes=8000)
    steps = read.kept | Steps(Clean(), IdentifyLanguage("zh", "en"))
    rows = steps.kept | ToRows("id", "category", "repaired", "language", "score")
    mixed = rows | "Mix" >> beam.Reshuffle() | FromRows()
    sink = WriteDataset(str(output), tokenizer=TOKENIZER, shards=4, dropped=[read, steps])
    _ = mixed | sink
    pipeline.run().wait_until_finish()


def generation(output: Path) -> dict[str, str]:
    """The hash of every file of a dataset's generation, whatever that is called."""
    folder = read_manifest(output).generations[0].name
    return {
        name.removeprefix(folder): digest
        for name, digest in content(output).items()
        if name.startswith(folder)
    }
