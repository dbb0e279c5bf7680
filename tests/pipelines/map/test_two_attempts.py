"""Two attempts at one split at the same time, as when an engine takes a living worker for dead."""

import hashlib
import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from pipelines.corpus.sources import match_corpora
from pipelines.map.mapper import Job, MapTask, prepare_map, record_name, versions
from pipelines.map.stages import Chain
from pipelines.readers.reading import splits
from pipelines.wudao import WudaoOptions
from tests.pipelines.runs import many_splits


def attempt(job: Job, tasks: list[MapTask], barrier: Barrier) -> None:
    """Do the tasks, each at the same moment as the other process."""
    work = prepare_map(job)
    for task in tasks:
        barrier.wait(timeout=60)
        work(task)


def job_of(options: WudaoOptions) -> tuple[Job, list[MapTask]]:
    files, corpora = match_corpora("pipelines.wudao", options)
    chain = Chain(options)
    job = Job(options=options, corpora=corpora, versions=versions(chain, corpora))
    found = [
        split
        for file in files
        for split in splits(file, corpora["wudao"].reading, split_bytes=options.split_bytes)
    ]
    return job, [MapTask(name=record_name(s, job, chain.facts), split=s) for s in found]


def files(output: Path) -> dict[str, str]:
    """What tasks left, by name; a record's times are its own."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (output / ".work" / "map").iterdir()
        if path.suffix != ".json"
    }


@pytest.mark.slow
def test_two_attempts_at_one_split_at_once_leave_the_files_of_one(tmp_path: Path) -> None:
    alone, tasks = job_of(many_splits(tmp_path / "alone"))
    tasks = tasks[:8]
    work = prepare_map(alone)
    for task in tasks:
        work(task)

    both, _ = job_of(many_splits(tmp_path / "both"))
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(2)
    attempts = [spawn.Process(target=attempt, args=(both, tasks, barrier)) for _ in range(2)]
    for process in attempts:
        process.start()
    for process in attempts:
        process.join(timeout=100)
    assert [process.exitcode for process in attempts] == [0, 0]
    assert files(tmp_path / "both") == files(tmp_path / "alone")
    records = {path.stem for path in (tmp_path / "both" / ".work" / "map").glob("*.json")}
    assert records == {task.name for task in tasks}
