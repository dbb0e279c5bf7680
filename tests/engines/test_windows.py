"""On engines, every row of a stream gets into one generation, whichever process is killed."""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from shards.manifest import NAME, Manifest, read_manifest
from tests.engines.flink import Cluster
from tests.engines.processes import Process, guarded, started, wait_until
from tests.engines.runs import ROOT
from tests.engines.windowed import BATCH, STEP, WINDOW, text_of
from tests.pipelines.runs import shipped
from tests.pipelines.write.pipes import TOKENIZER

ROWS = round(WINDOW / STEP) * BATCH
"""The number of rows per window."""


@contextmanager
def streaming(
    output: Path, start: int, windows: int, flags: Sequence[object], *, log: str = ""
) -> Iterator[tuple[Process, Path]]:
    """Start a pipeline; yield the driver process and the path of the log."""
    path = output.with_name(f"{output.name}{log}.log")
    command = [sys.executable, "-m", "tests.engines.windowed", output, start, windows * WINDOW]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with started([*command, *flags], log=path, env=env, cwd=ROOT) as process:
        yield process, path


def next_window() -> int:
    """Return the start of the window after the next one, by which the pipeline is ready."""
    return (int(time.time()) // WINDOW + 2) * WINDOW


def generations(output: Path) -> int:
    return len(read_manifest(output).generations) if (output / NAME).exists() else 0


def wait_for(run: tuple[Process, Path], output: Path, number: int) -> None:
    """Wait until a dataset has `number` generations."""
    process, log = run
    wait_until(lambda: generations(output) >= number, process, log=log, seconds=150)


def finish(run: tuple[Process, Path]) -> str:
    """Wait for the end of a pipeline, and check that it succeeded."""
    process, log = run
    code = process.wait(timeout=200)
    said = log.read_text(errors="replace")
    assert code == 0, said[-4000:]
    return said


def check_once(output: Path, start: int, windows: int) -> Manifest:
    """Check that each window gives one generation with the bytes of a bounded pipeline."""
    manifest = read_manifest(output)
    ends = []
    for generation in manifest.generations:
        (entry,) = generation.inputs
        account = generation.accounting["rows"]
        assert account["read"] == ROWS == account["kept"] + sum(account["dropped"].values())
        ends.append(entry.path)
    every = [start + number * WINDOW for number in range(windows)]
    paths = [f"rows/{stamp(first)}--{stamp(first + WINDOW)}/on-time-0" for first in every]
    assert sorted(ends) == paths
    kept = kept_numbers(output, manifest)
    assert len(kept) == len({*kept})
    texts = {text_of(number) for number in range(windows * ROWS)}
    assert sorted(map(text_of, kept)) == sorted(texts)
    appended = output.with_name(f"{output.name}-appended")
    order = [paths.index(path) for path in ends]
    with streaming(appended, start, windows, order) as run:
        finish(run)
    # Files of failed attempts stay in .work for an hour.
    assert shipped(output) == shipped(appended)
    return manifest


def kept_numbers(output: Path, manifest: Manifest) -> list[int]:
    numbers = []
    for shard in manifest.shards():
        with pa.ipc.open_file(output / f"{shard.path}.arrow") as file:
            numbers += file.read_all()["number"].to_pylist()
    return numbers


def stamp(moment: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def test_windows_become_generations_as_they_close(prism: Sequence[str], tmp_path: Path) -> None:
    output, start = tmp_path / "out", next_window()
    with streaming(output, start, 3, prism) as run:
        wait_for(run, output, 1)
        assert generations(output) < 3
        finish(run)
    check_once(output, start, 3)
    assert not [*output.glob(".work/map/*.audit")]


def test_a_killed_driver_is_started_again(prism: Sequence[str], tmp_path: Path) -> None:
    output, start = tmp_path / "out", next_window()
    with streaming(output, start, 4, prism, log="-first") as run:
        wait_for(run, output, 1)
        guarded(run[0]).kill()
    with streaming(output, start, 4, prism) as run:
        finish(run)
    check_once(output, start, 4)


def test_the_example_of_files_that_arrive(prism: Sequence[str], tmp_path: Path) -> None:
    source = (ROOT / "docs" / "examples" / "inbox_stream.py").read_text()
    script, output, log = (tmp_path / name for name in ("inbox_stream.py", "out", "out.log"))
    script.write_text(source.replace("SECONDS = 60", "SECONDS = 5"))
    for number in range(2):
        line = json.dumps({"url": f"page {number}", "text": text_of(number)})
        (tmp_path / f"{number}.jsonl").write_text(line)
    command = [sys.executable, script, tmp_path / "*.jsonl", output, TOKENIZER, *prism]
    with started(command, log=log, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        wait_for((process, log), output, 1)
    (generation,) = read_manifest(output).generations
    assert generation.accounting["rows"]["read"] == 2


@pytest.fixture
def flink(cluster: Cluster) -> Sequence[object]:
    # With checkpoints, Flink's runner keeps idle sources running, but then never resumes the
    # deferred work of a splittable DoFn.
    stream = ["--checkpointing_interval=2000", "--shutdown_sources_after_idle_ms=0"]
    return [*cluster.flags, *stream]


@pytest.mark.nightly
def test_a_killed_worker_and_a_killed_task_manager_cost_nothing(
    cluster: Cluster, flink: Sequence[object], tmp_path: Path
) -> None:
    output, start, windows = tmp_path / "out", next_window(), 8
    with streaming(output, start, windows, flink) as run:
        wait_for(run, output, 1)
        carrier = next(one for one in cluster.managers if one.workers())
        carrier.workers()[0].kill()
        before = generations(output)
        wait_for(run, output, before + 2)
        carrier = next(one for one in cluster.managers if one.workers())
        carrier.kill()
        wait_for(run, output, windows)
        finish(run)
    assert cluster.restarts() > 0
    check_once(output, start, windows)


@pytest.mark.nightly
def test_a_job_continues_without_its_driver(
    cluster: Cluster, flink: Sequence[object], tmp_path: Path
) -> None:
    output, start, windows = tmp_path / "out", next_window(), 4
    with streaming(output, start, windows, flink) as run:
        wait_for(run, output, 1)
        guarded(run[0]).kill()
    manager = cluster.managers[0].process
    wait_until(lambda: generations(output) == windows, manager, log=run[1], seconds=150)
    check_once(output, start, windows)
