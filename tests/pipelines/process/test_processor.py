import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipelines.corpus.sources import Corpus, list_corpus_files
from pipelines.corpus.spec import SAMPLE
from pipelines.process.processor import (
    Job,
    prepare_splits,
    record_names,
    segment_versions,
)
from pipelines.read.split import FileSplit
from pipelines.steps.step_pipeline import StepPipeline
from pipelines.wudao import WudaoOptions
from shards.errors import UserError
from tests.pipelines.runs import MODULE, small

SPLIT = FileSplit(
    source="wudao", path="/a.json", relative="a.json", file_bytes=9, start=0, end=9, mtime_ns=7
)


def name_of(
    *splits: FileSplit,
    versions: Mapping[str, str] = {"ftfy": "6.3"},
    fingerprints: Mapping[str, str] = {},
    **options: object,
) -> str:
    corpus = Corpus(MODULE, WudaoOptions(**options))  # type: ignore[arg-type]  # any option
    (name,) = record_names(
        [splits or (SPLIT,)], corpus, versions=versions, fingerprints=fingerprints
    )
    return name


def test_a_records_name_covers_what_decides_bytes_and_nothing_else() -> None:
    same = name_of()
    assert name_of(dataclasses.replace(SPLIT, path="/b/a.json", mtime_ns=8, etag="x")) == same
    assert name_of(workers=7, output=Path("elsewhere"), shards=3) == same
    others = [
        name_of(dataclasses.replace(SPLIT, relative="b.json")),
        name_of(dataclasses.replace(SPLIT, start=1)),
        name_of(dataclasses.replace(SPLIT, file_bytes=10)),
        name_of(SPLIT, dataclasses.replace(SPLIT, relative="b.json")),
        name_of(versions={"ftfy": "6.4"}),
        name_of(fingerprints={"tokenizer": "0" * 64}),
        name_of(seed=3),
        name_of(min_chars=3),
    ]
    assert len({same, *others}) == 9


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"ftfy": "5"}, r"^this worker has ftfy 6\.\S*, the driver 5: .* Install the same version"),
        ({"spacy": "3"}, r"^this worker has spacy None, the driver 3"),
    ],
)
def test_a_worker_with_other_versions_is_refused(
    tmp_path: Path, versions: Mapping[str, str], message: str
) -> None:
    options = small(tmp_path / "out", SAMPLE)
    _, corpora = list_corpus_files(MODULE, options)
    here = segment_versions(StepPipeline(options).library_versions, corpora)
    with pytest.raises(UserError, match=message):
        prepare_splits(Job(options=options, corpora=corpora, versions={**here, **versions}))
