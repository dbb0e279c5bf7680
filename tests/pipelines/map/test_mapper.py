import dataclasses
import hashlib
import multiprocessing
from collections.abc import Mapping
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from pipelines.corpus.sources import Corpus, match_corpora
from pipelines.inputs.split import Split
from pipelines.map.chain import Chain
from pipelines.map.mapper import (
    Job,
    MapTask,
    prepare_map,
    record_name,
    segment_versions,
)
from pipelines.readers.reading import splits
from pipelines.wudao import WudaoOptions
from shards.errors import UserError
from tests.pipelines.runs import MODULE, many_splits


def hashes(folder: Path) -> dict[str, str]:
    """The hash of every file that tasks left except records, whose times are their own."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (folder / ".work" / "map").iterdir()
        if path.suffix != ".json"
    }


SPLIT = Split(
    source="wudao", path="/a.json", relative="a.json", file_bytes=9, start=0, end=9, mtime_ns=7
)


def name_of(
    split: Split = SPLIT,
    *,
    versions: Mapping[str, str] = {"ftfy": "6.3"},
    facts: Mapping[str, str] = {},
    **options: object,
) -> str:
    corpus = Corpus(MODULE, WudaoOptions(**options))  # type: ignore[arg-type]  # any option
    return record_name(split, corpus, versions=versions, facts=facts)


def test_a_records_name_covers_what_decides_bytes_and_nothing_else() -> None:
    same = name_of()
    assert name_of(dataclasses.replace(SPLIT, path="/b/a.json", mtime_ns=8, etag="x")) == same
    assert name_of(workers=7, output=Path("elsewhere"), shards=3) == same
    others = [
        name_of(dataclasses.replace(SPLIT, relative="b.json")),
        name_of(dataclasses.replace(SPLIT, start=1)),
        name_of(dataclasses.replace(SPLIT, file_bytes=10)),
        name_of(versions={"ftfy": "6.4"}),
        name_of(facts={"tokenizer": "0" * 64}),
        name_of(seed=3),
        name_of(min_chars=3),
    ]
    assert len({same, *others}) == 8


def attempt(job: Job, tasks: list[MapTask], barrier: Barrier) -> None:
    """Run the tasks, each at the same moment as the other process."""
    run_task = prepare_map(job)
    for task in tasks:
        barrier.wait(timeout=60)
        run_task(task)


def job_of(options: WudaoOptions) -> tuple[Job, list[MapTask]]:
    files, corpora = match_corpora(MODULE, options)
    chain, corpus = Chain(options), corpora["wudao"]
    versions = segment_versions(chain.engines, corpora)
    tasks = [
        MapTask(name=record_name(split, corpus, versions=versions, facts=chain.facts), split=split)
        for file in files
        for split in splits(file, corpus.reading, split_bytes=options.split_bytes)
    ]
    return Job(options=options, corpora=corpora, versions=versions), tasks


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
    job, _ = job_of(many_splits(tmp_path / "out"))
    with pytest.raises(UserError, match=message):
        prepare_map(dataclasses.replace(job, versions={**job.versions, **versions}))


@pytest.mark.slow
def test_two_attempts_at_one_split_at_once_leave_the_files_of_one(tmp_path: Path) -> None:
    """As when an engine takes a living worker for dead."""
    alone, tasks = job_of(many_splits(tmp_path / "alone"))
    tasks = tasks[:8]
    run_task = prepare_map(alone)
    for task in tasks:
        run_task(task)

    both, _ = job_of(many_splits(tmp_path / "both"))
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(2)
    attempts = [spawn.Process(target=attempt, args=(both, tasks, barrier)) for _ in range(2)]
    for process in attempts:
        process.start()
    for process in attempts:
        process.join(timeout=100)
    assert [process.exitcode for process in attempts] == [0, 0]
    assert hashes(tmp_path / "both") == hashes(tmp_path / "alone")
    records = {path.stem for path in (tmp_path / "both" / ".work" / "map").glob("*.json")}
    assert records == {task.name for task in tasks}
